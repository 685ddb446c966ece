"""The watchers of files while calls are answered: of the policies in force and of the certificate that is
served.

Each checks once a second, independently of the other: a mount that hangs must not hold up a renewal. Errors
are logged, and the last good version stays in force.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from certs.authority import CertificateError
from certs.following import CertificateSource, FollowedFiles
from certs.serving import LiveContext, Serving
from cluster.client.new_errors import NewErrors
from policies.state.snapshot import Snapshot
from sources.sources import LoadedSources, Sources, SourcesError
from telemetry import log
from webhook.reload import activation
from webhook.reload.changed_files import ChangedFiles, beside
from webhook.reload.reload_results import ReloadResults

LOOK = 1.0
"""Seconds between two checks of files: the certificate is read whole in 30 us, of a hundred policy files only
stat is called."""
SLOW = 5.0
"""Seconds after which it is logged that policies are still being read: ten thousand take two."""
MOST_LOGGED = 100
"""The most errors of a rejected set of policies that are logged."""
QUIET = 2
"""Checks without an error after which a certificate is good again: files that have just changed pass one
without an error."""


async def every_second(look: Callable[[], Awaitable[None]]) -> None:
    """Run for ever."""
    while True:
        await asyncio.sleep(LOOK)
        try:
            await look()
        except Exception as error:  # noqa: BLE001 - one bad look must not end the following
            log.write("failed", "error", phase="following", error=log.trace(error))


class PolicyFileWatcher:
    """Activates the policies of the sources."""

    def __init__(self, sources: Sources, results: ReloadResults) -> None:
        self._paths = list(sources.paths)
        self._followed = ChangedFiles(sources)
        self._results = results
        self._admission = results.admission

    async def first(self) -> Snapshot:
        """Read and activate the first policies. Raises SourcesError with all that is wrong."""
        slow = asyncio.get_running_loop().call_later(SLOW, self._tell_slow)
        try:
            loaded = await self._followed.first()
        finally:
            slow.cancel()
        await activation.activate_update(self._results, loaded.update, loaded.warnings)
        self._results.files_checked("policies")
        return loaded.snapshot

    async def follow(self) -> None:
        """Run for ever."""
        await every_second(self.look)

    async def stop_writing(self) -> None:
        """Do nothing: policies of files have no status."""

    async def close(self) -> None:
        """Do nothing: nothing is held between two checks."""

    async def look(self) -> None:
        """Check once, and activate what is new."""
        try:
            loaded = await self._changed()
        except SourcesError as error:
            self._reject([str(one) for one in error.errors])
            return
        except Exception:
            self._reject(["the policies can't be read; the log has the reason (event=failed)"])
            raise
        if loaded is not None:
            await activation.activate_update(self._results, loaded.update, loaded.warnings)

    async def _changed(self) -> LoadedSources | None:
        try:
            return await self._followed.changed()
        finally:
            self._results.files_checked("policies")

    def _tell_slow(self) -> None:
        log.write(
            "policies_waiting",
            "warning",
            text="policies are not read yet: one of these paths does not respond or is very large",
            paths=self._paths,
        )

    def _reject(self, errors: list[str]) -> None:
        self._results.rejected_at = time.time()
        self._admission.metrics.snapshot_rejected()
        shown = errors[:MOST_LOGGED]
        log.write("policies_rejected", "error", errors=shown, more=len(errors) - len(shown), inForce="the last valid set")


class CertificateWatcher:
    """Serves the source's certificate, to ``callers`` (see ``LiveContext``).

    Raises CertificateError where the source has none at the start.
    """

    def __init__(self, source: CertificateSource, results: ReloadResults, callers: str = "") -> None:
        self._source = source
        self._results = results
        self._metrics = results.admission.metrics
        self._errors = NewErrors()
        self._quiet = 0
        first = source.refresh(datetime.now(UTC))
        assert first is not None, "the first look finds something new, or raises"
        self.live = LiveContext(first, callers)
        self._serve(first)
        self._checked()

    async def look(self) -> None:
        """Check once, and activate what is new."""
        try:
            found = await beside(lambda: self._source.refresh(datetime.now(UTC)))
        except CertificateError as error:
            self._reject(str(error))
            return
        finally:
            self._checked()
        self._quiet += 1
        if found is not None:
            self._serve(found)
        elif self._quiet >= QUIET and self._errors.forget():
            self._good_again()

    def _checked(self) -> None:
        if isinstance(self._source, FollowedFiles):  # the other sources read nothing again
            self._results.files_checked("certificate")

    def _serve(self, found: Serving) -> None:
        self.live.replace(found)
        self._errors.forget()
        self._results.certificate_expires, self._results.certificate_rejected_at = found.expires.timestamp(), 0
        self._metrics.certificate(self._results.certificate_expires)
        for note in self._source.notes:
            log.write("certificate", note=note)

    def _reject(self, sentence: str) -> None:
        """Report an error once, although it is found again every second."""
        self._quiet = 0
        if not self._errors.is_new(sentence):
            return
        self._results.certificate_rejected_at = time.time()
        self._metrics.certificate_rejected()
        log.write("certificate_rejected", "error", error=sentence, inForce="the last valid certificate")

    def _good_again(self) -> None:
        self._results.certificate_rejected_at = 0
        self._metrics.certificate(self._results.certificate_expires)
        log.write("certificate", note="the certificate on disk is valid again")
