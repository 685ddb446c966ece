"""The TLS context: from two files, tried out; and the one that stays while those change."""

from __future__ import annotations

import gc
import ssl
import weakref
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat

from certs.authority import CertificateError, issue, make_ca
from certs.serving import LiveContext, Serving, load_serving, serving_of
from tests.certs.pairs import DAY, NOW, Issued, Key, authority, client_context, handshake, leaf, p256, put, serial_of

ROOT = authority()
BETWEEN = authority(above=ROOT)
LEAF = leaf(ROOT)
VERSIONS = [pytest.param(ssl.TLSVersion.TLSv1_2, id="1.2"), pytest.param(ssl.TLSVersion.TLSv1_3, id="1.3")]


def served(folder: Path, pair: Issued) -> Serving:
    return load_serving(*put(folder, pair), NOW)


def denied(certificate: Path, key: Path) -> str:
    with pytest.raises(CertificateError) as error:
        load_serving(certificate, key, NOW)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(
    "key",
    [
        pytest.param(rsa.generate_private_key(65537, 2048), id="rsa"),
        pytest.param(p256(), id="p256"),
        pytest.param(ec.generate_private_key(ec.SECP521R1()), id="p521"),
        pytest.param(ed25519.Ed25519PrivateKey.generate(), id="ed25519"),
    ],
)
@pytest.mark.parametrize("issuer", [pytest.param(ROOT, id="root"), pytest.param(BETWEEN, id="intermediate")])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_caller_that_trusts_only_the_root(key: Key, issuer: Issued, version: ssl.TLSVersion, tmp_path: Path) -> None:
    """Any kind of key, and the intermediates go with the certificate."""
    pair = leaf(issuer, key)
    client = client_context(ROOT.chain_pem)
    client.minimum_version = client.maximum_version = version
    connection = handshake(served(tmp_path, pair).context, client)
    assert serial_of(connection) == pair.certificate.serial_number


def serial_shown(serial: int) -> str:
    """As ``openssl x509 -serial`` prints it: upper case, whole bytes."""
    return serial.to_bytes((serial.bit_length() + 7) // 8).hex().upper()


def test_a_serial_is_told_as_openssl_prints_it(tmp_path: Path) -> None:
    """With its leading zero, so that it can be searched for."""
    serving = served(tmp_path, LEAF)
    assert str(replace(serving, serial=0x3262CAB)).startswith("serial 03262CAB, for ")
    assert str(replace(serving, serial=0xA0)).startswith("serial A0, for ")


def test_a_pair_in_memory_is_served_as_its_files_would_be(tmp_path: Path) -> None:
    """The same certificate, and the origin in front of what is wrong with it."""
    ca = make_ca(NOW)
    pair = issue(ca, ["localhost"], NOW)
    serving = serving_of(pair, tmp_path / "tls.crt", NOW)
    connection = handshake(serving.context, client_context(ca.certificate_pem))
    assert serial_of(connection) == serving.serial == pair.certificate.serial_number
    with pytest.raises(CertificateError, match=r"tls\.crt: it expired on 2026-11-27"):
        serving_of(pair, tmp_path / "tls.crt", NOW + 7 * DAY)


def test_what_is_known_of_it(tmp_path: Path) -> None:
    """Serial, names and end for a log line; many names are cut; nothing of the key."""
    serving = served(tmp_path, leaf(ROOT, names=[f"{letter}.example" for letter in "abcdefg"]))
    assert serving.expires == NOW + 7 * DAY
    assert str(serving).startswith(f"serial {serial_shown(serving.serial)}, for a.example, b.example, ")
    assert str(serving).endswith("e.example and 2 more, until 2026-11-27 12:00Z")
    assert "digest" not in repr(serving)
    assert "context" not in repr(serving)


def test_tls_1_1_is_not_spoken(tmp_path: Path) -> None:
    """Nothing older than TLS 1.2, whichever context is asked."""
    serving = served(tmp_path, LEAF)
    assert {serving.context.minimum_version, LiveContext(serving).context.minimum_version} == {ssl.TLSVersion.TLSv1_2}


def encrypted() -> bytes:
    return LEAF.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))


def damaged() -> bytes:
    """An RSA key with the right public half and a wrong private one, as a flipped bit leaves it."""
    numbers = RSA.private_numbers()
    wrong = rsa.RSAPrivateNumbers(
        p=numbers.p,
        q=numbers.q,
        d=numbers.d ^ (1 << 40),
        dmp1=numbers.dmp1 ^ (1 << 40),
        dmq1=numbers.dmq1 ^ (1 << 40),
        iqmp=numbers.iqmp,
        public_numbers=numbers.public_numbers,
    )
    key = wrong.private_key(unsafe_skip_rsa_key_validation=True)
    return Issued(certificate=LEAF.certificate, key=key).key_pem


RSA = rsa.generate_private_key(65537, 2048)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(p256(), "this key does not belong to the certificate in {certificate}; use a matching pair", id="of-another"),
        pytest.param(b"junk", "it contains no PEM key; use the key that starts with", id="junk"),
        pytest.param(encrypted(), "the key is encrypted; use one without a passphrase", id="encrypted"),
        pytest.param(None, "cannot be read: No such file", id="missing"),
    ],
)
def test_a_bad_key_is_one_line(content: ec.EllipticCurvePrivateKey | bytes | None, message: str, tmp_path: Path) -> None:
    """It begins with the key's file."""
    certificate, key = put(tmp_path, LEAF)
    key.unlink()
    if content is not None:
        key.write_bytes(content if isinstance(content, bytes) else Issued(certificate=LEAF.certificate, key=content).key_pem)
    assert denied(certificate, key).startswith(f"{key}: {message.format(certificate=certificate)}")


def late() -> Issued:
    return leaf(ROOT, times=(NOW - 2 * DAY, NOW - DAY))


def early() -> Issued:
    return leaf(ROOT, times=(NOW + DAY, NOW + 2 * DAY))


def wrong_order() -> Issued:
    pair = leaf(BETWEEN)
    return Issued(certificate=BETWEEN.certificate, key=pair.key, above=(pair.certificate,))


def small() -> Issued:
    return leaf(ROOT, rsa.generate_private_key(65537, 1024))


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        pytest.param(late(), "it expired on 2026-11-19 12:00Z; replace it with a renewed certificate", id="expired"),
        pytest.param(early(), "it is valid only from 2026-11-21 12:00Z, but this machine's clock says 2026-11-20 12:00Z; set", id="early"),
        pytest.param(wrong_order(), "certificate 2 in it belongs to the key; put it first, before its intermediates", id="order"),
        pytest.param(small(), "OpenSSL cannot serve it (ee key too small); reissue it", id="small"),
    ],
)
def test_a_bad_certificate_is_one_line(pair: Issued, message: str, tmp_path: Path) -> None:
    """It begins with the certificate's file."""
    certificate, key = put(tmp_path, pair)
    assert denied(certificate, key).startswith(f"{certificate}: {message}")


def test_a_damaged_key_that_still_parses_is_not_served(tmp_path: Path) -> None:
    """It is tried out: its signatures are wrong, and no caller would get through."""
    certificate, key = put(tmp_path, leaf(ROOT, RSA))
    key.write_bytes(damaged())
    assert "OpenSSL cannot serve it" in denied(certificate, key)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["localhost", None])
def test_the_next_handshake_has_the_new_pair(version: ssl.TLSVersion, name: str | None, tmp_path: Path) -> None:
    """By name and without one; HTTP/1.1 is chosen before and after; and no old certificate comes back by resumption in TLS 1.3."""
    client = client_context(ROOT.chain_pem)
    client.minimum_version = client.maximum_version = version
    client.check_hostname = name is not None
    client.set_alpn_protocols(["h2", "http/1.1"])
    pairs = [leaf(ROOT), leaf(ROOT)]
    live = LiveContext(served(tmp_path, pairs[0]))
    for pair in pairs:
        live.replace(served(tmp_path, pair))
        connection = handshake(live.context, client, name)
        assert serial_of(connection) == live.serving.serial == pair.certificate.serial_number
        assert connection.selected_alpn_protocol() == "http/1.1"
        assert connection.session is None or not connection.session.has_ticket


def test_a_replaced_context_is_let_go(tmp_path: Path) -> None:
    """A thousand renewals leave nothing behind."""
    live = LiveContext(served(tmp_path, leaf(ROOT)))
    old = weakref.ref(live.serving.context)
    handshake(live.context, client_context(ROOT.chain_pem))
    live.replace(served(tmp_path, leaf(ROOT)))
    gc.collect()
    assert old() is None
