"""Whether the API server can be reached at all, asked by one for all: nine kinds that each try by themselves would be nine connections
a moment while it is down, from every replica.
"""

from __future__ import annotations

import asyncio
import random
import time

from cluster.client import Client
from cluster.failures import Garbled, Unreachable

FIRST, LONGEST = 0.5, 4.0
"""Seconds between two attempts: doubled from the first to the longest"""
OUTAGE = 2.0
"""Seconds after which it was one: what failed before it says nothing about the server that is back"""
ANSWER = 5.0
"""seconds for the answer to an attempt: /version is a constant"""


class Gate:
    """Open while nobody doubts. One per client."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._failures = 0
        self._one = asyncio.Lock()
        self.open = True
        self.error = ""
        """why the last attempt failed; "" while the gate is open"""
        self.outages = 0
        """how often the server came back after a while"""
        self._doubted_at = 0.0

    def doubt(self) -> None:
        """A call, or a stream, could not reach the server: the next who wants to pass asks first."""
        if self.open:
            self.open, self._doubted_at = False, time.monotonic()

    async def passing(self) -> None:
        """Returns when the server answers, as far as is known. Of all that wait one asks, again and again; then all go on at once."""
        while not self.open:
            async with self._one:
                if not self.open:
                    await asyncio.sleep(self._pause())
                    await self._ask()

    async def _ask(self) -> None:
        try:
            await self._answered()
        except Unreachable as error:
            self._failures += 1
            self.error = str(error)
        else:
            self.open, self._failures, self.error = True, 0, ""
            self.outages += time.monotonic() - self._doubted_at >= OUTAGE

    async def _answered(self) -> None:
        """Anything but a 401 shows that it is there and knows us. Raises Unreachable."""
        try:
            reply = await self._client.call("GET", "/version", seconds=ANSWER)
        except Garbled:
            return
        if reply.status == 401:
            raise unauthorized(self._client, reply.message)

    def _pause(self) -> float:
        """Seconds, jittered, so that a hundred replicas do not ask in step. The first attempt is soon: most doubts are unfounded."""
        if not self._failures:
            return random.uniform(0, FIRST / 2)
        return min(LONGEST, FIRST * 2.0 ** min(self._failures, 10)) * random.uniform(0.75, 1.25)


def unauthorized(client: Client, message: str) -> Unreachable:
    """What a 401 is, once credentials were read again: all kinds fail alike."""
    why = f" ({client.access_error})" if client.access_error else ""
    return Unreachable(f"the API server at {client.server} does not accept our credentials: 401 {message}{why}")
