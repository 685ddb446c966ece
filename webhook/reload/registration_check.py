"""A check that the API server calls this replica for all that it judges: the registration, against the
catalog and the resource names in the cluster.

The configurations carry a digest of what their conditions are made from (``registration``). Where it is not
that of this replica's catalog, or where nodes or DeviceClasses have resources that may be accelerators and
are in no condition, pods pass without a review: that is reported. So is a configuration that does not exist.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from catalog.nearest import list_known
from cluster.background import background
from cluster.client.errors import Garbled, Reply, Unreachable
from kube.tree import maps_in, texts_at
from policies.facts.cluster_facts import ClusterFacts
from policies.pods.unlisted_accelerators import overlooked
from policies.state.snapshot import Snapshot
from registration.configurations import CLAIMS_CHOSEN, FIRST_NAME, MADE_OF, NAME, NAMES_CHOSEN, QUEUES_CHOSEN, made_of
from registration.entries import CLAIMS, DEFAULT, InstallChoices
from registration.match_conditions import PatternError
from telemetry import log

if TYPE_CHECKING:
    from cluster.client.api_client import Client

LOOK = 10.0
"""Seconds between two checks, of two or three small GETs each: a registration is changed by hand, by someone who wants
to see the effect."""
PATHS = tuple(f"/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations/{NAME}" for kind in ("mutating", "validating"))
FIRST_PATH = f"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/{FIRST_NAME}"
CONFIGURATIONS = {
    PATHS[0]: (f"MutatingWebhookConfiguration/{NAME}", "pods are not mutated"),
    PATHS[1]: (f"ValidatingWebhookConfiguration/{NAME}", "updates of pods and changes by other webhooks are not checked"),
    FIRST_PATH: (f"MutatingWebhookConfiguration/{FIRST_NAME}", "workloads get no queue label"),
}
"""Path -> the object as messages name it, and what follows if it does not exist."""
CREATE = "to create what is missing, run helm upgrade, or berth webhooks and kubectl apply"
CURRENT = "the webhook configurations match this replica's catalog"
OTHER = (
    "the webhook configurations do not match this replica's catalog, so some pods may not reach Berth; run helm upgrade, or berth webhooks"
    " and kubectl apply; during an upgrade this ends when the new version's configurations are applied"
)
"""The sentence if the registration was made from another catalog, with the next step."""
COVER = "name them in a catalog file, as accelerators or under notAccelerators"
MOST_NAMED = 20
"""The most names in a log line."""


@dataclass(slots=True)
class Registered:
    """The result of the last check."""

    differs: bool | None = None
    """True if the registration was made from another catalog; None if there is none under our name, or it may
    not be read."""
    missing: tuple[str, ...] | None = None
    """Webhook configurations that do not exist or are empty; None if none may be read, or before the first look."""
    overlooked: tuple[str, ...] = ()
    """Names that may be accelerators and that no match condition covers."""

    @property
    def is_complete(self) -> bool | None:
        """True if every webhook configuration exists; None if that is not known."""
        return None if self.missing is None else not self.missing

    @property
    def is_current(self) -> bool | None:
        """True if it is complete and made from our catalog; None if that is not known."""
        return False if self.missing else None if self.differs is None else not self.differs

    @property
    def is_well(self) -> bool:
        """True if there is nothing to correct, as far as is known."""
        return self.is_current is not False and not self.overlooked

    def missing_text(self) -> str:
        """Return what does not exist, and what follows from it."""
        effects = {name: effect for name, effect in CONFIGURATIONS.values() if name in (self.missing or ())}
        effect = " and ".join(effects.values())
        if all(CONFIGURATIONS[path][0] in effects for path in PATHS):
            effect = "the API server sends no pods to Berth, and no policy applies"
        verb = "does not exist or has" if len(effects) == 1 else "do not exist or have"
        return f"{' and '.join(effects)} {verb} no rules: {effect}; {CREATE}"

    def sentences(self) -> Iterator[str]:
        """Yield sentences for ``/readyz``; none where there is nothing to report."""
        if self.missing:
            yield self.missing_text()
        if self.differs is not None:
            yield OTHER if self.differs else CURRENT
        if self.overlooked:
            yield f"no match condition covers {list_known(self.overlooked, MOST_NAMED)}, which may be accelerators; {COVER}"

    def collect_metrics(self) -> Iterator[Metric]:
        """Yield the metrics; the first two only where it is known whether there is a registration of our name."""
        for name, text, value in (
            ("berth_registered", "1 if the webhook configurations exist, 0 if one is missing or empty.", self.is_complete),
            ("berth_registration_current", "1 if they match the catalog of this replica, 0 if not.", self.is_current),
        ):
            if value is not None:
                yield GaugeMetricFamily(name, text, float(value))
        text = "Resources of nodes and DeviceClasses that may be accelerators and that no match condition covers."
        yield GaugeMetricFamily("berth_resources_overlooked", text, len(self.overlooked))


@dataclass(slots=True)
class RegistrationCheck:
    """Checks periodically, on the event loop."""

    client: Client
    snapshot: Callable[[], Snapshot | None]
    found: Registered
    _own: dict[InstallChoices, str] = field(default_factory=dict)
    _without_rules: set[str] = field(default_factory=set)
    """Paths of configurations that had no rules at the last look; at two looks in a row, they count as missing."""

    @background("registration")
    async def run(self) -> None:
        """Check for ever."""
        while True:
            try:
                await self.look()
            except (Unreachable, Garbled):
                pass  # the kinds that are followed tell that the API server is not there
            except Exception as error:  # noqa: BLE001 - one bad look must not end the looking
                log.write("failed", "error", phase="registration", error=log.trace(error))
            await asyncio.sleep(LOOK)

    async def look(self) -> None:
        """Check once, and log what has changed. Raises Unreachable and Garbled."""
        snapshot = self.snapshot()
        if snapshot is None:
            return
        replies = {path: await self.client.call("GET", path) for path in PATHS}
        read = [found for reply in replies.values() if (found := _annotations(reply)) is not None]
        if any(annotations.get(QUEUES_CHOSEN) == "true" for annotations in read):
            replies[FIRST_PATH] = await self.client.call("GET", FIRST_PATH)
        self._tell_missing(replies)
        differs = any(self._differs(one, snapshot) for one in read) if read else None
        names = _missed(snapshot.cluster, read, snapshot)
        if differs and not self.found.differs:
            log.write("registration_differs", "warning", name=NAME, text=OTHER)
        if names and names != self.found.overlooked:
            log.write("resources_overlooked", "warning", names=list(names[:MOST_NAMED]), more=max(0, len(names) - MOST_NAMED))
        self.found.differs, self.found.overlooked = differs, names

    def _tell_missing(self, replies: Mapping[str, Reply]) -> None:
        """Log configurations that are gone, or back, once. An API server that fails tells nothing of what exists."""
        if any(not reply.ok and reply.status not in (403, 404) for reply in replies.values()):
            return
        without_rules, self._without_rules = self._without_rules, {path for path, reply in replies.items() if _has_no_rules(reply)}
        absent = {path for path, reply in replies.items() if reply.status == 404} | (without_rules & self._without_rules)
        missing = tuple(CONFIGURATIONS[path][0] for path in replies if path in absent)
        is_known = any(reply.status != 403 for reply in replies.values())
        before, self.found.missing = self.found.missing, missing if is_known else None
        if missing and missing != before:
            log.write("registration_missing", "warning", names=list(missing), text=self.found.missing_text())
        elif before and is_known and not missing:
            log.write("registration_back", names=list(before), text="the API server sends pods to Berth again")

    def _differs(self, annotations: dict[str, str], snapshot: Snapshot) -> bool:
        """Return whether the registration was made from another catalog; one without a digest was."""
        claims = next((one for one in CLAIMS if one == annotations.get(CLAIMS_CHOSEN)), DEFAULT.claims)
        chosen = InstallChoices(claims=claims, names=_names(annotations), queues=annotations.get(QUEUES_CHOSEN) == "true")
        if chosen not in self._own:
            self._own.clear()
            try:
                self._own[chosen] = made_of(snapshot.catalog, chosen)
            except PatternError:
                return True
        return annotations.get(MADE_OF) != self._own[chosen]


def _has_no_rules(reply: Reply) -> bool:
    """Return True if no webhook of a configuration has rules. A first installation's has no rules until a replica can be reached."""
    return reply.ok and isinstance(reply.body, dict) and not any(entry.get("rules") for entry in maps_in(reply.body.get("webhooks")))


def _annotations(reply: Reply) -> dict[str, str] | None:
    """Return the annotations; None where there is no such configuration, or it may not be read."""
    return texts_at(reply.body, "metadata", "annotations") if reply.ok and isinstance(reply.body, dict) else None


def _names(annotations: dict[str, str]) -> tuple[str, ...]:
    return tuple(name for name in annotations.get(NAMES_CHOSEN, "").split(",") if name)


def _missed(facts: ClusterFacts, read: list[dict[str, str]], snapshot: Snapshot) -> tuple[str, ...]:
    """Return the overlooked names; where no registration can be read, all that the catalog lacks."""
    registered = [frozenset(_names(annotations)) for annotations in read]
    names = overlooked(facts, snapshot.catalog)
    return tuple(name for name in names if not registered or not all(name in one for one in registered))
