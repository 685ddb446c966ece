"""The chart on a real API server: every variant is understood in every field, and an installation comes, changes and goes without a trace.

No kubelet is there, so replicas are not started by it: Berth runs beside the cluster, as the account that the chart makes and with its
rights. Fields are judged by the API server itself (fieldValidation=Strict, dry run), those of others' kinds by the definitions that they
publish.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml

from registration.configurations import NAME
from tests.deploy.releases import ENDPOINTS, SYSTEM, accepted, beside, entries, published, release, replica
from tests.deploy.rendering import Raw, of_kind
from tests.deploy.variants import VARIANTS
from tests.support.counts import count, only_in_prove
from tests.testcluster import go_build
from tests.testcluster.addons.berth import Berth
from tests.testcluster.addons.helm import CHART, HelmRejected
from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.controlplane.starting import apply_crds
from tests.testcluster.programs import MODULES

NEIGHBOURS = {
    "github.com/cert-manager/cert-manager": ("deploy/crds", "cert-manager.io_certificates.yaml"),
    "github.com/prometheus-operator/prometheus-operator": (
        "example/prometheus-operator-crd",
        "monitoring.coreos.com_podmonitors.yaml",
        "monitoring.coreos.com_prometheusrules.yaml",
        "monitoring.coreos.com_servicemonitors.yaml",
    ),
}
"""Module -> the folder of its definitions, and those that the chart makes objects of."""
PLAIN: Raw = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "plain"}, "spec": {"containers": [{"name": "c", "image": "c:1"}]}}
EVERYWHERE = ("default", "kube-root-ca.crt")
"""Of every namespace: its account, and the ConfigMap of its CA."""


def left(cluster: Cluster) -> set[str]:
    """All that is in the namespace or named like Berth, but the definitions, which are kept, and what the API server makes of them."""
    kinds = subprocess.run(
        cluster.kubectl("api-resources", "--verbs=list,delete", "--output=name"), capture_output=True, text=True, check=True
    )
    names = [name for name in kinds.stdout.split() if not name.startswith("events")]
    command = cluster.kubectl("get", ",".join(names), "--all-namespaces", "--output=json", "--ignore-not-found")
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    items = json.loads(done.stdout)["items"]
    ours = [one for one in items if one["metadata"].get("namespace") == SYSTEM or "berth" in one["metadata"]["name"]]
    there = {f"{one['kind']}/{one['metadata']['name']}" for one in ours if one["metadata"]["name"] not in EVERYWHERE}
    return {name for name in there if not name.startswith(("APIService/", "CustomResourceDefinition/", "Namespace/"))}


def values_of(name: str, folder: Path) -> list[str]:
    file = folder / "values.json"
    file.write_text(json.dumps(VARIANTS[name].values))
    return [f"--values={file}"]


@pytest.fixture(scope="module")
def neighbours(own: Cluster) -> None:
    """The definitions of cert-manager and of the Prometheus operator, and of Berth itself."""
    files = [
        go_build.files(MODULES / "neighbours", module, [folder]) / folder / name
        for module, (folder, *names) in NEIGHBOURS.items()
        for name in names
    ]
    apply_crds(own.api, [*files, *sorted((CHART / "files" / "crds").iterdir())], own.processes)


@pytest.fixture(scope="module")
def understood() -> set[str]:
    """Return the accepted objects as JSON: variants share most objects."""
    return set()


@pytest.mark.parametrize("name", VARIANTS)
def test_the_api_server_understands_every_field(own: Cluster, neighbours: None, understood: set[str], name: str) -> None:
    """Each object of a variant is accepted as it stands, no field unknown and none given twice."""
    variant = VARIANTS[name]
    if own.api.get("v1", "Namespace", variant.namespace) is None:
        own.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": variant.namespace}})
    for value in (value for value in variant.objects() if json.dumps(value) not in understood):
        query = {"dryRun": "All", "fieldValidation": "Strict", "fieldManager": "tests", "force": "true"}
        reply = own.api.call("PATCH", own.api.path_of(value), value, content="application/apply-patch+yaml", **query)
        assert (reply.message, reply.warnings) == ("", ())
        understood.add(json.dumps(value))


def test_an_installation_comes_changes_and_goes(own: Cluster, neighbours: None, tmp_path: Path) -> None:
    """GPU pods wait from the first ready replica on. Upgrades and rollbacks leave Berth's CA and the rules in place; after the end nothing
    waits for Berth, and nothing of it is left but its kinds."""
    ours = [file.stem.replace("berth.dev_", "") + ".berth.dev" for file in (CHART / "files" / "crds").iterdir()]
    subprocess.run(own.kubectl("delete", "crd", *ours), capture_output=True, check=True)  # as on a cluster that never had Berth
    assert accepted(own, "default")
    release(own, "install", "berth", str(CHART), "--create-namespace")
    replica = beside(own)
    own.wait_for(lambda: published(own) and replica.page("/readyz").status == 200, "the CA to be published")
    assert accepted(own, "default")
    own.api.create(ENDPOINTS)
    own.wait_for(lambda: not accepted(own, "default"), "the registration to be in effect")
    assert own.api.try_create(PLAIN, "default", dry_run=True).ok
    bundles = {entry["clientConfig"]["caBundle"] for entry in entries(own)}

    release(own, "upgrade", "berth", str(CHART), *values_of("policies", tmp_path))
    assert len(own.api.list("berth.dev/v1alpha1", "ClusterGPUPolicy")) > 4
    release(own, "upgrade", "berth", str(CHART), *values_of("no claims", tmp_path))
    assert own.api.list("berth.dev/v1alpha1", "ClusterGPUPolicy") == []
    release(own, "upgrade", "berth", str(CHART), *values_of("registration", tmp_path))
    release(own, "rollback", "berth", "1")
    assert {entry["clientConfig"]["caBundle"] for entry in entries(own)} == bundles
    own.wait_for(lambda: all(entry.get("rules") for entry in entries(own) if ".claims.berth" not in entry["name"]), "the rules to be back")
    assert replica.events("ca_bundle_contested") == []
    certificates = own.api.get("v1", "Secret", "berth-certificates", SYSTEM)
    assert certificates is not None
    assert set(certificates["data"]) >= {"ca.crt", "tls.crt", "tls.key"}

    release(own, "uninstall", "berth")
    own.wait_for(lambda: accepted(own, "default"), "the registration to be gone")
    own.processes.end(replica.process)
    own.api.delete(ENDPOINTS)
    assert left(own) == set()
    release(own, "install", "berth", str(CHART))
    release(own, "uninstall", "berth")


@pytest.mark.parametrize(
    "way", [(), pytest.param(("--server-side=false",), marks=only_in_prove)], ids=["server-side apply", "as Helm 3 does"]
)
def test_a_patched_policy_does_not_stop_the_brake(own: Cluster, neighbours: None, way: tuple[str, ...]) -> None:
    """`--set maxMode=Audit` goes through and leaves what was patched. The way back does too, with the mode that was patched; without it
    Helm 4 reports the conflict once the replicas have Enforce, and the policy stays as it was patched. One that nobody else wrote into has
    the mode and the content of the release, also under the brake."""
    chart = ("berth", str(CHART), *way)
    release(own, "install", *chart, "--create-namespace", "--take-ownership", "--set=library.policies={berth-default,training}")
    try:
        release(own, "upgrade", *chart, "--reset-then-reuse-values", "--set=library.modes.berth-default=Enforce")
        for change in ({"mode": "Audit"}, {"default": {"gracePeriod": "77s"}}):
            patched = own.kubectl("patch", "clustergpupolicy", "berth-default", "--type=merge", f"--patch={json.dumps({'spec': change})}")
            subprocess.run(patched, capture_output=True, check=True)
        release(own, "upgrade", *chart, "--reset-then-reuse-values", "--set=maxMode=Audit,library.modes.training=Warn")
        assert "--max-mode=Audit" in arguments(own)
        assert spec(own, "training")["mode"] == "Warn"
        assert (spec(own)["mode"], spec(own)["default"]["gracePeriod"]) == ("Audit", "77s")
        if not way:
            with pytest.raises(HelmRejected, match=r'conflict with "kubectl-patch"'):
                release(own, "upgrade", *chart, "--reset-then-reuse-values", "--set=maxMode=Enforce")
            assert ("--max-mode=Enforce" in arguments(own), spec(own)["mode"]) == (True, "Audit")
        release(own, "upgrade", *chart, "--reset-then-reuse-values", "--set=maxMode=Enforce,library.modes.berth-default=Audit")
        assert "--max-mode=Enforce" in arguments(own)
        assert (spec(own)["mode"], spec(own)["default"]["gracePeriod"]) == ("Audit", "77s")
    finally:
        release(own, "uninstall", "berth")


def spec(cluster: Cluster, name: str = "berth-default") -> Raw:
    """Return the spec of a policy of the library."""
    policy = cluster.api.get("berth.dev/v1alpha1", "ClusterGPUPolicy", name)
    assert policy is not None
    value: Raw = policy["spec"]
    return value


def arguments(cluster: Cluster) -> list[str]:
    """Of a replica."""
    found = cluster.api.get("apps/v1", "Deployment", "berth", SYSTEM)
    assert found is not None
    value: list[str] = found["spec"]["template"]["spec"]["containers"][0]["args"]
    return value


@pytest.fixture(scope="module")
def released(own: Cluster, neighbours: None) -> Iterator[Berth]:
    """A replica of an installation whose first revision has the values of the chart."""
    release(own, "install", "berth", str(CHART), "--create-namespace", "--take-ownership")
    with replica(own) as serving:
        own.wait_for(lambda: published(own), "the CA to be published")
        yield serving
    release(own, "uninstall", "berth")


def shows(replica: Berth, metric: str, value: float) -> bool:
    """Whether a metric of a replica has this value."""
    return replica.metric(metric) == value


def test_a_registration_that_is_gone_is_told(own: Cluster, released: Berth) -> None:
    """By /readyz, which stays 200, by metrics that are 0, and by one line of the log, and another one when it is back; so is one half.
    `make test` has that in tests/webhook/reload/test_registration_check.py."""
    kinds = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    each = (kinds, kinds[1:])[: count(1, 2)]
    for gone in each:
        own.wait_for(lambda: published(own) and released.metric("berth_ca_trusted") == 1, "the CA to be published")
        own.wait_for(lambda: released.metric("berth_registered") == 1, "the registration to be seen")
        for kind in gone:
            own.api.delete({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": NAME}})
        own.wait_for(lambda: released.metric("berth_registered") == 0, "the registration to be missed")
        page = released.page("/readyz")
        [line] = [line for line in page.body.decode().splitlines() if "registration: " in line]
        assert (page.status, line.startswith("[!] registration: ")) == (200, True)
        assert all(f"{kind}/{NAME}" in line for kind in gone)
        assert released.metric("berth_registration_current") == 0
        trusted = partial(shows, released, "berth_ca_trusted", gone != kinds)
        own.wait_for(trusted, "what is left of the registration to trust the CA, or nobody")
        assert released.events("registration_missing")[-1]["names"] == [f"{kind}/{NAME}" for kind in gone]
        release(own, "upgrade", "berth", str(CHART), "--reset-then-reuse-values")
        own.wait_for(lambda: released.page("/readyz").body.decode().count("[+] registration: ") == 1, "the registration to be back")
    missing, back = released.events("registration_missing"), released.events("registration_back")
    assert [len(missing), len(back)] == [len(each)] * 2


def test_an_entry_that_is_new_can_be_rolled_back(own: Cluster, released: Berth, tmp_path: Path) -> None:
    """Not by server-side apply, for Berth owns its caBundle: Helm says so, and the newer one is back with a rollback to it. Then, or at
    once, `--server-side=false` does it, as docs/installing.md says."""
    values = tmp_path / "values.json"
    values.write_text(json.dumps({"registration": {"manifests": _with_a_new_entry()}}))
    release(own, "upgrade", "berth", str(CHART), f"--values={values}")
    newer = json.loads(release(own, "status", "berth", "--output=json"))["version"]
    own.wait_for(lambda: published(own), "the CA to be published in the new entry too")
    with pytest.raises(HelmRejected, match=r"sideEffects: Required value"):
        release(own, "rollback", "berth", "1")
    release(own, "rollback", "berth", str(newer))
    release(own, "rollback", "berth", "1", "--server-side=false")
    assert "later.berth.dev" not in [entry["name"] for entry in entries(own)]
    assert published(own)


def _with_a_new_entry() -> str:
    """A registration of the next version: one entry more."""
    found = list(yaml.safe_load_all((CHART / "files" / "webhooks-claims-fail.yaml").read_text()))
    for one in of_kind(found, "ValidatingWebhookConfiguration"):
        one["webhooks"].append({**one["webhooks"][-1], "name": "later.berth.dev"})
    return yaml.safe_dump_all(found)
