"""The registration takes effect with the first replica that can be reached: an installation that fails blocks nothing, and no upgrade
takes the rules out of the API server for a moment."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from tests.deploy.releases import SYSTEM, accepted, certificates_version, entries, followed, in_effect, kubectl, release, replica
from tests.deploy.rendering import Raw, of_kind
from tests.deploy.test_registration import in_effect as with_its_rules
from tests.support.counts import only_in_prove
from tests.testcluster.addons.helm import CHART, HelmRejected
from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.controlplane.starting import apply_crds

KEPT = "--set=crds.install=false"
PLAIN = CHART.parent / "install.yaml"
QUICK = "--set=registration.timeoutSeconds=1"
"""Nobody answers at the Service's address."""
KEPT_KINDS = ("Namespace", "CustomResourceDefinition")
"""They stay between installations."""
DENIED = "not in this cluster"
SECRET: Raw = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "probe"}}
DEPLOYMENT: Raw = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "probe"},
    "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "c:1"}]}},
    },
}
REPLICA = f"system:serviceaccount:{SYSTEM}:berth"


@pytest.fixture(scope="module")
def kinds(own: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    """Lend a cluster with Berth's kinds and namespace."""
    file = tmp_path_factory.mktemp("kinds") / "crds.yaml"
    file.write_text(yaml.safe_dump_all(of_kind(plain_manifests(), "CustomResourceDefinition")))
    apply_crds(own.api, [file], own.processes)
    for namespace in of_kind(plain_manifests(), "Namespace"):
        own.api.create(namespace)
    return own


def plain_manifests() -> list[Raw]:
    """Return the objects of deploy/install.yaml."""
    return list(yaml.safe_load_all(PLAIN.read_text()))


@contextmanager
def denying(cluster: Cluster, probe: Raw, user: str = "") -> Iterator[None]:
    """Deny writes of objects like the probe in the release's namespace: by this user, or by anybody."""
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": [f"{probe['kind'].lower()}s"]}
    expression = f"request.namespace == '{SYSTEM}' && request.userInfo.username.startsWith('{user}')"
    policy = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "denies"}}
    binding = {**policy, "kind": "ValidatingAdmissionPolicyBinding", "spec": {"policyName": "denies", "validationActions": ["Deny"]}}
    spec: Raw = {
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [{"name": "here", "expression": expression}],
        "validations": [{"expression": "false", "message": DENIED}],
    }
    cluster.api.create({**policy, "spec": spec})
    cluster.api.create(binding)
    writer = cluster.api.acting_as(user or "anybody")
    try:
        cluster.wait_for(lambda: DENIED in writer.try_create(probe, SYSTEM, dry_run=True).message, "the denial to be in force")
        yield
    finally:
        cluster.api.delete(binding)
        cluster.api.delete(policy)


def test_an_image_that_cannot_be_pulled_blocks_nothing(kinds: Cluster) -> None:
    """No replica ever starts, so the API server calls nobody; another image then needs no other step than the upgrade."""
    release(kinds, "install", "berth", str(CHART), KEPT, "--set=image.tag=no-such-tag")
    assert accepted(kinds, "default")
    release(kinds, "upgrade", "berth", str(CHART), KEPT, "--set=image.tag=no-other-tag")
    assert len(entries(kinds)) > 4
    assert not [entry["name"] for entry in entries(kinds) if entry.get("rules")]
    release(kinds, "uninstall", "berth")
    assert entries(kinds) == []


def test_a_cluster_that_denies_the_deployment_blocks_nothing(kinds: Cluster) -> None:
    """Helm says so, and what it had created until then calls nobody."""
    with denying(kinds, DEPLOYMENT), pytest.raises(HelmRejected, match=DENIED):
        release(kinds, "install", "berth", str(CHART), KEPT)
    assert accepted(kinds, "default")
    release(kinds, "uninstall", "berth")


def test_a_secret_that_cannot_be_written_blocks_nothing(kinds: Cluster) -> None:
    """Replicas run, and none has a certificate that callers could verify, even where the cluster takes one for ready."""
    with denying(kinds, SECRET, REPLICA):
        release(kinds, "install", "berth", str(CHART), KEPT)
        with replica(kinds) as process:
            kinds.wait_for(lambda: DENIED in str(process.events("certificates_failed")), "the replica to say that it is denied")
            assert process.page("/readyz").status == 503
            assert accepted(kinds, "default")
            assert not [entry["name"] for entry in entries(kinds) if entry.get("rules")]
    release(kinds, "uninstall", "berth")


@pytest.mark.parametrize(
    "way", [["--server-side", "--force-conflicts"], pytest.param([], marks=only_in_prove)], ids=["server-side", "client-side"]
)
def test_plain_manifests_take_effect_with_the_first_replica(kinds: Cluster, tmp_path: Path, way: list[str]) -> None:
    """`kubectl apply` blocks nothing before that, and applied again it leaves what is in effect; what `kubectl replace` takes out of it is
    put back. `kubectl diff` of them is empty then, also once Berth has written what is its own."""
    objects = [value for value in plain_manifests() if value["kind"] not in KEPT_KINDS]
    webhooks, rest = tmp_path / "webhooks.yaml", tmp_path / "rest.yaml"
    webhooks.write_text(yaml.safe_dump_all(one for one in objects if "webhooks" in one))
    rest.write_text(yaml.safe_dump_all(one for one in objects if "webhooks" not in one))
    files = (f"--filename={webhooks}", f"--filename={rest}")
    kubectl(kinds, "apply", *way, *files)
    try:
        assert accepted(kinds, "default")
        with replica(kinds):
            kinds.wait_for(lambda: in_effect(kinds), "the registration to be in effect")
            with followed(kinds) as versions:
                kubectl(kinds, "apply", *way, *files)
            assert all(versions.with_rules)
            if way:
                assert difference(kinds) == ""
            kubectl(kinds, "replace", files[0])
            kinds.wait_for(lambda: in_effect(kinds), "the rules to be put back")
    finally:
        kubectl(kinds, "delete", *files)
    kinds.wait_for(lambda: accepted(kinds, "default"), "the registration to be gone")


def difference(cluster: Cluster) -> str:
    """Return what `kubectl diff` of the plain manifests prints; compare again if Berth wrote its Secret while kubectl compared."""
    before, after = "", certificates_version(cluster)
    while before != after:
        before, command = after, cluster.kubectl("diff", "--server-side", f"--filename={PLAIN}")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        after = certificates_version(cluster)
    return done.stdout + done.stderr


def test_rules_that_plain_manifests_rendered_are_handed_over(kinds: Cluster, tmp_path: Path) -> None:
    """By the command of docs/installing.md: the manifests of an earlier version rendered the rules, and those of this one take none out of
    effect."""
    rendered = [one for one in plain_manifests() if "webhooks" in one]
    owned = [
        {
            **{key: one[key] for key in ("apiVersion", "kind")},
            "metadata": {"name": one["metadata"]["name"]},
            "webhooks": [{key: entry[key] for key in ("name", "rules") if key in entry} for entry in with_its_rules(one)["webhooks"]],
        }
        for one in rendered
    ]
    files = {name: tmp_path / f"{name}.yaml" for name in ("earlier", "owned", "rendered")}
    for name, objects in (("earlier", map(with_its_rules, rendered)), ("owned", owned), ("rendered", rendered)):
        files[name].write_text(yaml.safe_dump_all(objects))
    kubectl(kinds, "apply", "--server-side", f"--filename={files['earlier']}")
    with followed(kinds) as versions:
        kubectl(kinds, "apply", "--server-side", "--field-manager=berth-registration", f"--filename={files['owned']}")
        kubectl(kinds, "apply", "--server-side", f"--filename={files['rendered']}")
    assert all(versions.with_rules)
    assert in_effect(kinds)
    kubectl(kinds, "delete", f"--filename={files['rendered']}")


@pytest.mark.parametrize("server_side", ["true", pytest.param("false", marks=only_in_prove)])
def test_an_upgrade_from_an_earlier_chart_takes_nothing_out_of_effect(kinds: Cluster, tmp_path: Path, server_side: str) -> None:
    """Which rendered the rules itself: with no new replica, with new ones, and back, by server-side apply and by Helm 3's patches."""
    earlier, way = earlier_chart(tmp_path), (KEPT, f"--server-side={server_side}")
    release(kinds, "install", "berth", str(earlier), *way, QUICK)
    kinds.wait_for(lambda: not accepted(kinds, "default"), "the earlier registration to be in effect")
    with followed(kinds) as versions:
        release(kinds, "upgrade", "berth", str(CHART), *way, "--set=image.tag=no-such-tag")
        release(kinds, "upgrade", "berth", str(CHART), *way, "--set=image.tag=no-other-tag,registration.timeoutSeconds=7")
        with replica(kinds) as process:
            kinds.wait_for(lambda: len(process.events("registration_in_effect")) >= 2, "the replica to own the rules")
            release(kinds, "upgrade", "berth", str(CHART), *way, "--set=registration.timeoutSeconds=2")
            release(kinds, "rollback", "berth", "1", f"--server-side={server_side}")
            release(kinds, "upgrade", "berth", str(CHART), *way, QUICK)
    assert len(versions.with_rules) > 5
    assert all(versions.with_rules)
    assert not accepted(kinds, "default")
    release(kinds, "uninstall", "berth")
    assert entries(kinds) == []


def test_upgrades_take_nothing_out_of_effect_that_they_leave(kinds: Cluster) -> None:
    """The cluster denies the Deployment, or replicas the Secret: what was in effect stays, and the replica of before is ready. Entries that
    are chosen later take effect, and others go out of it, while all else stays."""
    release(kinds, "install", "berth", str(CHART), QUICK, KEPT)
    with replica(kinds) as process:
        kinds.wait_for(lambda: in_effect(kinds), "the registration to be in effect")
        with followed(kinds) as versions:
            with denying(kinds, DEPLOYMENT), pytest.raises(HelmRejected, match=DENIED):
                release(kinds, "upgrade", "berth", str(CHART), KEPT, "--set=registration.timeoutSeconds=7")
            with denying(kinds, SECRET, REPLICA):
                release(kinds, "upgrade", "berth", str(CHART), KEPT, "--set=registration.timeoutSeconds=8")
        assert all(versions.with_rules)
        assert in_effect(kinds)
        assert process.page("/readyz").status == 200
        with followed(kinds) as versions:
            release(kinds, "upgrade", "berth", str(CHART), KEPT, "--set=registration.claims=Off,registration.queues=true")
            kinds.wait_for(lambda: with_rules(kinds, "claims-made") == set(), "claims to be called for no more")
            kinds.wait_for(lambda: with_rules(kinds, "validate.workloads") != set(), "workloads to be called for")
        assert all(versions.with_rules)
        release(kinds, "upgrade", "berth", str(CHART), KEPT, "--set=registration.claims=Ignore,registration.queues=true")
        kinds.wait_for(lambda: len(with_rules(kinds, ".claims")) == 4, "claims to be called for again")
    release(kinds, "uninstall", "berth")


def with_rules(cluster: Cluster, part: str) -> set[str]:
    """Return the names with this part of the entries that the API server calls."""
    return {entry["name"] for entry in entries(cluster) if part in entry["name"] and entry.get("rules")}


def earlier_chart(folder: Path) -> Path:
    """Return the chart as it was before replicas put the rules into effect."""
    chart = folder / "chart"
    shutil.copytree(CHART, chart)
    template = chart / "templates" / "webhooks.yaml"
    lines = template.read_text().splitlines()
    kept = [line for line in lines if "berth.dev/rules-when-ready" not in line]
    assert len(kept) == len(lines) - 1
    text = "\n".join(kept)
    assert text.count("if not $rendered") == 1
    template.write_text(text.replace("if not $rendered", "if false"))
    return chart
