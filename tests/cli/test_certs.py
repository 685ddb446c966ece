"""`berth certs`: what is printed of certificates and of who trusts them. On a real cluster: tests/e2e/certificates."""

from __future__ import annotations

import base64
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from certs.rotation import NOTHING, Asked, Lives, Material, due
from cli.certs import InstalledCertificates, show_certificates, wrong
from cli.main import main
from cluster.certificates.registrations import KINDS, Configuration

NOW = datetime(2026, 11, 23, 1, 30, tzinfo=UTC)


def settled(material: Material, asked: Asked | None = None) -> Material:
    """With all that is due, where the registration trusts every CA that there was."""
    trusted = material.fingerprints
    while change := due(material, ("berth.a.svc",), NOW, Lives(), trusted=trusted, asked=asked, request=f"{asked} 1" if asked else ""):
        material = change.material
    return material


def found(material: Material, bundle: bytes, *damaged: str) -> InstalledCertificates:
    entry = {"name": "a", "clientConfig": {"caBundle": base64.b64encode(bundle).decode()}}
    return InstalledCertificates(
        material=material, damaged=damaged, configurations=[Configuration(kind=kind, value={"webhooks": [entry]}) for kind in KINDS]
    )


def test_every_ca_is_shown_with_what_it_is_for() -> None:
    """The one in use, and one that was asked for and is not published yet; and whom the registration trusts."""
    first = settled(settled(NOTHING))
    both = settled(first, "ca")
    old, new = (one.fingerprint[:8] for one in both.authorities)
    assert list(show_certificates(found(both, first.bundle))) == [
        f"CA {old}  until 2027-11-23 01:30Z  in use, published 2026-11-23 01:30Z",
        f"CA {new}  until 2027-11-23 01:30Z  signs next, not published yet",
        "serving certificate  until 2026-11-30 01:30Z  for berth.a.svc",
        f"MutatingWebhookConfiguration/zz-berth trusts {old}",
        f"ValidatingWebhookConfiguration/zz-berth trusts {old}",
    ]


def test_a_check_tells_what_keeps_callers_away() -> None:
    """Nothing where all is well; each kind of trouble in a sentence."""
    material = settled(settled(NOTHING))
    assert list(wrong(found(material, material.bundle), NOW)) == []
    assert list(wrong(found(material, b""), NOW)) == [
        f"{kind}/zz-berth does not trust the CA in use, so the API server cannot call Berth" for kind in KINDS
    ]
    later = list(wrong(found(material, material.bundle, "ca.key: a key in it is damaged"), NOW + timedelta(days=8)))
    assert later == ["ca.key: a key in it is damaged", "the serving certificate expired on 2026-11-30 01:30Z; no replica renewed it"]
    nobody = InstalledCertificates(material=replace(material, leaf=None), damaged=(), configurations=[])
    assert [sentence.replace(";", ",").partition(",")[0] for sentence in wrong(nobody, NOW)] == [
        "there is no serving certificate",
        "there is no webhook configuration zz-berth",
    ]


def test_a_secret_is_named_with_its_namespace(capsys: pytest.CaptureFixture[str]) -> None:
    """Before any cluster is asked."""
    assert main(["certs", "show", "--secret", "berth"]) == 2
    expected = 'berth: --secret: "berth" is not NAMESPACE/NAME; for example, write berth-system/berth-certificates\n'
    assert capsys.readouterr().err == expected
