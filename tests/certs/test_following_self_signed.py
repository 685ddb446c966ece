"""The folder of --self-signed while it is served: renewed, mended, and its CA never replaced."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from certs.authority import CertificateError, make_ca
from certs.files import self_signed
from certs.following import SelfSigned
from tests.certs.pairs import DAY, NOW, authority, client_context, first, handshake, leaf, put, refused, serial_of

NAMES = ("localhost", "127.0.0.1")
SECOND = timedelta(seconds=1)


def damage(folder: Path) -> None:
    (folder / "tls.crt").write_bytes(b"junk")


def exchange_key(folder: Path) -> None:
    (folder / "tls.key").write_bytes(make_ca(NOW).key_pem)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_folder_is_made_and_kept(tmp_path: Path) -> None:
    """The first look makes CA and leaf; later looks, and another process, find them and change nothing."""
    source = SelfSigned(tmp_path, NAMES)
    serving = first(source)
    assert source.ca == tmp_path / "ca.crt"
    assert [note.split(":")[0] for note in source.notes][::2] == ["made a new CA", str(tmp_path / "tls.crt")]
    before = contents(tmp_path)
    assert [source.refresh(NOW + n * SECOND) for n in range(3)] == [None] * 3
    assert first(SelfSigned(tmp_path, NAMES)).serial == serving.serial
    assert contents(tmp_path) == before


def test_a_due_leaf_is_renewed_while_it_serves(tmp_path: Path) -> None:
    """With a third of its life left, from the same CA, and with the reason."""
    source = SelfSigned(tmp_path, NAMES)
    old = first(source)
    trusted = (tmp_path / "ca.crt").read_bytes()
    assert source.refresh(NOW + 4 * DAY) is None
    new = source.refresh(NOW + 5 * DAY)
    assert new is not None
    assert new.expires == NOW + 12 * DAY
    assert "less than a third of its life is left" in source.notes[0]
    assert serial_of(handshake(new.context, client_context(trusted))) == new.serial != old.serial
    assert source.refresh(NOW + 5 * DAY + SECOND) is None


def delete_leaf(folder: Path) -> None:
    (folder / "tls.crt").unlink()
    (folder / "tls.key").unlink()


def foreign_leaf(folder: Path) -> None:
    put(folder, leaf(authority()))


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        pytest.param(delete_leaf, "there was none", id="deleted"),
        pytest.param(damage, "the old one is damaged", id="junk"),
        pytest.param(exchange_key, "the key does not belong", id="mismatch"),
        pytest.param(foreign_leaf, "of another CA", id="foreign"),
    ],
)
def test_a_bad_leaf_is_made_anew(spoil: Callable[[Path], None], said: str, tmp_path: Path) -> None:
    """When it stays bad for two looks: another process may be writing it. The CA stays."""
    source = SelfSigned(tmp_path, NAMES)
    first(source)
    ca = (tmp_path / "ca.crt").read_bytes()
    spoil(tmp_path)
    assert source.refresh(NOW) is None
    found = source.refresh(NOW)
    assert found is not None
    assert said in source.notes[0]
    assert source.refresh(NOW) is None
    assert (tmp_path / "ca.crt").read_bytes() == ca


def junk_ca(folder: Path) -> None:
    (folder / "ca.crt").write_bytes(b"junk")


def delete_ca_key(folder: Path) -> None:
    (folder / "ca.key").unlink()


def delete_ca(folder: Path) -> None:
    (folder / "ca.crt").unlink()
    (folder / "ca.key").unlink()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        pytest.param(
            junk_ca,
            "ca.crt: the certificate is not PEM; restore {folder}/ca.crt and {folder}/ca.key, or delete both and restart",
            id="junk",
        ),
        pytest.param(
            delete_ca_key, "ca.key: it is missing but ca.crt is there; restore it, or delete {folder}/ca.crt and restart for", id="no-key"
        ),
        pytest.param(delete_ca, "ca.crt: it and ca.key are gone; restore them, or restart for a new CA", id="gone"),
        pytest.param(shutil.rmtree, "ca.crt: it and ca.key are gone", id="folder-gone"),
    ],
)
def test_a_bad_ca_is_an_error_and_is_not_replaced(spoil: Callable[[Path], None], said: str, tmp_path: Path) -> None:
    """Callers trust the old one. Restored, everything is as before."""
    folder = tmp_path / "tls"
    source = SelfSigned(folder, NAMES)
    first(source)
    before = contents(folder)
    spoil(folder)
    assert said.format(folder=folder) in refused(source)
    for name, content in before.items():
        (folder / name).write_bytes(content)
    assert [source.refresh(NOW), source.refresh(NOW)] == [None, None]
    assert contents(folder) == before


def test_a_ca_that_somebody_exchanged_is_followed(tmp_path: Path) -> None:
    """Both of its files are new and belong together: that is meant, and the leaf follows."""
    source = SelfSigned(tmp_path, NAMES)
    first(source)
    ca = make_ca(NOW)
    (tmp_path / "ca.crt").write_bytes(ca.certificate_pem)
    (tmp_path / "ca.key").write_bytes(ca.key_pem)
    assert source.refresh(NOW) is None
    assert source.refresh(NOW) is not None
    assert "of another CA" in "".join(source.notes)


def test_the_last_days_of_a_ca_bring_no_flood_of_leaves(tmp_path: Path) -> None:
    """A leaf never outlives its CA, so near the end a new one would gain nothing; at the end it is an error."""
    source = SelfSigned(tmp_path, NAMES)
    first(source)
    end = NOW + 365 * DAY
    last = source.refresh(end - 2 * DAY)
    assert last is not None
    assert last.expires == end
    assert [source.refresh(end - n * SECOND) for n in (1000, 100, 10, 1)] == [None] * 4
    with pytest.raises(CertificateError, match="it expired on 2027-11-20"):
        source.refresh(end)


def test_two_servers_with_one_folder_come_to_rest(tmp_path: Path) -> None:
    """Each wants other names: the leaf gets both, and is not replaced for ever."""
    one, two = SelfSigned(tmp_path, ("one.example",)), SelfSigned(tmp_path, ("two.example",))
    for source in (one, two):
        first(source)
    found = [source.refresh(NOW) for _ in range(4) for source in (one, two)]
    assert [serving.names for serving in found if serving][-1] == ("one.example", "two.example")
    assert [source.refresh(NOW) for _ in range(2) for source in (one, two)] == [None] * 4


def test_a_leaf_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    """The certificate that is served stays, and nothing is left beside; when it can be written again, it is."""
    source = SelfSigned(tmp_path, NAMES)
    first(source)
    (tmp_path / "tls.key").unlink()
    (tmp_path / "tls.key").mkdir()
    assert "--self-signed needs a folder it can write to" in refused(source)
    assert list(tmp_path.glob(".*.new")) == []
    (tmp_path / "tls.key").rmdir()
    assert [source.refresh(NOW) is None for _ in range(2)] == [True, False]


@pytest.mark.parametrize("name", ["0:0::1", "fe80::1%lo"])
def test_an_address_in_another_form_is_no_new_name(name: str, tmp_path: Path) -> None:
    """What the certificate holds as ``::1`` is not missed in it, at every look or at a restart."""
    source = SelfSigned(tmp_path, ("localhost", name))
    first(source)
    assert [source.refresh(NOW), source.refresh(NOW)] == [None, None]
    assert self_signed(tmp_path, (name,), NOW).notes == ()


def test_a_restart_renews_as_the_running_server_does(tmp_path: Path) -> None:
    """But with the names asked for and no others."""
    self_signed(tmp_path, ("old.example",), NOW)
    assert first(SelfSigned(tmp_path, ("new.example",))).names == ("new.example",)
