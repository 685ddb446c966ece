"""Claims and templates on a real API server: judged when they are made, by whoever and in whichever version, whatever becomes of Berth."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.counts import only_in_prove
from tests.support.generators.written_claims import claim, exactly, first_of
from tests.testcluster.addons.berth import SCOPE, Berth, registered
from tests.testcluster.addons.helm import HelmRejected, helm
from tests.testcluster.controlplane.api import Raw, Reply
from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.controlplane.processes import free_port
from tests.testcluster.fixtures import NewNamespace

REQUIRE: Raw = {
    "gpusPerPod": {"max": 4},
    "models": {"in": ["L4", "A100"]},
    "tolerations": {"forbid": [{"key": "maintenance"}]},
}
_number = count()


@contextmanager
def serving(cluster: Cluster, folder: Path) -> Iterator[Berth]:
    """Register a replica that follows the policy in ``folder``."""
    policy = {"apiVersion": "berth.dev/v1alpha1", "kind": "ClusterGPUPolicy", "metadata": {"name": "claims"}}
    (folder / "policy.yaml").write_text(yaml.safe_dump({**policy, "spec": {"mode": "Enforce", "require": REQUIRE}}))
    listen = ("--listen", f"127.0.0.1:{free_port()}")
    with registered(cluster, f"claims-{next(_number)}", (folder / "policy.yaml",), "--platforms", "gfd", *listen) as started:
        yield started


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("claims")


@pytest.fixture(scope="module")
def berth(cluster: Cluster, folder: Path) -> Iterator[Berth]:
    """A replica for tests that leave its policy as it is, or as it was."""
    with serving(cluster, folder) as started:
        yield started


@pytest.fixture
def namespace(cluster: Cluster, berth: Berth, new_namespace: NewNamespace) -> str:
    return new_namespace({SCOPE: berth.name})


def made(cluster: Cluster, namespace: str, value: Raw) -> Reply:
    """Stored, or why not."""
    return cluster.api.try_create({**value, "metadata": {"generateName": "gpus-"}}, namespace)


WRONG: dict[str, tuple[Raw, str]] = {
    "too many": (exactly(count=8), "BERTH-111"),
    "all": (exactly(count=None, allocationMode="All"), "BERTH-111"),
    "one way of too many": (first_of(exactly(count=1), exactly(count=8)), "BERTH-111"),
    "a class that nobody knows": (exactly("acme"), "BERTH-126"),
    "another vendor": (exactly("gpu.amd.com"), "BERTH-126"),
}
RIGHT: dict[str, Raw] = {
    "few": exactly(count=4),
    "ways of few": first_of(exactly(count=4), exactly(count=1)),
    "network cards": exactly("dra.net", count=16),
}


@pytest.mark.parametrize("template", [False, True], ids=["claim", "template"])
def test_claims_are_judged_when_they_are_made(cluster: Cluster, namespace: str, *, template: bool) -> None:
    """Each wrong one is denied with its code, each right one stored."""
    for request, code in WRONG.values():
        reply = made(cluster, namespace, claim(request, template=template))
        assert (reply.status, code in reply.message) == (403, True), (request, reply.message)
    replies = [made(cluster, namespace, claim(request, template=template)) for request in RIGHT.values()]
    assert [reply.message for reply in replies if not reply.ok] == []


def test_what_was_stored_cannot_be_changed(cluster: Cluster, namespace: str) -> None:
    """So creations are all that there is to judge: the API server denies another spec of either kind itself."""
    for template in (False, True):
        reply = made(cluster, namespace, claim(exactly(count=1), template=template))
        path = f"{cluster.api.path_of(reply.body, namespace)}"
        more: Any = claim(exactly(count=8), template=template)["spec"]
        changed = cluster.api.call("PUT", path, {**reply.body, "spec": more})
        assert (changed.status, "field is immutable" in changed.message) == (422, True), changed.message


APPLY: dict[str, tuple[str, ...]] = {
    "client-side": ("apply",),
    "server-side": ("apply", "--server-side"),
    "replace": ("replace",),
    "helm": ("upgrade", "--install", "again"),
}


IN_TEST = {("client-side", True), ("server-side", False), ("replace", True), ("helm", False)}
"""Each way once, and each kind twice."""


@pytest.mark.parametrize(
    ("way", "template"),
    [
        pytest.param(way, template, id=f"{way}-{kind}", marks=() if (way, template) in IN_TEST else only_in_prove)
        for way in APPLY
        for kind, template in (("claim", False), ("template", True))
    ],
)
def test_what_policies_changed_is_applied_again(
    cluster: Cluster, namespace: str, folder: Path, tmp_path: Path, way: str, *, template: bool
) -> None:
    """With kubectl or Helm, as its author wrote it: the selectors of policies stay, also where the policies are others by then. `make test`
    has each way once."""
    manifest = claim(exactly(count=1), template=template, name="again")
    manifest["metadata"]["namespace"] = namespace
    first = APPLY[way] if way != "replace" else ("create",)
    assert typed(cluster, manifest, tmp_path, *first) == ""
    stored = cluster.api.get(manifest["apiVersion"], manifest["kind"], "again", namespace)
    assert stored is not None
    assert "selectors" in str(stored["spec"])
    for models in (["L4", "A100"], ["H100"]):
        follow(cluster, namespace, folder, models)
        wanted = models[0]
        manifest["metadata"]["labels"] = {"for": wanted.lower()}
        assert typed(cluster, manifest, tmp_path, *APPLY[way]) == ""
        again = cluster.api.get(manifest["apiVersion"], manifest["kind"], "again", namespace)
        assert again is not None
        assert (again["spec"], again["metadata"]["labels"]["for"]) == (stored["spec"], wanted.lower())
        assert again["metadata"]["annotations"]["berth.dev/applied"] == stored["metadata"]["annotations"]["berth.dev/applied"]
    changed = claim(exactly(count=2), template=template, name="again")
    changed["metadata"]["namespace"] = namespace
    assert "field is immutable" in typed(cluster, changed, tmp_path, *APPLY[way])
    follow(cluster, namespace, folder, REQUIRE["models"]["in"])


def follow(cluster: Cluster, namespace: str, folder: Path, models: list[str]) -> None:
    """Write these models into the policy, and wait until it is in force."""
    policy = yaml.safe_load((folder / "policy.yaml").read_text())
    policy["spec"]["require"]["models"] = {"in": models}
    (folder / "policy.yaml").write_text(yaml.safe_dump(policy))
    cluster.wait_for(lambda: models[0] in str(dry(cluster, namespace).body.get("spec")), "the policy to be in force")


def dry(cluster: Cluster, namespace: str) -> Reply:
    return cluster.api.try_create(claim(exactly(count=1), name="dry"), namespace, dry_run=True)


def typed(cluster: Cluster, manifest: Raw, folder: Path, *words: str) -> str:
    """What kubectl, or Helm with a chart of this manifest, says of a failure; "" where it succeeds."""
    text, namespace = yaml.safe_dump(manifest), manifest["metadata"]["namespace"]
    if words[0] != "upgrade":
        done = subprocess.run(cluster.kubectl(*words, "-f", "-"), input=text, capture_output=True, text=True, check=False)
        return done.stderr if done.returncode else ""
    chart = folder / "chart"
    (chart / "templates").mkdir(parents=True, exist_ok=True)
    (chart / "Chart.yaml").write_text("{apiVersion: v2, name: again, version: 1.0.0}")
    (chart / "templates" / "claim.yaml").write_text(text)
    try:
        helm(*words, str(chart), f"--namespace={namespace}", kubeconfig=cluster.kubeconfig)
    except HelmRejected as error:
        return str(error)
    return ""


def test_a_claim_for_a_pod_is_denied_to_the_controller_too(cluster: Cluster, berth: Berth, new_namespace: NewNamespace) -> None:
    """A template from before the policies: the controller that makes claims of it is told what the template says."""
    namespace = new_namespace()
    assert cluster.api.try_create(claim(exactly(count=8), template=True, name="old"), namespace).ok
    value = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    cluster.api.patch(value, {"metadata": {"labels": {SCOPE: berth.name}}})
    controller = cluster.api.acting_as("system:serviceaccount:kube-system:resource-claim-controller")
    cluster.wait_for(lambda: made_by(controller, namespace).status == 403, "the namespace's label to be known to the API server")
    assert "BERTH-111" in made_by(controller, namespace).message


def made_by(api: Any, namespace: str) -> Reply:
    """As the controller writes it, on a dry run."""
    value = claim(exactly(count=8))
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "train", "uid": "0", "controller": True, "blockOwnerDeletion": True}
    annotations = {"resource.kubernetes.io/pod-claim-name": "gpu"}
    value["metadata"] = {"generateName": "train-gpu-", "annotations": annotations, "ownerReferences": [owner]}
    reply: Reply = api.try_create(value, namespace, dry_run=True)
    return reply


def test_while_berth_is_dead_claims_are_denied(cluster: Cluster, berth: Berth, namespace: str) -> None:
    """Those of network cards alone are never sent, so that nothing about them hangs on Berth. It is the last test of this one."""
    berth.kill()
    cluster.processes.end(berth.process)
    assert made(cluster, namespace, claim(RIGHT["network cards"])).ok
    reply = made(cluster, namespace, claim(WRONG["too many"][0]))
    assert (reply.status, "mutate.claims-made.berth.dev" in reply.message) == (500, True)
