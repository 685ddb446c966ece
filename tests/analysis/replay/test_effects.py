"""What a patch does, whatever form it is written in."""

from __future__ import annotations

import json
from random import Random

from analysis.replay import effects
from analysis.replay.effects import EditEffect
from kube.tree import apply_patch
from policies.engine import evaluate
from tests.support.counts import count
from tests.support.generators.random_pods import request
from tests.support.generators.random_worlds import world

TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists"}


def test_an_appended_item_and_one_in_a_new_list_are_one_effect() -> None:
    """The API server adds tolerations of its own before Berth is called, or is told not to."""
    appended = [{"op": "add", "path": "/spec/tolerations/-", "value": TOLERATION}]
    made = [{"op": "add", "path": "/spec/tolerations", "value": [TOLERATION]}]
    assert effects.of_patch(appended) == effects.of_patch(made)
    assert effects.of_patch(appended) != effects.of_patch([{**appended[0], "value": {**TOLERATION, "effect": "NoSchedule"}}])


def test_who_wrote_what_is_no_effect() -> None:
    """Policies may be renamed: alone, within a map that was missing, and in neither case."""
    inside = [{"op": "add", "path": "/metadata/annotations", "value": {"berth.dev/applied": "[]", "a": "b"}}]
    beside = [{"op": "add", "path": "/metadata/annotations/a", "value": "b"}]
    beside += [{"op": "add", "path": "/metadata/annotations/berth.dev~1applied", "value": "[...]"}]
    assert effects.of_patch(inside) == effects.of_patch(beside) == {EditEffect(("metadata", "annotations", "a"), '"b"'): 1}


def test_the_container_that_is_meant_matters() -> None:
    """An index of a list of containers is no place in a set."""
    patch = {"op": "add", "path": "/spec/containers/0/resources/requests/nvidia.com~1gpu", "value": "1"}
    other = {**patch, "path": "/spec/containers/1/resources/requests/nvidia.com~1gpu"}
    assert effects.of_patch([patch]) != effects.of_patch([other])


def test_what_is_no_patch_has_no_effects() -> None:
    """Records may hold anything."""
    for value in (None, "x", [None, 1, {"op": "move", "path": "/a"}, {"op": "add"}], {"op": "add"}):
        assert effects.of_patch(value) == {}
        assert effects.policies_by_path(value) == {}
    deep: object = "x"
    for _ in range(5000):
        deep = [deep]
    assert len(effects.of_patch([{"op": "add", "path": "/spec/x", "value": deep}])) == 1


def test_the_writers_of_an_effect_are_known() -> None:
    """By the record in the same patch."""
    record = json.dumps([{"by": ["ClusterGPUPolicy/a"], "rule": "tolerations", "path": "/spec/tolerations/2", "is": "00000000"}])
    patch = [{"op": "add", "path": "/spec/tolerations/-", "value": TOLERATION}]
    patch += [{"op": "add", "path": "/metadata/annotations/berth.dev~1applied", "value": record}]
    (one,) = effects.of_patch(patch)
    assert effects.writers(one, effects.policies_by_path(patch)) == ("ClusterGPUPolicy/a",)


def test_edits_and_their_patch_have_the_same_effects() -> None:
    """Of every verdict on generated pods under generated policies; patches with the same effects make the same pod."""
    edited = 0
    for number in range(count(60, 3_000)):
        random = Random(number)
        made = world(random)
        asked = request(random, made)
        verdict = evaluate(asked, made.snapshot.facts_for(asked.namespace))
        assert set(effects.of_edits(verdict.edits)) == set(effects.of_patch(verdict.patch))
        if verdict.edits:
            edited += 1
            assert apply_patch(asked.pod, verdict.patch) != asked.pod
    assert edited
