"""The rules of our webhook configurations, which take effect once a replica can be reached.

The chart renders each entry without ``rules``, so that the API server never calls it, and all rules as an annotation. Replicas copy them
into the entries, by server-side apply under a field manager of their own: as with the ``caBundle``, whoever renders the configurations
leaves the field out, and keeps all others. So a first installation that fails blocks nothing, and an upgrade leaves what is in effect.

A configuration without the annotation, such as what ``berth webhooks`` prints, is left alone.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from cluster.certificates.bell import look_at_changes
from cluster.certificates.registrations import FIRST_KIND, GROUP, KINDS, Configuration, Registrations
from cluster.client.api_client import Client
from cluster.client.errors import GIVE_RIGHTS, Failure, Rejected
from cluster.client.new_errors import NewErrors
from cluster.watch.store import Tell
from kube.tree import Raw, map_at

ANNOTATION = "berth.dev/rules-when-ready"
"""JSON: the rules of each entry by its name. An entry that is not in it is never called."""
MANAGER = "berth-registration"
"""The chart reads this name: it renders the rules that an earlier chart rendered until this manager owns them."""
REACHED = 3.0
"""Seconds for which the Service has a ready endpoint before rules first take effect: each kube-proxy learns of it by a watch."""
LOOK = 30.0
"""Seconds between two looks if nothing is due and no watch rings."""
AGAIN, MOST_AGAIN = 0.5, 5.0
"""Seconds before the next look if rules are due: doubled each time from the first to the second."""
MOST_WRITES, WINDOW = 20, 60.0
"""Writes within so many seconds. More are a contest with another program, which must not load the API server."""

Rules = list[Raw]


class WebhookRules:
    """Keeps the rules of the configurations ``name``, and ``first`` where there is one, in effect. ``run`` is a task of its own.

    ``is_serving`` returns whether this replica serves a certificate that callers can verify; ``needs_bundle`` whether they verify it by a
    ``caBundle``; ``answers`` whether this replica answers calls of a path: those of a newer release take effect with its replicas.
    """

    def __init__(
        self,
        client: Client,
        name: str,
        first: str,
        tell: Tell,
        *,
        is_serving: Callable[[], bool],
        needs_bundle: Callable[[], bool],
        answers: Callable[[str], bool] = lambda _: True,
    ) -> None:
        self._client = client
        self._names = [*((kind, name) for kind in KINDS), (FIRST_KIND, first)]
        self._registrations = Registrations(client, name, tell, first=first)
        self._tell = tell
        self._is_serving = is_serving
        self._needs_bundle = needs_bundle
        self._answers = answers
        self._errors = NewErrors()
        self._pause = AGAIN
        self._reached_at: float | None = None
        self._writes: deque[float] = deque(maxlen=MOST_WRITES)

    async def run(self) -> None:
        """Look for ever: whenever a watch rings, and at intervals."""
        await look_at_changes(self._client, [(f"{GROUP}/{KINDS[kind]}", name) for kind, name in self._names], self._look_and_pause)

    async def _look_and_pause(self) -> float:
        """Look once; return the seconds until the next look."""
        due = await self.looked()
        self._pause = min(2 * self._pause, MOST_AGAIN) if due else AGAIN
        return self._pause if due else LOOK

    async def looked(self) -> bool:
        """Look once, and log a failure; return whether rules are still due."""
        try:
            due = await self.look()
        except Failure as error:
            if self._errors.is_new(str(error)):
                forbidden = isinstance(error, Rejected) and error.reply.status == 403
                self._tell("registration_failed", error=f"{error}; {GIVE_RIGHTS}" if forbidden else str(error))
            return True
        self._errors.forget()
        return due

    async def look(self) -> bool:
        """Copy the rules that are due, if the API server can call for them; return whether some are still due. Raises Failure."""
        configurations = await self._registrations.read()
        due = [configuration for configuration in configurations if is_due(configuration)]
        if not due:
            if any(map(shipped, configurations)):
                self._reached_at = -REACHED  # what was in effect once is restored at once
            return False
        if not self._is_serving() or not await self._is_reachable(due[0]):
            return True
        bundle = self._needs_bundle()
        applied = [self._apply(configuration, needs_bundle=bundle) for configuration in due]
        outcomes = await asyncio.gather(*applied, return_exceptions=True)  # a failure of one leaves no other without rules
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        return any(outcomes)

    async def _is_reachable(self, configuration: Configuration) -> bool:
        """Return whether the Service of the entries has had a ready endpoint for a while. Raises Failure."""
        service = map_at(configuration.entries[0], "clientConfig", "service")
        if not service:
            return True
        path = f"/apis/discovery.k8s.io/v1/namespaces/{service.get('namespace')}/endpointslices"
        reply = await self._client.call("GET", path, query={"labelSelector": f"kubernetes.io/service-name={service.get('name')}"})
        if not any(map(_has_ready_endpoint, reply.object(f"GET {path}").get("items") or ())):
            self._reached_at = None
            return False
        if self._reached_at is None:
            self._reached_at = time.monotonic()
        return time.monotonic() - self._reached_at >= REACHED

    async def _apply(self, configuration: Configuration, *, needs_bundle: bool) -> bool:
        """Apply the rules of all entries that callers can verify; return whether some are still due. Raises Failure."""
        place = f"{configuration.kind}/{configuration.name}"
        now = time.monotonic()
        if len(self._writes) == MOST_WRITES and now - self._writes[0] < WINDOW:
            raise Failure(f"{place}: another program keeps overwriting its rules; stop that program")
        wanted, waiting = shipped(configuration) or {}, False
        applied: list[dict[str, Any]] = []
        is_changed = False
        for entry in configuration.entries:
            rules, called = wanted.get(str(entry.get("name"))), map_at(entry, "clientConfig")
            path = map_at(called, "service").get("path")
            if rules and ((needs_bundle and not called.get("caBundle")) or (path is not None and not self._answers(str(path)))):
                rules, waiting = entry.get("rules"), True
            is_changed = is_changed or rules != entry.get("rules")
            if rules:
                applied.append({"name": entry.get("name"), "rules": rules})
        if waiting and not is_changed:
            return True
        stored = map_at(configuration.value, "metadata")
        metadata = {key: stored.get(key) for key in ("name", "uid", "resourceVersion")}  # what changed or went meanwhile is read again
        self._writes.append(now)
        if not await self._registrations.apply(configuration, MANAGER, metadata, applied):
            return True
        self._tell("registration_in_effect", configuration=place, webhooks=len(applied))
        return waiting


def shipped(configuration: Configuration) -> dict[str, Rules] | None:
    """Return the rules that the chart ships, by the names of their entries; None if there is no annotation. Raises Failure."""
    text = map_at(configuration.value, "metadata", "annotations").get(ANNOTATION)
    if text is None:
        return None
    try:
        rules = json.loads(str(text))
    except ValueError:
        rules = None
    if isinstance(rules, dict) and all(
        isinstance(value, list) and all(isinstance(rule, dict) for rule in value) for value in rules.values()
    ):
        return rules
    raise Failure(f"{configuration.kind}/{configuration.name}: the annotation {ANNOTATION} does not map webhook names to rules")


def is_due(configuration: Configuration) -> bool:
    """Return whether an entry lacks the rules that the chart ships, or our field manager owns others than those. Raises Failure."""
    rules = shipped(configuration)
    if rules is None:
        return False
    owned = set(_owned(configuration))
    for entry in configuration.entries:
        name = str(entry.get("name"))
        wanted = [{"scope": "*", **rule} for rule in rules.get(name, ())]
        if (name in owned) is not bool(wanted) or (wanted and wanted != entry.get("rules")):
            return True
    return False


def _owned(configuration: Configuration) -> Iterator[str]:
    """Yield the names of the entries whose rules our field manager owns (metadata.managedFields, FieldsV1)."""
    for owner in map_at(configuration.value, "metadata").get("managedFields") or ():
        if owner.get("manager") == MANAGER:
            entries = map_at(owner, "fieldsV1", "f:webhooks")
            yield from (str(json.loads(key[2:])["name"]) for key, fields in entries.items() if "f:rules" in fields)


def _has_ready_endpoint(endpoints: Raw) -> bool:
    """Return whether an EndpointSlice has one; what does not say counts as ready (discovery.k8s.io/v1, EndpointConditions)."""
    return any(map_at(endpoint, "conditions").get("ready") is not False for endpoint in endpoints.get("endpoints") or ())
