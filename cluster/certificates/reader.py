"""Certificates that somebody else puts into a Secret: cert-manager, or a person.

Berth serves ``tls.crt`` and ``tls.key``, and never writes the Secret. ``ca.crt``, if it is there, is published
in the registration, where cert-manager does not inject a bundle itself. A pair of another issuer is served only
once the registration has had its CA for a while, but never later than ENDING before the end of the pair that is
served. The CA before it stays published for as long as a new one of Berth's own would.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from certs.authority import CertificateError
from certs.chain import parse_chain
from certs.rotation import OVERLAP, fingerprint
from cluster.certificates.follower import Pair, SecretFollower
from cluster.certificates.registrations import Registrations, Trust
from cluster.certificates.secret_store import SecretStore, StoredSecret
from cluster.client.api_client import Client
from cluster.client.errors import Failure
from cluster.client.new_errors import NewErrors
from cluster.watch.store import Tell

PUBLISHED = 5.0
"""Seconds for which the registration has a CA before a certificate of it is served: an API server follows its
registrations by a watch."""
ENDING = timedelta(minutes=5)
"""The time before the end of the served pair at which a new one is served, whatever the registration trusts: without it no caller can
verify anything any more."""


class SecretReader(SecretFollower):
    """Reads the certificates of one Secret."""

    def __init__(
        self, client: Client, store: SecretStore, registrations: Registrations, tell: Tell, *, overlap: timedelta = OVERLAP
    ) -> None:
        super().__init__(client, store, registrations, tell)
        self._overlap = overlap
        self._trust: dict[str, tuple[x509.Certificate, datetime]] = {}
        """The CA certificates to publish by fingerprint, and when each was last in the Secret."""
        self._trusted_since: float | None = None
        self._held = NewErrors()

    async def look(self) -> bool:
        """Read, publish the CA, and take a new pair that callers can verify; return whether to look again
        soon. Raises Failure."""
        stored, configurations = await self.read()
        pair, authorities = self._pair(stored), self._authorities(stored)
        trust = self._published(authorities)
        if trust is not None:
            await self._registrations.publish(configurations, trust, time.monotonic())
        current = frozenset(map(fingerprint, authorities))
        known = bool(configurations) and bool(current)
        self.trusted = all(current <= one.trusts() for one in configurations) if known else None
        if self.trusted is not True:
            self._trusted_since = None
        elif self._trusted_since is None:
            self._trusted_since = time.monotonic()
        if pair == self.pair:
            return False
        waited = self._trusted_since is not None and time.monotonic() - self._trusted_since >= PUBLISHED
        if self.pair is not None and known and not waited and (until := self._held_until(pair)) is not None:
            if self.trusted is False:
                self._tell_held(until)
            return True
        self._held.forget()
        self.pair = pair
        self.ca_expires = min((one.not_valid_after_utc for one in authorities), default=None)
        return False

    def _held_until(self, new: Pair) -> datetime | None:
        """Return until when the served pair is kept instead of a new one that callers may not be able to verify; None if the new one
        has the issuer of the served one, or the served one ends."""
        assert self.pair is not None
        served, renewed = _leaf(self.pair), _leaf(new)
        if served is None or renewed is None or _issuer(served) == _issuer(renewed):
            return None
        until = served.not_valid_after_utc - ENDING
        return until if self.now() < until else None

    def _tell_held(self, until: datetime) -> None:
        error = (
            f"Secret {self._store.namespace}/{self._store.name} has a certificate of another issuer, whose CA (ca.crt) is not in every"
            f" caBundle of the webhook configurations {self._registrations.name}; it is served when they have its CA,"
            f" and at the latest from {until:%Y-%m-%d %H:%M}Z"
        )
        if self._held.is_new(error):
            self._tell("certificate_held_back", error=error)

    def _pair(self, stored: StoredSecret) -> Pair:
        name, data = f"Secret {self._store.namespace}/{self._store.name}", stored.data
        if stored.value is None:
            raise Failure(f"there is no {name}; create it, with tls.crt and tls.key, and ca.crt if its CA is not published otherwise")
        for field in ("tls.crt", "tls.key"):
            if not data.get(field):
                raise Failure(f"{name} has no {field}; the previous certificate is still served")
        return data["tls.crt"], data["tls.key"]

    def _authorities(self, stored: StoredSecret) -> tuple[x509.Certificate, ...]:
        pem = stored.data.get("ca.crt", b"")
        try:
            return parse_chain(pem) if pem else ()
        except CertificateError as error:
            raise Failure(f"Secret {self._store.namespace}/{self._store.name}, ca.crt: {error}") from None

    def _published(self, authorities: tuple[x509.Certificate, ...]) -> Trust | None:
        """Return what is to be published; None if the Secret has no CA."""
        now = self.now()
        if not authorities:
            return None
        self._trust |= {fingerprint(one): (one, now) for one in authorities}
        self._trust = {key: (one, at) for key, (one, at) in self._trust.items() if now - at < self._overlap}
        pem = b"".join(one.public_bytes(Encoding.PEM) for one, _ in reversed(self._trust.values()))
        return Trust(pem, frozenset(self._trust))


def _leaf(pair: Pair) -> x509.Certificate | None:
    """Return the serving certificate; None if it can't be read, which is told where it is served."""
    try:
        return parse_chain(pair[0])[0]
    except (CertificateError, IndexError):
        return None


def _issuer(leaf: x509.Certificate) -> tuple[x509.Name, bytes | None]:
    """Return the issuer's name and, where it is named, its key."""
    try:
        key = leaf.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value.key_identifier
    except (x509.ExtensionNotFound, ValueError):
        key = None
    return leaf.issuer, key
