"""Certificates that change while they are served: from files of somebody else, or from a folder that we keep ourselves.

``refresh(now)`` is called once a second, never twice at once, and beside the event loop: it takes 10 to 30 microseconds when nothing
changed, 3 to 8 ms when something did, and seconds where a mount hangs or another process keeps the folder's lock. The first call gives a
Serving or raises. After it, a Serving means that another pair is to be served from now on; None, that what is served stays;
CertificateError, that what is on disk cannot be served: what is served stays, and the error comes again at each call until the files are
good.

A writer replaces one file after the other, so the two may not match for a moment, or one may be half written. Trouble counts only when two
calls in a row find the same bytes.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Protocol

from certs.authority import CertificateError
from certs.files import FILES, ServingFiles, self_signed
from certs.reading import fingerprint
from certs.renewal import renewal_reason
from certs.serving import Serving, load_serving, serving_of


class Source(Protocol):
    """Where the certificate comes from."""

    @property
    def ca(self) -> Path | None:
        """What callers trust, where it is ours; known after the first refresh."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for the log about the last Serving that ``refresh`` gave."""

    def refresh(self, now: datetime) -> Serving | None:
        """See the head of this file. Raises CertificateError."""


class FollowedFiles:
    """A certificate and a key that somebody else writes, by rename, by symlink (as kubelet does) or in place."""

    ca: Path | None = None

    def __init__(self, certificate: Path, key: Path) -> None:
        self._paths = (certificate, key)
        self._serving: Serving | None = None
        self._seen = b""
        self.notes: tuple[str, ...] = ()

    def refresh(self, now: datetime) -> Serving | None:
        seen = fingerprint(self._paths)
        settled, self._seen = seen == self._seen, seen
        if self._serving and seen == self._serving.digest and now < self._serving.expires:
            return None
        try:
            serving = load_serving(*self._paths, now)
        except CertificateError:
            if settled or self._serving is None:
                raise
            return None
        self.notes = (f"{self._paths[0]}{' has changed' if self._serving else ''}: {serving}",)
        self._serving = serving
        return serving


class SelfSigned:
    """The folder of ``--self-signed``: its leaf is renewed when it is due, and made anew when it is gone or damaged.

    Its CA is made only by the first refresh. When it disappears or breaks later, that is an error: callers trust it.
    """

    def __init__(self, directory: Path, names: tuple[str, ...]) -> None:
        self._directory, self._names = directory, names
        self._paths = [directory / name for name in FILES]
        self._files: ServingFiles | None = None
        self._seen = self._good = b""
        self.notes: tuple[str, ...] = ()

    @property
    def ca(self) -> Path | None:
        return self._files.ca if self._files else None

    def refresh(self, now: datetime) -> Serving | None:
        seen = fingerprint(self._paths)
        settled, self._seen = seen == self._seen, seen
        if self._files and not (settled and (seen != self._good or self._due(self._files, now))):
            return None
        files = self_signed(self._directory, self._names, now, running=self._files is not None)
        serving = serving_of(files.leaf, files.certificate, now)
        self.notes = (*files.notes, f"{files.certificate}: {serving}")
        self._files, self._seen, self._good = files, files.digest, files.digest
        return serving

    def _due(self, files: ServingFiles, now: datetime) -> bool:
        end = files.authority.certificate.not_valid_after_utc
        return now >= end or renewal_reason(files.leaf, self._names, now, latest=end) is not None
