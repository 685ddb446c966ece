"""Checks of a serving certificate of any origin, given as PEM: whether callers can use it, and if not, what
is wrong and how to fix it.

Pure: takes bytes and the time, returns values. Unlike the certificates that ``authority`` makes, these may
have an RSA or Ed25519 key and intermediates. The caller prefixes the file's name to the message.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TypeAlias

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from certs.authority import CertificateError, names_of

PrivateKey: TypeAlias = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
Chain: TypeAlias = tuple[x509.Certificate, ...]
"""The serving certificate first, then its intermediates, as in the file."""

CURVES = ("secp256r1", "secp384r1", "secp521r1")
"""The curves that Go's crypto/tls, the API server's TLS stack, can verify."""

SERVING = {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE}


def parse_chain(pem: bytes) -> Chain:
    """Parse all certificates of a file. Raises CertificateError."""
    if b"-----BEGIN CERTIFICATE-----" not in pem:
        held = "a key and no certificate" if b"PRIVATE KEY-----" in pem else "no PEM certificate"
        raise CertificateError(f"it contains {held}; use the certificate that starts with -----BEGIN CERTIFICATE-----")
    with _damage("certificate"):
        return tuple(x509.load_pem_x509_certificates(pem))


def parse_key(pem: bytes) -> PrivateKey:
    """Parse the private key of a file. Raises CertificateError."""
    if b"PRIVATE KEY-----" not in pem:
        raise CertificateError("it contains no PEM key; use the key that starts with -----BEGIN PRIVATE KEY-----")
    with _damage("key"):
        # Without the full check of an RSA key (33 ms for 2048 bits, 240 for 4096): a handshake proves more.
        key = serialization.load_pem_private_key(pem, password=None, unsafe_skip_rsa_key_validation=True)
    if isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.name not in CURVES:
        raise CertificateError(f"clients do not support the curve {key.curve.name}; use a P-256 key")
    if not isinstance(key, PrivateKey):
        raise CertificateError("clients do not support this type of key; use an RSA, P-256 or Ed25519 key")
    return key


def place_of(key: PrivateKey, chain: Chain) -> int | None:
    """Return the index (from 0) of the certificate that belongs to the key, or None.

    Raises CertificateError for a certificate whose key is of an unknown kind.
    """
    with _damage("certificate"):
        public = [certificate.public_key() for certificate in chain]
    own = key.public_key()
    return public.index(own) if own in public else None


def check(certificate: x509.Certificate, now: datetime) -> None:
    """Check that the certificate can serve now.

    Raises CertificateError when it is expired, not valid yet, without names, or not for servers.
    """
    start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now >= end:
        raise CertificateError(f"it expired on {end:%Y-%m-%d %H:%M}Z; replace it with a renewed certificate")
    if now < start:
        raise CertificateError(
            f"it is valid only from {start:%Y-%m-%d %H:%M}Z, but this machine's clock says {now:%Y-%m-%d %H:%M}Z; set the clock, or wait"
        )
    with _damage("certificate"):
        names, servers = names_of(certificate), _for_servers(certificate)
    if not names:
        raise CertificateError("it has no subjectAltName, and clients ignore the common name; issue it with the names that clients use")
    if not servers:
        raise CertificateError("its extended key usage does not include servers; issue it with serverAuth")


def to_pem(chain: Chain, key: PrivateKey) -> bytes:
    """Return certificates and key in one PEM text, the key unencrypted: never write it to a file."""
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return b"".join([*(certificate.public_bytes(serialization.Encoding.PEM) for certificate in chain), private])


def _for_servers(certificate: x509.Certificate) -> bool:
    try:
        usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return True
    return not SERVING.isdisjoint(usage)


@contextmanager
def _damage(what: str) -> Iterator[None]:
    """Turn parser errors into CertificateError, without the parser's text about its own internals."""
    try:
        yield
    except TypeError:
        raise CertificateError(f"the {what} is encrypted; use one without a passphrase") from None
    except (ValueError, UnsupportedAlgorithm, x509.DuplicateExtension, x509.UnsupportedGeneralNameType):
        raise CertificateError(f"the {what} in it is damaged or of an unknown kind; provide it again, in PEM form") from None
