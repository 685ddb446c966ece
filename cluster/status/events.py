"""Events (events.k8s.io/v1) about Berth's objects, which ``kubectl describe gpupolicy`` shows.

The rate is one per second about cluster-scoped objects, one per second about all namespaced ones, and one in
ten seconds about those of each namespace; more are dropped.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from analysis.conditions.conditions import Condition
from analysis.world.happenings import EVENT_NOTE
from cluster.background import background
from cluster.client.api_client import Client
from cluster.client.errors import Failure
from cluster.client.new_errors import NewErrors
from cluster.watch.store import Tell
from kube.tree import Raw
from policies.policy import API_VERSION, CONTROLLER
from policies.state.objects import ObjectEntry

BURST = 10
"""Burst of events about cluster-scoped objects, and of those about namespaced ones."""
RATE = 1.0
"""Events per second of either: the API server keeps each for an hour, so at most 7,200 of Berth's."""
BURST_OF_ONE = 3
RATE_OF_ONE = 0.1
"""The same for one namespace, so that its users can't exhaust the rate of the others."""
MOST_NAMESPACES = 1000
"""Most namespaces whose events are counted separately: more than can have sent one since they were last
forgotten."""
MOST_WAITING = 100
"""Most events that wait to be sent: more come only while the API server answers slowly."""
ACTIONS = {"Accepted": "Accept", "Conflicted": "Compare"}
"""The conditions whose changes are sent as events, with the action of each event."""
_NAME = 200
"""Most characters of the object's name in the event's name, which may have 253."""


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What an event tells."""

    action: str
    """What was done, in one word."""
    reason: str
    """Why, in one word."""
    well: bool
    """True for a change for the better: its type is Normal, else Warning."""
    text: str
    identity: str = ""
    """What makes it the same event as one that was sent before, which the API server then keeps; "" if it never is."""


class TokenBucket:
    """A token bucket: ``burst`` events at once after a quiet time, then ``rate`` per second."""

    __slots__ = ("_at", "_burst", "_left", "_rate")

    def __init__(self, burst: float, rate: float, now: float) -> None:
        self._burst, self._rate, self._left, self._at = burst, rate, burst, now

    def has(self, now: float) -> bool:
        """Return whether there is a token for one event."""
        self._left = min(self._burst, self._left + (now - self._at) * self._rate)
        self._at = now
        return self._left >= 1

    def full(self, now: float) -> bool:
        """Return whether the bucket is full."""
        return self.has(now) and self._left >= self._burst

    def take(self) -> None:
        """Take one token."""
        self._left -= 1


class Events:
    """A queue of events: ``changed`` adds to it, ``run`` sends them. ``instance`` identifies this process."""

    def __init__(
        self,
        client: Client,
        *,
        instance: str,
        held: Callable[[], bool],
        tell: Tell,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[int], int] = random.getrandbits,
    ) -> None:
        self._client = client
        self._instance = instance[:128]
        self._held = held
        self._tell = tell
        self._clock = clock
        self._chance = chance
        self._of_cluster = TokenBucket(BURST, RATE, clock())
        self._of_tenants = TokenBucket(BURST, RATE, clock())
        self._of_one: dict[str, TokenBucket] = {}
        self._waiting: deque[tuple[str, Raw]] = deque()
        self._filled = asyncio.Event()
        self._errors = NewErrors()
        self.sent = 0
        self.dropped = 0
        """Events over the rate, or not sent: denied by the API server, unreachable, or without the Lease."""

    def changed(self, entry: ObjectEntry, before: Mapping[str, tuple[str, str]], now: Condition) -> None:
        """Queue an event if a condition of the object has changed.

        ``before``: (status, reason) by type of condition, as stored before. A condition that is good from the
        start is no event.
        """
        if now.type not in ACTIONS or before.get(now.type) == (now.status, now.reason):
            return
        well = now.status == ("True" if now.type == "Accepted" else "False")
        if well and now.type not in before:
            return
        kind, namespace, name = entry.key
        regarding = {"apiVersion": API_VERSION, "kind": kind, "name": name, "uid": entry.uid, "resourceVersion": entry.resource_version}
        text = now.message or ("the conflict is resolved" if now.type == "Conflicted" else "accepted")
        self.add(regarding, namespace, About(action=ACTIONS[now.type], reason=now.reason, well=well, text=text))

    def add(self, regarding: Raw, namespace: str, event: About) -> bool:
        """Queue an event, or return False if there were too many. ``namespace``: of the object, "" if it is in none."""
        if len(self._waiting) >= MOST_WAITING or not self._may(namespace):
            self.dropped += 1
            return False
        self._waiting.append(self._event(regarding, namespace, event))
        self._filled.set()
        return True

    def _may(self, namespace: str) -> bool:
        now = self._clock()
        buckets = [self._of_tenants, self._own(namespace, now)] if namespace else [self._of_cluster]
        if not all(bucket.has(now) for bucket in buckets):
            return False
        for bucket in buckets:
            bucket.take()
        return True

    def _own(self, namespace: str, now: float) -> TokenBucket:
        if namespace not in self._of_one:
            if len(self._of_one) >= MOST_NAMESPACES:
                self._of_one = {name: bucket for name, bucket in self._of_one.items() if not bucket.full(now)}
            self._of_one[namespace] = TokenBucket(BURST_OF_ONE, RATE_OF_ONE, now)
        return self._of_one[namespace]

    def _event(self, regarding: Raw, namespace: str, event: About) -> tuple[str, Raw]:
        """Return (namespace, event). Events about cluster-scoped objects are in ``default``, as usual in
        Kubernetes."""
        where, text = namespace or "default", event.text
        suffix = hashlib.blake2b(event.identity.encode(), digest_size=8).hexdigest() if event.identity else f"{self._chance(64):016x}"
        return where, {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": f"{regarding['name'][:_NAME].rstrip('.-')}.{suffix}", "namespace": where},
            "eventTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "reportingController": CONTROLLER,
            "reportingInstance": self._instance,
            "action": event.action,
            "reason": event.reason,
            "type": "Normal" if event.well else "Warning",
            "note": text if len(text) <= EVENT_NOTE else text[: EVENT_NOTE - 3] + "...",
            "regarding": regarding | ({"namespace": namespace} if namespace else {}),
        }

    @background("events")
    async def run(self) -> None:
        """Send events forever. One that can't be sent is dropped: the status has the same information."""
        while True:
            await self._filled.wait()
            while self._waiting:
                await self._send(*self._waiting.popleft())
            self._filled.clear()

    async def _send(self, namespace: str, event: Raw) -> None:
        error = await self._sent(namespace, event) if self._held() else "this replica no longer holds the Lease"
        if error:
            self.dropped += 1
            if self._errors.is_new(error):
                self._tell("event_failed", error=error)
        else:
            self.sent += 1
            self._errors.forget()

    async def _sent(self, namespace: str, event: Raw) -> str:
        """Return why the event is not stored; "" if it is, or was before."""
        try:
            reply = await self._client.call("POST", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events", body=event)
        except Failure as failure:
            return str(failure)
        except Exception as error:  # noqa: BLE001 - the next events must not end because of one
            return f"{type(error).__name__}: {error}"[:500]
        return "" if reply.ok or reply.status == 409 else f"{reply.status} {reply.message}"
