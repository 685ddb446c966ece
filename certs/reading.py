"""Files that others write while we read them: whole contents, and whether they changed.

Contents are compared, not what stat says: reading and hashing four small files takes some 20 microseconds, and no rewrite can hide from it,
neither one within a tick of the file's clock and of the same size, nor one behind a symlink that now leads elsewhere.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from certs.authority import CertificateError

LIMIT = 64 * 1024
"""Bytes of one file: ten certificates of RSA-4096 keys in PEM form take 25 KB. What is read is parsed on the event loop."""


def read(path: Path) -> bytes:
    """The whole content. Raises CertificateError with the path: not there, not ours to read, no regular file, over 64 KiB."""
    try:
        content = _content(path)
    except OSError as error:
        raise CertificateError(f"{path}: cannot be read: {error.strerror or error}; give a file that this process may read") from None
    if content is None:
        raise CertificateError(f"{path}: cannot be read: not a regular file; give one, which can be read again to see whether it changed")
    if len(content) > LIMIT:
        raise CertificateError(f"{path}: over 64 KiB; give only the serving certificate and its intermediates, or its key")
    return content


def fingerprint(paths: Iterable[Path]) -> bytes:
    """The same as long as every file has the same content, or stays unreadable for the same reason."""
    return digest(_content_or_reason(path) for path in paths)


def digest(contents: Iterable[bytes]) -> bytes:
    """SHA-256 over the contents, each with its length: bytes that move from one file to the next are a change."""
    total = hashlib.sha256()
    for content in contents:
        total.update(b"%d:" % len(content))
        total.update(content)
    return total.digest()


def _content_or_reason(path: Path) -> bytes:
    try:
        return read(path)
    except CertificateError as error:
        return str(error).encode()


def _content(path: Path) -> bytes | None:
    """At most one byte over the limit; None for a folder, pipe or device, of which a pipe would else hold up the whole server."""
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
