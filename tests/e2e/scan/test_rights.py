"""A scan with fewer rights than all: what is not seen is named, with the findings that rest on it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.main import main
from tests.cli.inspect.test_effective import somebody
from tests.support.recorded import eks
from tests.support.recorded.posted import posted
from tests.testcluster.controlplane.cluster import Cluster

PODS_ALONE = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "pods-alone"},
    "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}],
}


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with posted(request.session, eks.objects()) as cluster:
        assert cluster.api.apply(PODS_ALONE).ok
        yield cluster


def test_without_nodes_and_pools_nothing_is_called_impossible(cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of whoever may list pods and nothing else: what can be seen is found, the rest is named."""
    kubeconfig = somebody(cluster, "pods-alone", tmp_path, {"name": "pods-alone", "everywhere": True})
    assert main(["scan", "--kubeconfig", kubeconfig, "-o", "json"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert {one["kind"] for one in value["findings"]} == {"pending", "misspelt-name", "unlisted-name"}
    reasons = {one["kind"]: one for one in value["notSeen"]}
    assert {"Node", "NodePool", "EC2NodeClass", "ResourceSlice", "ReplicaSet", "Job", "Namespace", "DeviceClass"} <= set(reasons)
    assert reasons["NodePool"]["reason"] == "you may not list nodepools.karpenter.sh"
    assert {"pending", "never-fits", "pool-expires"} <= set(reasons["NodePool"]["findings"])
    assert main(["scan", "--kubeconfig", kubeconfig]) == 0
    shown = capsys.readouterr().out
    assert "Not read: you may not list ec2nodeclasses.karpenter.k8s.aws; findings on NodePools" in shown


def test_without_pods_it_says_what_to_type(cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And with the role view in one namespace, that one is looked at."""
    kubeconfig = somebody(cluster, "viewer", tmp_path, {"name": "view"})
    assert main(["scan", "--kubeconfig", kubeconfig]) == 2
    assert capsys.readouterr().err == "berth: cluster: you may not list pods; set a namespace that you can read: --namespace NS\n"
    assert main(["scan", "--kubeconfig", kubeconfig, "-n", "research"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("GPU nodes are unknown; 6 GPU pods, 2 of them pending.\n")


def test_nothing_is_written_to_the_cluster(cluster: Cluster, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Whatever is asked for: no call but lists."""
    before = len(list(cluster.audited()))
    for words in ((), ("--diff",), ("-o", "html"), ("--suggest", str(tmp_path / "p"))):
        assert main(["scan", "--kubeconfig", str(cluster.kubeconfig), *words]) == 0
    capsys.readouterr()
    assert len(list(cluster.audited())) == before
