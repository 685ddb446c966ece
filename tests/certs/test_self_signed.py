"""The folder of --self-signed: its CA outlives restarts and is never replaced; serving certificates are made in memory."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from certs.authority import CertificateError, make_ca
from certs.following import SelfSigned
from tests.certs.pairs import DAY, NOW, client_context, first, handshake, serial_of

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


def exchange_key(folder: Path) -> None:
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
        pytest.param(exchange_key, r"ca\.crt: the key does not belong to the certificate; restore", id="mismatched"),
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
