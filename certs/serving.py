"""What is served: a TLS context from two files, checked and tried out, and the one that the socket holds while those change.

A context that serves is never touched: loading a certificate into it from another thread ends the process (a segfault after some
thousand loads under handshakes), and on the event loop a handshake could still meet a certificate and the key of another.
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
from certs.reading import digest, read, reason_of

NAMES_TOLD = 5
"""of a certificate's names, in a log line"""

ROUNDS = 3
"""TLS 1.2 takes three turns of each side, TLS 1.3 two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """A certificate with its key, ready to serve. Its repr holds no key material."""

    context: ssl.SSLContext = field(repr=False)
    expires: datetime
    serial: int
    names: tuple[str, ...]
    """DNS names and IP addresses, sorted"""
    digest: bytes = field(repr=False)
    """``reading.fingerprint`` of the two files when they were read"""

    def __str__(self) -> str:
        more = f" and {len(self.names) - NAMES_TOLD} more" if len(self.names) > NAMES_TOLD else ""
        return f"serial {_hex(self.serial)}, for {', '.join(self.names[:NAMES_TOLD])}{more}, until {self.expires:%Y-%m-%d %H:%M}Z"


class LiveContext:
    """What the listening socket holds for ever. Each handshake takes the pair that is served when its ClientHello comes.

    One reference leads to certificate and key together, so a handshake has both of one write. Connections that are open keep theirs.
    """

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self.context = _bare_context()  # has no certificate: nothing but the pair of today can ever be served
        self.context.sni_callback = self._choose

    @property
    def serving(self) -> Serving:
        return self._serving

    def replace(self, serving: Serving) -> None:
        """Serve this from the next handshake on. May be called from any thread."""
        self._serving = serving

    def _choose(self, connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _context: ssl.SSLContext) -> None:
        """OpenSSL calls this also for a caller that gives no name, as one does that dials an IP address."""
        connection.context = self._serving.context


def load_serving(certificate: Path, key: Path, now: datetime) -> Serving:
    """The pair in two PEM files: any intermediates after the certificate, the key RSA, P-256, P-384, P-521 or Ed25519.

    Raises CertificateError, one line with the file, what is wrong and what to do.
    """
    contents = read(certificate), read(key)
    with _about(certificate):
        chain = parse_chain(contents[0])
    with _about(key):
        private = parse_key(contents[1])
    with _about(certificate):
        place = place_of(private, chain)
    if place is None:
        raise CertificateError(f"{key}: this key does not belong to the certificate in {certificate}; give the two that were made together")
    if place:
        raise CertificateError(f"{certificate}: certificate {place + 1} in it is the key's; put it first, its intermediates after it")
    with _about(certificate):
        check(chain[0], now)
        return _serving(chain, private, digest(contents))


def serving_of(pair: KeyPair, origin: Path, now: datetime) -> Serving:
    """A pair that was read from ``origin``, or written there. Raises CertificateError as ``load_serving`` does.

    Its files are not read again: by now another process may have put another pair there.
    """
    with _about(origin):
        check(pair.certificate, now)
        return _serving((pair.certificate,), pair.key, digest((pair.certificate_pem, pair.key_pem)))


def _serving(chain: Chain, key: PrivateKey, origin: bytes) -> Serving:
    leaf, context = chain[0], _context(chain, key)
    return Serving(context=context, expires=leaf.not_valid_after_utc, serial=leaf.serial_number, names=names_of(leaf), digest=origin)


def _hex(serial: int) -> str:
    """As openssl shows it: upper case, whole bytes."""
    digits = f"{serial:X}"
    return digits.zfill(len(digits) + len(digits) % 2)


def _bare_context() -> ssl.SSLContext:
    """TLS 1.2 or later, HTTP/1.1 by ALPN (what the API server speaks to webhooks), no tickets.

    With a ticket a client goes on with the certificate that it once saw, across swaps, for two hours (measured). The API server never
    resumes, and without tickets a TLS 1.3 handshake takes 200 us of CPU instead of 230. What is left is a TLS 1.2 client that gives a
    session's number: Python cannot switch that memory off. It lasts two hours and holds at most 20,480 sessions of 1.1 KiB.
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
            f"OpenSSL cannot serve it ({reason}); issue it anew, with P-256 or RSA of 2048 bits or more, and SHA-256"
        ) from None
    except OSError as error:
        raise CertificateError(f"OpenSSL cannot read it: {reason_of(error, 'it reads from /proc/self/fd; mount /proc')}") from None
    return context


def _try_out(context: ssl.SSLContext) -> None:
    """One handshake in memory, in which the client checks the signature: a damaged key that still parses shows here, not at a caller."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    caller = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    caller.check_hostname, caller.verify_mode = False, ssl.CERT_NONE  # whom callers trust is not known here
    client = caller.wrap_bio(to_client, to_server)
    server = context.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(ROUNDS):
        if _stepped(client) & _stepped(server):
            return
    raise ssl.SSLError("no handshake came about")


def _stepped(side: ssl.SSLObject) -> bool:
    """Whether this side's handshake is done."""
    try:
        side.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True


@contextmanager
def _path_of(content: bytes) -> Iterator[str]:
    """A path to these bytes: ssl loads only from paths, and at the files' own there may be other bytes by now than were checked."""
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
