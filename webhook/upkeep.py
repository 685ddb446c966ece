"""What is kept up while calls are answered: the policies in force and the certificate that is served. Each is looked at once a
second, apart from the other: a mount that hangs must not hold up a renewal. What is wrong is told, and the last good one goes on.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from certs.authority import CertificateError
from certs.following import Source
from certs.serving import LiveContext, Serving
from policies.compiled import Compiled
from policies.snapshot import Snapshot
from webhook import logs
from webhook.following import FollowedSources, beside
from webhook.health import Condition
from webhook.sources import Loaded, Sources, SourcesError

LOOK = 1.0
"""Seconds between two looks at files: the certificate is read whole in 30 us, a hundred policy files are asked for their stat."""
SLOW = 5.0
"""Seconds after which policies that are still being read are told of: ten thousand take two."""
MOST_TOLD = 100
"""errors of a refused set of policies, and names of a new one, that are logged"""
AT_ONCE = 100
"""policies that are let go of in one turn of the event loop: 0.1 ms"""
QUIET = 2
"""Looks without a complaint after which a certificate is good again: files that have just changed get one without any."""


async def every_second(look: Callable[[], Awaitable[None]]) -> None:
    """For ever."""
    while True:
        await asyncio.sleep(LOOK)
        try:
            await look()
        except Exception as error:  # noqa: BLE001 - one bad look must not end the following
            logs.write("failed", "error", phase="following", error=logs.trace(error))


class PolicyUpkeep:
    """Puts into force what the sources say."""

    def __init__(self, sources: Sources, condition: Condition) -> None:
        self._paths = list(sources.paths)
        self._followed = FollowedSources(sources)
        self._condition = condition
        self._replica = condition.replica

    async def first(self) -> Loaded:
        """Read at the start, and in force from then on. Raises SourcesError with all that is wrong."""
        slow = asyncio.get_running_loop().call_later(SLOW, self._tell_slow)
        try:
            loaded = await self._followed.first()
        finally:
            slow.cancel()
        self._swap(loaded)
        return loaded

    async def look(self) -> None:
        """Take what is new."""
        try:
            loaded = await self._followed.changed()
        except SourcesError as error:
            self._refuse([str(one) for one in error.errors])
            return
        if loaded is not None:
            new = loaded.snapshot
            changed = await beside(lambda: changes(self._replica.snapshot, new))
            gone = self._swap(loaded)
            logs.write("policies_loaded", **changed)
            await _dissolve(gone)

    def _tell_slow(self) -> None:
        logs.write("policies_waiting", "warning", text="not read yet: one of these does not answer, or is very large", paths=self._paths)

    def _swap(self, loaded: Loaded) -> list[Compiled]:
        """From the next call on these policies decide. On the event loop, so no call is in the middle of the old ones, which are
        returned: nothing else holds them."""
        old, self._replica.snapshot = self._replica.snapshot, loaded.snapshot
        self._condition.loaded_at, self._condition.refused_at = time.time(), 0
        self._replica.metrics.snapshot_swapped(loaded.snapshot, self._condition.loaded_at)
        for warning in loaded.warnings:
            logs.write("policies_warning", "warning", text=warning)
        if old is None:
            return []
        old.forget()
        return list(old.policies)

    def _refuse(self, errors: list[str]) -> None:
        self._condition.refused_at = time.time()
        self._replica.metrics.snapshot_refused()
        told = errors[:MOST_TOLD]
        logs.write("policies_refused", "error", errors=told, more=len(errors) - len(told), inForce="the last good set")


async def _dissolve(policies: list[Compiled]) -> None:
    """Ten thousand policies that end at once hold up the event loop for 12 ms, and a few at a time nobody."""
    while policies:
        del policies[-AT_ONCE:]
        await asyncio.sleep(0)


def changes(before: Snapshot | None, after: Snapshot) -> dict[str, Any]:
    """What a new set of policies is to the one before: ids, at most a hundred of each kind."""
    old = {c.policy.id: c.policy for c in before.policies} if before else {}
    new = {c.policy.id: c.policy for c in after.policies}
    return {
        "policies": len(new),
        "maxMode": after.max_mode,
        "added": sorted(new.keys() - old.keys())[:MOST_TOLD],
        "removed": sorted(old.keys() - new.keys())[:MOST_TOLD],
        "changed": sorted(name for name in new.keys() & old.keys() if new[name] != old[name])[:MOST_TOLD],
    }


class CertificateUpkeep:
    """Serves what the source has. Raises CertificateError where it has nothing to begin with."""

    def __init__(self, source: Source, condition: Condition) -> None:
        self._source = source
        self._condition = condition
        self._metrics = condition.replica.metrics
        self._error = ""
        self._quiet = 0
        first = source.refresh(datetime.now(UTC))
        assert first is not None, "the first look finds something new, or raises"
        self.live = LiveContext(first)
        self._serve(first)

    async def look(self) -> None:
        """Take what is new."""
        try:
            found = await beside(lambda: self._source.refresh(datetime.now(UTC)))
        except CertificateError as error:
            self._refuse(str(error))
            return
        self._quiet += 1
        if found is not None:
            self._serve(found)
        elif self._error and self._quiet >= QUIET:
            self._good_again()

    def _serve(self, found: Serving) -> None:
        self.live.replace(found)
        self._error = ""
        self._condition.certificate_expires, self._condition.certificate_refused_at = found.expires.timestamp(), 0
        self._metrics.certificate(self._condition.certificate_expires)
        for note in self._source.notes:
            logs.write("certificate", note=note)

    def _refuse(self, sentence: str) -> None:
        """Told once for each: it is found again every second."""
        self._quiet = 0
        if sentence == self._error:
            return
        self._error = sentence
        self._condition.certificate_refused_at = time.time()
        self._metrics.certificate_refused()
        logs.write("certificate_refused", "error", error=sentence, inForce="the last good certificate")

    def _good_again(self) -> None:
        self._error = ""
        self._condition.certificate_refused_at = 0
        self._metrics.certificate(self._condition.certificate_expires)
        logs.write("certificate", note="what is on disk is good again")
