"""What can be judged, and what is bad input."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from analysis.admission_preview import preview_admission
from kube.templates import bare_pod
from kube.tree import set_at
from policies.document import Document, InputError
from policies.request import Request
from policies.state.snapshot import Snapshot
from policies.workloads import pod_schema
from sources.sources import Sources, load_sources

ROOT = Path(__file__).parents[3]
WRONG: tuple[Any, ...] = (None, 1, True, 1.5, "x", [], {}, [1], {"a": 1}, [None])


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    return load_sources(Sources(policies=(str(ROOT / "policies" / "library"),), platforms=("karpenter-aws",))).snapshot


def _recorded(name: str) -> dict[str, Any]:
    pod: dict[str, Any] = json.loads((ROOT / "tests" / "reviews" / f"{name}.json").read_text())["request"]["object"]
    del pod["metadata"]["managedFields"]
    preferred = [
        {
            "weight": 1,
            "preference": {"matchExpressions": [{"key": "karpenter.k8s.aws/instance-gpu-name", "operator": "In", "values": ["t4"]}]},
        }
    ]
    affinity = ("spec", "affinity", "nodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution")
    edited: dict[str, Any] = set_at(pod, affinity, preferred)
    return edited


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from _paths(inner, (*path, key))


@pytest.mark.parametrize("name", ["pods-create-finetune", "pods-create-dra-pod"])
def test_a_wrong_type_anywhere_is_bad_input_or_judged(snapshot: Snapshot, name: str) -> None:
    """No wrong value at any path of a real pod ends in anything but bad input at that path, or a verdict."""
    pod = _recorded(name)
    for path in _paths(pod):
        for wrong in WRONG:
            found = _reported_path(set_at(pod, path, copy.deepcopy(wrong)), snapshot)
            assert found is None or found[: len(path)] == path or path[: len(found)] == found


def _reported_path(value: Any, snapshot: Snapshot) -> tuple[Any, ...] | None:
    """Where the bad input is; None if the pod was judged."""
    try:
        pod_schema.check(Document(file="f", value=value), value, (), snapshot.catalog)
    except InputError as error:
        return error.path
    preview_admission(Request(namespace="default", pod=bare_pod(value, "default")), snapshot.facts_for("default"))
    return None


def test_a_bare_number_for_text_is_told_to_be_quoted(snapshot: Snapshot) -> None:
    """``values: [40960]`` is the mistake that authors make with labels."""
    pod = _recorded("pods-create-finetune")
    terms = ("spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
    value = set_at(pod, (*terms, 0, "matchExpressions", 0, "values"), [40960])
    with pytest.raises(InputError, match=r"matchExpressions\[0\]\.values\[0\]: must be text; found the number 40960; put it in quotes"):
        pod_schema.check(Document(file="f", value=value), value, (), snapshot.catalog)
