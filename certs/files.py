"""The folder of ``--self-signed DIR``: a CA that outlives restarts, and a serving certificate made from it.

    ca.crt   what callers trust         ca.key   mode 0600, signs new serving certificates
    tls.crt  what is served             tls.key  mode 0600

A serving certificate that is missing, damaged or due is made anew, and said. The CA is never replaced: callers trust it,
so anything wrong with it is an error that says what to do. Files are written beside and renamed, so a crash leaves the
old or the new one, never half of it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from certs.authority import CertificateError, KeyPair, issue, issued_by, load, make_ca
from certs.renewal import renewal_reason

PRIVATE = 0o600
PUBLIC = 0o644


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingFiles:
    """What a server needs, and what was done to get it: ``notes`` are sentences for the log."""

    ca: Path
    certificate: Path
    key: Path
    authority: KeyPair
    leaf: KeyPair
    notes: tuple[str, ...] = ()


def self_signed(directory: Path, names: Sequence[str], now: datetime, *, running: bool = False) -> ServingFiles:
    """The folder's files, made or renewed where needed, for ``names`` (DNS names and IP addresses).

    In a server that is ``running`` a CA that is gone is an error, not a reason to make one: callers trust the old one. And a new leaf then
    keeps the old one's names, or two servers with one folder and different names would replace each other's leaf for ever.

    Raises CertificateError with the file, what is wrong and what to do, when the folder or its CA cannot be used.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        ca, ca_notes = _authority(directory, now, may_make=not running)
        leaf, leaf_notes = _leaf(directory, ca, names, now, keep_names=running)
    except OSError as error:
        raise CertificateError(f"{error.filename or directory}: {error.strerror}; --self-signed needs a folder it can write to") from None
    notes = (*ca_notes, *leaf_notes)
    certificate, key = directory / "tls.crt", directory / "tls.key"
    return ServingFiles(ca=directory / "ca.crt", certificate=certificate, key=key, authority=ca, leaf=leaf, notes=notes)


def _authority(directory: Path, now: datetime, *, may_make: bool) -> tuple[KeyPair, tuple[str, ...]]:
    certificate, key = directory / "ca.crt", directory / "ca.key"
    present = [path for path in (certificate, key) if path.exists()]
    if not present and not may_make:
        raise CertificateError(
            f"{certificate}: it and {key.name} are gone; restore them, or restart for a new CA, and give it to every caller"
        )
    if not present:
        ca = make_ca(now)
        _store(ca, certificate, key)
        return ca, (f"made a new CA: {certificate}",)
    if len(present) == 1:
        missing = key if present == [certificate] else certificate
        raise CertificateError(f"{missing}: it is missing but {present[0].name} is there; restore it, or delete {present[0]} for a new CA")
    return _stored_authority(certificate, key, now)


def _stored_authority(certificate: Path, key: Path, now: datetime) -> tuple[KeyPair, tuple[str, ...]]:
    otherwise = f"restore {certificate} and {key}, or delete both for a new CA, which every caller must then be given"
    try:
        ca = load(certificate.read_bytes(), key.read_bytes())
    except CertificateError as error:
        raise CertificateError(f"{certificate}: {error}; {otherwise}") from None
    if now >= ca.certificate.not_valid_after_utc:
        raise CertificateError(f"{certificate}: {renewal_reason(ca, (), now)}; {otherwise}")
    notes = []
    if key.stat().st_mode & 0o077:
        key.chmod(PRIVATE)
        notes.append(f"{key} could be read by others: its mode is 0600 now")
    due = renewal_reason(ca, (), now)
    if due:
        notes.append(f"{certificate} should be replaced soon: {due}")
    return ca, tuple(notes)


def _leaf(directory: Path, ca: KeyPair, names: Sequence[str], now: datetime, *, keep_names: bool) -> tuple[KeyPair, tuple[str, ...]]:
    certificate, key = directory / "tls.crt", directory / "tls.key"
    old = _stored_leaf(certificate, key, ca)
    reason = old if isinstance(old, str) else renewal_reason(old, names, now, latest=ca.certificate.not_valid_after_utc)
    if isinstance(old, KeyPair) and reason is None:
        return old, ()
    kept = old.names if isinstance(old, KeyPair) and keep_names else ()
    new = issue(ca, tuple(dict.fromkeys([*names, *kept])), now)
    _store(new, certificate, key)
    return new, (f"made a new serving certificate, {certificate}: {reason}",)


def _stored_leaf(certificate: Path, key: Path, ca: KeyPair) -> KeyPair | str:
    """The leaf, or why it is of no use."""
    try:
        leaf = load(certificate.read_bytes(), key.read_bytes())
    except FileNotFoundError:
        return "there was none"
    except CertificateError as error:
        return f"the old one is damaged, {error}"
    return leaf if issued_by(leaf, ca) else "the old one is of another CA"


def _store(pair: KeyPair, certificate: Path, key: Path) -> None:
    _write(key, pair.key_pem, PRIVATE)
    _write(certificate, pair.certificate_pem, PUBLIC)


def _write(path: Path, content: bytes, mode: int) -> None:
    """Write beside and rename. The mode is set at creation: a key is at no moment readable by others."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.unlink(missing_ok=True)
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
