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
from policies.snapshot import Snapshot
from webhook import logs
from webhook.following import FollowedSources, beside
from webhook.health import Condition
from webhook.in_force import dissolve, swap
from webhook.sources import Sources, SourcesError

LOOK = 1.0
"""Seconds between two looks at files: the certificate is read whole in 30 us, a hundred policy files are asked for their stat."""
SLOW = 5.0
"""Seconds after which policies that are still being read are told of: ten thousand take two."""
MOST_TOLD = 100
"""errors of a refused set of policies, and names of a new one, that are logged"""
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

    async def first(self) -> Snapshot:
        """Read at the start, and in force from then on. Raises SourcesError with all that is wrong."""
        slow = asyncio.get_running_loop().call_later(SLOW, self._tell_slow)
        try:
            loaded = await self._followed.first()
        finally:
            slow.cancel()
        swap(self._condition, loaded.snapshot, loaded.warnings)
        return loaded.snapshot

    async def follow(self) -> None:
        """For ever."""
        await every_second(self.look)

    async def close(self) -> None:
        """Nothing is held between two looks."""

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
            gone = swap(self._condition, new, loaded.warnings)
            logs.write("policies_loaded", **changed)
            await dissolve(gone)

    def _tell_slow(self) -> None:
        logs.write("policies_waiting", "warning", text="not read yet: one of these does not answer, or is very large", paths=self._paths)

    def _refuse(self, errors: list[str]) -> None:
        self._condition.refused_at = time.time()
        self._replica.metrics.snapshot_refused()
        told = errors[:MOST_TOLD]
        logs.write("policies_refused", "error", errors=told, more=len(errors) - len(told), inForce="the last good set")


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
