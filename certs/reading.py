"""Reading of files that others write at the same time: whole contents, and detection of changes.

Contents are compared, not stat results: reading and hashing four small files takes some 20 microseconds, and
no rewrite escapes it, neither one within a tick of the file's clock and of the same size, nor one behind a
symlink that now leads elsewhere.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from certs.authority import CertificateError

LIMIT = 64 * 1024
"""The most bytes of one file: ten certificates of RSA-4096 keys in PEM form take 25 KB. The content is parsed
on the event loop."""

_ADVICE = {
    errno.EMFILE: "raise this process's limit of open files (ulimit -n)",
    errno.ENFILE: "raise this machine's limit of open files (sysctl fs.file-max)",
    errno.ENOSPC: "make room on its file system",
    errno.EDQUOT: "make room on its file system, or raise the quota",
    errno.EFBIG: "raise this process's limit of file sizes (ulimit -f)",
}
"""Advice by errno, for errors that tell by themselves what to do."""


def read_file(path: Path) -> bytes:
    """Return the whole content.

    Raises CertificateError with the path: the file does not exist, may not be read, is no regular file, or is
    over 64 KiB.
    """
    try:
        return whole(path)
    except OSError as error:
        raise CertificateError(f"{path}: cannot be read: {reason_of(error, 'use a file that this process may read')}") from None


def whole(path: Path) -> bytes:
    """Return the whole content.

    Raises OSError, and CertificateError as ``read_file`` does: no regular file, or over 64 KiB.
    """
    content = _content(path)
    if content is None:
        raise CertificateError(f"{path}: cannot be read: it is not a regular file; use one, to detect changes")
    if len(content) > LIMIT:
        raise CertificateError(f"{path}: over 64 KiB; use only the serving certificate and its intermediates, or its key")
    return content


def reason_of(error: OSError, otherwise: str) -> str:
    """Return what is wrong and what to do about it: ``otherwise`` if the error itself does not tell."""
    return f"{error.strerror or error}; {_ADVICE.get(error.errno or 0, otherwise)}"


def fingerprint(paths: Iterable[Path]) -> bytes:
    """Return a digest that stays the same while every file has the same content, or is unreadable for the
    same reason."""
    return digest(_content_or_reason(path) for path in paths)


def digest(contents: Iterable[bytes]) -> bytes:
    """Return SHA-256 over the contents, each with its length: bytes that move from one file to the next are a
    change."""
    total = hashlib.sha256()
    for content in contents:
        total.update(b"%d:" % len(content))
        total.update(content)
    return total.digest()


def _content_or_reason(path: Path) -> bytes:
    try:
        return read_file(path)
    except CertificateError as error:
        return str(error).encode()


def _content(path: Path) -> bytes | None:
    """Return the content, at most one byte over the limit; None for a folder, pipe or device.

    Reading a pipe would otherwise block the whole server.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        content = b""
        while len(content) <= LIMIT and (more := os.read(descriptor, LIMIT + 1 - len(content))):
            content += more
        return content
    finally:
        os.close(descriptor)
