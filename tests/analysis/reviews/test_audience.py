"""Which remarks an author is warned of: those about what the author wrote, asked for, or must know."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from analysis.reviews.audience import warned
from analysis.reviews.review import answer_review, from_document
from kube.tree import Path, apply_patch
from policies.engine import evaluate
from policies.messages import TABLE
from policies.verdict import Remark, Violation
from tests.support import snapshots, worded
from tests.support.cases import golden

POLICY = ("ClusterGPUPolicy/p",)
SLICED = {"metadata": {"annotations": {"berth.dev/mig-slice": "10gb"}}}
TEMPLATED = {"metadata": {"annotations": {"berth.dev/node-template": "a100"}}}


ABOUT: dict[str, Path] = {
    "BERTH-210": ("metadata", "annotations", "berth.dev/mig-slice"),
    "BERTH-215": ("metadata", "annotations", "berth.dev/node-template"),
}


def remark(code: str, policies: tuple[str, ...] = POLICY, about: Path = ()) -> Remark:
    return worded.remark(code, "something", rule="node_affinity", policies=policies, path=about or ABOUT.get(code, ()))


def violation(code: str, about: Path = ()) -> Violation:
    return worded.denial(code, "a fact", rule="node_affinity", policies=POLICY, path=about)


def codes(name: str) -> tuple[list[str], list[str]]:
    """What a golden case's decision remarks, and what its author is warned of."""
    case = golden.load(golden.CASES / f"{name}.yaml")
    request = case.request()
    verdict = evaluate(request, case.facts(request.namespace))
    return [r.code for r in verdict.remarks], [r.code for r in warned(verdict.remarks, verdict.violations, request.pod)]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("tolerations/a-default-that-another-policy-forbids", "BERTH-203"),
        ("tolerations/a-template-whose-taint-is-forbidden", "BERTH-204"),
        ("mig_resources/karpenter-without-a-template-skips-and-says-so", "BERTH-210"),
        ("disruption/endless-under-a-maximum-is-not-written", "BERTH-212"),
        ("tolerations/of-the-namespace-wants-a-grant", "BERTH-218"),
        ("tolerations/never-what-the-catalog-forbids", "BERTH-219"),
    ],
)
def test_a_default_that_was_left_out_is_no_warning(name: str, code: str) -> None:
    """The decision says it; its author could do nothing about it."""
    remarks, warnings = codes(name)
    assert code in remarks
    assert code not in warnings


def test_what_a_queue_must_carry_is_no_warning() -> None:
    """The flavors are the platform team's."""
    remarks, warnings = codes("actors/of-a-kueue-pod-group-edits")
    assert "BERTH-215" in remarks
    assert "BERTH-215" not in warnings


def test_a_slice_that_the_author_asked_for_is_a_warning() -> None:
    """Though the remark names every policy that matched."""
    assert codes("mig_resources/author-asks-for-a-slice-where-none-can-be") == (["BERTH-210"], ["BERTH-210"])


@pytest.mark.parametrize(
    ("code", "pod", "heard"),
    [
        ("BERTH-210", SLICED, True),
        ("BERTH-210", TEMPLATED, False),
        ("BERTH-210", {"metadata": {"annotations": {"berth.dev/mig-slice": None}}}, False),
        ("BERTH-210", {"metadata": None}, False),
        ("BERTH-215", TEMPLATED, True),
        ("BERTH-215", SLICED, False),
        ("BERTH-204", TEMPLATED, False),
        ("BERTH-201", {}, True),
        ("BERTH-202", {}, True),
        ("BERTH-211", {}, False),
        ("BERTH-111", {}, True),
    ],
    ids=str,
)
def test_an_annotation_makes_it_the_authors(code: str, pod: dict[str, Any], *, heard: bool) -> None:
    """Where it asks for the same as a default; spared denials are always told."""
    assert list(warned([remark(code)], [], pod)) == ([remark(code)] if heard else [])


@pytest.mark.parametrize("code", [code for code, row in TABLE.items() if row.kind == "warning"])
def test_what_names_no_policy_is_the_authors(code: str) -> None:
    """No platform team asked for it."""
    alone = remark(code, policies=())
    assert list(warned([alone], [], {})) == [alone]


def test_an_unknown_value_that_is_denied_is_said_once() -> None:
    """The denial says it with what is allowed. Another value that is denied, and a denial for something else, take nothing away."""
    unknown = remark("BERTH-201", (), ("spec.nodeSelector", "example.com/gpu"))
    assert list(warned([unknown], [violation("BERTH-125", unknown.path)], {})) == []
    other = violation("BERTH-125", ("spec.nodeSelector", "example.com/gpu-memory"))
    assert list(warned([unknown], [other, violation("BERTH-111"), violation("BERTH-121", unknown.path)], {})) == [unknown]


@pytest.mark.parametrize(
    "name",
    [
        "an-unknown-gpu-name-under-an-in-policy-is-denied",
        "an-unknown-instance-type-of-no-required-family-is-denied",
        "a-hint-is-of-the-pods-own-vendor",
    ],
)
def test_an_unknown_value_is_denied_and_remarked_as_the_same(name: str) -> None:
    """The engine says of both which value they are about."""
    remarks, warnings = codes(f"node_affinity/{name}")
    assert "BERTH-201" in remarks
    assert "BERTH-201" not in warnings


def test_an_annotation_that_is_denied_is_said_once() -> None:
    """That nothing was found for a size which does not exist is no news."""
    assert codes("mig_resources/author-asks-for-a-size-that-no-gpu-has") == (["BERTH-210"], [])


@pytest.mark.parametrize("name", ["vllm-server", "train-llama"])
def test_a_correct_pod_under_the_shipped_library_hears_once_what_was_chosen(name: str) -> None:
    """One GPU of a Deployment, eight of a Job, as recorded: the models that a default chose, and nothing that their authors could mend; at
    the second call, and at validate, nothing at all."""
    catalog = golden.catalog_with()
    world = snapshots.build(golden.policies_of("library", catalog), catalog, platforms=["karpenter-aws"])
    review = from_document(json.loads((golden.REVIEWS / f"pods-create-{name}.json").read_text()))
    facts = world.facts_for(review.namespace)
    mutate = evaluate(review, facts)
    edited = replace(review, pod=apply_patch(review.pod, mutate.patch))
    validate = evaluate(edited.in_phase("validate"), facts)
    assert mutate.edits
    response = answer_review(review, mutate)["response"]
    assert response.keys() == {"uid", "allowed", "patchType", "patch", "warnings"}
    assert [warning.partition(":")[0] for warning in response["warnings"]] == ["BERTH-221"]
    assert "warnings" not in answer_review(edited, evaluate(edited, facts))["response"]
    assert answer_review(edited, validate, phase="validate")["response"] == {"uid": review.uid, "allowed": True}
