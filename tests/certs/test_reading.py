"""Whole contents, and whether they changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from certs.authority import CertificateError
from certs.reading import LIMIT, digest, fingerprint, read_file


def test_the_whole_file_is_read(tmp_path: Path) -> None:
    """Up to the limit and including it."""
    (tmp_path / "a").write_bytes(b"x" * LIMIT)
    assert len(read_file(tmp_path / "a")) == LIMIT


def missing(path: Path) -> None:
    """Nothing there."""


def loop(path: Path) -> None:
    path.symlink_to(path)


def large(path: Path) -> None:
    path.write_bytes(b"x" * (LIMIT + 1))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(missing, "cannot be read: No such file or directory; use a file", id="missing"),
        pytest.param(loop, "cannot be read: Too many levels of symbolic links", id="loop"),
        pytest.param(Path.mkdir, "cannot be read: it is not a regular file; use one", id="folder"),
        pytest.param(os.mkfifo, "cannot be read: it is not a regular file; use one", id="pipe-that-nobody-writes"),
        pytest.param(large, "over 64 KiB; use only", id="large"),
    ],
)
def test_what_is_no_such_file_is_one_line(make: object, message: str, tmp_path: Path) -> None:
    """The path, what is wrong, what to do; and a pipe does not hold up the server."""
    assert callable(make)
    make(tmp_path / "tls.crt")
    with pytest.raises(CertificateError, match=message) as error:
        read_file(tmp_path / "tls.crt")
    assert str(error.value).startswith(f"{tmp_path / 'tls.crt'}: ")
    assert "\n" not in str(error.value)


def test_a_rewrite_that_stat_does_not_show_is_seen(tmp_path: Path) -> None:
    """The same inode, size and time, other bytes."""
    path = tmp_path / "tls.crt"
    path.write_bytes(b"one")
    before, status = fingerprint([path]), path.stat()
    path.write_bytes(b"two")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert fingerprint([path]) != before


def test_a_missing_file_has_a_fingerprint_too(tmp_path: Path) -> None:
    """It stays the same while the file stays away, and changes when it comes."""
    path = tmp_path / "tls.crt"
    before = fingerprint([path])
    assert fingerprint([path]) == before
    path.write_bytes(b"")
    assert fingerprint([path]) != before


def test_bytes_that_move_to_the_next_file_are_a_change() -> None:
    """Lengths are part of it."""
    assert digest([b"ab", b"c"]) != digest([b"a", b"bc"])
