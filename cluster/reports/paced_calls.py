"""Writes at a stated rate, while the Lease is held and the API server can be reached; several may be under way."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from cluster.client.api_client import Client
from cluster.client.errors import Failure, Reply
from cluster.client.new_errors import NewErrors
from cluster.status.writer import ANSWER, MOST_ERRORS, REPEAT_AFTER, HeldLease, pause_after
from cluster.watch.store import Tell
from kube.tree import Raw

RATE = 200.0
"""Most writes per second: 10,000 reports take 50 s."""


@dataclass(kw_only=True)
class PacedCalls:
    """The calls of one writer."""

    client: Client
    lease: HeldLease
    tell: Tell
    event: str
    """The name under which failures are logged."""
    reachable: Callable[[], bool] = lambda: True
    rate: float = RATE
    clock: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = random.random
    failed: int = 0
    """Calls that failed, or that the API server denied."""
    failures: int = 0
    """Turns in a row that ended by a failure."""
    _asked: float = 0.0
    _slot: float = 0.0
    _errors: NewErrors = field(init=False)

    def __post_init__(self) -> None:
        self._errors = NewErrors(MOST_ERRORS, REPEAT_AFTER, self.clock)

    @property
    def may_write(self) -> bool:
        """True while the Lease is held and the API server can be reached, as far as is known."""
        return self.lease.left > 0 and self.reachable()

    async def call(self, method: str, path: str, body: Raw | None, content: str, query: dict[str, str]) -> Reply | None:
        """Make one call within the rate; None if there is no answer, or it may not be made any more."""
        now = self.clock()
        self._slot = max(self._slot, now) + 1 / self.rate
        await asyncio.sleep(self._slot - now)
        if not self.may_write:
            return None
        try:
            async with asyncio.timeout(min(ANSWER, self.lease.left)):
                return await self.client.call(method, path, body=body, content=content, query=query)
        except (Failure, TimeoutError) as error:
            self.denied(str(error) or "the API server does not answer in time")
            return None

    def overloaded(self, what: str, reply: Reply) -> bool:
        """Record a denial. Return whether the API server has too much to do, or fails: then nothing more should be
        sent in this turn."""
        self.denied(f"{what}: {reply.status} {reply.message}")
        if reply.status != 429 and reply.status < 500:
            return False
        self._asked = max(self._asked, reply.retry_after or 0.0)
        return True

    def denied(self, error: str) -> None:
        """Count a failure, and log it if it is new."""
        self.failed += 1
        if self._errors.is_new(error):
            self.tell(self.event, error=error)

    def back_off(self) -> float:
        """Count a failed turn and return the seconds to wait, jittered; longer if the API server asks for it."""
        self.failures += 1
        asked, self._asked = self._asked, 0.0
        return pause_after(self.failures, asked, self.chance())
