"""The state of a cluster as files have it: the same as the API server would list, and what a dump lacks is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.watch.kinds import KINDS, OWNERS
from policies.document import InputError
from sources.sources import Origin
from sources.state import FACTS, OURS, is_installed, keyed, of_values, read, read_namespace, read_whole, unread
from tests.support.generators.random_worlds import catalog

JOBS = tuple(kind for kind in OWNERS if kind.kind == "Job")


def thing(kind: str, name: str | None, namespace: str | None = None, api_version: str = "v1", **labels: str) -> dict[str, Any]:
    """An object with only its metadata."""
    names = {"name": name, "namespace": namespace}
    metadata = {key: value for key, value in names.items() if value is not None}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata | ({"labels": labels} if labels else {})}


def policy(name: str, namespace: str | None = None) -> dict[str, Any]:
    """A policy without a field, of the cluster or of a namespace."""
    kind = "ClusterGPUPolicy" if namespace is None else "GPUPolicy"
    return thing(kind, name, namespace, "berth.dev/v1alpha1") | {"spec": {"mode": "Audit"}}


def written(folder: Path, *values: dict[str, Any]) -> Origin:
    """A dump with these objects."""
    (folder / "dump.yaml").write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": list(values)}))
    return Origin(dumps=(str(folder / "dump.yaml"),))


def test_objects_are_those_that_a_list_of_the_namespace_has() -> None:
    """Cluster-scoped kinds are whole; without a namespace an object is in default; another kind of the same name is passed over."""
    jobs = [thing("Job", name, where, "batch/v1") for name, where in (("a", "team"), ("b", "other"), ("c", None), (None, "team"))]
    other = thing("Job", "d", "team", "batch.volcano.sh/v1alpha1")
    values = [*jobs, other, thing("Namespace", "team"), thing("Namespace", "other"), policy("p", "team"), policy("q", "other")]
    state = of_values(values, (*KINDS, *JOBS), "team")
    assert [len(state.objects[kind]) for kind in ("Job", "Namespace", "GPUPolicy")] == [1, 2, 1]
    assert len(of_values(values, JOBS, None).objects["Job"]) == 3
    assert len(of_values(values, JOBS, "default").objects["Job"]) == 1
    assert list(keyed(state, OURS)) == [("GPUPolicy", "team", "p")]


@pytest.mark.parametrize(
    ("values", "missing"),
    [
        ([], ["Node"]),
        ([thing("Node", "n")], []),
        ([thing("Node", "n", **{"karpenter.sh/nodepool": "gpu"})], ["NodePool"]),
        ([thing("Node", "n", **{"karpenter.sh/nodepool": "gpu"}), thing("NodePool", "gpu", api_version="karpenter.sh/v1")], []),
    ],
)
def test_kinds_that_a_dump_must_have_are_named(values: list[dict[str, Any]], missing: list[str]) -> None:
    """Nodes, and NodePools if a node is of one; of other kinds a cluster may have no object."""
    state = of_values(values, FACTS, None)
    assert list(unread(state)) == missing
    assert "DeviceClass" in state.absent


def test_berth_is_installed_if_a_dump_has_one_of_its_objects() -> None:
    """Of any of its kinds."""
    assert not is_installed(of_values([thing("Node", "n")], OURS, None))
    assert is_installed(of_values([policy("p", "team")], OURS, None))


def test_files_are_read_in_place_of_a_cluster(tmp_path: Path) -> None:
    """What is audited, and what acts in a namespace; a file that cannot be read is named."""
    origin = written(tmp_path, thing("Pod", "p", "team") | {"spec": {"containers": []}}, policy("everywhere"), thing("Namespace", "team"))
    whole = read_whole(origin, None, catalog(), lambda kind, number: None)
    assert (sorted(whole.objects), whole.installed) == ([("ClusterGPUPolicy", "", "everywhere"), ("Namespace", "", "team")], True)
    assert [value["kind"] for value in whole.facts] == ["Namespace"]
    state = read_namespace(origin, None)
    assert (state.namespace, state.installed, "Node" in state.unread) == ("default", True, True)
    with pytest.raises(InputError, match="there is no such file"):
        read(Origin(dumps=(str(tmp_path / "none.yaml"),)), OURS, None, lambda kind, number: None)


def test_without_a_pod_there_is_nothing_to_audit(tmp_path: Path) -> None:
    """Says how to dump pods."""
    with pytest.raises(InputError, match="has no Pod; dump them: kubectl get pods,replicasets,jobs -A"):
        read_whole(written(tmp_path, thing("Node", "n")), None, catalog(), lambda kind, number: None)
