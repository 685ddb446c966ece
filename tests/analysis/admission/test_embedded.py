"""Objects inside of others."""

from __future__ import annotations

from typing import Any

from analysis.admission.embedded import inside
from kube.tree import dotted

JOB: dict[str, Any] = {"apiVersion": "batch/v1", "kind": "Job", "spec": {"inner": {"apiVersion": "v1", "kind": "Pod", "spec": {}}}}


def test_each_is_found_with_its_path() -> None:
    """In the order of the manifest; not those inside of one that was found."""
    value = {"spec": {"components": [{"template": JOB}, {"other": [JOB]}]}, "objects": [JOB]}
    assert [dotted(path) for path, _ in inside(value)] == ["spec.components[0].template", "spec.components[1].other[0]", "objects[0]"]


def test_a_reference_is_none() -> None:
    """It has no spec; a status and an object's own metadata say nothing of what will be made."""
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    assert list(inside({"spec": {"scaleTargetRef": reference}, "metadata": {"x": JOB}, "status": {"job": JOB}})) == []


def test_a_great_many_are_cut() -> None:
    """What nobody writes costs no more than what people do."""
    assert len(list(inside({"spec": [JOB] * 1000}))) == 64
