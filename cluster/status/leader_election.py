"""Leader election: of several replicas, the holder of a Lease (coordination.k8s.io/v1) writes.

It works like client-go's leader election (k8s.io/client-go/tools/leaderelection): the clocks of other
replicas are never used. A Lease expires by the time at which this replica last observed a change of it; each
change is a PUT with the resourceVersion that was read, so of two concurrent ones only one succeeds. The
holder stops by its own clock five seconds before any other may begin, and checks that clock right before each
write.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from cluster.background import background
from cluster.client.api_client import Client
from cluster.client.errors import Failure, Reply, Unreachable
from cluster.watch.store import Tell
from kube.tree import Raw, map_at

DURATION = 15
"""Seconds without a renewal after which another replica takes over."""
RENEWED = 5.0
"""Seconds between two renewals of the holder, and between two reads of the other replicas."""
GIVEN_UP = 10.0
"""Seconds after the last renewal at which the holder stops: five are left for requests already sent."""
AGAIN = 1.0
"""Seconds between attempts after a failed renewal: nine attempts before the Lease is given up."""
ANSWER = 4.0
"""Timeout in seconds of one attempt."""
RELEASE = 3.0
"""Timeout in seconds of the release at shutdown: a stopping pod has other things to do."""
LONGEST = 60
"""Most seconds of another holder's leaseDurationSeconds that are honoured: a Lease with a duration of a year
must not keep all replicas from writing for a year."""


def since_boot() -> float:
    """Return the seconds since boot, including suspension, during which Linux's monotonic clock stands
    still."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Lease:
    """A Lease for which this replica is a candidate.

    ``run`` runs forever and releases the Lease when cancelled; stop the writers first. ``holder`` must be
    unique to this process.
    """

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
        """Create a candidate that does not hold the Lease yet.

        ``namespace``: the client's own by default. ``pace``: a factor on all times, the same in all replicas.
        ``reachable``: returns False while the API server is known to be unreachable, and is probed for all
        callers elsewhere (``cluster.watch.connectivity``).
        """
        self._client = client
        self._folder = f"/apis/coordination.k8s.io/v1/namespaces/{namespace or client.namespace}/leases"
        self._name = name
        self._tell = tell
        self._clock = clock
        self._chance = chance
        self._pace = pace
        self._reachable = reachable
        self._until = clock()
        self._seen: Mapping[str, Any] = {}
        """The Lease's spec as last read."""
        self._seen_at = clock()
        self._error = ""
        self._reported = False
        self.holder = holder
        self.taken = 0
        """The number of times that this replica has acquired the Lease."""

    @property
    def held(self) -> bool:
        """True while this replica is the holder."""
        return self._until > self._clock()

    @property
    def left(self) -> float:
        """The seconds left for writing; check it right before each write, which may take no longer.

        0 without the Lease, or while the API server can't be reached.
        """
        return max(0.0, self._until - self._clock()) if self._reachable() else 0.0

    @background("lease")
    async def run(self) -> None:
        """Hold the Lease, or wait for it, forever. No answer of the API server ends it."""
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
        except Exception as error:  # noqa: BLE001 - a candidate that ended would never write again
            self._failed(f"{type(error).__name__}: {error}"[:500])
        else:
            self._failed("")

    def _failed(self, error: str) -> None:
        """Log an error only once until a call works again: messages of a broken network differ from call to
        call."""
        if error and not self._error:
            self._tell("lease_failed", lease=self._name, error=error, held=self.held)
        self._error = error

    async def _try(self, begun: float) -> None:
        if not self._reachable():
            raise Unreachable("the API server can't be reached")
        path = f"{self._folder}/{self._name}"
        reply = await self._client.call("GET", path)
        if reply.status == 404:
            if not self._free():  # deleted under a holder that has not noticed yet
                return
            lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": self._name}}
            self._took(begun, await self._client.call("POST", self._folder, body=self._mine(lease)))
            return
        lease = reply.object(f"GET {path}")
        self._see(lease)
        if self._free():
            self._took(begun, await self._client.call("PUT", path, body=self._mine(lease)))

    def _see(self, lease: Raw) -> None:
        spec = map_at(lease, "spec")
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
        """Return the Lease with this replica as holder and a new renewTime, and the resourceVersion that was
        read."""
        spec, now = map_at(lease, "spec"), _micro_time()
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
        """Record an acquisition, valid from the time of the request, not of the answer. On a 409 another was
        faster."""
        if reply.status == 409:
            return
        lease = reply.object(f"writing {self._folder}/{self._name}")
        self._seen, self._seen_at = map_at(lease, "spec"), self._clock()
        self._until = begun + GIVEN_UP * self._pace

    def _tell_turn(self) -> None:
        if self.held != self._reported:
            self._reported = self.held
            self.taken += self.held
            self._tell(
                "lease_held" if self.held else "lease_lost", lease=self._name, holder=str(self._seen.get("holderIdentity", ""))[:256]
            )

    def _pause(self, begun: float) -> float:
        """Return the seconds until the next attempt, jittered so that replicas that started together do not
        call at once.

        A replica that does not hold the Lease wakes when it expires.
        """
        spread = 0.9 + 0.2 * self._chance()
        if self._error:
            return AGAIN * self._pace * spread
        if self.held:
            return max(0.0, begun + RENEWED * self._pace * spread - self._clock())
        ends = max(0.0, self._expires() - self._clock()) + 0.5 * self._pace * self._chance()
        return min(RENEWED * self._pace * spread, max(ends, 0.2 * self._pace))

    async def _release(self) -> None:
        """Release the Lease so that another replica takes over at once. If that fails, the Lease expires by
        itself."""
        held, self._until = self.held, self._clock()
        if held:
            with contextlib.suppress(Unreachable, Failure, TimeoutError):
                async with asyncio.timeout(RELEASE):
                    await self._let_go()

    async def _let_go(self) -> None:
        path = f"{self._folder}/{self._name}"
        reply = await self._client.call("GET", path)
        spec = map_at(reply.body, "spec") if reply.ok and isinstance(reply.body, dict) else {}
        if spec.get("holderIdentity") == self.holder:
            free = {**spec, "holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": _micro_time()}
            await self._client.call("PUT", path, body={**reply.body, "spec": free})


def _number(value: object) -> int:
    return value if isinstance(value, int) and 0 <= value < 2**31 else 0


def _micro_time() -> str:
    """Return the current time as a metav1.MicroTime. It is for people: no replica reads it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
