"""A serving certificate from anywhere: usable, or what is wrong with it in words."""

from __future__ import annotations

from datetime import datetime

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed448
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID

from certs.authority import CertificateError
from certs.chain import check, parse_chain, parse_key, place_of, to_pem
from tests.certs.pairs import DAY, NOW, Issued, authority, leaf, p256

ROOT = authority()
BETWEEN = authority(above=ROOT)
LEAF = leaf(BETWEEN)


def encrypted(form: PrivateFormat) -> bytes:
    return p256().private_bytes(Encoding.PEM, form, BestAvailableEncryption(b"secret"))


def test_a_chain_keeps_its_order() -> None:
    """The serving certificate first; text around it is passed over, as OpenSSL writes some."""
    chain = parse_chain(b"subject=leaf\n" + LEAF.chain_pem)
    assert chain == (LEAF.certificate, BETWEEN.certificate)
    assert parse_chain(to_pem(chain, p256())) == chain


@pytest.mark.parametrize(
    ("pem", "message"),
    [
        pytest.param(b"", "it contains no PEM certificate", id="empty"),
        pytest.param(LEAF.key_pem, "it contains a key and no certificate", id="a-key"),
        pytest.param(LEAF.chain_pem[:300], "the certificate in it is damaged", id="cut-off"),
        pytest.param(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "the certificate in it is damaged", id="no-asn1"),
        pytest.param(LEAF.chain_pem.replace(b"MII", b"MIJ", 1), "the certificate in it is damaged", id="one-letter"),
    ],
)
def test_no_certificate(pem: bytes, message: str) -> None:
    """Each has its sentence."""
    with pytest.raises(CertificateError, match=message):
        parse_chain(pem)


@pytest.mark.parametrize(
    ("pem", "message"),
    [
        pytest.param(b"junk", "it contains no PEM key", id="junk"),
        pytest.param(LEAF.chain_pem, "it contains no PEM key", id="a-certificate"),
        pytest.param(LEAF.key_pem[:80], "the key in it is damaged", id="cut-off"),
        pytest.param(encrypted(PrivateFormat.PKCS8), "the key is encrypted; use one without a passphrase", id="encrypted"),
        pytest.param(encrypted(PrivateFormat.TraditionalOpenSSL), "the key is encrypted", id="encrypted-the-old-way"),
        pytest.param(Issued(certificate=LEAF.certificate, key=ed448.Ed448PrivateKey.generate()).key_pem, "this type of key", id="ed448"),
        pytest.param(
            Issued(certificate=LEAF.certificate, key=ec.generate_private_key(ec.SECP256K1())).key_pem, "the curve secp256k1", id="curve"
        ),
    ],
)
def test_no_key(pem: bytes, message: str) -> None:
    """Each has its sentence, and none asks for a passphrase on the terminal."""
    with pytest.raises(CertificateError, match=message):
        parse_key(pem)


def test_the_keys_own_certificate_is_found() -> None:
    """First where it should be, later where the order is wrong, nowhere for the key of another."""
    assert place_of(parse_key(LEAF.key_pem), parse_chain(LEAF.chain_pem)) == 0
    assert place_of(parse_key(BETWEEN.key_pem), parse_chain(LEAF.chain_pem)) == 1
    assert place_of(p256(), parse_chain(LEAF.chain_pem)) is None


@pytest.mark.parametrize(
    ("issued", "now", "message"),
    [
        pytest.param(LEAF, NOW + 7 * DAY, "it expired on 2026-11-27 12:00Z; replace it with a renewed certificate", id="expired"),
        pytest.param(
            LEAF, NOW - 2 * DAY, "valid only from 2026-11-19 12:00Z, but this machine's clock says 2026-11-18 12:00Z; set", id="early"
        ),
        pytest.param(leaf(ROOT, names=()), NOW, "it has no subjectAltName", id="no-names"),
        pytest.param(leaf(ROOT, usages=[ExtendedKeyUsageOID.CLIENT_AUTH]), NOW, "does not include servers", id="for-clients"),
    ],
)
def test_a_certificate_that_callers_deny(issued: Issued, now: datetime, message: str) -> None:
    """It is rejected here first, with what to do."""
    with pytest.raises(CertificateError, match=message):
        check(issued.certificate, now)


@pytest.mark.parametrize("usages", [[], [ExtendedKeyUsageOID.SERVER_AUTH], [ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE]])
def test_a_certificate_for_servers(usages: list[object]) -> None:
    """Said, or not limited, or for everything."""
    check(leaf(ROOT, usages=usages).certificate, NOW)  # type: ignore[arg-type]  # ids of one type in two names
