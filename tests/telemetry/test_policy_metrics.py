"""What a verdict says each policy did: one word per policy and rule."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from policies.engine import evaluate
from policies.verdict import Edit, Verdict
from telemetry.policy_metrics import NO_POLICY, REMARKS, OutcomeLabels, outcome_words
from tests.support.cases import golden

DOCS = Path(__file__).parents[2] / "docs"


def of(name: str) -> list[str]:
    """The outcomes of a golden case, sorted, each in one line."""
    case = golden.load(golden.CASES / f"{name}.yaml")
    request = case.request()
    return sorted(" ".join(one) for one in outcome_words(evaluate(request, case.facts(request.namespace))))


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("modes/another-namespaces-policy-is-not-ours", []),
        ("modes/a-pod-without-an-accelerator", []),
        (
            "modes/audit-on-top-of-enforced",
            ["ClusterGPUPolicy/audited node_affinity Audit would_edit", "ClusterGPUPolicy/taints tolerations Enforce edited"],
        ),
        (
            "modes/audit-and-enforce-deny-for-the-same",
            ["ClusterGPUPolicy/audited device_counts Audit would_deny", "ClusterGPUPolicy/equal requests_match_limits Enforce denied"],
        ),
        ("modes/warn-is-audit-with-a-warning", ["ClusterGPUPolicy/warned device_counts Warn would_deny"]),
        (
            "modes/max-mode-audit-is-the-brake",
            ["ClusterGPUPolicy/taints tolerations Audit would_edit", "ClusterGPUPolicy/training-gpus node_affinity Audit would_edit"],
        ),
        ("node_affinity/instance-families-cannot-be-said-on-gfd", ["ClusterGPUPolicy/no-p4d node_affinity Enforce inexpressible"]),
        ("mig_resources/author-writes-no-size", [f"{NO_POLICY} mig_resources Enforce denied"]),
    ],
)
def test_what_a_policy_did_is_one_word(name: str, wanted: list[str]) -> None:
    """Edits and denials are Enforce's; what would be is Audit's and Warn's; nobody's denial is nobody's."""
    assert of(name) == wanted


def test_a_denial_that_is_spared_is_skipped() -> None:
    """Placement alone is spared, here of a pod that is pinned to a node which is not there: all else is denied."""
    assert of("actors/forged-pin-to-no-node-denials") == [
        f"ClusterGPUPolicy/strict {rule} Enforce {word}"
        for rule, word in [
            ("checkpoint_grace", "denied"),
            ("device_counts", "denied"),
            ("disruption", "denied"),
            ("node_affinity", "skipped"),
            ("requests_match_limits", "denied"),
            ("tolerations", "denied"),
        ]
    ]


def test_many_edits_are_one_outcome() -> None:
    """Once per policy and rule, however many paths were written."""
    edits = tuple(Edit(op="add", path=("spec", i), rule="tolerations", policies=("ClusterGPUPolicy/a",)) for i in range(9))
    assert outcome_words(Verdict(edits=edits)) == {OutcomeLabels("ClusterGPUPolicy/a", "tolerations", "Enforce", "edited")}


@pytest.mark.parametrize("word", ["skipped", "inexpressible"])
def test_the_documentation_says_which_codes_are_outcomes(word: str) -> None:
    """docs/metrics.md lists the same."""
    listed = re.search(rf"^- `{word}`:[^:]*:\s+BERTH-([\d,\s]+\d)", (DOCS / "metrics.md").read_text(), re.MULTILINE)
    assert listed
    assert re.findall(r"\d+", listed[1]) == [code.removeprefix("BERTH-") for code, kind in REMARKS.items() if kind == word]
