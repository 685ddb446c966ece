"""Certificates that somebody else renews: served as soon as callers can verify them, and never later than the end of the ones before."""

from __future__ import annotations

import asyncio
import base64
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from certs.authority import KeyPair, issue, make_ca
from cluster.certificates import reader as module
from cluster.certificates.reader import ENDING, SecretReader
from cluster.certificates.registrations import Registrations
from cluster.certificates.secret_store import SecretStore
from cluster.client.api_client import Client
from tests.cluster.certificates.test_keeper import NAME, PATHS, SECRET, Api

NAMES = ("berth.berth-system.svc",)


@pytest.fixture
def api() -> Api:
    """Cert-manager is told to inject the bundle, so Berth does not write it."""
    made = Api()
    for path in PATHS.values():
        made.objects[path]["metadata"]["annotations"] = {"cert-manager.io/inject-ca-from": "a/b"}
    return made


def reader(api: Api) -> SecretReader:
    client = cast(Client, api)
    return SecretReader(client, SecretStore(client, "berth-system", "berth-certificates"), Registrations(client, NAME, api.tell), api.tell)


def put(api: Api, ca: KeyPair, leaf: KeyPair) -> tuple[bytes, bytes]:
    """Store a pair as cert-manager does; return it."""
    data = {"tls.crt": leaf.certificate_pem, "tls.key": leaf.key_pem, "ca.crt": ca.certificate_pem}
    encoded = {name: base64.b64encode(value).decode() for name, value in data.items()}
    api.objects[SECRET] = {"kind": "Secret", "metadata": {"name": "berth-certificates", "resourceVersion": "7"}, "data": encoded}
    return leaf.certificate_pem, leaf.key_pem


def trust(api: Api, ca: KeyPair) -> None:
    api.overwrite(base64.b64encode(ca.certificate_pem).decode())


def test_a_leaf_of_the_same_issuer_is_served_at_once(api: Api) -> None:
    """A bundle that does not hold ca.crt, but verified the pair before as well, is no reason to hold a renewed one back."""
    now = datetime.now(UTC)
    ca, cross_signed = make_ca(now), make_ca(now)
    follower = reader(api)
    trust(api, cross_signed)
    put(api, ca, issue(ca, NAMES, now, life=timedelta(hours=2)))
    asyncio.run(follower.look())
    renewed = put(api, ca, issue(ca, NAMES, now))
    asyncio.run(follower.look())
    assert follower.pair == renewed
    assert follower.trusted is False
    assert api.events("certificate_held_back") == []


def test_a_leaf_of_another_issuer_waits_until_the_end_of_the_one_before(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is held back while callers do not have its CA, which is told once with the time at which that ends."""
    now = datetime.now(UTC)
    old, new = make_ca(now), make_ca(now)
    follower = reader(api)
    trust(api, old)
    before = put(api, old, issue(old, NAMES, now, life=timedelta(hours=2)))
    asyncio.run(follower.look())
    renewed = put(api, new, issue(new, NAMES, now))
    assert [asyncio.run(follower.looked()) for _ in range(5)] == [True] * 5
    assert follower.pair == before
    (told,) = api.events("certificate_held_back")
    assert f"at the latest from {now + timedelta(hours=2) - ENDING:%Y-%m-%d %H:%M}Z" in told["error"]
    api.ahead = timedelta(hours=2) - ENDING + timedelta(minutes=1)
    asyncio.run(follower.looked())
    assert follower.pair == renewed


def test_a_leaf_of_another_issuer_is_served_once_it_is_trusted(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some seconds after its CA is in each bundle: an API server follows its registrations by a watch."""
    now = datetime.now(UTC)
    old, new = make_ca(now), make_ca(now)
    follower = reader(api)
    trust(api, old)
    put(api, old, issue(old, NAMES, now))
    asyncio.run(follower.look())
    renewed = put(api, new, issue(new, NAMES, now))
    trust(api, new)
    assert asyncio.run(follower.looked())
    assert follower.pair != renewed
    monkeypatch.setattr(module, "PUBLISHED", 0.0)
    asyncio.run(follower.looked())
    assert follower.pair == renewed
    assert follower.trusted is True
