"""``docs/laws.md``, law 7 ("deny only what is provable"): a machine that is not in the catalog is undecided on every platform."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import jsonpatch
import pytest

from catalog import Platform
from policies.engine import evaluate
from policies.request import Request
from policies.state.snapshot import NamespaceFacts
from policies.verdict import Verdict
from tests.support.cases import golden
from tests.support.snapshots import build

Raw = dict[str, Any]
CATALOG = golden.catalog_with()
CLOUDS = [platform for platform in CATALOG.platforms.values() if platform.cloud is not None]
TYPES = [(p, key) for p in CLOUDS for key, attribute in p.labels.items() if attribute == "type"]
OLDER = "beta.kubernetes.io/instance-type"
DEMANDS: tuple[Raw, ...] = (
    {"families": {"in": ["hopper", "ampere"]}},
    {"families": {"notIn": ["turing"]}},
    {"models": {"in": ["A100-80GB", "H100"]}},
    {"models": {"notIn": ["T4"]}},
    {"gpuMemory": {"min": 80}},
    {"instanceFamilies": {"notIn": ["p4d", "a2", "NCads_A100_v4"]}},
)
NEW = {"aws": "p9.48xlarge", "gcp": "a9-highgpu-8g", "azure": "Standard_ND256isr_VR200_v7"}


def facts(platform: str, demands: Raw) -> NamespaceFacts:
    policy = {"kind": "ClusterGPUPolicy", "metadata": {"name": "x"}, "spec": {"mode": "Enforce", "require": demands}}
    return build(golden.policies_of([policy], CATALOG), CATALOG, platforms=(platform,)).facts_for("ml")


def pod(key: str, value: str, resource: str = "nvidia.com/gpu") -> Raw:
    return {"spec": {"nodeSelector": {key: value}, "containers": [{"resources": {"limits": {resource: 1}}}]}}


def both(request: Request, known: NamespaceFacts) -> tuple[Verdict, Verdict, Verdict]:
    """What is mutated, once more, and validated."""
    first = evaluate(request, known)
    stored = replace(request, pod=jsonpatch.apply_patch(deepcopy(request.pod), list(first.patch)))
    return first, evaluate(stored, known), evaluate(replace(stored, phase="validate"), known)


@pytest.mark.parametrize("demands", DEMANDS, ids=str)
@pytest.mark.parametrize(("platform", "key"), [*TYPES, *((p, OLDER) for p in CLOUDS)], ids=lambda one: getattr(one, "name", one))
def test_a_type_that_nobody_knows_is_written_beside_and_told(platform: Platform, key: str, demands: Raw) -> None:
    """On every platform, by each of its keys of types and the older one: a warning and the requirement, no denial at either call."""
    prefix, new = platform.type_prefix, NEW[str(platform.cloud)]
    first, again, last = both(Request(namespace="ml", pod=pod(key, f"{prefix}{new}")), facts(platform.name, demands))
    assert [v.code for v in (*first.violations, *again.violations, *last.violations)] == []
    assert [r.code for r in first.remarks] == ["BERTH-201"]
    written = [e for e in first.edits if e.rule == "node_affinity"]
    assert written
    assert again.edits == ()
    types = [e for e in _expressions(written[0].value) if platform.labels.get(e["key"]) == "type"]
    assert all(e["operator"] != "In" for e in types)


def _expressions(affinity: Any) -> list[Raw]:
    return [e for term in affinity["nodeSelectorTerms"] for e in term["matchExpressions"]]


@pytest.mark.parametrize("platform", [p for p in CLOUDS if len(p.machine_keys) == 1], ids=lambda p: p.name)
def test_where_types_are_all_there_is_instance_families_in_a_list_deny(platform: Platform) -> None:
    """Nothing else tells a family: the two expressions are on one key and share no value."""
    machines = [m for m in CATALOG.machines if m.cloud == platform.cloud and platform.name not in m.not_on]
    families = sorted({m.family for m in machines if m.family and m.resource == "nvidia.com/gpu"})[:1]
    request = Request(namespace="ml", pod=pod("node.kubernetes.io/instance-type", NEW[str(platform.cloud)]))
    found = evaluate(request, facts(platform.name, {"instanceFamilies": {"in": families}}))
    assert [v.code for v in found.violations] == ["BERTH-125"]


@pytest.mark.parametrize("platform", CLOUDS, ids=lambda p: p.name)
def test_other_words_about_node_groups_are_unknown_keys(platform: Platform) -> None:
    """eksctl's label of a node group, or one's own: what is required is written, nothing is said."""
    request = Request(namespace="ml", pod=pod("alpha.eksctl.io/nodegroup-name", "gpu-a100"))
    first, again, last = both(request, facts(platform.name, {"families": {"in": ["hopper", "ampere"]}}))
    assert [v.code for v in (*first.violations, *last.violations)] == []
    assert first.edits
    assert [r.code for r in first.remarks] == []
    assert again.edits == ()


@pytest.mark.parametrize("demands", DEMANDS[:2], ids=str)
def test_a_product_that_nobody_knows_on_bare_metal(demands: Raw) -> None:
    """The family is told by its own label there, whatever a driver calls the product."""
    request = Request(namespace="ml", pod=pod("nvidia.com/gpu.product", "NVIDIA-X999"))
    first, again, last = both(request, facts("gfd", demands))
    assert [v.code for v in (*first.violations, *last.violations)] == []
    assert [r.code for r in first.remarks] == ["BERTH-201"]
    assert first.edits
    assert again.edits == ()


@pytest.mark.parametrize("strategy", ["mixed", "single"])
@pytest.mark.parametrize("platform", [p for p in CATALOG.platforms.values() if p.sharing == "gfd"], ids=lambda p: p.name)
def test_a_product_of_slices_is_known_under_either_strategy(platform: Platform, strategy: str) -> None:
    """No warning of an unknown value, whichever strategy is in force."""
    spec = {"mode": "Enforce", "require": {"families": {"in": ["ampere"]}}}
    policy = {"kind": "ClusterGPUPolicy", "metadata": {"name": "x"}, "spec": spec}
    built = build(golden.policies_of([policy], CATALOG), CATALOG, platforms=("gfd", platform.name), mig_strategy=strategy)
    request = Request(namespace="ml", pod=pod("nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"))
    found = evaluate(request, built.facts_for("ml"))
    assert [v.code for v in found.violations] == []
    assert "BERTH-201" not in {r.code for r in found.remarks}
