"""Policies that fit three clusters: what each is made of, and what it says of itself."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.scan.suggestions.written import WrittenSuggestion, comment, suggestions
from cli.inspect.scan import format_suggestion
from documents.yaml_reader import documents
from policies.objects.parse import parse_objects
from tests.support.generators.random_worlds import catalog
from tests.support.recorded import eks, gke, on_premises
from tests.support.recorded.parts import GPU, node, pod
from tests.support.recorded.scanned import OPTIONS, scanned

CLUSTERS = {"eks": eks, "gke": gke, "on_premises": on_premises}


def suggested(objects: list[dict[str, Any]]) -> dict[str, WrittenSuggestion]:
    found = scanned(objects)
    return {one.suggestion.name: one for one in suggestions(found.seen, found.report.hits, OPTIONS)}


EFFECTS = {
    "eks": {
        "gpu-pods": (12, 7, 1, 3, 1),
        "gpu-runs": (7, 6, 1, 2, 2),
        "gpu-notebooks": (1, 1, 0, 1, 1),
        "gpu-research": (6, 5, 1, 0, 0),
        "gpu-web": (4, 3, 0, 0, 0),
    },
    "gke": {
        "gpu-pods": (7, 1, 0, 2, 0),
        "gpu-runs": (2, 2, 0, 2, 2),
        "gpu-jupyterhub": (1, 1, 0, 1, 1),
        "gpu-pretraining": (2, 2, 0, 0, 0),
        "gpu-serving": (2, 2, 0, 0, 0),
        "gpu-lab": (3, 2, 1, 0, 0),
    },
    "on_premises": {
        "gpu-pods": (7, 1, 0, 3, 0),
        "gpu-runs": (3, 3, 0, 3, 3),
        "gpu-vision": (3, 3, 0, 1, 1),
        "gpu-physics": (3, 2, 1, 0, 0),
        "gpu-shared": (1, 1, 0, 0, 0),
    },
}
"""Policy -> pods to which it applies, that it would change and deny, with findings that it is for, and mended"""


@pytest.mark.parametrize("name", CLUSTERS)
def test_what_each_would_do_is_counted(name: str) -> None:
    """By the code that admits pods; what a real API server makes of it is tried in tests/e2e/scan."""
    assert {key: tuple(vars_of(one)) for key, one in suggested(CLUSTERS[name].objects()).items()} == EFFECTS[name]


def vars_of(one: WrittenSuggestion) -> list[int]:
    effect = one.effect
    return [effect.matched, effect.changed, effect.denied, effect.found, effect.fixed]


@pytest.mark.parametrize("name", CLUSTERS)
def test_a_file_is_read_as_a_policy_in_audit_with_its_reasons(name: str) -> None:
    """By the reader of policy files: no mistake, no warning; the comment has the counts."""
    for key, one in suggested(CLUSTERS[name].objects()).items():
        written = format_suggestion(one)
        found, bad = documents(written, f"{key}.yaml")
        policy_set, errors, warnings = parse_objects(found, catalog())
        assert (bad, errors, warnings) == ([], [], [])
        assert [(policy.name, policy.mode) for policy in policy_set.policies] == [(key, "Audit")]
        lines = written.splitlines()
        assert all(len(line) <= 120 for line in lines)
        effect = one.effect
        assert f"matches {effect.matched}, would change {effect.changed} and deny {effect.denied}." in " ".join(
            line.removeprefix("# ") for line in lines
        )


def test_a_checkpoint_gets_no_more_time_than_the_pools_leave() -> None:
    """Karpenter deletes a pod whose grace is longer at once."""
    objects = eks.objects()
    for value in objects:
        if value["kind"] == "NodePool":
            value["spec"]["template"]["spec"]["terminationGracePeriod"] = "10m"
    one = suggested(objects)["gpu-runs"]
    assert one.suggestion.spec["default"]["gracePeriod"] == "10m"
    assert "gracePeriod is 10m, the most that a NodePool's terminationGracePeriod allows." in list(comment(one))


def test_a_namespaces_guardrail_is_as_wide_as_what_runs_there() -> None:
    """GPUs to a pod, architectures, and the taints of its own nodes; not what waits, and not the namespaces that Berth leaves alone."""
    found = suggested(on_premises.objects())
    assert found["gpu-vision"].suggestion.spec == {
        "match": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "vision"}}},
        "require": {"gpusPerPod": {"max": 8}, "families": {"in": ["hopper"]}},
        "default": {"acceleratorTaints": "Tolerate", "tolerate": [{"key": "team", "value": "vision", "effect": "NoSchedule"}]},
    }
    assert found["gpu-physics"].suggestion.spec["require"] == {"gpusPerPod": {"max": 4}, "families": {"in": ["ampere"]}}
    operator = [node("n", {}, {GPU: 1}), pod("p", "gpu-operator", {GPU: 1}, on="n"), pod("p", "../../etc", {GPU: 1}, on="n")]
    assert set(suggested(operator)) == {"gpu-pods"}


def test_without_gpus_there_is_nothing_to_suggest() -> None:
    """Nor for notebooks where the cluster has no small GPU."""
    assert suggested([node("n", {}, {})]) == {}
    large = [node("n", {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}, {GPU: 8})]
    notebook = pod("nb-0", "lab", {GPU: 1}, on="n", labels={"notebook-name": "nb"})
    assert set(suggested([*large, notebook])) == {"gpu-pods", "gpu-lab"}
