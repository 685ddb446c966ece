"""The data of the Secret in which an installation's certificates are stored.

    ca.crt            every CA certificate that callers are to trust, newest first
    ca.key            the keys of those that may sign, in any order
    tls.crt, tls.key  the serving certificate
    authorities.json  when each CA was published and retired, by the fingerprint of its certificate

A later version that stores more does so in fields of its own: those that a version does not know, it leaves as they
are when it writes, while it writes ``authorities.json`` anew.

Reading never fails: what is damaged or missing is left out, with a sentence about it, and the next change
makes it anew.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import orjson
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from certs.authority import CertificateError, load_pair
from certs.chain import parse_chain
from certs.rotation import Authority, Material

CA, CA_KEY, LEAF, LEAF_KEY, TIMES = "ca.crt", "ca.key", "tls.crt", "tls.key", "authorities.json"
FIELDS = (CA, CA_KEY, LEAF, LEAF_KEY, TIMES)
_BLOCK = re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----.+?-----END [A-Z ]*PRIVATE KEY-----\n?", re.DOTALL)

YEARS = range(2000, 9000)
"""Years of times that can be read: additions to these can't overflow."""

Read = tuple[Material, tuple[str, ...]]
"""What is stored, and sentences about what is damaged or missing."""


def is_ours(data: Mapping[str, bytes]) -> bool:
    """Return whether Berth made what the Secret holds, or it holds nothing yet: what somebody else put there is
    never written over."""
    return bool(data.get(CA_KEY) or data.get(TIMES)) or not any(data.values())


def to_data(material: Material) -> dict[str, bytes]:
    """Return the fields of the Secret."""
    keys = [one.pair.key_pem for one in material.authorities if one.key is not None]
    times = {one.fingerprint: {"published": _written(one.published), "retired": _written(one.retired)} for one in material.authorities}
    leaf = material.leaf
    return {
        CA: material.bundle,
        CA_KEY: b"".join(keys),
        LEAF: leaf.certificate_pem if leaf is not None else b"",
        LEAF_KEY: leaf.key_pem if leaf is not None else b"",
        TIMES: orjson.dumps({"authorities": times, "rotated": material.rotated}),
    }


def from_data(data: Mapping[str, bytes]) -> Read:
    """Return what the Secret holds. One without any of the fields is empty, and nothing is wrong with it."""
    if not any(data.get(field) for field in FIELDS):
        return Material(), ()
    wrong: list[str] = []
    times = _times(data.get(TIMES, b""), wrong)
    keys = _keys(data.get(CA_KEY, b""), wrong)
    authorities = tuple(_authority(one, keys, times, wrong) for one in reversed(_certificates(data.get(CA, b""), wrong)))
    try:
        leaf = load_pair(data.get(LEAF, b""), data.get(LEAF_KEY, b""))
    except CertificateError as error:
        leaf = None
        wrong.append(f"{LEAF} and {LEAF_KEY}: {error}")
    material = Material(authorities=authorities, leaf=leaf, rotated=str(times.get("rotated") or ""))
    if leaf is not None and material.issuer() is None:
        wrong.append(f"{LEAF}: no CA in {CA} signed it")
    return material, tuple(wrong)


def _certificates(pem: bytes, wrong: list[str]) -> tuple[x509.Certificate, ...]:
    try:
        return parse_chain(pem)
    except CertificateError as error:
        wrong.append(f"{CA}: {error}")
        return ()


def _keys(pem: bytes, wrong: list[str]) -> list[ec.EllipticCurvePrivateKey]:
    found = []
    for block in _BLOCK.findall(pem):
        try:
            key = serialization.load_pem_private_key(block, password=None)
        except (ValueError, TypeError):
            key = None
        if isinstance(key, ec.EllipticCurvePrivateKey):
            found.append(key)
    if len(found) < pem.count(b"-----BEGIN "):
        wrong.append(f"{CA_KEY}: a key in it is damaged, or of another kind than Berth makes")
    return found


def _authority(
    certificate: x509.Certificate, keys: list[ec.EllipticCurvePrivateKey], times: Mapping[str, Any], wrong: list[str]
) -> Authority:
    key = next((one for one in keys if one.public_key() == certificate.public_key()), None)
    one = Authority(certificate=certificate, key=key)
    of_each = times.get("authorities")
    stated = of_each.get(one.fingerprint) if isinstance(of_each, dict) else None
    stated = stated if isinstance(stated, dict) else {}
    published, retired = (_time(stated.get(field), f"{field} of CA {one.fingerprint[:8]}", wrong) for field in ("published", "retired"))
    if key is None and retired is None:
        wrong.append(f"{CA_KEY}: the key of the CA {one.fingerprint[:8]} is missing")
    return Authority(certificate=certificate, key=key, published=published, retired=retired)


def _times(text: bytes, wrong: list[str]) -> Mapping[str, Any]:
    try:
        found = orjson.loads(text or b"{}")
    except orjson.JSONDecodeError:
        found = None
    if isinstance(found, dict):
        return found
    wrong.append(f"{TIMES}: it is not what Berth wrote; every CA counts as not published yet")
    return {}


def _written(time: datetime | None) -> str | None:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ") if time is not None else None


def _time(text: object, field: str, wrong: list[str]) -> datetime | None:
    """Return a time with its zone, as Berth writes it; None, and a sentence, for anything else."""
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        time = None
    if time is not None and time.tzinfo is not None and time.year in YEARS:
        return time
    wrong.append(f"{TIMES}: {field} is not a time that Berth wrote; it counts as not set")
    return None
