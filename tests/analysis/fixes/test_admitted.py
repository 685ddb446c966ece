"""Smallest changes by which policies admit what they deny: of every golden case that is denied, and of pods of many worlds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from typing import Any

import pytest
from hypothesis import assume, given

from analysis.admission_preview import AdmittedPod, preview_admission
from analysis.fixes.admitted import smallest_admitted
from analysis.fixes.edits import changed
from analysis.fixes.smallest import SearchResult
from analysis.fixes.steps import Step, edits_of
from analysis.reviews.review import ReviewError
from kube.pod import PodError
from kube.tree import value_at
from policies.placement.fleet import Fleet, fleet_of
from policies.request import Request
from policies.state.snapshot import NamespaceFacts
from tests.support.cases import golden
from tests.support.cases.golden import Case
from tests.support.generators.random_worlds import catalog
from tests.support.generators.strategies import Case as RandomCase
from tests.support.generators.strategies import cases, examples
from tests.support.scheduling.node_pools import tables

GPU = "nvidia.com/gpu"
NOT_THE_PODS = ("BERTH-122",)
"""Denials that no pod can mend."""
NOT_OF_FIELDS = (
    "requests_match_limits/an-injected-container-is-set-by-annotations",
    "actors/both-a-service-with-claims-only-denials",
    "actors/claims-only-denials",
    "actors/claims-only-unknown-edits",
    "actors/claims-only-unknown-denials",
    "actors/forged-claim-denials",
    "device_counts/a-claim-without-a-name",
    "device_counts/a-fraction-by-hami-under-whole-gpus-only",
    "device_counts/a-fraction-by-container-is-counted",
    "device_counts/a-fraction-of-many-gpus-counts-each",
    "queue/required-of-kueue",
    "queue/required-of-kueue-and-a-gate-that-nobody-lifts",
    "queue/required-of-kueue-and-a-label-of-the-authors",
    "queue/required-of-kueue-and-a-pod-alone",
    "queue/required-of-kueue-and-a-workload-of-an-unknown-kind",
    "queue/required-of-kueue-and-no-gate",
)
"""Cases that something beside the fields of the pod decides: a claim of its own, words of another scheduler, its workload's queue."""
OF_CLAIMS = "dra/"
NO_NUMBER = ("$GPUS", "-1")
"""Amounts of which nobody knows what their author meant."""


@dataclass(frozen=True, slots=True)
class Judge:
    """Judges changes of the pod of one request, as the webhooks do."""

    request: Request
    facts: NamespaceFacts

    def __call__(self, pod: Mapping[str, Any]) -> AdmittedPod:
        return preview_admission(replace(self.request, pod=dict(pod)), self.facts)


@cache
def denied() -> tuple[tuple[Case, Judge], ...]:
    """The golden cases whose pod is denied, with their judges."""
    found = []
    for case in golden.cases():
        try:
            request = case.request()
        except ReviewError:
            continue
        judge = Judge(replace(request, phase="mutate"), case.facts(request.namespace))
        try:
            if request.operation == "CREATE" and judge(request.pod).violations:
                found.append((case, judge))
        except PodError:
            continue
    assert len(found) > 150
    return tuple(found)


def search(judge: Judge, fleet: Fleet | None = None, most: int = 60) -> SearchResult:
    """The smallest change of the judge's own pod."""
    return smallest_admitted(judge.request.pod, fleet, catalog(), judge, most)


def hopeless(case: Case, judge: Judge) -> bool:
    """Whether no change of the pod alone, with values that are known, makes it one that is admitted."""
    violations = judge(judge.request.pod).violations
    text = " ".join(str(one) for one in violations)
    return (
        case.name in NOT_OF_FIELDS
        or case.name.startswith(OF_CLAIMS)
        or any(one.code in NOT_THE_PODS for one in violations)
        or any(f'"{amount}" is not a whole number' in text for amount in NO_NUMBER)
        or "ask the platform team" in text
        or "to an amount" in text
        or "amount of nvidia.com/gpu is invalid" in text
    )


def test_a_denied_pod_is_mended_or_hopeless() -> None:
    """A change is found that the policies admit, unless what is wrong is not in the pod, or is known to its author alone."""
    wrong = {}
    for case, judge in denied():
        found = search(judge)
        if found.fix is None:
            if not hopeless(case, judge):
                wrong[case.name] = [str(one) for one in judge(judge.request.pod).violations]
            continue
        left = judge(changed(judge.request.pod, found.fix.edits)).violations
        if left or not found.admits:
            wrong[case.name] = [str(one) for one in left]
    assert wrong == {}


def test_no_part_of_a_change_would_do() -> None:
    """With any of its steps left out, policies still deny the pod."""
    wrong = []
    for case, judge in denied():
        found = search(judge)
        steps = () if found.fix is None else found.fix.steps
        parts = [part for number in range(len(steps)) for part in combinations(steps, number)]
        wrong += [(case.name, part) for part in parts if not judge(_with(judge.request.pod, part)).violations]
    assert wrong == []


def _with(pod: Mapping[str, Any], steps: tuple[Step, ...]) -> dict[str, Any]:
    """The pod with some steps; a step whose place is not there any more, or not yet, is one that changes nothing."""
    for step in steps:
        if all(edit.op != "remove" or value_at(pod, edit.path) is not None for edit in step.edits):
            pod = changed(pod, edits_of((step,), pod))
    return dict(pod)


def _of(name: str) -> Judge:
    return next(judge for case, judge in denied() if case.name == name)


def _steps_of(found: SearchResult) -> list[tuple[str, str, Any]]:
    assert found.fix is not None
    return [(step.kind, str(edit.path[-1]), edit.value) for step in found.fix.steps for edit in step.edits]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("requests_match_limits/requests-1-limits-2", [("equal", GPU, "2")]),
        ("device_counts/more-than-the-most", [("lower", GPU, "7"), ("lower", GPU, "7")]),
        ("device_counts/a-misspelt-name", None),
        ("tolerations/forbidden", [("unwrite", "0", None)]),
        ("tolerations/a-node-name-past-a-forbidden-taint", [("unwrite", "nodeName", None)]),
        ("checkpoint_grace/above-the-maximum-is-denied", [("write", "terminationGracePeriodSeconds", 600)]),
        ("node_affinity/template-that-does-not-exist", [("write", "berth.dev/node-template", "a100")]),
        ("node_affinity/capacity-spot-for-a-long-run-is-denied", [("relabel", "karpenter.sh/capacity-type", "on-demand")]),
        ("device_counts/a-fraction-under-whole-gpus-only", None),
    ],
)
def test_the_change_is_what_the_fix_says(name: str, expected: list[tuple[str, str, Any]] | None) -> None:
    """Where a denial names what to type, that is the change."""
    found = search(_of(name))
    assert found.fix is not None
    if expected is not None:
        assert _steps_of(found) == expected


def node(name: str, **labels: str) -> dict[str, Any]:
    """One that has eight GPUs free."""
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": {key.replace("__", "/").replace("_", "."): value for key, value in labels.items()}},
        "status": {"allocatable": {"pods": 10, "cpu": 64, "memory": "512Gi", GPU: 8}},
    }


def fleet(*nodes: dict[str, Any]) -> Fleet:
    """Nothing but these nodes."""
    return fleet_of(nodes, catalog=catalog(), tables=tables(), occupants=())


def test_of_allowed_values_one_is_chosen_that_has_a_place() -> None:
    """An instance type of the cluster is better than one that nobody has, where both are allowed."""
    judge = _of("node_affinity/t4-under-hopper-and-ampere-is-denied")
    elsewhere = search(judge, fleet(node("h", **{"karpenter.k8s.aws/instance-gpu-name": "h100"})))
    assert elsewhere.then == "now"
    assert "h100" in [value for _, _, value in _steps_of(elsewhere)]


def test_a_change_goes_on_until_a_place_takes_the_pod() -> None:
    """What policies admit and no place takes is changed further, by what its place wants."""
    judge = _of("requests_match_limits/requests-1-limits-2")
    tainted = {**node("a"), "spec": {"taints": [{"key": "team", "value": "x", "effect": "NoSchedule"}]}}
    found = search(judge, fleet(tainted))
    assert found.fix is not None
    assert [step.kind for step in found.fix.steps] == ["equal", "tolerate"]
    assert found.then == "now"
    assert judge(changed(judge.request.pod, found.fix.edits)).violations == ()


def test_without_a_place_the_change_is_about_policies_alone() -> None:
    """It is found all the same, and says that nothing takes the pod then."""
    found = search(_of("requests_match_limits/requests-1-limits-2"), fleet(node("small") | {"status": {"allocatable": {"pods": 1}}}))
    assert found.fix is not None
    assert (found.admits, found.then) == (True, "never")


def test_no_more_changes_are_judged_than_asked() -> None:
    """The search ends after so many, whatever it found."""
    judge, judged = _of("requests_match_limits/every-accelerator-name"), []

    def admit(pod: Mapping[str, Any]) -> AdmittedPod:
        judged.append(pod)
        return judge(pod)

    assert smallest_admitted(judge.request.pod, None, catalog(), admit, 5).fix is None
    assert len(judged) <= 5


@given(cases())
@examples(12, 2000)
def test_what_is_found_of_any_pod_is_admitted(one: RandomCase) -> None:
    """In random worlds: whatever the pod and the policies are, the change that is found is one that the policies admit."""
    judge = Judge(replace(one.request, phase="mutate", operation="CREATE"), one.world.snapshot.facts_for(one.request.namespace))
    assume(judge(judge.request.pod).violations)
    found = search(judge, most=30)
    if found.fix is not None:
        assert judge(changed(judge.request.pod, found.fix.edits)).violations == ()


def test_a_misspelt_name_beside_the_right_one_goes() -> None:
    """No other vendor's device is asked for in its place, and the right name is not asked for twice."""
    judge = _of("device_counts/a-misspelt-name")
    limits = {"nvdia.com/gpu": "1", GPU: "1"}
    container = {"name": "main", "image": "image", "resources": {"limits": limits, "requests": {"nvdia.com/gpu": "1"}}}
    both = Judge(replace(judge.request, pod={**judge.request.pod, "spec": {"containers": [container]}}), judge.facts)
    assert [one.code for one in both(both.request.pod).violations] == ["BERTH-114"]
    assert _steps_of(search(both)) == [("rename", "nvdia.com/gpu", None), ("rename", "nvdia.com/gpu", None)]
