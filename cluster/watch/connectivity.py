"""The reachability of the API server, probed by one caller for all: a dozen kinds that each retry by themselves
would open nine connections at a time from every replica while it is down.
"""

from __future__ import annotations

import asyncio
import random
import time

from cluster.client.api_client import Client
from cluster.client.errors import Garbled, Unreachable
from cluster.watch.backoff import doubled_pause

FIRST, LONGEST = 0.5, 4.0
"""Seconds between two probes: doubled from the first to the longest."""
OUTAGE = 2.0
"""Seconds without an answer that count as an outage: failures before it say nothing about the server
afterwards."""
ANSWER = 5.0
"""Timeout in seconds of a probe: /version is a constant."""


class Connectivity:
    """A gate before calls, open until a call or watch reports a failure to reach the server. One per
    client."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._failures = 0
        self._one = asyncio.Lock()
        self.open = True
        self.error = ""
        """The error of the last probe; "" while the gate is open."""
        self.outages = 0
        """The number of outages after which the server came back."""
        self._doubted_at = 0.0

    def doubt(self) -> None:
        """Close the gate, as a call or a stream could not reach the server: the next caller of ``passing``
        probes first."""
        if self.open:
            self.open, self._doubted_at = False, time.monotonic()

    async def passing(self) -> None:
        """Return when the server answers, as far as is known. One of the waiting callers probes for all of
        them."""
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
        """Probe once. Any answer but a 401 shows that the server is up and accepts the credentials. Raises
        Unreachable."""
        try:
            reply = await self._client.call("GET", "/version", seconds=ANSWER)
        except Garbled:
            return
        if reply.status == 401:
            raise unauthorized(self._client, reply.message)

    def _pause(self) -> float:
        """Return the seconds before a probe, jittered so that a hundred replicas do not probe at the same
        time.

        The first probe comes soon: most failures are not an outage.
        """
        if not self._failures:
            return random.uniform(0, FIRST / 2)
        return doubled_pause(self._failures, FIRST, LONGEST)


def unauthorized(client: Client, message: str) -> Unreachable:
    """Return the error for a 401 that remains after credentials were reloaded: all kinds fail alike."""
    why = f" ({client.access_error})" if client.access_error else ""
    return Unreachable(f"the API server at {client.server} does not accept Berth's credentials: 401 {message}{why}")
