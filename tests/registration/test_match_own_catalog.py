"""What is laid over the catalog changes what the API server calls for."""

from __future__ import annotations

from typing import Any

import pytest

from documents.files import SHIPPED_CATALOG, read_documents
from policies.catalog import Catalog
from policies.catalog.parse import from_mappings
from policies.policy import PolicySet
from registration import match_conditions
from registration.entries import Chosen
from registration.re2 import PatternError
from tests.support.calls.expected_calls import ADVICE, GPU_POD, NAMED, NOTHING, pod_with, wanted
from tests.support.calls.webhook_dispatch import NAMESPACE, AdmissionRequest, judge
from tests.support.cases.workload_manifests import request_for, template_of, with_templates
from tests.support.snapshots import build

Raw = dict[str, Any]


def laid(overlay: Raw) -> Catalog:
    return from_mappings(read_documents([str(SHIPPED_CATALOG)])[0][0].value, overlay)


OWN: Raw = {
    "resources": [
        {"name": "example.com/npu", "vendor": "nvidia", "kind": "other"},
        {"pattern": r"example\.com/slice-(?P<profile>\d+g)|it's/\w{1,3}", "vendor": "nvidia", "kind": "other"},
        {"name": "nvidia.com/gpumem", "vendor": "nvidia", "kind": "shared"},
    ],
    "misspellings": [{"wrong": "example.com/nup", "right": "example.com/npu"}],
    "workloads": [
        {"name": "Fleet", "apiVersions": ["example.com/v1"], "resource": "fleets", "templates": ["spec.crews[*].boat.template"]},
        {"name": "Raft", "apiVersions": ["example.com/v1"], "resource": "rafts", "templates": ["spec.pod"]},
    ],
}


def test_an_overlay_changes_the_conditions() -> None:
    """New names, patterns, misspellings and workloads are called for, or no more, as the engine then judges."""
    own = laid(OWN)
    snapshot = build(PolicySet(policies=(), templates=()), own)
    names = [
        "example.com/npu",
        "example.com/slice-1g",
        "example.com/slice-x",
        "it's/abc",
        "it's/abcd",
        "nvidia.com/gpumem",
        "example.com/nup",
    ]
    pods = [pod_with(1, [name]) for name in names]
    asked = [AdmissionRequest(object=pod, typed=False) for pod in pods]
    invalid, answers = judge(
        [*asked, AdmissionRequest(object=GPU_POD, namespace="harbour")],
        laid=own,
        namespaces=[NAMESPACE, "harbour"],
        chosen=Chosen(excluded=("harbour",)),
    )
    assert invalid == []
    assert [one.called for one in answers] == [*(wanted(pod, snapshot) for pod in pods), NOTHING]
    assert [one.called == NAMED for one in answers[:-1]] == [True, True, False, True, False, True, True]


def test_workloads_of_an_overlay_are_advised_on() -> None:
    """The rules name them, and the condition finds their templates."""
    own = laid(OWN)
    fleet, raft = (next(w for w in own.workloads if w.name == name) for name in ("Fleet", "Raft"))
    asked = [
        request_for(workload, with_templates(workload, "example.com/v1", [template_of(pod_with(1, [name]))]))
        for workload in (fleet, raft)
        for name in ("cpu", "nvidia.com/gpu", "example.com/npu")
    ]
    _, answers = judge(asked, laid=own)
    assert [(one.called, dict(one.errors)) for one in answers] == [(NOTHING, {}), (ADVICE, {}), (ADVICE, {})] * 2


def test_templates_outside_of_spec_are_watched_where_they_are() -> None:
    """An overlay may put them at the top of an object: a change there is advised on, one beside it is not."""
    own = laid(
        {"workloads": [{"name": "Barge", "apiVersions": ["example.com/v1"], "resource": "barges", "templates": ["crew[*].template"]}]}
    )
    barge = next(workload for workload in own.workloads if workload.name == "Barge")
    old, new = (with_templates(barge, "example.com/v1", [template_of(pod_with(n, ["nvidia.com/gpu"]))]) for n in (1, 2))
    asked = [request_for(barge, one, operation="UPDATE", old=old) for one in (new, old, {**old, "status": {"ready": True}})]
    _, answers = judge(asked, laid=own)
    assert [(one.called, dict(one.errors)) for one in answers] == [(ADVICE, {}), (NOTHING, {}), (NOTHING, {})]


def test_a_pattern_that_only_python_reads_is_refused() -> None:
    """Rather than never matched: the message names the part."""
    own = laid({"resources": [{"pattern": r"example\.com/(?!x).+", "vendor": "nvidia", "kind": "other"}]})
    with pytest.raises(PatternError, match=r"example.* has \(\?!x, which"):
        match_conditions.asks(own)


@pytest.mark.parametrize("value", ["a", "a\\b", "it's", "a\nb", "a\\'b", "é", "\u2028", 'say "x"', "`"])
def test_any_text_is_a_cel_string(value: str) -> None:
    """Quotes, escapes and line ends mean themselves."""
    own = laid({"misspellings": [{"wrong": f"{value}/gpu", "right": "nvidia.com/gpu"}]})
    invalid, answers = judge([AdmissionRequest(object=pod_with(1, [name]), typed=False) for name in (f"{value}/gpu", "x/gpu")], laid=own)
    assert (invalid, [one.called for one in answers]) == ([], [NAMED, NOTHING])
