"""Edits of a pod, written into the template."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.admission.template_edits import project
from kube.templates import with_defaults
from kube.tree import Path, TreePatch
from policies.verdict import Edit

GPU, MIG = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb"


def _edit(op: Any, path: Path, value: Any = None) -> Edit:
    return Edit(op=op, path=path, value=value, rule="r", policies=())


def _resources(side: str, name: str) -> Path:
    return ("spec", "containers", 0, "resources", side, name)


RENAME = [
    _edit(op, _resources(side, name), value)
    for side in ("limits", "requests")
    for op, name, value in (("remove", GPU, None), ("add", MIG, 1))
]
GRACE = [_edit("replace", ("spec", "terminationGracePeriodSeconds"), 1800)]
NOTE = [_edit("add", ("metadata", "annotations", "karpenter.sh/do-not-disrupt"), "true")]
TOLERATION = [_edit("add", ("spec", "tolerations", "-"), {"key": GPU, "operator": "Exists"})]


def _template(**resources: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "c", "resources": resources}]}}


def test_a_renamed_limit_needs_no_request() -> None:
    """Where the author wrote only the limit, only the limit is renamed: the API server fills in the request."""
    after = project(_template(limits={GPU: 1}), RENAME)
    assert after["spec"]["containers"][0]["resources"] == {"limits": {MIG: 1}}


def test_a_written_request_is_renamed_too() -> None:
    """Where the author wrote both, both are renamed."""
    after = project(_template(limits={GPU: 1, "cpu": 2}, requests={GPU: 1, "cpu": 1}), RENAME)
    assert after["spec"]["containers"][0]["resources"] == {"limits": {"cpu": 2, MIG: 1}, "requests": {"cpu": 1, MIG: 1}}


def test_other_requests_stay() -> None:
    """A request for something else is no reason to write one for the slice."""
    after = project(_template(limits={GPU: 1}, requests={"cpu": 1}), RENAME)
    assert after["spec"]["containers"][0]["resources"] == {"limits": {MIG: 1}, "requests": {"cpu": 1}}


def test_a_repaired_request_stays_written() -> None:
    """request := limit changes the line that the author wrote."""
    after = project(_template(limits={GPU: 2}, requests={GPU: 1}), [_edit("replace", _resources("requests", GPU), 2)])
    assert after["spec"]["containers"][0]["resources"] == {"limits": {GPU: 2}, "requests": {GPU: 2}}


def test_defaults_become_new_lines() -> None:
    """A raised default is written, metadata that was missing comes first, and the old template stays as it was."""
    before = _template(limits={GPU: 1})
    after = project(before, [*GRACE, *NOTE, *TOLERATION])
    assert list(after) == ["metadata", "spec"]
    assert after["metadata"] == {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}
    assert after["spec"]["terminationGracePeriodSeconds"] == 1800
    assert after["spec"]["tolerations"] == [{"key": GPU, "operator": "Exists"}]
    assert before == _template(limits={GPU: 1})
    assert after["spec"]["containers"] is before["spec"]["containers"]


@pytest.mark.parametrize("edits", [RENAME, GRACE, TOLERATION, [*RENAME, *GRACE, *TOLERATION]], ids=["rename", "grace", "toleration", "all"])
@pytest.mark.parametrize(
    "resources",
    [
        {"limits": {GPU: 1}},
        {"limits": {GPU: 1}, "requests": {GPU: 1}},
        {"limits": {GPU: 1}, "requests": None},
        {"limits": {GPU: 1, "cpu": 1}},
    ],
    ids=str,
)
def test_the_template_makes_the_patched_pod(resources: dict[str, Any], edits: list[Edit]) -> None:
    """Defaulting the edited template gives exactly the pod that the edits of the defaulted one give."""
    template = _template(**resources)
    patched = TreePatch(with_defaults(template))
    for edit in edits:
        patched.apply(edit)
    assert with_defaults(project(template, edits)) == patched.tree
