"""Certificates in files: a CA and a serving certificate from it, and what an API server shows to webhooks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from certs.authority import KeyPair, issue, load_pair, make_ca


def client_certificate(ca: KeyPair, name: str, folder: Path) -> tuple[Path, Path]:
    """The files of a certificate for this common name, good for an hour, and of its key."""
    now, key = datetime.now(UTC), ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = x509.CertificateBuilder(ca.certificate.subject, subject, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(minutes=5)).not_valid_after(now + timedelta(hours=1))
    builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
    pair = KeyPair(certificate=builder.sign(ca.key, hashes.SHA256()), key=key)
    return _put(folder, name, pair)


def serving_files(folder: Path, names: Sequence[str]) -> None:
    """``folder`` gets ca.crt and ca.key, and tls.crt and tls.key from them."""
    folder.mkdir(parents=True, exist_ok=True)
    _put(folder, "ca", make_ca(datetime.now(UTC)))
    renew(folder, names)


def renew(folder: Path, names: Sequence[str]) -> None:
    """The folder gets another serving certificate of its CA, written in place."""
    ca = load_pair((folder / "ca.crt").read_bytes(), (folder / "ca.key").read_bytes())
    _put(folder, "tls", issue(ca, names, datetime.now(UTC)))


def _put(folder: Path, stem: str, pair: KeyPair) -> tuple[Path, Path]:
    certificate, key = folder / f"{stem}.crt", folder / f"{stem}.key"
    certificate.write_bytes(pair.certificate_pem)
    key.write_bytes(pair.key_pem)
    return certificate, key
