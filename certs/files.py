"""The folder of ``--self-signed DIR``: a CA that outlives restarts, and a serving certificate made from it.

    ca.crt   what callers trust         ca.key   mode 0600, signs new serving certificates
    tls.crt  what is served             tls.key  mode 0600
    .lock    held by the process that is making files here

A serving certificate that is missing, damaged or due is made anew, and said. The CA is never replaced: callers trust it,
so anything wrong with it is an error that says what to do. Only a CA that never was complete is no error: its making was cut short after
``ca.key``, its certificate lies beside (``writing.finish``) and is put in its place. A lone ``ca.key`` without that is not of our making:
somebody took ``ca.crt`` away, which callers may trust, and may bring it back.

What is there is first looked at without the lock, and where nothing is to be done nothing is written: the folder may be read-only.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TypeAlias

from certs.authority import CertificateError, KeyPair, checked_names, issue, issued_by, load, make_ca
from certs.reading import digest, reason_of, whole
from certs.renewal import renewal_reason
from certs.writing import PRIVATE, finish, locked, store

FILES = ("ca.crt", "ca.key", "tls.crt", "tls.key")

Contents: TypeAlias = dict[str, bytes | None]
"""What FILES hold, each read once; None for one that is not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingFiles:
    """What a server needs, and what was done to get it: ``notes`` are sentences for the log."""

    ca: Path
    certificate: Path
    key: Path
    authority: KeyPair
    leaf: KeyPair
    notes: tuple[str, ...] = ()
    digest: bytes = field(default=b"", repr=False)
    """``reading.fingerprint`` of FILES when they held these two pairs"""


def self_signed(directory: Path, names: Sequence[str], now: datetime, *, running: bool = False) -> ServingFiles:
    """The folder's files, made or renewed where needed, for ``names`` (DNS names and IP addresses).

    In a server that is ``running`` a CA that is gone is an error, not a reason to make one: callers trust the old one. And a new leaf then
    keeps the old one's names, or two servers with one folder and different names would replace each other's leaf for ever.

    Raises CertificateError with the file, what is wrong and what to do, when the folder or its CA cannot be used, or a name is none.
    """
    wanted = checked_names(names)
    try:
        return _as_found(directory, wanted, now) or _mended(directory, wanted, now, running=running)
    except OSError as error:
        path = error.filename2 or error.filename or directory
        raise CertificateError(f"{path}: {reason_of(error, '--self-signed needs a folder it can write to')}") from None


def _as_found(directory: Path, names: Sequence[str], now: datetime) -> ServingFiles | None:
    """Where nothing is to be done. What looks wrong is looked at again with the lock: another process may be in the middle of it."""
    contents = _contents(directory)
    with suppress(CertificateError):
        ca, notes = _stored_authority(directory, contents, now)
        leaf = _stored_leaf(contents, ca)
        if isinstance(leaf, KeyPair) and not renewal_reason(leaf, names, now, latest=ca.certificate.not_valid_after_utc):
            return _files(directory, contents, ca, leaf, notes)
    return None


def _mended(directory: Path, names: Sequence[str], now: datetime, *, running: bool) -> ServingFiles:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(directory):
        finished = finish(directory / "ca.crt", directory / "ca.key")
        contents = _contents(directory)
        if not finished and contents["ca.crt"] is contents["ca.key"] is None:
            _make_authority(directory, contents, now, running=running)
            finished = True
        ca, ca_notes = _stored_authority(directory, contents, now)
        made = (f"made a new CA: {directory / 'ca.crt'}",) if finished else ()
        leaf, leaf_notes = _leaf(directory, contents, ca, names, now, keep_names=running)
        return _files(directory, contents, ca, leaf, (*made, *ca_notes, *leaf_notes))


def _files(directory: Path, contents: Contents, ca: KeyPair, leaf: KeyPair, notes: tuple[str, ...]) -> ServingFiles:
    return ServingFiles(
        ca=directory / "ca.crt",
        certificate=directory / "tls.crt",
        key=directory / "tls.key",
        authority=ca,
        leaf=leaf,
        notes=notes,
        digest=digest(contents[name] or b"" for name in FILES),
    )


def _contents(directory: Path) -> Contents:
    return {name: _content(directory / name) for name in FILES}


def _content(path: Path) -> bytes | None:
    """Nothing in it where it is a pipe, a folder or too large: as damaged as junk. Raises OSError."""
    try:
        return whole(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except CertificateError:
        return b""


def _make_authority(directory: Path, contents: Contents, now: datetime, *, running: bool) -> None:
    if running:
        raise CertificateError(
            f"{directory / 'ca.crt'}: it and ca.key are gone; restore them, or restart for a new CA, and give it to every caller"
        )
    _store(directory, contents, "ca", make_ca(now))


def _stored_authority(directory: Path, contents: Contents, now: datetime) -> tuple[KeyPair, tuple[str, ...]]:
    certificate, key = directory / "ca.crt", directory / "ca.key"
    new = "and restart for a new CA, which every caller must then be given"
    _refuse_half(certificate, key, contents, new)
    otherwise = f"restore {certificate} and {key}, or delete both {new}"
    try:
        ca = load(contents["ca.crt"] or b"", contents["ca.key"] or b"")
    except CertificateError as error:
        raise CertificateError(f"{certificate}: {error}; {otherwise}") from None
    due = renewal_reason(ca, (), now)
    if now >= ca.certificate.not_valid_after_utc:
        raise CertificateError(f"{certificate}: {due}; {otherwise}")
    soon = (f"{certificate} should be replaced soon: {due}",) if due else ()
    return ca, (*_closed(key), *soon)


def _refuse_half(certificate: Path, key: Path, contents: Contents, new: str) -> None:
    for missing, there in ((certificate, key), (key, certificate)):
        if contents[missing.name] is None and contents[there.name] is not None:
            raise CertificateError(f"{missing}: it is missing but {there.name} is there; restore it, or delete {there} {new}")


def _closed(key: Path) -> tuple[str, ...]:
    """Notes about a key that others can read, or could until now."""
    if not key.stat().st_mode & 0o077:
        return ()
    try:
        key.chmod(PRIVATE)
    except OSError as error:
        return (f"{key} can be read by others, and stays so ({error.strerror}): give it mode 0600",)
    return (f"{key} could be read by others: its mode is 0600 now",)


def _leaf(
    directory: Path, contents: Contents, ca: KeyPair, names: Sequence[str], now: datetime, *, keep_names: bool
) -> tuple[KeyPair, tuple[str, ...]]:
    old = _stored_leaf(contents, ca)
    reason = old if isinstance(old, str) else renewal_reason(old, names, now, latest=ca.certificate.not_valid_after_utc)
    if isinstance(old, KeyPair) and reason is None:
        return old, ()
    kept = old.names if isinstance(old, KeyPair) and keep_names else ()
    new = issue(ca, (*names, *kept), now)
    _store(directory, contents, "tls", new)
    return new, (f"made a new serving certificate, {directory / 'tls.crt'}: {reason}",)


def _stored_leaf(contents: Contents, ca: KeyPair) -> KeyPair | str:
    """The leaf, or why it is of no use."""
    certificate, key = contents["tls.crt"], contents["tls.key"]
    if certificate is None or key is None:
        missing = [name for name in ("tls.crt", "tls.key") if contents[name] is None]
        return "there was none" if len(missing) == 2 else f"{missing[0]} was missing"
    try:
        leaf = load(certificate, key)
    except CertificateError as error:
        return f"the old one is damaged, {error}"
    return leaf if issued_by(leaf, ca) else "the old one is of another CA"


def _store(directory: Path, contents: Contents, stem: str, pair: KeyPair) -> None:
    store(pair, directory / f"{stem}.crt", directory / f"{stem}.key")
    contents |= {f"{stem}.crt": pair.certificate_pem, f"{stem}.key": pair.key_pem}
