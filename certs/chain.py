"""A serving certificate from anywhere, as PEM: can callers use it, and if not, what is wrong and what to do, in words.

Pure: bytes and the time in, values out. Unlike the certificates that ``authority`` makes, these may have an RSA or Ed25519 key and
intermediates. Whoever calls puts the file's name before the sentence.
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
"""What Go's crypto/tls, in which the API server calls, can verify."""

SERVING = {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE}


def parse_chain(pem: bytes) -> Chain:
    """All certificates of a file. Raises CertificateError."""
    if b"-----BEGIN CERTIFICATE-----" not in pem:
        held = "a key and no certificate" if b"PRIVATE KEY-----" in pem else "no PEM certificate"
        raise CertificateError(f"there is {held} in it; give the certificate that starts with -----BEGIN CERTIFICATE-----")
    with _damage("certificate"):
        return tuple(x509.load_pem_x509_certificates(pem))


def parse_key(pem: bytes) -> PrivateKey:
    """The private key of a file. Raises CertificateError."""
    if b"PRIVATE KEY-----" not in pem:
        raise CertificateError("there is no PEM key in it; give the key that starts with -----BEGIN PRIVATE KEY-----")
    with _damage("key"):
        # The full check of an RSA key takes 33 ms for 2048 bits and 240 ms for 4096; a handshake proves more in a tenth of it.
        key = serialization.load_pem_private_key(pem, password=None, unsafe_skip_rsa_key_validation=True)
    if isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.name not in CURVES:
        raise CertificateError(f"callers do not speak the curve {key.curve.name}; give a key on P-256")
    if not isinstance(key, PrivateKey):
        raise CertificateError("callers do not speak this kind of key; give an RSA, P-256 or Ed25519 key")
    return key


def place_of(key: PrivateKey, chain: Chain) -> int | None:
    """Which certificate is the key's own, from 0. Raises CertificateError for one whose key is of an unknown kind."""
    with _damage("certificate"):
        public = [certificate.public_key() for certificate in chain]
    own = key.public_key()
    return public.index(own) if own in public else None


def check(certificate: x509.Certificate, now: datetime) -> None:
    """Raises CertificateError: expired, not valid yet, without names, or not for servers."""
    start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now >= end:
        raise CertificateError(f"it expired on {end:%Y-%m-%d %H:%M}Z; put a renewed one in its place")
    if now < start:
        raise CertificateError(
            f"it is valid only from {start:%Y-%m-%d %H:%M}Z, and this machine's clock says {now:%Y-%m-%d %H:%M}Z; set the clock, or wait"
        )
    with _damage("certificate"):
        names, servers = names_of(certificate), _for_servers(certificate)
    if not names:
        raise CertificateError("it has no subjectAltName, and callers ignore the common name; issue it for the names that they call")
    if not servers:
        raise CertificateError("its extended key usage leaves out servers; issue it with serverAuth")


def to_pem(chain: Chain, key: PrivateKey) -> bytes:
    """Certificates and key in one text, the key not encrypted: never for a file."""
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
    """What the parser says of a broken file is about its own insides, so it is left out."""
    try:
        yield
    except TypeError:
        raise CertificateError(f"the {what} is encrypted; give one without a passphrase") from None
    except (ValueError, UnsupportedAlgorithm, x509.DuplicateExtension, x509.UnsupportedGeneralNameType):
        raise CertificateError(f"the {what} in it is damaged or of an unknown kind; give it anew, in PEM form") from None
