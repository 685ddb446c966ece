"""Certificates that replicas share in a Secret, on a real API server: one CA however many start, published by them, and healed."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import pytest

from certs.secret import CA_KEY, LEAF_KEY, to_data
from cluster.certificates.registrations import MANAGER
from registration.configurations import NAME
from tests.e2e.certificates.shared import KINDS, REGISTRATION, SECRET, SERVICE, Installation, berth, creating, registered, served
from tests.support.counts import count, only_in_prove
from tests.testcluster.addons import installed
from tests.testcluster.addons.berth import Berth, create_namespace
from tests.testcluster.addons.installed import NAMESPACE
from tests.testcluster.controlplane.api import Reply

FAST = ("--ca-overlap", "4s")
STARTS, CAS, LEAVES = count(1, 50), count(1, 20), count(2, 500)


@pytest.fixture(scope="module")
def namespace(installation: Installation) -> str:
    return create_namespace(installation.cluster, "shares-certificates")


@pytest.fixture(scope="module")
def replica(installation: Installation, namespace: str) -> Iterator[Berth]:
    """One that the API server calls."""
    one = installation.started("shared", *FAST)
    with registered(installation, one):
        installation.ready(one)
        yield one
        installation.cluster.processes.end(one.process)


def test_replicas_that_start_at_once_make_one_ca(installation: Installation) -> None:
    """On an empty cluster; each serves the same certificate, for the Service's name, as soon as it is ready."""
    for number in range(STARTS):
        replicas = [installation.started(f"at-once-{number}-{one}") for one in range(3)]
        installation.ready(*replicas)
        material = installation.material()
        assert len(material.authorities) == 1
        assert material.leaf is not None
        assert SERVICE in material.leaf.names
        assert {served(one) for one in replicas} == {material.leaf.certificate}
        for one in replicas:
            installation.cluster.processes.end(one.process)
        secret = installation.secret()
        assert secret is not None
        installation.cluster.api.delete(secret)


def test_the_ca_is_published_in_the_registration(installation: Installation, replica: Berth, namespace: str) -> None:
    """By our own field manager alone, which owns nothing else; a pod is judged from the moment that the replica is ready, and the API
    server has read the registration that it stored."""

    def created() -> Reply | None:
        found = installation.created(namespace)
        return None if "certificate signed by unknown authority" in found.message else found

    reply = installation.cluster.wait_for(created, "the API server to follow its registration")
    assert reply.ok, reply.message
    assert reply.body["spec"]["tolerations"]
    assert installation.bundles() == {base64.b64encode(installation.material().bundle).decode()}
    for one in installation.configurations():
        fields = [managed["fieldsV1"] for managed in one["metadata"]["managedFields"] if managed["manager"] == MANAGER]
        assert len(fields) == 1
        assert fields[0].keys() == {"f:webhooks"}
        owned = {name: entry for name, entry in fields[0]["f:webhooks"].items() if name != "."}
        assert all(entry.keys() <= {".", "f:name", "f:clientConfig"} for entry in owned.values())
        assert all(entry["f:clientConfig"] == {"f:caBundle": {}} for entry in owned.values())


@pytest.mark.parametrize("value", [pytest.param("", id="emptied", marks=only_in_prove), pytest.param("bm9uc2Vuc2U=", id="overwritten")])
def test_a_bundle_that_is_changed_is_healed(installation: Installation, replica: Berth, namespace: str, value: str) -> None:
    """And what another manager has changed beside it stays. `make test` has one that is overwritten."""
    right = installation.bundles()
    for kind in KINDS:
        found = installation.cluster.api.get(REGISTRATION, kind, NAME)
        assert found is not None
        changed = [{**one, "timeoutSeconds": 9, "clientConfig": {**one["clientConfig"], "caBundle": value}} for one in found["webhooks"]]
        installation.cluster.api.patch(found, {"webhooks": changed})
    installation.cluster.wait_for(lambda: installation.bundles() == right, "the bundle to be healed")
    installation.cluster.wait_for(lambda: installation.created(namespace).ok, "pods to be created again")
    assert {entry["timeoutSeconds"] for one in installation.configurations() for entry in one["webhooks"]} == {9}


def test_a_secret_that_is_deleted_or_damaged_comes_back(installation: Installation, replica: Berth, namespace: str) -> None:
    """From the memory of a replica that runs: nobody notices."""
    before = to_data(installation.material())
    with creating(installation, namespace) as creations:
        secret = installation.secret()
        assert secret is not None
        installation.cluster.api.delete(secret)
        installation.cluster.wait_for(lambda: installation.secret() is not None, "the Secret to come back")
        assert to_data(installation.material()) == before
        for field in (CA_KEY, LEAF_KEY):
            installation.change_secret({field: b"half a k"})
            installation.cluster.wait_for(lambda: _is_whole(installation), f"{field} to come back")
            assert to_data(installation.material()) == before
    assert creations.failed == []
    said = [event["error"] for event in replica.events("certificates_damaged")]
    assert any(sentence.startswith("ca.key: ") for sentence in said), said
    assert any(sentence.startswith("tls.crt and tls.key: ") for sentence in said), said
    assert not any("PRIVATE" in sentence for sentence in said)


def _is_whole(installation: Installation) -> bool:
    try:
        return bool(installation.material())
    except AssertionError:
        return False


def test_the_command_shows_checks_and_rotates(installation: Installation, replica: Berth, namespace: str) -> None:
    """As an administrator; it prints no key."""
    before = installation.material()
    for words, expected in (
        (["show"], f"CA {before.authorities[-1].fingerprint[:8]}"),
        (["check"], "no problems found"),
        (["rotate"], "requested a new serving certificate"),
    ):
        done = berth(installation, "certs", *words)
        assert (done.returncode, done.stderr) == (0, "")
        assert expected in done.stdout
        assert "PRIVATE" not in done.stdout
    installation.cluster.wait_for(lambda: served(replica) != before.leaf.certificate, "another certificate to be served")  # type: ignore[union-attr]
    done = berth(installation, "certs", "check", "--secret", f"{NAMESPACE}/another")
    assert done.returncode == 2
    assert done.stderr == f"berth: cluster: there is no Secret {NAMESPACE}/another; set --secret NAMESPACE/NAME\n"


def test_rotations_under_load_fail_no_creation(installation: Installation, replica: Berth, namespace: str) -> None:
    """Serving certificates, then CAs with an overlap of four seconds."""
    with creating(installation, namespace) as creations:
        for number in range(LEAVES):
            before = served(replica)
            installation.rotate("leaf", number)
            installation.cluster.wait_for(lambda before=before: served(replica) != before, "another certificate to be served")  # type: ignore[misc]
        for number in range(CAS):
            old = installation.material().authorities[-1].fingerprint
            installation.rotate("ca", number)
            installation.cluster.wait_for(lambda old=old: _replaced(installation, old), "another CA to sign, and the old one to go")  # type: ignore[misc]
    assert creations.failed == []
    assert len(creations.replies) > LEAVES + CAS
    notes = [event["note"] for event in replica.events("certificate")]
    assert len(notes) == len(set(notes)), "each is told once"
    wanted = installation.material()
    assert wanted.leaf is not None
    installation.cluster.wait_for(
        lambda: installation.bundles() == {base64.b64encode(wanted.bundle).decode()}, "the old CA to be published no more"
    )
    assert served(replica) == wanted.leaf.certificate


def _replaced(installation: Installation, old: str) -> bool:
    material = installation.material()
    return old not in material.fingerprints and material.issuer() is not None


def test_a_replica_without_rights_says_what_to_type(installation: Installation) -> None:
    """It serves nothing that nobody could verify: it is not ready."""
    kubeconfig = installation.kubeconfig
    role = installation.cluster.api.get("rbac.authorization.k8s.io/v1", "Role", "berth", NAMESPACE)
    assert role is not None
    rules = [rule for rule in role["rules"] if rule["resources"] != ["secrets"]]
    installation.cluster.api.patch(role, {"rules": rules})
    try:
        one = Installation(cluster=installation.cluster, kubeconfig=kubeconfig).started("no-rights")

        def says() -> bool:
            page = one.page("/readyz")
            text = page.body.decode()
            assert page.status == 503
            return f"Secret {NAMESPACE}/{SECRET}" in text and "type: kubectl apply -f deploy/rbac.yaml" in text

        installation.cluster.wait_for(says, "the page to say what is missing")
        installation.cluster.processes.end(one.process)
    finally:
        installed.install(installation.cluster)
