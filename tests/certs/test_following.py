"""Certificates that change while they are served: what is taken, what is waited for, what is an error."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from certs.authority import CertificateError, make_ca
from certs.following import FollowedFiles, SelfSigned
from tests.certs.pairs import (
    DAY,
    NOW,
    Issued,
    authority,
    client_context,
    denied,
    first,
    handshake,
    leaf,
    p256,
    put,
    put_by_rename,
    put_by_symlink,
    serial_of,
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


NAMES = ("localhost", "127.0.0.1")
SECOND = timedelta(seconds=1)


def test_an_empty_folder_gets_a_ca(tmp_path: Path) -> None:
    """The folder is made, with a key that only its owner reads; the serving certificate is verified by it, and in no file."""
    folder = tmp_path / "new" / "tls"
    source = SelfSigned(folder, NAMES)
    serving = first(source)
    assert source.ca == folder / "ca.crt"
    assert source.notes[0] == f"made a new CA: {folder / 'ca.crt'}"
    assert sorted(path.name for path in folder.iterdir()) == ["ca.crt", "ca.key"]
    assert (folder / "ca.key").stat().st_mode & 0o777 == 0o600
    trusted = (folder / "ca.crt").read_bytes()
    assert serial_of(handshake(serving.context, client_context(trusted))) == serving.serial


def test_a_restart_keeps_the_ca(tmp_path: Path) -> None:
    """Callers go on trusting it; the serving certificate has the names that are asked for now."""
    first(SelfSigned(tmp_path, NAMES))
    trusted = (tmp_path / "ca.crt").read_bytes()
    source = SelfSigned(tmp_path, ("other.example", "localhost"))
    serving = first(source, NOW + DAY)
    assert (tmp_path / "ca.crt").read_bytes() == trusted
    assert serving.names == ("localhost", "other.example")
    assert [note.split(":")[0] for note in source.notes] == [f"made a serving certificate from {tmp_path / 'ca.crt'}"]
    handshake(serving.context, client_context(trusted))


@pytest.mark.parametrize("name", ["localhost", "0:0::1", "fe80::1%lo"])
def test_a_serving_certificate_is_renewed_when_it_is_due(name: str, tmp_path: Path) -> None:
    """With a third of its week left, by the CA in memory: the folder may be gone. Whatever the form of a name, no sooner."""
    source = SelfSigned(tmp_path, (name,))
    old = first(source)
    for path in tmp_path.iterdir():
        path.unlink()
    assert [source.refresh(NOW + 4 * DAY) for _ in range(2)] == [None] * 2
    new = source.refresh(NOW + 5 * DAY)
    assert new is not None
    assert new.expires == NOW + 12 * DAY
    assert new.serial != old.serial
    assert source.refresh(NOW + 5 * DAY + SECOND) is None


def test_the_last_days_of_a_ca_bring_no_flood_of_certificates(tmp_path: Path) -> None:
    """None outlives its CA, so near the end a new one would gain nothing; at the end it is an error that says what to do."""
    source = SelfSigned(tmp_path, NAMES)
    first(source)
    end = NOW + 365 * DAY
    last = source.refresh(end - 2 * DAY)
    assert last is not None
    assert last.expires == end
    assert [source.refresh(end - n * SECOND) for n in (1000, 100, 10, 1)] == [None] * 4
    with pytest.raises(CertificateError, match=r"expired on 2027-11-20 .*; delete .* and restart for a new CA"):
        source.refresh(end)


def junk(folder: Path) -> None:
    (folder / "ca.crt").write_bytes(b"junk")


def bloat(folder: Path) -> None:
    (folder / "ca.crt").write_bytes(b"x" * 100_000)


def exchange_ca_key(folder: Path) -> None:
    (folder / "ca.key").write_bytes(make_ca(NOW).key_pem)


def drop_key(folder: Path) -> None:
    (folder / "ca.key").unlink()


def drop_certificate(folder: Path) -> None:
    (folder / "ca.crt").unlink()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        pytest.param(junk, r"ca\.crt: the certificate is not in PEM form; restore .*, or delete both and restart for a new CA", id="junk"),
        pytest.param(bloat, r"ca\.crt: over 64 KiB", id="too-large"),
        pytest.param(exchange_ca_key, r"ca\.crt: the key does not belong to the certificate; restore", id="mismatched"),
        pytest.param(drop_key, r"ca\.key: it is missing; restore", id="no-key"),
        pytest.param(drop_certificate, r"ca\.crt: it is missing; restore", id="no-certificate"),
    ],
)
def test_a_bad_ca_is_denied_and_nothing_is_written(spoil: Callable[[Path], None], message: str, tmp_path: Path) -> None:
    """The CA is what callers trust: one line says what to do, and no file changes."""
    first(SelfSigned(tmp_path, NAMES))
    spoil(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(CertificateError, match=message) as error:
        SelfSigned(tmp_path, NAMES).refresh(NOW)
    assert "\n" not in str(error.value)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_an_expired_ca_is_denied(tmp_path: Path) -> None:
    """After a year it is not replaced behind its callers' backs; months before, each start says so."""
    first(SelfSigned(tmp_path, NAMES))
    late = SelfSigned(tmp_path, NAMES)
    first(late, NOW + 300 * DAY)
    assert "should be replaced soon" in late.notes[0]
    with pytest.raises(CertificateError, match=r"it expired on 2027-11-20 .* or delete both and restart for a new CA"):
        SelfSigned(tmp_path, NAMES).refresh(NOW + 366 * DAY)


def test_names_are_checked_before_a_ca_is_made(tmp_path: Path) -> None:
    """A typing error leaves no files behind."""
    with pytest.raises(CertificateError, match='cannot be issued for "a b"'):
        SelfSigned(tmp_path / "tls", ("localhost", "a b")).refresh(NOW)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """A path through a file is one line, not a traceback."""
    (tmp_path / "file").write_text("")
    with pytest.raises(CertificateError, match=r"file/tls: .* needs a writable folder"):
        SelfSigned(tmp_path / "file" / "tls", NAMES).refresh(NOW)


def test_a_key_that_somebody_is_writing_is_not_overwritten(tmp_path: Path) -> None:
    """Of two processes that start at once on an empty folder one makes the CA; the other one says that its certificate is missing."""
    (tmp_path / "ca.key").write_bytes(make_ca(NOW).key_pem)
    with pytest.raises(CertificateError, match=r"ca\.crt: it is missing"):
        SelfSigned(tmp_path, NAMES).refresh(NOW)
