"""The serving side: a TLS context made from two files, checked and tried out, and the socket's own context,
which follows their changes.

A context in use is never modified: loading a certificate into it from another thread ends the process (a
segfault after some thousand loads under handshakes), and on the event loop a handshake could still get a
certificate with the key of another.
"""

from __future__ import annotations

import os
import ssl
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from certs.authority import CertificateError, KeyPair, names_of
from certs.chain import Chain, PrivateKey, check, parse_chain, parse_key, place_of, to_pem
from certs.reading import digest, read_file, reason_of

MOST_NAMES_SHOWN = 5
"""The most names of a certificate that a log line lists."""

ROUNDS = 3
"""The most turns of each side in a handshake: TLS 1.2 takes three, TLS 1.3 two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """A certificate with its key, ready to serve. Its repr holds no key material."""

    context: ssl.SSLContext = field(repr=False)
    expires: datetime
    serial: int
    names: tuple[str, ...]
    """DNS names and IP addresses, sorted."""
    digest: bytes = field(repr=False)
    """``reading.digest`` of the two files as read: the value of ``reading.fingerprint`` until one of them
    changes."""

    def __str__(self) -> str:
        more = f" and {len(self.names) - MOST_NAMES_SHOWN} more" if len(self.names) > MOST_NAMES_SHOWN else ""
        return f"serial {_hex(self.serial)}, for {', '.join(self.names[:MOST_NAMES_SHOWN])}{more}, until {self.expires:%Y-%m-%d %H:%M}Z"


class LiveContext:
    """The context that the listening socket keeps for ever; each handshake uses the pair current at its
    ClientHello.

    One reference leads to certificate and key together, so a handshake has both from the same write. Open
    connections keep theirs. ``callers``: CA certificates in PEM, one of which must have issued the caller's
    certificate; if empty, a caller needs no certificate.
    """

    def __init__(self, serving: Serving, callers: str = "") -> None:
        self._callers = callers
        self.context = _bare_context()  # has no certificate: only the current pair can ever be served
        self.context.sni_callback = self._choose
        _verify(self.context, callers)
        self.replace(serving)

    @property
    def serving(self) -> Serving:
        return self._serving

    def replace(self, serving: Serving) -> None:
        """Serve this pair from the next handshake on. May be called from any thread."""
        _verify(serving.context, self._callers)  # OpenSSL takes the verify mode from one context and the CAs from the other
        self._serving = serving

    def _choose(self, connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _context: ssl.SSLContext) -> None:
        """Switch the connection to the current context.

        OpenSSL calls this also for a caller without a server name, such as one that dials an IP address.
        """
        connection.context = self._serving.context


def read_callers(ca: Path) -> str:
    """Read the CA certificates, in PEM form, by which callers are verified. Raises CertificateError."""
    text = read_file(ca).decode("ascii", "replace")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError):
        raise CertificateError(f"{ca}: no CA certificates in PEM form; use those that issue the API server's client certificate") from None
    return text


def _verify(context: ssl.SSLContext, callers: str) -> None:
    if callers:
        context.load_verify_locations(cadata=callers)
        context.verify_mode = ssl.CERT_REQUIRED


def load_serving(certificate: Path, key: Path, now: datetime) -> Serving:
    """Load the pair from two PEM files.

    Intermediates may follow the certificate; the key is RSA, P-256, P-384, P-521 or Ed25519. Raises
    CertificateError, one line with the file, what is wrong and what to do.
    """
    return serving_of_pem((read_file(certificate), read_file(key)), (certificate, key), now)


def serving_of_pem(contents: tuple[bytes, bytes], places: tuple[Path, Path], now: datetime) -> Serving:
    """Return the Serving for a certificate and a key in PEM form. ``places``: where messages say that they
    are. Raises CertificateError as ``load_serving`` does."""
    certificate, key = places
    with _about(certificate):
        chain = parse_chain(contents[0])
    with _about(key):
        private = parse_key(contents[1])
    with _about(certificate):
        place = place_of(private, chain)
    if place is None:
        raise CertificateError(f"{key}: this key does not belong to the certificate in {certificate}; use a matching pair")
    if place:
        raise CertificateError(f"{certificate}: certificate {place + 1} in it belongs to the key; put it first, before its intermediates")
    with _about(certificate):
        check(chain[0], now)
        return _serving(chain, private, digest(contents))


def serving_of(pair: KeyPair, origin: Path, now: datetime) -> Serving:
    """Return the Serving for a pair that was read from ``origin`` or written there.

    Its files are not read again: another process may have put another pair there meanwhile. Raises
    CertificateError as ``load_serving`` does.
    """
    with _about(origin):
        check(pair.certificate, now)
        return _serving((pair.certificate,), pair.key, digest((pair.certificate_pem, pair.key_pem)))


def _serving(chain: Chain, key: PrivateKey, origin: bytes) -> Serving:
    leaf, context = chain[0], _context(chain, key)
    return Serving(context=context, expires=leaf.not_valid_after_utc, serial=leaf.serial_number, names=names_of(leaf), digest=origin)


def _hex(serial: int) -> str:
    """Return the serial number as openssl prints it: upper case, whole bytes."""
    digits = f"{serial:X}"
    return digits.zfill(len(digits) + len(digits) % 2)


def _bare_context() -> ssl.SSLContext:
    """Return a context without a certificate: TLS 1.2 or later, HTTP/1.1 by ALPN (what the API server uses
    for webhooks), no session tickets.

    With a ticket a client resumes with the certificate of its first handshake, across swaps, for two hours
    (measured). The API server never resumes, and without tickets a TLS 1.3 handshake takes 200 us of CPU
    instead of 230. What remains is a TLS 1.2 client that resumes by session ID: Python cannot switch that
    cache off. It lasts two hours and holds at most 20,480 sessions of 1.1 KiB.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.num_tickets = 0  # TLS 1.3
    context.options |= ssl.OP_NO_TICKET  # TLS 1.2
    return context


def _context(chain: Chain, key: PrivateKey) -> ssl.SSLContext:
    context = _bare_context()
    try:
        with _path_of(to_pem(chain, key)) as path:
            context.load_cert_chain(path)
        _try_out(context)
    except ssl.SSLError as error:
        reason = (error.reason or str(error)).replace("_", " ").lower()
        raise CertificateError(
            f"OpenSSL cannot serve it ({reason}); reissue it with P-256 or RSA of 2048 bits or more, and SHA-256"
        ) from None
    except OSError as error:
        raise CertificateError(f"OpenSSL cannot read it: {reason_of(error, 'it reads from /proc/self/fd; mount /proc')}") from None
    return context


def _try_out(context: ssl.SSLContext) -> None:
    """Do one handshake in memory, in which the client checks the signature: a damaged key that still parses
    fails here, not at a caller."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    caller = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    caller.check_hostname, caller.verify_mode = False, ssl.CERT_NONE  # the trust anchors of callers are not known here
    client = caller.wrap_bio(to_client, to_server)
    server = context.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(ROUNDS):
        if _stepped(client) & _stepped(server):
            return
    raise ssl.SSLError("no handshake was completed")


def _stepped(side: ssl.SSLObject) -> bool:
    """Advance this side's handshake; return whether it is done."""
    try:
        side.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True


@contextmanager
def _path_of(content: bytes) -> Iterator[str]:
    """Yield a path to these bytes.

    ``ssl`` loads only from paths, and the original files may have changed since the bytes were checked.
    """
    if sys.platform == "linux":
        with open(os.memfd_create("serving"), "wb", buffering=0) as file:  # in memory: a container's file system may be read-only
            file.write(content)
            yield f"/proc/self/fd/{file.fileno()}"
    else:
        with tempfile.NamedTemporaryFile(buffering=0) as file:
            file.write(content)
            yield file.name


@contextmanager
def _about(path: Path) -> Iterator[None]:
    try:
        yield
    except CertificateError as error:
        raise CertificateError(f"{path}: {error}") from None
