"""Certificates that change while they are served: what is taken, what is waited for, what is an error."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from certs.authority import CertificateError
from certs.following import FollowedFiles
from tests.certs.pairs import (
    DAY,
    NOW,
    Issued,
    authority,
    denied,
    first,
    leaf,
    p256,
    put,
    put_by_rename,
    put_by_symlink,
)

ROOT = authority()


def followed(folder: Path) -> FollowedFiles:
    return FollowedFiles(folder / "tls.crt", folder / "tls.key")


def in_place(folder: Path, pair: Issued) -> None:
    put(folder, pair)


@pytest.mark.parametrize("write", [in_place, put_by_rename, put_by_symlink])
def test_a_new_pair_is_taken_at_once(write: Callable[[Path, Issued], None], tmp_path: Path) -> None:
    """However it was written; and once, with a line for the log."""
    write(tmp_path, leaf(ROOT))
    source = followed(tmp_path)
    first(source)
    assert source.refresh(NOW) is None
    pair = leaf(ROOT)
    write(tmp_path, pair)
    found = source.refresh(NOW)
    assert found is not None
    assert found.serial == pair.certificate.serial_number
    assert source.notes == (f"{tmp_path / 'tls.crt'} has changed: {found}",)
    assert source.refresh(NOW) is None
    assert source.ca is None


def same_length(pair: Issued) -> Iterator[Issued]:
    """The key stays, so only the signature's length varies."""
    while True:
        other = leaf(ROOT, pair.key)
        if len(other.chain_pem) == len(pair.chain_pem):
            yield other


def test_a_rewrite_that_stat_does_not_show_is_taken(tmp_path: Path) -> None:
    """In place, of the same size, within one tick of the file's clock."""
    pair = leaf(ROOT)
    certificate, _ = put(tmp_path, pair)
    source = followed(tmp_path)
    first(source)
    before = certificate.stat()
    other = next(same_length(pair))
    certificate.write_bytes(other.chain_pem)
    os.utime(certificate, ns=(before.st_atime_ns, before.st_mtime_ns))
    found = source.refresh(NOW)
    assert found is not None
    assert found.serial == other.certificate.serial_number


@pytest.mark.parametrize("name", ["tls.crt", "tls.key"])
def test_the_moment_between_two_writes_is_waited_for(name: str, tmp_path: Path) -> None:
    """One file is new and the other old, or half of it is there: nothing is said before it stays so."""
    put(tmp_path, leaf(ROOT))
    source = followed(tmp_path)
    first(source)
    pair = leaf(ROOT)
    content = {"tls.crt": pair.chain_pem, "tls.key": pair.key_pem}
    for part in (b"", content[name][:200], content[name]):
        (tmp_path / name).write_bytes(part)
        assert source.refresh(NOW) is None
    put(tmp_path, pair)
    found = source.refresh(NOW)
    assert found is not None
    assert found.serial == pair.certificate.serial_number


def damage(folder: Path) -> None:
    (folder / "tls.crt").write_bytes(b"junk")


def exchange_key(folder: Path) -> None:
    (folder / "tls.key").write_bytes(Issued(certificate=ROOT.certificate, key=p256()).key_pem)


def delete(folder: Path) -> None:
    (folder / "tls.key").unlink()


def expire(folder: Path) -> None:
    put(folder, leaf(ROOT, times=(NOW - 2 * DAY, NOW - DAY)))


def hurry(folder: Path) -> None:
    put(folder, leaf(ROOT, times=(NOW + DAY, NOW + 2 * DAY)))


TROUBLE = [
    pytest.param(damage, "tls.crt: it contains no PEM certificate", id="junk"),
    pytest.param(exchange_key, "tls.key: this key does not belong", id="mismatch"),
    pytest.param(delete, "tls.key: cannot be read: No such file", id="deleted"),
    pytest.param(expire, "tls.crt: it expired on", id="expired"),
    pytest.param(hurry, "tls.crt: it is valid only from", id="early"),
]


@pytest.mark.parametrize(("spoil", "message"), TROUBLE)
def test_trouble_that_stays_is_an_error(spoil: Callable[[Path], None], message: str, tmp_path: Path) -> None:
    """From the second look on, at each; the old files put back end it, and a new pair is taken."""
    pair = leaf(ROOT)
    put(tmp_path, pair)
    source = followed(tmp_path)
    first(source)
    spoil(tmp_path)
    assert source.refresh(NOW) is None
    for _ in range(2):
        with pytest.raises(CertificateError, match=message):
            source.refresh(NOW)
    put(tmp_path, pair)
    assert source.refresh(NOW) is None
    put(tmp_path, leaf(ROOT))
    assert source.refresh(NOW) is not None


@pytest.mark.parametrize(("spoil", "message"), TROUBLE)
def test_at_the_start_trouble_is_an_error_at_once(spoil: Callable[[Path], None], message: str, tmp_path: Path) -> None:
    """There is no last good pair."""
    put(tmp_path, leaf(ROOT))
    spoil(tmp_path)
    with pytest.raises(CertificateError, match=message):
        followed(tmp_path).refresh(NOW)


def test_a_certificate_that_expires_while_it_is_served_is_said(tmp_path: Path) -> None:
    """Nobody renewed it."""
    put(tmp_path, leaf(ROOT))
    source = followed(tmp_path)
    first(source)
    assert source.refresh(NOW + 6 * DAY) is None
    with pytest.raises(CertificateError, match="it expired on 2026-11-27"):
        source.refresh(NOW + 7 * DAY)


def test_a_certificate_for_tomorrow_is_taken_tomorrow(tmp_path: Path) -> None:
    """The files did not change; the time did."""
    put(tmp_path, leaf(ROOT))
    source = followed(tmp_path)
    first(source)
    hurry(tmp_path)
    assert "set the clock, or wait" in denied(source)
    assert source.refresh(NOW + DAY) is not None
