"""The folder of --self-signed: kept over restarts, mended where that is safe, refused where it is not."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from certs.authority import CertificateError, issue, load, make_ca
from certs.files import FILES, ServingFiles, self_signed
from certs.reading import fingerprint

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
NAMES = ("localhost", "127.0.0.1")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def made(folder: Path, after: timedelta = timedelta(0), names: tuple[str, ...] = NAMES) -> ServingFiles:
    return self_signed(folder, names, NOW + after)


def test_an_empty_folder_gets_four_files(tmp_path: Path) -> None:
    """The folder is made, with a CA, a leaf from it, and keys that only the owner reads."""
    files = made(tmp_path / "new" / "tls")
    folder = files.ca.parent
    assert sorted(contents(folder)) == [".lock", "ca.crt", "ca.key", "tls.crt", "tls.key"]
    assert {path.stat().st_mode & 0o777 for path in folder.glob("*.key")} == {0o600}
    assert [note.split(":")[0].split(",")[0] for note in files.notes] == ["made a new CA", "made a new serving certificate"]


def test_a_restart_changes_nothing(tmp_path: Path) -> None:
    """The second start finds everything as it was, and says nothing."""
    made(tmp_path)
    before = contents(tmp_path)
    assert made(tmp_path, timedelta(hours=1)).notes == ()
    assert contents(tmp_path) == before


def test_a_due_leaf_is_made_anew_from_the_same_ca(tmp_path: Path) -> None:
    """Six days later the leaf is new, the CA is not, and the reason is said."""
    made(tmp_path)
    before = contents(tmp_path)
    notes = made(tmp_path, timedelta(days=6)).notes
    after = contents(tmp_path)
    assert {name for name in before if before[name] != after[name]} == {"tls.crt", "tls.key"}
    assert "less than a third" in notes[0]


def test_a_new_name_makes_a_new_leaf(tmp_path: Path) -> None:
    """Listening under another name needs a certificate for it."""
    made(tmp_path)
    assert "it does not name berth.svc" in made(tmp_path, names=("localhost", "berth.svc")).notes[0]


def spoil_leaf(folder: Path) -> None:
    (folder / "tls.crt").write_bytes(b"junk")


def mismatch_leaf(folder: Path) -> None:
    (folder / "tls.key").write_bytes(make_ca(NOW).key_pem)


def drop_leaf_key(folder: Path) -> None:
    (folder / "tls.key").unlink()


def drop_leaf_certificate(folder: Path) -> None:
    (folder / "tls.crt").unlink()


def drop_leaf(folder: Path) -> None:
    drop_leaf_key(folder)
    drop_leaf_certificate(folder)


def bloat_leaf(folder: Path) -> None:
    (folder / "tls.crt").write_bytes(b"x" * 100_000)


def foreign_leaf(folder: Path) -> None:
    pair = issue(make_ca(NOW), NAMES, NOW)
    (folder / "tls.crt").write_bytes(pair.certificate_pem)
    (folder / "tls.key").write_bytes(pair.key_pem)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        pytest.param(spoil_leaf, "damaged, the certificate is not PEM", id="junk"),
        pytest.param(mismatch_leaf, "damaged, the key does not belong", id="mismatched"),
        pytest.param(bloat_leaf, "damaged, the certificate is not PEM", id="too-large"),
        pytest.param(drop_leaf, "tls.crt: there was none", id="missing"),
        pytest.param(drop_leaf_key, "tls.crt: tls.key was missing", id="key-missing"),
        pytest.param(drop_leaf_certificate, "tls.crt: tls.crt was missing", id="certificate-missing"),
        pytest.param(foreign_leaf, "of another CA", id="foreign"),
    ],
)
def test_a_bad_leaf_is_replaced_and_said(spoil: Callable[[Path], None], said: str, tmp_path: Path) -> None:
    """Only the leaf is bad: it is made anew, and the log says why."""
    made(tmp_path)
    spoil(tmp_path)
    assert said in made(tmp_path).notes[0]
    load((tmp_path / "tls.crt").read_bytes(), (tmp_path / "tls.key").read_bytes())


def spoil_ca(folder: Path) -> None:
    (folder / "ca.crt").write_bytes(b"junk")


def mismatch_ca(folder: Path) -> None:
    (folder / "ca.key").write_bytes(make_ca(NOW).key_pem)


def drop_ca_key(folder: Path) -> None:
    (folder / "ca.key").unlink()


def drop_ca(folder: Path) -> None:
    (folder / "ca.crt").unlink()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        pytest.param(spoil_ca, r"ca\.crt: the certificate is not PEM; restore", id="junk"),
        pytest.param(mismatch_ca, r"ca\.crt: the key does not belong", id="mismatched"),
        pytest.param(
            drop_ca_key,
            r"ca\.key: it is missing but ca\.crt is there; restore it, or delete .*ca\.crt and restart for a new CA",
            id="no-key",
        ),
        pytest.param(
            drop_ca, r"ca\.crt: it is missing but ca\.key is there; restore it, or delete .*ca\.key and restart", id="no-certificate"
        ),
    ],
)
def test_a_bad_ca_is_refused_and_nothing_is_written(spoil: Callable[[Path], None], said: str, tmp_path: Path) -> None:
    """The CA is what callers trust: one line says what to do, and no file changes."""
    made(tmp_path)
    spoil(tmp_path)
    before = contents(tmp_path)
    with pytest.raises(CertificateError, match=said) as error:
        made(tmp_path)
    assert "\n" not in str(error.value)
    assert contents(tmp_path) == before


def test_an_expired_ca_is_refused(tmp_path: Path) -> None:
    """After a year the CA is not replaced behind its callers' backs."""
    made(tmp_path)
    with pytest.raises(CertificateError, match=r"it expired on 2027-11-20 .* or delete both and restart for a new CA"):
        made(tmp_path, timedelta(days=366))


def test_a_ca_near_its_end_is_said(tmp_path: Path) -> None:
    """With a third of the year left each start says so."""
    made(tmp_path)
    assert any("should be replaced soon" in note for note in made(tmp_path, timedelta(days=300)).notes)


def test_an_open_ca_key_is_closed(tmp_path: Path) -> None:
    """A CA key that others could read gets mode 0600, and that is said."""
    made(tmp_path)
    (tmp_path / "ca.key").chmod(0o644)
    assert "its mode is 0600 now" in made(tmp_path).notes[0]
    assert (tmp_path / "ca.key").stat().st_mode & 0o777 == 0o600


def test_names_are_checked_before_a_ca_is_made(tmp_path: Path) -> None:
    """A typing error leaves no files behind."""
    with pytest.raises(CertificateError, match='cannot be issued for "a b"'):
        made(tmp_path / "tls", names=("localhost", "a b"))
    assert list(tmp_path.iterdir()) == []


def test_the_digest_is_that_of_the_files(tmp_path: Path) -> None:
    """Made, mended or found: whoever follows the files sees at once when they are others than these."""
    for _ in range(2):
        assert made(tmp_path).digest == fingerprint(tmp_path / name for name in FILES)
    (tmp_path / "tls.key").unlink()
    assert made(tmp_path).digest == fingerprint(tmp_path / name for name in FILES)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """A path through a file is one line, not a traceback."""
    (tmp_path / "file").write_text("")
    with pytest.raises(CertificateError, match=r"file/tls: .* needs a folder it can write to"):
        made(tmp_path / "file" / "tls")
