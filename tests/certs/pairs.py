"""Certificates as others issue them: any key, intermediates, any times; the files they come in; and one handshake in memory."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from certs.authority import CertificateError
from certs.following import CertificateSource
from certs.serving import Serving

Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """A certificate, its key, and the intermediates that callers need."""

    certificate: x509.Certificate
    key: Key
    above: tuple[x509.Certificate, ...] = ()

    @property
    def chain_pem(self) -> bytes:
        return b"".join(one.public_bytes(Encoding.PEM) for one in (self.certificate, *self.above))

    @property
    def key_pem(self) -> bytes:
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def p256() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def authority(now: datetime = NOW, above: Issued | None = None) -> Issued:
    """A root, or an intermediate of ``above``."""
    name, key = ("intermediate" if above else "root"), p256()
    usage: Sequence[x509.ExtensionType] = (x509.BasicConstraints(ca=True, path_length=None),)
    return _signed(name, key, above, usage, (now - DAY, now + 365 * DAY))


def leaf(
    issuer: Issued,
    key: Key | None = None,
    *,
    names: Sequence[str] = ("localhost",),
    times: tuple[datetime, datetime] = (NOW - DAY, NOW + 7 * DAY),
    usages: Sequence[x509.ObjectIdentifier] = (),
) -> Issued:
    """A certificate for servers, by default with a P-256 key and no extended key usage."""
    extensions: list[x509.ExtensionType] = [x509.BasicConstraints(ca=False, path_length=None)]
    if names:
        extensions.append(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]))
    if usages:
        extensions.append(x509.ExtendedKeyUsage(usages))
    return _signed("leaf", key or p256(), issuer, extensions, times)


def _signed(
    name: str, key: Key, issuer: Issued | None, extensions: Sequence[x509.ExtensionType], times: tuple[datetime, datetime]
) -> Issued:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    signer = issuer.key if issuer else key
    builder = x509.CertificateBuilder(
        subject_name=subject,
        issuer_name=issuer.certificate.subject if issuer else subject,
        public_key=key.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=times[0],
        not_valid_after=times[1],
    )
    for extension in extensions:
        builder = builder.add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
    is_root = issuer is None or issuer.certificate.subject == issuer.certificate.issuer
    above = () if issuer is None or is_root else (issuer.certificate, *issuer.above)
    return Issued(certificate=builder.sign(signer, hashes.SHA256()), key=key, above=above)


def put(folder: Path, pair: Issued) -> tuple[Path, Path]:
    """The two files, written in place."""
    certificate, key = folder / "tls.crt", folder / "tls.key"
    certificate.write_bytes(pair.chain_pem)
    key.write_bytes(pair.key_pem)
    return certificate, key


def put_by_rename(folder: Path, pair: Issued) -> None:
    """As careful writers do: beside, then renamed, one after the other."""
    for name, content in (("tls.crt", pair.chain_pem), ("tls.key", pair.key_pem)):
        (folder / f".{name}").write_bytes(content)
        (folder / f".{name}").replace(folder / name)


def put_by_symlink(folder: Path, pair: Issued) -> None:
    """As kubelet does: a folder with both, and one link that is turned to it."""
    real = folder / f"..{pair.certificate.serial_number:x}"
    real.mkdir()
    put(real, pair)
    old = (folder / "..data").resolve() if (folder / "..data").is_symlink() else None
    (folder / "..new").symlink_to(real.name)
    (folder / "..new").replace(folder / "..data")
    for name in ("tls.crt", "tls.key"):
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"..data/{name}")
    if old:
        for path in old.iterdir():
            path.unlink()
        old.rmdir()


def client_context(trusted: bytes) -> ssl.SSLContext:
    """A client's, which trusts the CA in PEM. The time is not looked at: NOW is fixed and the clock is not."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=trusted.decode())
    context.verify_flags |= ssl.VerifyFlags(NO_CHECK_TIME)
    return context


NO_CHECK_TIME = 0x200000
"""X509_V_FLAG_NO_CHECK_TIME, openssl/x509_vfy.h"""


def handshake(server: ssl.SSLContext, client: ssl.SSLContext, name: str | None = "localhost") -> ssl.SSLObject:
    """The client's side of a connection that is established. Raises ssl.SSLError of either side."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    calling = client.wrap_bio(to_client, to_server, server_hostname=name)
    serving = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(2):
        for side in (calling, serving):
            with contextlib.suppress(ssl.SSLWantReadError):
                side.do_handshake()
    calling.do_handshake()
    return calling


def serial_of(connection: ssl.SSLObject | ssl.SSLSocket) -> int:
    """The serial number of the certificate that the server showed."""
    der = connection.getpeercert(binary_form=True)
    assert der is not None
    return x509.load_der_x509_certificate(der).serial_number


def first(source: CertificateSource, now: datetime = NOW) -> Serving:
    """The first refresh never says that nothing changed."""
    serving = source.refresh(now)
    assert serving is not None
    return serving


def denied(source: CertificateSource, now: datetime = NOW) -> str:
    """Two calls find the same trouble: the second says it."""
    with pytest.raises(CertificateError) as error:
        assert [source.refresh(now), source.refresh(now)] == []
    return str(error.value)
