"""The second port, without TLS: ``/livez``, ``/readyz`` and ``/metrics``, for a kubelet and Prometheus; ``/policies`` for a person.

Alive means that the event loop turns: nothing outside, no API server and no disk, can make a live process be restarted. Ready
means that a call would be judged: the first policies are in, the certificate has not expired, the server is not about to stop.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson

from policies.compiled import Compiled
from policies.stored import Entry, Key, id_of
from webhook.app import Replica
from webhook.http import JSON, Answer, Call, Refusal, said, start
from webhook.registered import Registered
from webhook.watching import Watching, nothing


@dataclass(slots=True, kw_only=True)
class Condition:
    """What ``/readyz`` tells beside the snapshot. Times are Unix seconds."""

    replica: Replica
    certificate_expires: float = 0
    certificate_refused_at: float = 0
    """when what is on disk was found wrong; 0: it is what is served"""
    loaded_at: float = 0
    """when the policies in force were read"""
    refused_at: float = 0
    """when a newer set was refused; 0: the policies in force are the newest"""
    watching: Callable[[], Iterator[Watching]] = nothing
    """the kinds that are followed in a cluster; none where policies are files"""
    leading: Callable[[], bool] = lambda: False
    """whether this replica writes statuses"""
    registered: Registered = field(default_factory=Registered)
    """whether the API server calls for all that is judged, as far as it is known"""
    entries: Mapping[Key, Entry] = field(default_factory=dict)
    """our objects in the cluster, as far as they are known"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One line of ``/readyz``."""

    name: str
    ready: bool
    text: str

    def __str__(self) -> str:
        return f"[{'+' if self.ready else '-'}] {self.name}: {self.text}"


NOT_FOUND = said(404, "ask for /livez, /readyz, /metrics or /policies")
NOT_ALLOWED = said(405, "ask by GET", b"allow: GET, HEAD\r\n")
TOO_LONG = said(413, "send no body", close=True)


class Health:
    """What is behind the second port. See ``http.Application``."""

    room = 0
    most = 2**16

    def __init__(self, condition: Condition) -> None:
        self._condition = condition
        self._pages: dict[bytes, Callable[[Call], Answer]] = {
            b"/livez": _alive,
            b"/readyz": self._ready,
            b"/metrics": self._metrics,
            b"/policies": self._policies,
        }

    def begin(self, call: Call) -> Refusal | None:
        """A body changes nothing here."""
        return None

    def lost(self, call: Call) -> None:
        """Nobody counts these."""

    def answer(self, call: Call) -> Answer:
        """A page, of the moment."""
        page = self._pages.get(call.path)
        if page is None:
            return NOT_FOUND
        if call.method not in (b"GET", b"HEAD"):
            return NOT_ALLOWED
        return TOO_LONG if max(call.size, call.declared) > self.most else page(call)

    def _ready(self, call: Call) -> Answer:
        found = list(checks(self._condition, time.time()))
        ready = all(check.ready for check in found)
        return said(200 if ready else 503, "\n".join([*map(str, found), "ready" if ready else "not ready"]))

    def _policies(self, call: Call) -> Answer:
        return Answer(start(200, JSON), orjson.dumps(known(self._condition), option=orjson.OPT_INDENT_2))

    def _metrics(self, call: Call) -> Answer:
        body, content_type = self._condition.replica.metrics.exposition(call.headers.get(b"accept", b"").decode("latin-1"))
        return Answer(start(200, b"content-type: %b\r\n" % content_type.encode()), body)


def checks(condition: Condition, now: float) -> Iterator[Check]:
    """Each check, ready or not, with what an engineer on call wants to know of it."""
    yield _policies(condition, now)
    yield from _cluster(condition)
    if said_of := "; ".join(condition.registered.sentences()):
        yield Check(name="registration", ready=True, text=said_of)
    yield _certificate(condition, now)
    if condition.replica.draining:
        yield Check(name="stopping", ready=False, text="calls are still answered; new ones should go elsewhere")


def _certificate(condition: Condition, now: float) -> Check:
    expires, refused_at = condition.certificate_expires, condition.certificate_refused_at
    until = f"{datetime.fromtimestamp(expires, UTC):%Y-%m-%d %H:%M:%S}Z"
    text = f"valid until {until}" if now < expires else f"expired on {until}"
    if refused_at:
        text += f"; what is on disk was refused {now - refused_at:.0f} s ago (log: event=certificate_refused)"
    return Check(name="certificate", ready=now < expires, text=text)


def _policies(condition: Condition, now: float) -> Check:
    snapshot = condition.replica.snapshot
    if snapshot is None:
        return Check(name="policies", ready=False, text="not loaded yet; calls get 503 with Retry-After")
    number = len(snapshot.policies)
    text = f"{number} in force, {snapshot.max_mode} at most, loaded {now - condition.loaded_at:.0f} s ago"
    if condition.refused_at:
        text += f"; a change {now - condition.refused_at:.0f} s ago was refused: the last good set acts (log: event=policies_refused)"
    return Check(name="policies", ready=True, text=text)


def _cluster(condition: Condition) -> Iterator[Check]:
    """One line; ready from the first time on that every kind was known: what was learned goes on acting, however old."""
    watching = list(condition.watching())
    if not watching:
        return
    wrong = [one for one in watching if not (one.synced and one.healthy)]
    text = f"{len(watching)} kinds are followed"
    if wrong:
        text = "; ".join(f"{one.kind}: {one.error or 'not listed yet'}{_since(one.silent)}" for one in wrong)
        if condition.replica.snapshot is not None:
            text += "; what was known acts on"
    yield Check(name="cluster", ready=condition.replica.snapshot is not None, text=text)


def _since(silent: float | None) -> str:
    return "" if silent is None else f" (last heard {silent:.0f} s ago)"


def known(condition: Condition) -> dict[str, Any]:
    """What this replica decides by, for ``/policies``: to be compared with the cluster's own objects, and between replicas."""
    snapshot = condition.replica.snapshot
    return {
        "loadedAt": condition.loaded_at or None,
        "writesStatuses": condition.leading(),
        "maxMode": snapshot.max_mode if snapshot else None,
        "platforms": list(snapshot.tables) if snapshot and snapshot.placed else [],
        "migStrategy": snapshot.mig_strategy if snapshot else None,
        "policies": {c.policy.id: {"mode": c.mode, **_stored(condition, c)} for c in snapshot.policies} if snapshot else {},
        "overlooked": list(condition.registered.overlooked),
        "refused": {id_of(key): list(one.understood.errors) for key, one in condition.entries.items() if one.understood.errors},
        "kinds": {one.kind: {"objects": one.objects, "digest": one.digest(), **one.counts} for one in condition.watching()},
    }


def _stored(condition: Condition, compiled: Compiled) -> dict[str, Any]:
    policy = compiled.policy
    kind = "ClusterGPUPolicy" if policy.namespace is None else "GPUPolicy"
    entry = condition.entries.get((kind, policy.namespace or "", policy.name))
    if entry is None:
        return {}
    acting = entry.last_good.get("generation") if entry.last_good else None
    return {"generation": entry.generation, "acting": acting}


def _alive(call: Call) -> Answer:
    return said(200, "alive")
