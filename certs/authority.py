"""A certificate authority: make a CA, issue a serving certificate from it for valid names, and tell when one must be renewed.

Pure: the time is an argument, nothing is read or written. Keys are P-256: a full handshake costs about a
fifth less than with RSA-2048, and every client that speaks TLS 1.2 knows the curve.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

BACKDATE = timedelta(hours=1)
"""notBefore lies this far back, so that a caller whose clock is up to an hour slow accepts a fresh
certificate."""

CA_LIFE = timedelta(days=365)
"""One year: a new CA must reach every caller before the old one expires, so it changes rarely."""

LEAF_LIFE = timedelta(days=7)
"""One week: a leaked key is worth little, and with a third of the lifetime left at renewal (2 days 8 hours) a
weekend passes before anybody has to act."""


MOST_SHOWN = 80
"""Characters of a rejected name that the message quotes; more would hide the rest of the message."""


class CertificateError(Exception):
    """A certificate or key that cannot be used; the message says why, and never holds key material."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPair:
    """A certificate and its private key. The repr names the subject and the expiry, never the key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    def __repr__(self) -> str:
        subject = self.certificate.subject.rfc4514_string()
        return f"KeyPair({subject}, until {self.certificate.not_valid_after_utc:%Y-%m-%d %H:%M}Z, key=***)"

    @property
    def certificate_pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        """The private key as unencrypted PKCS #8: for a file of mode 0600 or a Secret, nothing else."""
        return self.key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())

    @property
    def names(self) -> tuple[str, ...]:
        """Return the subject alternative names (DNS names and IP addresses), sorted."""
        return names_of(self.certificate)


def make_ca(now: datetime, *, name: str = "berth", life: timedelta = CA_LIFE) -> KeyPair:
    """Make a self-signed CA that can only issue leaf certificates.

    Its subject contains its serial number, so that the two CAs of a rotation differ.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    serial = x509.random_serial_number()
    subject = _common_name(f"{name} CA {serial & 0xFFFFFFFF:08x}")
    builder = _builder(subject, subject, key, serial, now, now + life)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_key_usage(ca=True), critical=True)
    return KeyPair(certificate=builder.sign(key, hashes.SHA256()), key=key)


def issue(ca: KeyPair, names: Sequence[str], now: datetime, *, life: timedelta = LEAF_LIFE) -> KeyPair:
    """Issue a serving certificate for ``names`` (DNS names and IP addresses); it never outlives its CA.

    Raises CertificateError as ``checked_names`` does, and when the CA has expired.
    """
    wanted = checked_names(names)
    end = min(now + life, ca.certificate.not_valid_after_utc)
    if end <= now:
        raise CertificateError(f"the CA expired on {ca.certificate.not_valid_after_utc:%Y-%m-%d %H:%M}Z")
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(_common_name(wanted[0][:64]), ca.certificate.subject, key, x509.random_serial_number(), now, end)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_key_usage(ca=False), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    builder = builder.add_extension(x509.SubjectAlternativeName([_general_name(name) for name in wanted]), critical=False)
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca.key.public_key())
    builder = builder.add_extension(issuer, critical=False)
    return KeyPair(certificate=builder.sign(ca.key, hashes.SHA256()), key=key)


def checked_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return each name once, in the order given, in the form in which a certificate holds it.

    Raises CertificateError when there are no names (the API server ignores the common name), or when some are
    neither a DNS name nor an IP address; the message lists all of those.
    """
    found = {name: normal(name) for name in names}
    wrong = ", ".join(json.dumps(name[:MOST_SHOWN]) for name, form in found.items() if form is None)
    if wrong:
        raise CertificateError(
            f"a certificate cannot be issued for {wrong}: not a DNS name (labels of letters, digits and inner hyphens, separated by"
            " dots) or IP address; use the names that clients use, such as berth.berth-system.svc or 10.0.0.7"
        )
    if not found:
        raise CertificateError("a serving certificate needs at least one name, because clients check names and not the subject")
    return tuple(dict.fromkeys(form for form in found.values() if form))


def load_pair(certificate_pem: bytes, key_pem: bytes) -> KeyPair:
    """Load a pair from PEM.

    Raises CertificateError when either is unreadable, the key is not an elliptic curve key, or it is not the
    certificate's key.
    """
    try:
        certificate = x509.load_pem_x509_certificate(certificate_pem)
    except ValueError:
        raise CertificateError("the certificate is not in PEM form") from None
    try:
        key = serialization.load_pem_private_key(key_pem, password=None)
    except (ValueError, TypeError):
        raise CertificateError("the key is not an unencrypted PEM key") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise CertificateError("the key is not an elliptic curve key")
    if key.public_key() != certificate.public_key():
        raise CertificateError("the key does not belong to the certificate")
    return KeyPair(certificate=certificate, key=key)


def names_of(certificate: x509.Certificate) -> tuple[str, ...]:
    """Return the subject alternative names (DNS names and IP addresses), sorted."""
    try:
        san = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    addresses = (str(ip) for ip in san.get_values_for_type(x509.IPAddress))
    return tuple(sorted([*san.get_values_for_type(x509.DNSName), *addresses]))


def signed(leaf: x509.Certificate, ca: x509.Certificate) -> bool:
    """Return whether the key of this CA certificate signed this leaf."""
    try:
        leaf.verify_directly_issued_by(ca)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, serial: int, now: datetime, end: datetime
) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder(subject_name=subject, issuer_name=issuer, public_key=key.public_key(), serial_number=serial)
    builder = builder.not_valid_before(now - BACKDATE).not_valid_after(end)
    return builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)


def _common_name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _key_usage(*, ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not ca,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=ca,
        crl_sign=ca,
        encipher_only=False,
        decipher_only=False,
    )


LONGEST = 253
"""The most characters of a DNS name: RFC 1035 section 2.3.4 allows 255 bytes on the wire, of which two are a
length and the root."""

_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
"""RFC 1123 section 2.1: letters, digits and inner hyphens, at most 63."""
_DNS_NAME = re.compile(rf"(?:\*\.)?{_LABEL}(?:\.{_LABEL})*")
_NUMBERS = re.compile(r"[0-9]+(?:\.[0-9]+)+")
"""Matches names such as ``10.0.0.256``: every label is valid, but RFC 1123 reserves this form for addresses.
"""


def normal(name: str) -> str | None:
    """Return the name as a certificate holds it (``0::1`` as ``::1``, an address without its zone), or None
    if it is neither a DNS name nor an IP address.

    The first label may be ``*``: callers let it stand for exactly one label (RFC 6125 section 6.4.3).
    """
    try:
        return str(ipaddress.ip_address(ipaddress.ip_address(name).packed))
    except ValueError:
        fits = len(name) <= LONGEST and _DNS_NAME.fullmatch(name) and not _NUMBERS.fullmatch(name)
        return name if fits else None


def renewal_reason(pair: KeyPair, names: Iterable[str], now: datetime, *, latest: datetime | None = None) -> str | None:
    """Return the reason why ``pair`` must be renewed, or None.

    It is due when less than a third of its lifetime is left, counted from when it was made, when it is not
    yet valid, or when a name is missing. For a CA, pass no names. ``latest`` is the latest possible expiry of
    a new certificate, that of its CA: where renewal gains nothing, a short remaining lifetime is no reason,
    or the last days of a CA would bring one leaf after the other.
    """
    start, end = pair.certificate.not_valid_before_utc, pair.certificate.not_valid_after_utc
    if now >= end:
        return f"it expired on {end:%Y-%m-%d %H:%M}Z"
    if now < start:
        return f"it is valid only from {start:%Y-%m-%d %H:%M}Z: the clock was ahead when it was issued, or is behind now"
    missing = sorted({normal(name) or name for name in names} - set(pair.names))
    if missing:
        return f"it does not name {', '.join(missing)}"
    if end - now < (end - start - BACKDATE) / 3 and (latest is None or end < latest):
        return f"less than a third of its lifetime is left: it expires on {end:%Y-%m-%d %H:%M}Z"
    return None
