"""What is laid over the catalog changes what the API server calls for."""

from __future__ import annotations

from typing import Any

import pytest

from catalog import Catalog
from catalog.parse import from_mappings
from documents.files import SHIPPED_CATALOG, read_documents
from policies.policy import PolicySet
from registration.entries import InstallChoices
from registration.match_conditions import PatternError, prefixes
from tests.support.calls.expected_calls import GPU_POD, NAMED, NOTHING, OPERATORS, pod_with, wanted
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
    names = ["example.com/npu", "example.com/slice-1g", "it's/abc", "nvidia.com/gpumem", "example.com/nup", "example.com/other"]
    pods = [pod_with(1, [name]) for name in names]
    invalid, answers = judge(
        [*(AdmissionRequest(object=pod) for pod in pods), AdmissionRequest(object=GPU_POD, namespace="harbour")],
        laid=own,
        namespaces=[NAMESPACE, "harbour"],
        chosen=InstallChoices(excluded=("harbour",)),
    )
    assert invalid == []
    assert [one.called for one in answers] == [*(wanted(pod, snapshot) for pod in pods), NOTHING]
    assert [one.called == NAMED for one in answers] == [True] * 5 + [False] * 2


def test_a_name_that_only_begins_as_a_pattern_is_sent() -> None:
    """A condition is wider than the engine; at zero it asks for nothing."""
    none = pod_with(1, ["example.com/slice-x"])
    none["spec"]["containers"][0]["resources"] = {"limits": {"example.com/slice-x": "0"}}
    asked = [AdmissionRequest(object=pod) for pod in (pod_with(1, ["example.com/slice-x"]), none)]
    assert [one.called for one in judge(asked, laid=laid(OWN))[1]] == [NAMED, NOTHING]


def test_workloads_of_an_overlay_are_advised_on() -> None:
    """The rules name them; of no custom resource is it looked at what its pods ask for."""
    own = laid(OWN)
    asked = [
        request_for(workload, with_templates(workload, "example.com/v1", [template_of(pod_with(1, ["cpu"]))]))
        for workload in own.workloads
        if workload.name in ("Fleet", "Raft")
    ]
    _, answers = judge(asked, laid=own)
    assert [(one.called, dict(one.errors)) for one in answers] == [(OPERATORS, {})] * 2


def test_templates_outside_of_spec_are_watched_where_they_are() -> None:
    """An overlay may put them at the top of an object: a change there is advised on, one beside it is not."""
    own = laid(
        {"workloads": [{"name": "Barge", "apiVersions": ["example.com/v1"], "resource": "barges", "templates": ["crew[*].template"]}]}
    )
    barge = next(workload for workload in own.workloads if workload.name == "Barge")
    old, new = (with_templates(barge, "example.com/v1", [template_of(pod_with(n, ["nvidia.com/gpu"]))]) for n in (1, 2))
    asked = [request_for(barge, one, operation="UPDATE", old=old) for one in (new, old, {**old, "status": {"ready": True}})]
    _, answers = judge(asked, laid=own)
    assert [(one.called, dict(one.errors)) for one in answers] == [(OPERATORS, {}), (NOTHING, {}), (NOTHING, {})]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        (r"example\.com/npu-\d+", ["example.com/npu-"]),
        (r"a\.b/(?:x|y)", ["a.b/"]),
        (r"a\.b/x|c\.d/[|(]y", ["a.b/x", "c.d/"]),
        (r"a\.b/xy?", ["a.b/x"]),
        (r"(?P<x>a)|b", None),
        (r"[ab]\.c/d", None),
        (r".*", None),
        (r"(?i)nvidia\.com/x", None),
    ],
)
def test_a_pattern_begins_with_what_is_in_every_name(pattern: str, found: list[str] | None) -> None:
    """No condition has a regular expression: one that may begin with anything can't be registered, and the message says what to write."""
    for written in (pattern, f"^(?:{pattern})$"):
        if found is not None:
            assert prefixes(written) == found
        else:
            with pytest.raises(PatternError, match="may begin with anything; begin it with a domain"):
                prefixes(written)


@pytest.mark.parametrize("value", ["a", "a\\b", "it's", "a\nb", "a\\'b", "é", "\u2028", 'say "x"', "`"])
def test_any_text_is_a_cel_string(value: str) -> None:
    """Quotes, escapes and line ends mean themselves."""
    own = laid({"misspellings": [{"wrong": f"{value}/gpu", "right": "nvidia.com/gpu"}]})
    invalid, answers = judge([AdmissionRequest(object=pod_with(1, [name]), typed=False) for name in (f"{value}/gpu", "x/gpu")], laid=own)
    assert (invalid, [one.called for one in answers]) == ([], [NAMED, NOTHING])
