"""Events (events.k8s.io/v1) about our objects: ``kubectl describe gpupolicy`` shows them. One a second about the cluster's, one a second
about all namespaces', one in ten seconds about each namespace's; more are dropped."""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from cluster.client import Client
from cluster.failures import Failure
from cluster.kinds import Raw
from cluster.sink import Tell
from policies.findings import Condition
from policies.policy import API_VERSION, GROUP
from policies.stored import Key

BURST = 10
"""events at once after a quiet time, about objects of the cluster, and as many about those of namespaces"""
RATE = 1.0
"""events a second of either: the API server keeps each for an hour, so at most 7,200 of ours"""
BURST_OF_ONE = 3
RATE_OF_ONE = 0.1
"""the same of one namespace: who writes there can't use up what others are told with"""
MOST_NAMESPACES = 1000
"""whose events are counted apart: more than can have sent one since they were last forgotten"""
NOTE = 1024
"""characters of a note (k8s.io/kubernetes, pkg/apis/core/validation/events.go: NoteLengthLimit)"""
CONTROLLER = f"{GROUP}/berth"
ACTIONS = {"Accepted": "Accept", "Conflicted": "Compare"}
"""Conditions whose changes are events"""
_NAME = 200
"""characters of the object's name in the event's, which has 253"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The object that an event is about."""

    key: Key
    uid: str
    resource_version: str


class Bucket:
    """So many at once after a quiet time, then so many a second."""

    __slots__ = ("_at", "_burst", "_left", "_rate")

    def __init__(self, burst: float, rate: float, now: float) -> None:
        self._burst, self._rate, self._left, self._at = burst, rate, burst, now

    def has(self, now: float) -> bool:
        """Whether one may go now."""
        self._left = min(self._burst, self._left + (now - self._at) * self._rate)
        self._at = now
        return self._left >= 1

    def full(self, now: float) -> bool:
        """Whether nothing is missing."""
        return self.has(now) and self._left >= self._burst

    def take(self) -> None:
        """One goes."""
        self._left -= 1


class Events:
    """Takes what has changed, at once, and sends it in ``run``. ``instance``: of this process."""

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
        self._of_cluster = Bucket(BURST, RATE, clock())
        self._of_tenants = Bucket(BURST, RATE, clock())
        self._of_one: dict[str, Bucket] = {}
        self._waiting: deque[tuple[str, Raw]] = deque()
        self._filled = asyncio.Event()
        self._error = ""
        self.sent = 0
        self.dropped = 0
        """past the rate, or refused by the API server"""

    def changed(self, subject: Subject, before: Mapping[str, tuple[str, str]], now: Condition) -> None:
        """``before``: (status, reason) by type of condition, as it was written. That all is well is no event the first time."""
        if now.type not in ACTIONS or before.get(now.type) == (now.status, now.reason):
            return
        well = now.status == ("True" if now.type == "Accepted" else "False")
        if well and now.type not in before:
            return
        if not self._may(subject.key[1]):
            self.dropped += 1
            return
        self._waiting.append(self._event(subject, now, well))
        self._filled.set()

    def _may(self, namespace: str) -> bool:
        now = self._clock()
        buckets = [self._of_tenants, self._own(namespace, now)] if namespace else [self._of_cluster]
        if not all(bucket.has(now) for bucket in buckets):
            return False
        for bucket in buckets:
            bucket.take()
        return True

    def _own(self, namespace: str, now: float) -> Bucket:
        if namespace not in self._of_one:
            if len(self._of_one) >= MOST_NAMESPACES:
                self._of_one = {name: bucket for name, bucket in self._of_one.items() if not bucket.full(now)}
            self._of_one[namespace] = Bucket(BURST_OF_ONE, RATE_OF_ONE, now)
        return self._of_one[namespace]

    def _event(self, subject: Subject, condition: Condition, well: bool) -> tuple[str, Raw]:
        """(namespace, event). Events about objects of the cluster are in ``default``, as everywhere in Kubernetes."""
        kind, namespace, name = subject.key
        where = namespace or "default"
        regarding = {"apiVersion": API_VERSION, "kind": kind, "name": name, "uid": subject.uid, "resourceVersion": subject.resource_version}
        text = condition.message or ("no conflict any more" if condition.type == "Conflicted" else "understood")
        return where, {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": f"{name[:_NAME].rstrip('.-')}.{self._chance(64):016x}", "namespace": where},
            "eventTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "reportingController": CONTROLLER,
            "reportingInstance": self._instance,
            "action": ACTIONS[condition.type],
            "reason": condition.reason,
            "type": "Normal" if well else "Warning",
            "note": text if len(text) <= NOTE else text[: NOTE - 3] + "...",
            "regarding": regarding | ({"namespace": namespace} if namespace else {}),
        }

    async def run(self) -> None:
        """For ever. What can't be sent is dropped: the status says it too."""
        while True:
            await self._filled.wait()
            while self._waiting:
                await self._send(*self._waiting.popleft())
            self._filled.clear()

    async def _send(self, namespace: str, event: Raw) -> None:
        error = await self._sent(namespace, event) if self._held() else "the Lease is not held any more"
        if error and error != self._error:
            self._tell("event_failed", error=error)
        self._error = error
        if error:
            self.dropped += 1
        else:
            self.sent += 1

    async def _sent(self, namespace: str, event: Raw) -> str:
        try:
            reply = await self._client.call("POST", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events", body=event)
        except Failure as failure:
            return str(failure)
        return "" if reply.ok else f"{reply.status} {reply.message}"
