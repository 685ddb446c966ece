"""What a pod arrives with in ``berth.dev/applied``, and the pod before it."""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any

import jsonpatch
import pytest
from hypothesis import given

from policies.engine import arrived, evaluate
from policies.patch import valid_entries
from policies.patch.record import APPLIED, LONGEST, Entry, digest
from policies.patch.valid_entries import Write
from policies.request import Request
from policies.verdict import MODES, Edit, Verdict
from tests.support.generators.strategies import Case, audited, case_of, examples


def claimed(text: str, write: Write) -> list[Entry]:
    """The true ones of these entries of the pod below."""
    pod = copy.deepcopy(POD)
    pod["metadata"]["annotations"][APPLIED] = text
    return valid_entries.find_valid_entries(pod, lambda name: None, write).entries


@given(audited())
@examples(80, 20_000)
def test_a_stored_pod_is_judged_as_it_arrived(case: Case) -> None:
    """Without what the policies in force wrote into it, it gets the same edits, and the same is said of policies in Audit and Warn."""
    facts, first = case.world.snapshot.facts_for(case.request.namespace), mutated(case, case.request.pod)
    stored = jsonpatch.apply_patch(case.request.pod, list(first.patch))
    for removed in (edit.path[-1] for edit in first.edits if edit.rule == "priority_class" and edit.op == "remove"):
        stored["spec"][removed] = case.request.pod["spec"][removed]  # the API server writes it again, for the class
    text = stored.get("metadata", {}).get("annotations", {}).get(APPLIED, "[]")
    if not text.startswith("["):
        return  # too long to be recorded
    came = arrived(request(case, stored), facts)
    assert APPLIED not in came.get("metadata", {}).get("annotations", {})
    again = mutated(case, came)
    assert (again.edits, again.violations, again.matched) == (first.edits, first.violations, first.matched)
    for now, then in zip(again.audit_outcomes, first.audit_outcomes, strict=True):
        assert (now.policy, now.edits, now.violations) == (then.policy, then.edits, then.violations)


def mutated(case: Case, pod: dict[str, Any]) -> Verdict:
    return evaluate(request(case, pod), case.world.snapshot.facts_for(case.request.namespace))


def request(case: Case, pod: dict[str, Any]) -> Request:
    asked = case.request
    return Request(namespace=asked.namespace, user=asked.user, groups=asked.groups, pod=pod, phase="mutate")


def test_a_pod_without_the_record_is_as_it_arrived() -> None:
    """Nothing of it is touched."""
    case = case_of(Random(1), MODES)
    facts = case.world.snapshot.facts_for(case.request.namespace)
    assert arrived(request(case, case.request.pod), facts) == case.request.pod


POD: dict[str, Any] = {
    "metadata": {"annotations": {}},
    "spec": {
        "terminationGracePeriodSeconds": 30,
        "containers": [{"name": "c", "resources": {"limits": {"9" * 900: "1"}}}],
        "tolerations": [{"key": "mine"}],
    },
}


@pytest.mark.parametrize(
    "path",
    [
        "/spec/tolerations/" + "9" * 900,
        "/spec/tolerations/\u0663",
        "/spec/tolerations/0/key",
        "/spec/tolerations",
        "/spec/containers/0/resources/limits/" + "9" * 900,
        "/spec/containers/0",
        "/spec",
        "/metadata",
        "/metadata/annotations",
        f"/metadata/annotations/{APPLIED.replace('/', '~1')}",
        "",
        "/",
    ],
)
def test_no_path_costs_more_than_a_look(path: str) -> None:
    """Whatever is claimed, nothing is raised, and what Berth never writes is never kept."""
    for value in (POD, POD["spec"], POD["spec"]["tolerations"], POD["spec"]["tolerations"][0], "mine", "1", {}):
        text = json.dumps([{"by": ["ClusterGPUPolicy/a"], "rule": "tolerations", "path": path, "is": digest(value)}])
        assert claimed(text, lambda raw: ()) == []


def test_an_index_of_5000_digits_is_no_crash() -> None:
    """Python reads no integer of so many; the annotation is longer than any of ours, so it is not read at all."""
    path = "/spec/tolerations/" + "9" * 5_000
    text = json.dumps([{"by": [], "rule": "r", "path": path, "is": "x"}])
    assert len(text) > LONGEST
    assert claimed(text, lambda raw: ()) == []


def test_the_policies_are_asked_once_and_only_for_what_may_be_true() -> None:
    """However many entries there are; none of them true, not at all."""
    asked: list[Any] = []

    def write(raw: dict[str, Any]) -> tuple[Edit, ...]:
        asked.append(raw)
        return ()

    right = {"by": ["p"], "rule": "r", "path": "/spec/tolerations/0", "is": digest({"key": "mine"})}
    wrong = {**right, "is": "00000000"}
    assert claimed(json.dumps([wrong] * 5), write) == []
    assert asked == []
    claimed(json.dumps([right, right, wrong]), write)
    assert [raw["spec"]["tolerations"] for raw in asked] == [[]]
    assert POD["spec"]["tolerations"] == [{"key": "mine"}]


def test_without_the_annotation_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The usual pod has none."""
    monkeypatch.setattr(valid_entries, "find_valid_entries", None)
    case = case_of(Random(1), MODES)
    pod = {**case.request.pod, "metadata": {"name": "a"}}
    evaluate(Request(namespace="default", user="anna", pod=pod, phase="mutate"), case.world.snapshot.facts_for("default"))
