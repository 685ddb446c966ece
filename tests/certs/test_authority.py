"""The authority: what its certificates say, and that a strict TLS client accepts them."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID

from certs.authority import CertificateError, KeyPair, issue, load_pair, make_ca, normal, renewal_reason, signed

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
NAMES = ("berth.berth-system.svc", "127.0.0.1", "::1")


def usage(pair: KeyPair) -> set[str]:
    value = pair.certificate.extensions.get_extension_for_class(x509.KeyUsage).value
    flags = (
        "digital_signature",
        "content_commitment",
        "key_encipherment",
        "data_encipherment",
        "key_agreement",
        "key_cert_sign",
        "crl_sign",
    )
    return {flag for flag in flags if getattr(value, flag)}


def test_a_ca_signs_certificates_and_nothing_else() -> None:
    """A CA may sign certificates and revocation lists, not connections, and has no CA below it."""
    ca = make_ca(NOW)
    constraints = ca.certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    assert constraints.critical
    assert (constraints.value.ca, constraints.value.path_length) == (True, 0)
    assert usage(ca) == {"key_cert_sign", "crl_sign"}


def test_a_leaf_serves_and_nothing_else() -> None:
    """A leaf signs handshakes for the names it was made for."""
    leaf = issue(make_ca(NOW), NAMES, NOW)
    assert usage(leaf) == {"digital_signature"}
    extended = leaf.certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(extended) == [ExtendedKeyUsageOID.SERVER_AUTH]
    assert leaf.names == tuple(sorted(NAMES))


def test_keys_are_p256() -> None:
    """Both keys are on the P-256 curve."""
    ca = make_ca(NOW)
    assert {type(pair.key.curve) for pair in (ca, issue(ca, NAMES, NOW))} == {ec.SECP256R1}


def test_certificates_are_backdated_an_hour() -> None:
    """A caller whose clock is an hour slow accepts a fresh certificate."""
    ca = make_ca(NOW)
    starts = {pair.certificate.not_valid_before_utc for pair in (ca, issue(ca, NAMES, NOW))}
    assert starts == {NOW - timedelta(hours=1)}


def test_lifetimes() -> None:
    """A CA lives a year, a leaf a week."""
    ca = make_ca(NOW)
    assert ca.certificate.not_valid_after_utc == NOW + timedelta(days=365)
    assert issue(ca, NAMES, NOW).certificate.not_valid_after_utc == NOW + timedelta(days=7)


def test_a_leaf_never_outlives_its_ca() -> None:
    """Two days before the CA ends, a leaf is made for two days."""
    ca = make_ca(NOW)
    late = issue(ca, NAMES, NOW + timedelta(days=363))
    assert late.certificate.not_valid_after_utc == ca.certificate.not_valid_after_utc


def test_an_expired_ca_issues_nothing() -> None:
    """Issuing from an expired CA is an error with its date."""
    with pytest.raises(CertificateError, match="expired on 2027-11-20"):
        issue(make_ca(NOW), NAMES, NOW + timedelta(days=365))


def test_a_leaf_needs_names() -> None:
    """A certificate without names would be rejected by every caller."""
    with pytest.raises(CertificateError, match="at least one name"):
        issue(make_ca(NOW), (), NOW)


def test_all_that_are_no_names_are_told() -> None:
    """Quoted, and cut, so that none can forge a line or hide the rest."""
    with pytest.raises(CertificateError) as error:
        issue(make_ca(NOW), ["localhost", "a b", "berth..svc", "x\ny", "z" * 1000], NOW)
    long = "z" * 80
    assert str(error.value).startswith(f'a certificate cannot be issued for "a b", "berth..svc", "x\\ny", "{long}": not a DNS name (')


def test_a_name_is_held_once_in_its_normal_form() -> None:
    """Two forms of an address are one."""
    assert issue(make_ca(NOW), ["::1", "0::1", "*.berth.svc", "::1"], NOW).names == ("*.berth.svc", "::1")


def test_a_long_name_still_gets_a_certificate() -> None:
    """The subject holds 64 characters; a longer first name is cut there and whole among the alternatives."""
    name = f"{'a' * 60}.{'b' * 60}.svc"
    assert issue(make_ca(NOW), [name], NOW).names == (name,)


def test_the_repr_masks_the_key() -> None:
    """A pair that lands in a log or a traceback shows no key."""
    pair = make_ca(NOW)
    assert repr(pair).endswith("until 2027-11-20 12:00Z, key=***)")
    assert "PRIVATE" not in repr(pair)


def test_two_cas_have_different_subjects() -> None:
    """In a bundle of an old and a new CA, a caller can tell which one signed."""
    assert make_ca(NOW).certificate.subject != make_ca(NOW).certificate.subject


def test_only_the_signer_has_issued_a_leaf() -> None:
    """``signed`` tells the CA that signed from another one."""
    ca, other = make_ca(NOW), make_ca(NOW)
    leaf = issue(ca, NAMES, NOW)
    assert signed(leaf.certificate, ca.certificate)
    assert not signed(leaf.certificate, other.certificate)


def test_a_pair_survives_pem() -> None:
    """What is written is what is read."""
    pair = issue(make_ca(NOW), NAMES, NOW)
    assert load_pair(pair.certificate_pem, pair.key_pem).certificate == pair.certificate


def test_a_certificate_without_alternatives_has_no_names() -> None:
    """A CA names nothing."""
    assert make_ca(NOW).names == ()


def rsa_key() -> bytes:
    key = rsa.generate_private_key(65537, 2048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@pytest.mark.parametrize(
    ("certificate", "key", "message"),
    [
        pytest.param(b"junk", make_ca(NOW).key_pem, "certificate is not in PEM form", id="certificate-is-junk"),
        pytest.param(make_ca(NOW).certificate_pem, b"junk", "not an unencrypted PEM key", id="key-is-junk"),
        pytest.param(make_ca(NOW).certificate_pem, make_ca(NOW).key_pem, "does not belong", id="key-of-another"),
        pytest.param(make_ca(NOW).certificate_pem, rsa_key(), "not an elliptic curve key", id="rsa-key"),
    ],
)
def test_a_bad_pair_is_named(certificate: bytes, key: bytes, message: str) -> None:
    """What cannot be loaded says which half is wrong, without key material."""
    with pytest.raises(CertificateError, match=message) as error:
        load_pair(certificate, key)
    assert "BEGIN" not in str(error.value)


def handshake(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> str | None:
    """A TLS handshake in memory; the protocol version agreed on."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    one = server.wrap_bio(to_server, to_client, server_side=True)
    two = client.wrap_bio(to_client, to_server, server_hostname=name)
    for side in (two, one, two, one):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    return two.version()


@pytest.mark.parametrize("name", NAMES)
def test_a_strict_client_accepts_the_chain(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """OpenSSL with X509_STRICT (Python 3.13's default) verifies the leaf for each of its names."""
    now = datetime.now(UTC)
    ca = make_ca(now)
    leaf = issue(ca, NAMES, now)
    file = tmp_path_factory.mktemp("tls") / "both.pem"
    file.write_bytes(leaf.certificate_pem + leaf.key_pem)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(file)
    client = ssl.create_default_context(cadata=ca.certificate_pem.decode())
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    assert handshake(server, client, name) == "TLSv1.3"


LABEL = "a" * 63


@pytest.mark.parametrize(
    "name",
    [
        "localhost",
        "berth.berth-system.svc",
        "*.berth.svc",
        "1a.example",
        "xn--bcher-kva.example",
        "Berth.Example",
        "10-0-0-7.example",
        LABEL,
        f"{LABEL}.{LABEL}.{LABEL}.{'a' * 61}",
        "10.0.0.7",
        "::1",
        "fe80::1",
    ],
)
def test_a_name_stays_as_it_is(name: str) -> None:
    """DNS names of RFC 1123 labels, a wildcard in front, at most 253 characters; addresses in their shortest form."""
    assert normal(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "a b",
        "berth..svc",
        ".svc",
        "berth.svc.",
        "-a",
        "a-.svc",
        "a_b",
        "bücher.example",
        "*",
        "*.",
        "a.*.svc",
        "*a.svc",
        "berth.svc:8443",
        "https://berth.svc",
        "[::1]",
        "10.0.0.256",
        "10.0.0",
        "10.0.0.0/8",
        "a\n",
        LABEL + "a",
        f"{LABEL}.{LABEL}.{LABEL}.{'a' * 62}",
        "\udc80",
    ],
)
def test_what_no_caller_can_ask_for_is_no_name(name: str) -> None:
    """Spaces, empty labels, ports, brackets, ranges, hyphens at an end, over 63 or 253 characters."""
    assert normal(name) is None


@pytest.mark.parametrize(("name", "form"), [("0:0::1", "::1"), ("FE80::A", "fe80::a"), ("fe80::1%eth0", "fe80::1")])
def test_an_address_has_one_form(name: str, form: str) -> None:
    """The shortest, without a zone, as a certificate gives it back."""
    assert normal(name) == form


NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
CA = make_ca(NOW)
LEAF = issue(CA, ("berth.svc", "10.0.0.1"), NOW)


@pytest.mark.parametrize(
    ("names", "after", "reason"),
    [
        pytest.param(("berth.svc", "10.0.0.1"), timedelta(0), None, id="fresh"),
        pytest.param(("10.0.0.1",), timedelta(0), None, id="more-names-than-asked"),
        pytest.param(("berth.svc",), timedelta(days=4), None, id="a-third-left"),
        pytest.param(
            ("berth.svc",), timedelta(days=5), "less than a third of its lifetime is left: it expires on 2026-11-27 12:00Z", id="due"
        ),
        pytest.param(("berth.svc",), timedelta(days=7), "it expired on 2026-11-27 12:00Z", id="at-the-end"),
        pytest.param(("new.svc", "a.svc"), timedelta(0), "it does not name a.svc, new.svc", id="names-missing"),
        pytest.param(("berth.svc",), timedelta(hours=-2), "it is valid only from 2026-11-20 11:00Z", id="clock-stepped-back"),
    ],
)
def test_the_reason(names: tuple[str, ...], after: timedelta, reason: str | None) -> None:
    """Each way to be due has its own sentence; a good certificate has none."""
    found = renewal_reason(LEAF, names, NOW + after)
    assert found == reason or (found is not None and reason is not None and found.startswith(reason))


def test_a_ca_is_asked_without_names() -> None:
    """A year's CA is due after eight months, not after seven."""
    assert renewal_reason(CA, (), NOW + timedelta(days=240)) is None
    assert renewal_reason(CA, (), NOW + timedelta(days=250)) is not None


def test_a_leaf_that_ends_with_its_ca_is_not_due() -> None:
    """A new one would end no later; where its CA goes on, it is due."""
    end = LEAF.certificate.not_valid_after_utc
    assert renewal_reason(LEAF, (), NOW + timedelta(days=6), latest=end) is None
    assert renewal_reason(LEAF, (), NOW + timedelta(days=6), latest=end + timedelta(days=1)) is not None


@pytest.mark.parametrize("life", [timedelta(minutes=5), timedelta(minutes=20), timedelta(hours=1), timedelta(days=7)])
def test_a_fresh_leaf_is_not_due_however_short_its_life(life: timedelta) -> None:
    """That it is dated back by an hour takes nothing from its life; it is due when a third of that is left."""
    leaf = issue(CA, ("berth.svc",), NOW, life=life)
    assert renewal_reason(leaf, (), NOW) is None
    assert renewal_reason(leaf, (), NOW + life * 0.6) is None
    assert renewal_reason(leaf, (), NOW + life * 0.7) is not None
