"""A certificate and its key, put into a folder that other processes put them into too: one at a time, and both or neither.

A pair is written whole beside its place (``.ca.crt.new``, ``.ca.key.new``) and then renamed, the certificate last. So a certificate in
its place always has its key, and a disk that is full, or a process that dies, leaves at most the new key in its place and the whole new
certificate beside: ``finish`` puts that in its place too.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from certs.authority import CertificateError, KeyPair, load
from certs.reading import whole

PRIVATE = 0o600
PUBLIC = 0o644

PATIENCE = 10.0
"""Seconds for the lock. Who has it writes four small files, in milliseconds; who still has it then hangs."""
BETWEEN = 0.01
"""Seconds between two tries"""

_READ_ONLY = {errno.EROFS, errno.EACCES, errno.EPERM}
_HELD = {errno.EAGAIN, errno.EACCES}
"""EWOULDBLOCK, by its other name; some systems say EACCES (fcntl(2))."""


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Alone among all processes that ask for this, by a lock on ``.lock`` in the folder; the kernel releases that of one that dies.

    Where no file can be made there is no lock: the others cannot be written either, and whoever tries finds that out.
    Raises CertificateError when another process keeps the lock, OSError where the file system has none.
    """
    path = directory / ".lock"
    descriptor = _opened(path)
    if descriptor is None:
        yield
        return
    try:
        _wait(path, descriptor)
        yield
    finally:
        os.close(descriptor)


def _opened(path: Path) -> int | None:
    """Open for writing too: NFS gives an exclusive lock only on that."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE)
    except OSError as error:
        if error.errno in _READ_ONLY:
            return None
        raise


def _wait(path: Path, descriptor: int) -> None:
    """Asked again and again: a call that blocks could not be given up."""
    end = time.monotonic() + PATIENCE
    while not _taken(path, descriptor):
        if time.monotonic() > end:
            raise CertificateError(f"{path}: another process has held it for {PATIENCE:.0f} s; end that one (fuser {path} names it)")
        time.sleep(BETWEEN)


def _taken(path: Path, descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _HELD:
            return False
        raise OSError(error.errno, error.strerror, str(path)) from None  # the kernel's names only the number
    return True


def store(pair: KeyPair, certificate: Path, key: Path) -> None:
    """Both files, new or in place of the old. Raises OSError; until the key is in its place, nothing is changed then."""
    try:
        _write(_beside(key), pair.key_pem, PRIVATE)
        _write(_beside(certificate), pair.certificate_pem, PUBLIC)
        _beside(key).replace(key)
    except BaseException:
        for path in (key, certificate):
            _beside(path).unlink(missing_ok=True)
        raise
    _beside(certificate).replace(certificate)


def finish(certificate: Path, key: Path) -> bool:
    """Whether a ``store`` of a first pair was cut short after the key, and is done now: the certificate lay beside, and is the key's."""
    if certificate.exists() or not key.exists() or not _beside(certificate).exists():
        return False
    try:
        load(whole(_beside(certificate)), whole(key))
    except CertificateError:
        return False
    _beside(certificate).replace(certificate)
    return True


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.new")


def _write(path: Path, content: bytes, mode: int) -> None:
    """The mode is set at creation: a key is at no moment readable by others."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
