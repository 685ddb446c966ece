"""Certificates that change while they are served: files of somebody else, or made from the CA of a folder.

``refresh(now)`` is called once a second, never twice at once, and beside the event loop: it takes 10 to 30
microseconds when nothing changed, 3 to 8 ms when something did, and seconds where a mount hangs. The first call
gives a Serving or raises. After it, a Serving means that another pair is to be served from now on; None, that what
is served stays; CertificateError, that what is on disk cannot be served: what is served stays, and the error comes
again at each call until the files are good.

A writer replaces one file after the other, so the two may not match for a moment, or one may be half written.
Trouble counts only when two calls in a row find the same bytes.
"""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import Protocol

from certs.authority import CertificateError, KeyPair, checked_names, issue, load_pair, make_ca, renewal_reason
from certs.reading import fingerprint, read_file, reason_of
from certs.serving import Serving, load_serving, serving_of


class CertificateSource(Protocol):
    """A source of the serving certificate."""

    @property
    def ca(self) -> Path | None:
        """The CA file that callers trust, if the CA is our own; known after the first refresh."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Log sentences about the last Serving that ``refresh`` returned."""

    def refresh(self, now: datetime) -> Serving | None:
        """Look for a new pair; see the module docstring. Raises CertificateError."""


class FollowedFiles:
    """A certificate and a key that another program writes, by rename, by symlink (as kubelet does) or in
    place."""

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
    """The CA in the folder of ``--self-signed``, read or made by the first refresh, and serving certificates from
    it that are in memory only."""

    def __init__(self, directory: Path, names: tuple[str, ...]) -> None:
        self._directory = directory
        self._names = names
        self._authority: KeyPair | None = None
        self._leaf: KeyPair | None = None
        self.notes: tuple[str, ...] = ()

    @property
    def ca(self) -> Path | None:
        return self._directory / "ca.crt" if self._authority else None

    def refresh(self, now: datetime) -> Serving | None:
        note = ""
        if self._authority is None:
            self._names = checked_names(self._names)
            self._authority, note = stored_or_made(self._directory, now)
        path, end = self._directory / "ca.crt", self._authority.certificate.not_valid_after_utc
        if self._leaf is not None and renewal_reason(self._leaf, self._names, now, latest=end) is None:
            return None
        if now >= end:
            raise CertificateError(f"{path}: the CA expired on {end:%Y-%m-%d %H:%M}Z; delete {self._directory} and restart for a new CA")
        self._leaf = issue(self._authority, self._names, now)
        serving = serving_of(self._leaf, path, now)
        self.notes = (*([note] if note else []), f"made a serving certificate from {path}: {serving}")
        return serving


PRIVATE = 0o600


def stored_or_made(directory: Path, now: datetime) -> tuple[KeyPair, str]:
    """Return the CA of the folder of ``--self-signed``, and a log sentence about it, "" if there is nothing to say.

    The folder has ca.crt, which callers trust, and ca.key (mode 0600), which signs serving certificates. The first start
    makes them and nothing replaces them: callers trust it, so anything wrong with it is an error that says what to do.

    Raises CertificateError with the file, what is wrong and what to do, when the folder or its CA cannot be used.
    """
    certificate, key = directory / "ca.crt", directory / "ca.key"
    try:
        there = [path.exists() for path in (certificate, key)]
        if not any(there):
            return _made(directory, now), f"made a new CA: {certificate}"
    except OSError as error:
        raise CertificateError(f"{directory}: {reason_of(error, '--self-signed needs a writable folder')}") from None
    otherwise = f"restore {certificate} and {key}, or delete both and restart for a new CA, which every client must then trust"
    for path, found in zip((certificate, key), there, strict=True):
        if not found:
            raise CertificateError(f"{path}: it is missing; {otherwise}")
    ca = _stored(certificate, key, otherwise)
    due = renewal_reason(ca, (), now)
    if now >= ca.certificate.not_valid_after_utc:
        raise CertificateError(f"{certificate}: {due}; {otherwise}")
    return ca, f"{certificate} should be replaced soon: {due}" if due else ""


def _stored(certificate: Path, key: Path, otherwise: str) -> KeyPair:
    contents = read_file(certificate), read_file(key)
    try:
        return load_pair(*contents)
    except CertificateError as error:
        raise CertificateError(f"{certificate}: {error}; {otherwise}") from None


def _made(directory: Path, now: datetime) -> KeyPair:
    """Make the CA: of two processes that start at once one fails, as the key is created only where there is none."""
    ca = make_ca(now)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(directory / "ca.key", os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
    with os.fdopen(descriptor, "wb") as file:
        file.write(ca.key_pem)
    unfinished = directory / ".ca.crt.new"
    unfinished.write_bytes(ca.certificate_pem)
    unfinished.replace(directory / "ca.crt")
    return ca
