"""Pods that policies changed and that are applied again as their author wrote them, on a real API server."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.rules.test_claims_made import APPLY, typed
from tests.e2e.workloads import TOLERATION, expression, pod
from tests.support.counts import only_in_prove
from tests.testcluster.addons.berth import SCOPE, Berth, registered
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.controlplane.processes import free_port
from tests.testcluster.fixtures import NewNamespace

NAME = "applied-again"
ZONES: Raw = {"nodeSelectorTerms": [{"matchExpressions": [expression("zone", "In", "a")]}]}
ALONE: Raw = {"automountServiceAccountToken": False, "schedulerName": "no-such-scheduler"}
"""Nothing else of the spec changes meanwhile, which `replace` could not take back"""
PODS: dict[str, Raw] = {
    "plain": pod(**ALONE),
    "with lists of its own": pod(
        **ALONE,
        tolerations=[{"key": "team", "operator": "Exists"}],
        affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": ZONES}},
        terminationGracePeriodSeconds=45,
    ),
}


def written(folder: Path, families: list[str]) -> Path:
    default = {"acceleratorTaints": "Tolerate", "gracePeriod": "10m"}
    spec = {"mode": "Enforce", "require": {"families": {"in": families}}, "default": default}
    (folder / "policy.yaml").write_text(
        yaml.safe_dump({"apiVersion": "berth.dev/v1alpha1", "kind": "ClusterGPUPolicy", "metadata": {"name": "p"}, "spec": spec})
    )
    return folder / "policy.yaml"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp(NAME)


@pytest.fixture(scope="module")
def berth(cluster: Cluster, folder: Path) -> Iterator[Berth]:
    where = ("--platforms", "gfd", "--listen", f"127.0.0.1:{free_port()}")
    with registered(cluster, NAME, (written(folder, ["hopper"]),), *where) as started:
        yield started


@pytest.mark.parametrize(
    ("way", "name"),
    [
        pytest.param(way, name, id=f"{way}-{name}", marks=() if (name == "plain") == (way in ("client-side", "replace")) else only_in_prove)
        for way in APPLY
        for name in PODS
    ],
)
def test_a_pod_is_applied_again(
    cluster: Cluster, berth: Berth, new_namespace: NewNamespace, folder: Path, tmp_path: Path, name: str, way: str
) -> None:
    """With kubectl or Helm, also where the policies are others by then: what they wrote stays, and what its author changes is changed.
    `make test` has each way once."""
    written(folder, ["hopper"])
    namespace = new_namespace({SCOPE: berth.name})
    manifest = copy.deepcopy(PODS[name])
    manifest["metadata"] = {"name": "again", "namespace": namespace}
    assert typed(cluster, manifest, tmp_path, *(APPLY[way] if way != "replace" else ("create",))) == ""
    stored = cluster.api.get("v1", "Pod", "again", namespace)
    assert stored is not None
    assert TOLERATION in stored["spec"]["tolerations"]
    for families in (["hopper"], ["ada"]):
        written(folder, families)
        manifest["metadata"]["labels"] = {"for": families[0]}
        assert typed(cluster, manifest, tmp_path, *APPLY[way]) == ""
        again = cluster.api.get("v1", "Pod", "again", namespace)
        assert again is not None
        assert (again["spec"], again["metadata"]["labels"]["for"]) == (stored["spec"], families[0])
        assert again["metadata"]["annotations"]["berth.dev/applied"] == stored["metadata"]["annotations"]["berth.dev/applied"]
