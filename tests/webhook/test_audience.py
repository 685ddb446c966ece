"""Which remarks an author is warned of: those about what the author wrote, asked for, or must know."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from policies import snapshot
from policies.edit_tree import apply_patch
from policies.engine import evaluate
from policies.verdict import Remark, Violation
from tests import golden
from webhook.audience import ASKED_BY, AUDIENCE, warned
from webhook.review import ReviewError, answer, from_document

CODES = (Path(__file__).parent.parent.parent / "docs" / "codes.md").read_text()
POLICY = ("ClusterGPUPolicy/p",)
SLICED = {"metadata": {"annotations": {"berth.dev/mig-slice": "10gb"}}}
TEMPLATED = {"metadata": {"annotations": {"berth.dev/node-template": "a100"}}}


def remark(code: str, text: str = "something", policies: tuple[str, ...] = POLICY) -> Remark:
    return Remark(code=code, text=text, rule="node_affinity", policies=policies)


def violation(code: str, fact: str) -> Violation:
    return Violation(code=code, fact=fact, fix="mend it", rule="node_affinity", policies=POLICY)


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
        ("BERTH-299", {}, True),
    ],
    ids=str,
)
def test_an_annotation_makes_it_the_authors(code: str, pod: dict[str, Any], heard: bool) -> None:
    """Where it asks for the same as a default; spared refusals and unknown codes are always told."""
    assert list(warned([remark(code)], [], pod)) == ([remark(code)] if heard else [])


@pytest.mark.parametrize("code", AUDIENCE)
def test_what_names_no_policy_is_the_authors(code: str) -> None:
    """No platform team asked for it."""
    alone = remark(code, policies=())
    assert list(warned([alone], [], {})) == [alone]


def test_an_unknown_value_that_is_refused_is_said_once() -> None:
    """The refusal says it with what is allowed."""
    said = remark("BERTH-201", 'spec.nodeSelector example.com/gpu: "x9" is no value that is known', ())
    assert list(warned([said], [violation("BERTH-125", "spec.nodeSelector example.com/gpu=x9 is not known")], {})) == []
    other = violation("BERTH-125", "spec.nodeSelector example.com/gpu-memory=x9 is not known")
    assert list(warned([said], [other, violation("BERTH-111", "the pod asks for 9 GPUs")], {})) == [said]


def test_an_unknown_value_of_a_term_that_is_refused_is_said_once() -> None:
    """A required expression is written with its operator."""
    place = "nodeSelectorTerms[0].matchExpressions[1] example.com/gpu"
    said = remark("BERTH-201", f'{place}: "x9" is no value that is known', ())
    assert list(warned([said], [violation("BERTH-125", f"{place} In [x9] is not known")], {})) == []


def test_an_annotation_that_is_refused_is_said_once() -> None:
    """That nothing was found for a size which does not exist is no news."""
    assert codes("mig_resources/author-asks-for-a-size-that-no-gpu-has") == (["BERTH-210"], [])


@pytest.mark.parametrize("name", ["vllm-server", "train-llama"])
def test_a_correct_pod_under_the_shipped_library_hears_once_what_was_chosen(name: str) -> None:
    """One GPU of a Deployment, eight of a Job, as recorded: the models that a default chose, and nothing that their authors could mend; at
    the second call, and at validate, nothing at all."""
    catalog = golden.catalog_with()
    world = snapshot.build(golden.policies_of("library", catalog), catalog, platforms=["karpenter-aws"])
    review = from_document(json.loads((golden.REVIEWS / f"pods-create-{name}.json").read_text()))
    facts = world.facts_for(review.namespace)
    mutate = evaluate(review.request("mutate"), facts)
    edited = replace(review, pod=apply_patch(review.pod, mutate.patch))
    validate = evaluate(edited.request("validate"), facts)
    assert mutate.edits
    response = answer(review, mutate)["response"]
    assert response.keys() == {"uid", "allowed", "patchType", "patch", "warnings"}
    assert [warning.partition(":")[0] for warning in response["warnings"]] == ["BERTH-221"]
    assert "warnings" not in answer(edited, evaluate(edited.request("mutate"), facts))["response"]
    assert answer(edited, validate, phase="validate")["response"] == {"uid": review.uid, "allowed": True}


@pytest.mark.parametrize("case", golden.cases(), ids=lambda case: case.name)
def test_only_defaults_of_policies_are_kept_from_authors(case: golden.Case) -> None:
    """Whatever is not told names the policies whose metrics count it."""
    try:
        request = case.request()
    except ReviewError:
        return
    verdict = evaluate(request, case.facts(request.namespace))
    told = list(warned(verdict.remarks, (), request.pod))
    assert all(r.policies and AUDIENCE[r.code] == "platform" for r in verdict.remarks if r not in told)


def test_every_remark_has_its_audience() -> None:
    """A new code is decided on, and only defaults can be asked for by annotation too."""
    assert sorted(AUDIENCE) == sorted(re.findall(r"^### (BERTH-2\d\d)", CODES, re.MULTILINE))
    assert all(AUDIENCE[code] == "platform" for code in ASKED_BY)


def test_the_documentation_says_who_hears_it() -> None:
    """Each code that authors are not warned of says so in its section, and no other does."""
    sections = dict(re.findall(r"^### (BERTH-2\d\d)(.*?)(?=^###? |\Z)", CODES, re.MULTILINE | re.DOTALL))
    assert {code for code, text in sections.items() if "**Who sees it.**" in text} == {
        code for code, audience in AUDIENCE.items() if audience == "platform"
    }
