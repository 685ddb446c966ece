"""Snapshots with objects replaced: they decide as a world that has them does, and the world's own stays as it was."""

from __future__ import annotations

from typing import Any

from cluster.watch.kinds import key_of
from console.job.playground import Playground, supposed
from console.world.scope import EVERYTHING
from console.world.view import View
from policies.engine import evaluate
from policies.request import Request
from policies.verdict import Verdict
from tests.support.console.worlds import world
from tests.support.recorded import eks

Raw = dict[str, Any]


def _policy(name: str, most: int) -> Raw:
    spec = {"mode": "Enforce", "require": {"gpusPerPod": {"max": most}}}
    return {"apiVersion": "berth.dev/v1alpha1", "kind": "ClusterGPUPolicy", "metadata": {"name": name}, "spec": spec}


def _verdict(snapshot: Any) -> Verdict:
    container = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": "4"}, "requests": {"nvidia.com/gpu": "4"}}}
    return evaluate(Request(namespace="web", pod={"metadata": {}, "spec": {"containers": [container]}}), snapshot.facts_for("web"))


def test_a_replaced_policy_decides_as_in_a_world_of_its_own() -> None:
    """One that is replaced, one that is new, and both together; in any order, and again."""
    at = world(eks.objects(), [_policy("a", 8), _policy("b", 8)])
    playground = Playground(at)
    for changed in ([_policy("a", 2)], [_policy("c", 3)], [_policy("a", 2), _policy("c", 3)], [_policy("b", 1)], [_policy("a", 2)]):
        names = {one["metadata"]["name"] for one in changed}
        kept = [one for one in (_policy("a", 8), _policy("b", 8)) if one["metadata"]["name"] not in names]
        snapshots = playground.snapshots({key_of(one["kind"], one): one for one in changed})
        wanted = _verdict(world(eks.objects(), [*kept, *changed]).snapshot)
        assert _verdict(snapshots.every).violations == _verdict(snapshots.enforced).violations == wanted.violations != ()
        assert _verdict(playground.snapshots({}).every).violations == ()
    assert _verdict(at.snapshot).violations == ()


def test_a_template_that_is_there_may_be_named() -> None:
    """It stands in the world, not in the text."""
    template = {
        "apiVersion": "berth.dev/v1alpha1", "kind": "GPUNodeTemplate", "metadata": {"name": "big"},
        "spec": {"gpus": {"families": {"in": ["hopper"]}}, "labels": {"pool": "big"}},
    }  # fmt: skip
    view = View(world=world(eks.objects(), [template]), scope=EVERYTHING)
    first = "apiVersion: berth.dev/v1alpha1\nkind: ClusterGPUPolicy\nmetadata: {name: x}\n"
    text = first + "spec: {mode: Enforce, default: {nodeTemplate: NAME}}\n"
    assert supposed(text.replace("NAME", "big"), view)[1] == []
    assert supposed(text.replace("NAME", "bug"), view)[1]
