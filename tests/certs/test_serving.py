"""The TLS context: what it speaks, and the one line when the files are wrong."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat

from certs.authority import CertificateError, issue, make_ca
from certs.serving import server_context

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
LEAF = issue(make_ca(NOW), ("localhost",), NOW)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A good certificate and its key."""
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    certificate.write_bytes(LEAF.certificate_pem)
    key.write_bytes(LEAF.key_pem)
    return certificate, key


def test_tls_1_2_is_the_least(files: tuple[Path, Path]) -> None:
    """Nothing older than TLS 1.2 is spoken."""
    assert server_context(*files).minimum_version == ssl.TLSVersion.TLSv1_2


def encrypted() -> bytes:
    return LEAF.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(make_ca(NOW).key_pem, "does not belong to the certificate", id="key-of-another"),
        pytest.param(b"junk", "not a PEM certificate and its key", id="junk"),
        pytest.param(encrypted(), "encrypted; give one without a passphrase", id="encrypted"),
    ],
)
def test_a_bad_key_is_one_line(files: tuple[Path, Path], content: bytes, said: str) -> None:
    """Each bad key has a sentence that names the file; none asks for a passphrase on the terminal."""
    files[1].write_bytes(content)
    with pytest.raises(CertificateError, match=said) as error:
        server_context(*files)
    assert str(files[1]) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_missing_file_is_named(files: tuple[Path, Path]) -> None:
    """The file that is not there is the one in the message."""
    files[0].unlink()
    with pytest.raises(CertificateError, match=r"tls\.crt: cannot be read: No such file"):
        server_context(*files)
