"""Why pods wait, in one word: each word, and what follows of it for what is counted."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.audit.assessment import Assessment
from analysis.audit.stored_pod import stored, widest
from analysis.audit.waiting import WAITS, reason
from catalog.prices import prices
from kube.templates import with_defaults
from policies.request import Request
from tests.policies.rules.test_no_place import CATALOG, DEVICE_CLASS, TAINT, asking, node, pool, snapshot

GATED: dict[str, Any] = {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}
TOLERATED: dict[str, Any] = {"tolerations": [{"operator": "Exists"}]}
CASES: dict[str, tuple[dict[str, Any], list[dict[str, Any]], str]] = {
    "a gate, whatever else": (asking(9, **GATED), [node(4, TAINT)], "gated"),
    "another scheduler": (asking(1, schedulerName="kai-scheduler"), [node()], "scheduler"),
    "a claim": (asking(1, resourceClaims=[{"name": "c", "resourceClaimName": "x"}]), [node()], "claims"),
    "what is there is taken": (asking(4), [node()], "capacity"),
    "a machine is to be bought": (asking(1), [pool()], "capacity"),
    "one of two groups would do": (asking(1), [node(4, TAINT), node(4, name="n2")], "capacity"),
    "a taint": (asking(1), [node(4, TAINT)], "taint"),
    "a label": (asking(1, nodeSelector={"nvidia.com/gpu.product": "NVIDIA-L4"}), [node(labels={"nvidia.com/gpu.product": "T4"})], "label"),
    "too many": (asking(9), [node()], "resource"),
    "a taint is nearer than another machine": (asking(4), [node(4, TAINT), node(1, name="n2")], "taint"),
    "of another maker": (asking(1, "amd.com/gpu"), [node()], "resource"),
    "no machine of the pool has as many": (asking(9, **TOLERATED), [pool(families=("g6",))], "machines"),
    "the pool is full": (asking(1, **TOLERATED), [pool(limits={"nvidia.com/gpu": "0"})], "limits"),
    "the pool makes no nodes for pods": (asking(1, **TOLERATED), [pool(replicas=2)], "static"),
    "a class may offer it": (asking(9), [node(), DEVICE_CLASS], "unknown"),
    "no nodes": (asking(1), [], "unknown"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_word(case: str) -> None:
    """What is in the way on the place that comes nearest."""
    pod, objects, word = CASES[case]
    seen = snapshot(objects)
    assert reason(Request(namespace="ml", pod=with_defaults(pod)), seen.facts_for("ml")) == word


def test_every_word_has_a_case() -> None:
    """None can be invented and never said."""
    assert {word for _, _, word in CASES.values()} == set(WAITS)


def test_places_that_may_be_unknown_are_not_judged() -> None:
    """Another autoscaler may make the very node."""
    seen = snapshot([node(4, TAINT)], all_nodes=False)
    assert reason(Request(namespace="ml", pod=with_defaults(asking(1))), seen.facts_for("ml")) == "unknown"


def test_only_a_pod_without_a_node_waits() -> None:
    """Among pods that are alike too, which are judged once."""
    wide = widest(CATALOG)
    one = Assessment(snapshot([node(4, TAINT)]), prices(CATALOG), {})
    found = []
    for name, where in (("a", ""), ("b", "n1"), ("c", "")):
        spec = asking(1)["spec"] | ({"nodeName": where} if where else {})
        audited = one.of(stored(with_defaults({"metadata": {"name": name, "namespace": "ml", "uid": name}, "spec": spec}), wide))
        assert audited is not None
        found.append(audited.waits)
    assert found == ["taint", None, "taint"]
