"""What `berth try` is given, before anything of it is judged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from documents.yaml_writer import write_yaml
from policies.document import Document, InputError
from sources.inputs import Inputs


def runtime(kind: str, namespace: str | None = None) -> dict[str, Any]:
    metadata = {"name": "torch"} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": kind, "metadata": metadata, "spec": {}}


def given(tmp_path: Path, *values: Any) -> Inputs:
    file = tmp_path / "in.yaml"
    file.write_text("---\n".join(value if isinstance(value, str) else write_yaml(value) for value in values))
    return Inputs.of_files([str(file)], "team")


def test_all_is_read_in_its_order(tmp_path: Path) -> None:
    """What can't be read is told in its place, before the documents of its file."""
    found = given(tmp_path, {"kind": "A"}, "a: 1\na: 2\n", {"kind": "B"}).found
    assert [isinstance(one, InputError) for one in found] == [True, False, False]
    assert [one.value["kind"] for one in found if isinstance(one, Document)] == ["A", "B"]


def test_objects_are_found_where_they_may_be_named_from(tmp_path: Path) -> None:
    """In the namespace of who names them, or in none."""
    kinds = [("trainer.kubeflow.org", "TrainingRuntime"), ("trainer.kubeflow.org", "ClusterTrainingRuntime")]
    find = given(
        tmp_path, runtime("TrainingRuntime", "other"), {"apiVersion": "v1", "kind": "List", "items": [runtime("TrainingRuntime")]}
    ).around.find
    assert find(kinds, "nowhere", "torch") is None
    in_other, in_team = find(kinds, "other", "torch"), find(kinds, "team", "torch")
    assert in_other is not None
    assert in_team is not None
    assert (in_other.path, in_team.path) == ((), ("items", 0))
    assert find(kinds, "team", "jax") is None
    assert given(tmp_path, runtime("ClusterTrainingRuntime")).around.find(kinds, "anywhere", "torch") is not None


def test_facts_are_told_apart(tmp_path: Path) -> None:
    """Items of Lists too; whatever else there is, and however odd, is none."""
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}
    odd: list[Any] = [{"kind": ["Namespace"]}, {"apiVersion": "v1", "kind": "Namespace", "metadata": "x"}, {"metadata": {"name": {}}}]
    found = given(tmp_path, {"apiVersion": "v1", "kind": "List", "items": [space]}, *odd, "- 1\n")
    assert found.facts[0] == space
    assert len(found.facts) == 2
