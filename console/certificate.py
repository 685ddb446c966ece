"""The certificate of the port, which follows its files."""

from __future__ import annotations

from datetime import UTC, datetime

from certs.authority import CertificateError
from certs.following import CertificateSource
from certs.serving import LiveContext
from cluster.client.new_errors import NewErrors
from telemetry import log
from webhook.reload.changed_files import beside
from webhook.reload.file_watcher import every_second


class Certificate:
    """Serves what the source has. Raises CertificateError where it has none at the start."""

    def __init__(self, source: CertificateSource) -> None:
        self._source = source
        self._errors = NewErrors()
        first = source.refresh(datetime.now(UTC))
        assert first is not None, "the first look finds something new, or raises"
        self._live = LiveContext(first)
        self.context = self._live.context
        self._tell()

    async def follow(self) -> None:
        """Look once a second, for ever. What is wrong is logged once, and the last good pair served on."""
        await every_second(self.look)

    async def look(self) -> None:
        """Look once."""
        try:
            found = await beside(lambda: self._source.refresh(datetime.now(UTC)))
        except CertificateError as error:
            if self._errors.is_new(str(error)):
                log.write("certificate_rejected", "error", error=str(error), inForce="the last good certificate")
            return
        if found is not None:
            self._live.replace(found)
            self._errors.forget()
            self._tell()

    def _tell(self) -> None:
        for note in self._source.notes:
            log.write("certificate", note=note)
