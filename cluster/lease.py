"""One replica of several that writes: whoever holds a Lease (coordination.k8s.io/v1).

As client-go's leader election does it (k8s.io/client-go/tools/leaderelection): clocks of others are never read. A holder is judged by
when this replica last saw the Lease change; each change is a PUT with the resourceVersion that was read, so of two only one succeeds.
Whoever holds stops by its own clock five seconds before any other may begin, and asks for that clock right before it writes.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime

from cluster.client import Client
from cluster.failures import Failure, Refused, Reply, Unreachable
from cluster.kinds import Raw
from cluster.sink import Tell

DURATION = 15
"""Seconds without a renewal after which others take over"""
RENEWED = 5.0
"""Seconds between two renewals, and between two looks of who does not hold"""
GIVEN_UP = 10.0
"""Seconds after the last renewal at which the holder stops: five are left for what it has already sent"""
AGAIN = 1.0
"""Seconds after a renewal that failed: nine attempts before it is given up"""
ANSWER = 4.0
"""Seconds for one call"""
RELEASE = 3.0
"""Seconds for the release at the end: a pod that stops has other things to do"""
LONGEST = 60
"""Seconds of another's duration that are believed: a Lease with a year in it must not keep all from writing for a year"""


def since_boot() -> float:
    """Seconds, with those that the machine was suspended: the monotonic clock of Linux stands still meanwhile."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Lease:
    """``run`` for ever; cancelled, it lets go. Stop what writes first. ``holder``: of this process alone."""

    def __init__(
        self,
        client: Client,
        *,
        name: str,
        holder: str,
        namespace: str | None = None,
        tell: Tell,
        clock: Callable[[], float] = since_boot,
        chance: Callable[[], float] = random.random,
        pace: float = 1.0,
        reachable: Callable[[], bool] = lambda: True,
    ) -> None:
        """``namespace``: the client's own unless given. ``pace``: what all times are multiplied by, alike in all replicas. ``reachable``:
        whether the API server can be called, as far as is known: while it is gone somebody else asks, for all (``cluster.gate``)."""
        self._client = client
        self._folder = f"/apis/coordination.k8s.io/v1/namespaces/{namespace or client.namespace}/leases"
        self._name = name
        self._tell = tell
        self._clock = clock
        self._chance = chance
        self._pace = pace
        self._reachable = reachable
        self._until = clock()
        self._seen: Raw = {}
        """the Lease's spec, as last read"""
        self._seen_at = clock()
        self._error = ""
        self._told = False
        self.holder = holder
        self.taken = 0
        """how often this replica has begun to hold"""

    @property
    def held(self) -> bool:
        """Whether to write, now: ask right before each write."""
        return self.left > 0

    @property
    def left(self) -> float:
        """Seconds in which to write; a call must not take longer."""
        return max(0.0, self._until - self._clock())

    async def run(self) -> None:
        """Holds, or waits to. No answer of the API server ends it."""
        try:
            while True:
                begun = self._clock()
                await self._look(begun)
                self._tell_turn()
                await asyncio.sleep(self._pause(begun))
        finally:
            await self._release()

    async def _look(self, begun: float) -> None:
        try:
            async with asyncio.timeout(ANSWER * self._pace):
                await self._try(begun)
        except (Failure, TimeoutError) as error:
            self._failed(str(error) or "the API server does not answer in time")
        else:
            self._failed("")

    def _failed(self, error: str) -> None:
        """Told once until it works again: what a broken network says differs from one second to the next."""
        if error and not self._error:
            self._tell("lease_failed", lease=self._name, error=error, held=self.held)
        self._error = error

    async def _try(self, begun: float) -> None:
        if not self._reachable():
            raise Unreachable("the API server can't be reached")
        reply = await self._client.call("GET", f"{self._folder}/{self._name}")
        if reply.status == 404:
            if not self._free():  # deleted under a holder, who has not seen it yet
                return
            lease: Raw = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": self._name}}
            self._took(begun, await self._client.call("POST", self._folder, body=self._mine(lease)))
            return
        if not reply.ok or not isinstance(reply.body, dict):
            raise Refused(f"GET {self._folder}/{self._name}", reply)
        self._see(reply.body)
        if self._free():
            body = self._mine(reply.body)
            self._took(begun, await self._client.call("PUT", f"{self._folder}/{self._name}", body=body))

    def _see(self, lease: Raw) -> None:
        spec = _map(lease.get("spec"))
        if spec != self._seen or not self._seen:
            self._seen, self._seen_at = spec, self._clock()
        if spec.get("holderIdentity") != self.holder:
            self._until = min(self._until, self._clock())

    def _free(self) -> bool:
        if self._seen.get("holderIdentity") in (None, "", self.holder):
            return True
        return self._clock() >= self._expires()

    def _expires(self) -> float:
        return self._seen_at + max(DURATION * self._pace, min(_number(self._seen.get("leaseDurationSeconds")), LONGEST))

    def _mine(self, lease: Raw) -> Raw:
        """With this replica as its holder from now on; the resourceVersion that was read stays in it."""
        spec, now = _map(lease.get("spec")), _micro_time()
        stays = spec.get("holderIdentity") == self.holder
        changes = {
            "holderIdentity": self.holder,
            "leaseDurationSeconds": max(1, round(DURATION * self._pace)),
            "acquireTime": spec.get("acquireTime") if stays and spec.get("acquireTime") else now,
            "renewTime": now,
            "leaseTransitions": _number(spec.get("leaseTransitions")) + (0 if stays or not spec else 1),
        }
        return {**lease, "spec": {**spec, **changes}}

    def _took(self, begun: float, reply: Reply) -> None:
        """Held from when it was asked for, not from when the answer came. A 409: another was faster."""
        if reply.status == 409:
            return
        if not reply.ok or not isinstance(reply.body, dict):
            raise Refused(f"writing {self._folder}/{self._name}", reply)
        self._seen, self._seen_at = _map(reply.body.get("spec")), self._clock()
        self._until = begun + GIVEN_UP * self._pace

    def _tell_turn(self) -> None:
        if self.held != self._told:
            self._told = self.held
            self.taken += self.held
            self._tell(
                "lease_held" if self.held else "lease_lost", lease=self._name, holder=str(self._seen.get("holderIdentity", ""))[:256]
            )

    def _pause(self, begun: float) -> float:
        """Seconds, jittered: replicas that started together would all ask at once. Who waits wakes when the Lease ends."""
        spread = 0.9 + 0.2 * self._chance()
        if self._error:
            return AGAIN * self._pace * spread
        if self.held:
            return max(0.0, begun + RENEWED * self._pace * spread - self._clock())
        ends = max(0.0, self._expires() - self._clock()) + 0.5 * self._pace * self._chance()
        return min(RENEWED * self._pace * spread, max(ends, 0.2 * self._pace))

    async def _release(self) -> None:
        """So that another begins at once. What can't be released ends by itself."""
        held, self._until = self.held, self._clock()
        if held:
            with contextlib.suppress(Unreachable, Failure, TimeoutError):
                async with asyncio.timeout(RELEASE):
                    await self._let_go()

    async def _let_go(self) -> None:
        path = f"{self._folder}/{self._name}"
        reply = await self._client.call("GET", path)
        spec = _map(reply.body.get("spec")) if reply.ok and isinstance(reply.body, dict) else {}
        if spec.get("holderIdentity") == self.holder:
            free = {**spec, "holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": _micro_time()}
            await self._client.call("PUT", path, body={**reply.body, "spec": free})


def _map(value: object) -> Raw:
    return value if isinstance(value, dict) else {}


def _number(value: object) -> int:
    return value if isinstance(value, int) and 0 <= value < 2**31 else 0


def _micro_time() -> str:
    """As metav1.MicroTime is written. For people: no replica reads it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
