"""The certificates that the replicas of an installation share, and the next change that is due in them.

Pure: the time and what the API server was seen to trust are arguments. A new authority signs only once its
certificate has been in every registration for ``Lives.overlap``, and an old one stays in them for as long
after its last leaf was replaced: whatever registration an API server remembers, it verifies what is served.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from certs.authority import CA_LIFE, LEAF_LIFE, KeyPair, issue, make_ca, renewal_reason, signed

OVERLAP = timedelta(hours=1)
"""An API server follows its registrations by a watch, and has a change within a second; one that is cut off
from etcd for minutes answers nothing at all. An hour costs nothing."""

Asked = Literal["ca", "leaf"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lives:
    """How long certificates live, and how long two authorities are trusted side by side."""

    ca: timedelta = CA_LIFE
    leaf: timedelta = LEAF_LIFE
    overlap: timedelta = OVERLAP


def fingerprint(certificate: x509.Certificate) -> str:
    """Return the SHA-256 of a certificate, in hex."""
    return certificate.fingerprint(hashes.SHA256()).hex()


@dataclass(frozen=True, slots=True, kw_only=True)
class Authority:
    """A CA certificate that callers trust, or soon will. The repr holds no key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey | None = field(default=None, repr=False)
    """None if the key was lost: then it signs nothing any more."""
    published: datetime | None = None
    """When it was first seen in every registration; None: not yet."""
    retired: datetime | None = None
    """When the last leaf that it signed was replaced; None: it may have signed the one that is served."""

    @property
    def fingerprint(self) -> str:
        """The fingerprint of its certificate."""
        return fingerprint(self.certificate)

    def signs(self, now: datetime) -> bool:
        """Return whether it can sign a leaf now."""
        start, end = self.certificate.not_valid_before_utc, self.certificate.not_valid_after_utc
        return self.key is not None and self.retired is None and start <= now < end

    def issued(self, leaf: KeyPair) -> bool:
        """Return whether it signed this leaf."""
        return signed(leaf.certificate, self.certificate)

    @property
    def pair(self) -> KeyPair:
        assert self.key is not None, "asked only of one that signs"
        return KeyPair(certificate=self.certificate, key=self.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """All certificates and keys of an installation."""

    authorities: tuple[Authority, ...] = ()
    """Oldest first."""
    leaf: KeyPair | None = None
    rotated: str = ""
    """The last request for a rotation that was carried out, as it was written."""

    @property
    def bundle(self) -> bytes:
        """The CA certificates that callers are to trust, in PEM form, newest first."""
        return b"".join(one.certificate.public_bytes(Encoding.PEM) for one in reversed(self.authorities))

    @property
    def fingerprints(self) -> frozenset[str]:
        """The fingerprints of these certificates."""
        return frozenset(one.fingerprint for one in self.authorities)

    def issuer(self) -> Authority | None:
        """Return the authority that signed the leaf; None if there is no leaf, or none of these did."""
        leaf = self.leaf
        return None if leaf is None else next((one for one in self.authorities if one.issued(leaf)), None)


NOTHING = Material()


class RotationChange(NamedTuple):
    """One change, with the reason for it as a sentence for the log."""

    material: Material
    reason: str


def due(
    material: Material,
    names: Sequence[str],
    now: datetime,
    lives: Lives,
    *,
    trusted: Collection[str] | None,
    asked: Asked | None = None,
    request: str = "",
) -> RotationChange | None:
    """Return the next change that is due, or None; call it again with the result until nothing is.

    ``names``: those that callers verify. ``trusted``: fingerprints of the CA certificates that are in every
    registration; None if there is no registration, or it cannot be read. ``asked``: what a person asks to be
    replaced, by the request of this text.
    """
    if request and request != material.rotated and asked is None:
        return RotationChange(replace(material, rotated=request), f'a request for a rotation cannot be read: "{request[:80]}"')
    wanted = asked if request != material.rotated else None
    return (
        _without_the_old(material, now, lives)
        or _published(material, now, trusted)
        or _authority(material, now, lives, request if wanted == "ca" else "")
        or _leaf(material, names, now, lives, request if wanted == "leaf" else "")
    )


def _without_the_old(material: Material, now: datetime, lives: Lives) -> RotationChange | None:
    """Drop authorities that are no longer needed."""
    for one in material.authorities:
        expired = now >= one.certificate.not_valid_after_utc
        if expired or (one.retired is not None and now >= one.retired + lives.overlap):
            left = tuple(other for other in material.authorities if other is not one)
            why = "has expired" if expired else "signed nothing that is served any more"
            return RotationChange(replace(material, authorities=left), f"{_shown(one)} {why}: callers need not trust it")
    return None


def _published(material: Material, now: datetime, trusted: Collection[str] | None) -> RotationChange | None:
    """Note the time at which an authority was first trusted by every API server's registration."""
    for one in material.authorities:
        if one.published is None and trusted is not None and one.fingerprint in trusted:
            return RotationChange(_with(material, one, replace(one, published=now)), f"{_shown(one)} is in the registration")
    return None


def _authority(material: Material, now: datetime, lives: Lives, request: str) -> RotationChange | None:
    """Make another authority, if the newest is due, or none can sign."""
    able = [one for one in material.authorities if one.signs(now)]
    reason = "there was none that can sign" if not able else renewal_reason(able[-1].pair, (), now)
    if able and reason is None and request:
        reason = "a person asked for it"
    if reason is None or (able and _waits(able[-1], material)):
        return None
    made = make_ca(now, life=lives.ca)
    new = Authority(certificate=made.certificate, key=made.key)
    rotated = request or material.rotated
    return RotationChange(replace(material, authorities=(*material.authorities, new), rotated=rotated), f"made {_shown(new)}: {reason}")


def _waits(newest: Authority, material: Material) -> bool:
    """Return whether the newest authority has signed nothing yet: another one would gain nothing."""
    return material.leaf is not None and not newest.issued(material.leaf)


def _leaf(material: Material, names: Sequence[str], now: datetime, lives: Lives, request: str) -> RotationChange | None:
    """Issue a serving certificate, if the one there is due, or a newer authority may sign by now."""
    issuer = material.issuer()
    able = [one for one in material.authorities if one.signs(now)]
    trusted = [one for one in able if one.published is not None and now >= one.published + lives.overlap]
    usable = material.leaf is not None and issuer is not None and now < material.leaf.certificate.not_valid_after_utc
    signer = trusted[-1] if trusted else None if usable and issuer not in able else issuer if usable else able[0] if able else None
    if signer is None:
        return None
    reason = _reason(material, issuer, signer, names, now)
    if reason is None and request:
        reason = "a person asked for it"
    if reason is None:
        return None
    kept = material.leaf.names if material.leaf is not None and issuer is not None else ()
    leaf = issue(signer.pair, (*names, *(name for name in kept if name not in names)), now, life=lives.leaf)
    before = material.authorities[: material.authorities.index(signer)]
    authorities = tuple(replace(one, retired=now) if one in before and one.retired is None else one for one in material.authorities)
    rotated = request or material.rotated
    return RotationChange(Material(authorities=authorities, leaf=leaf, rotated=rotated), f"made a serving certificate: {reason}")


def _reason(material: Material, issuer: Authority | None, signer: Authority, names: Sequence[str], now: datetime) -> str | None:
    if material.leaf is None:
        return "there was none"
    if issuer is None:
        return "the old certificate is from an unknown CA"
    if issuer is not signer:
        return f"{_shown(signer)} is trusted everywhere and signs from now on"
    return renewal_reason(material.leaf, names, now, latest=signer.certificate.not_valid_after_utc)


def merge_material(known: Material, stored: Material) -> Material:
    """Return what was stored with what is missing in it and a replica still has in memory: authorities, keys,
    and the leaf."""
    mine = {one.fingerprint: one for one in known.authorities}
    fixed = tuple(
        replace(one, key=mine[one.fingerprint].key) if one.key is None and one.fingerprint in mine else one for one in stored.authorities
    )
    missing = tuple(one for one in known.authorities if one.fingerprint not in stored.fingerprints)
    leaf = stored.leaf if stored.leaf is not None and stored.issuer() is not None else known.leaf
    return Material(authorities=(*missing, *fixed), leaf=leaf, rotated=stored.rotated or known.rotated)


def _with(material: Material, old: Authority, new: Authority) -> Material:
    return replace(material, authorities=tuple(new if one is old else one for one in material.authorities))


def _shown(authority: Authority) -> str:
    return f"CA {authority.fingerprint[:8]} (until {authority.certificate.not_valid_after_utc:%Y-%m-%d %H:%M}Z)"
