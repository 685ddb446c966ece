"""The API server, by its own code, asks for advice on exactly the workloads with a template that the engine judges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

from catalog import Workload
from registration.entries import ALWAYS, InstallChoices
from tests.support.calls.expected_calls import ADVICE, GPU_POD, NOTHING, OPERATORS, pod_with, wanted
from tests.support.calls.webhook_dispatch import NAMESPACE, AdmissionRequest, Dispatch, judge
from tests.support.cases.workload_manifests import BUILT_IN, WORKLOADS, request_for, template_of, with_templates
from tests.support.counts import count
from tests.support.generators.random_oddities import odd_pod

Raw = dict[str, Any]


def updated(old: Raw) -> dict[str, Any]:
    return {"operation": "UPDATE", "old": old}


def together(asked: Mapping[str, Sequence[AdmissionRequest]]) -> Iterator[tuple[str, list[Dispatch]]]:
    """By kind, what is told of each: in one go, since what is registered takes longer to compile than all of them to judge."""
    _, answers = judge([one for ones in asked.values() for one in ones])
    at = 0
    for name, ones in asked.items():
        yield name, answers[at : at + len(ones)]
        at += len(ones)


def advice(workload: Workload) -> frozenset[str]:
    return ADVICE if workload.name in OWN else OPERATORS


OWN = {name: w for name, w in WORKLOADS.items() if w.api_version[0].rpartition("/")[0] in BUILT_IN}
"""Those of Kubernetes itself."""


def test_advice_is_asked_for_workloads_with_an_accelerator() -> None:
    """In every version of a kind, on create and update; of Kubernetes' own kinds a plain one is not sent, of custom resources all are."""
    plain, gpu = template_of(pod_with(1, ["cpu"])), template_of(GPU_POD)
    asked = {
        name: [
            request_for(workload, with_templates(workload, version, [template]), **before)
            for version in workload.api_version
            for before in ({}, updated(with_templates(workload, version, [template_of(pod_with(2, ["cpu"]))])))
            for template in (plain, gpu)
        ]
        for name, workload in WORKLOADS.items()
    }
    for name, answers in together(asked):
        workload = WORKLOADS[name]
        each = [NOTHING if name in OWN else OPERATORS, advice(workload)]
        assert [one.errors for one in answers] == [{}] * len(answers), name
        assert [one.called for one in answers] == each * (2 * len(workload.api_version)), name


def test_advice_on_generated_templates() -> None:
    """A workload of Kubernetes' own kinds is sent where pods of its template are, whatever else is null or missing."""
    random = Random(4)
    asked = []
    for _ in range(count(400, 10000)):
        workload = random.choice(list(OWN.values()))
        template = template_of(odd_pod(random, canonical=True))
        asked.append(request_for(workload, with_templates(workload, random.choice(workload.api_version), [template])))
    _, answers = judge(asked)
    decoded = [answer for answer in answers if not answer.undecodable]
    assert len(decoded) > 0.8 * len(asked)
    for answer in decoded:
        spec = answer.object["spec"]
        template = (spec["jobTemplate"]["spec"] if "jobTemplate" in spec else spec)["template"]
        assert (answer.called, answer.errors) == (ADVICE if wanted(template) else NOTHING, {}), answer.object


def test_a_custom_resource_may_be_anything() -> None:
    """No condition walks it: whatever its schema lets pass, at any step to a template, it is sent, and no condition errors."""
    custom = [workload for name, workload in WORKLOADS.items() if name not in OWN]
    odd: list[Any] = [None, "x", 1, [], [None], ["x"], {}, {"a": None}, {"a": "x"}]
    asked = [
        request_for(workload, {"apiVersion": workload.api_version[0], "kind": workload.kind, "metadata": {"name": "w"}, root: value})
        for workload in custom
        for root in {path.partition(".")[0].removesuffix("[*]") for path in workload.templates}
        for value in odd
    ]
    _, answers = judge(asked, chosen=InstallChoices(queues=True))
    assert all(one.called >= OPERATORS for one in answers)
    assert [name for one in answers for name in one.errors if name.endswith(".operators")] == []


def test_no_advice_in_excluded_namespaces() -> None:
    """The registration leaves them out, for workloads as for their pods: whatever comes is advised on."""
    manifest = with_templates(WORKLOADS["Deployment"], "apps/v1", [template_of(GPU_POD)])
    asked = [request_for(WORKLOADS["Deployment"], manifest, namespace=name) for name in (*ALWAYS, NAMESPACE)]
    _, answers = judge(asked, namespaces=[*ALWAYS, NAMESPACE])
    assert [one.called for one in answers] == [NOTHING] * len(ALWAYS) + [ADVICE]


def test_what_a_controller_makes_is_not_advised_on() -> None:
    """A ReplicaSet of a Deployment, a CronJob's Job: its warnings would be read by nobody."""
    workload = WORKLOADS["ReplicaSet"]
    plain = with_templates(workload, "apps/v1", [template_of(GPU_POD)])
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "u"}
    owned = [[{**owner, "controller": True}], [owner, {**owner, "controller": True}], [owner], [{**owner, "controller": False}], [], None]
    _, answers = judge([request_for(workload, {**plain, "metadata": {"name": "w", "ownerReferences": owners}}) for owners in owned])
    assert [(one.called, dict(one.errors)) for one in answers] == [(NOTHING, {})] * 2 + [(ADVICE, {})] * 4


def test_an_update_of_anything_but_the_spec_is_not_advised_on() -> None:
    """kubectl annotate and label, a controller's revision, a status, the last finalizer: none waits for Berth; an image does not pass."""
    asked = {
        f"{name} {version}": [request_for(workload, new, **updated(old)) for new in _changed(workload, version, old)]
        for name, workload in WORKLOADS.items()
        for version in workload.api_version
        for old in [with_templates(workload, version, [template_of(GPU_POD)])]
    }
    for name, answers in together(asked):
        assert [(one.called, dict(one.errors)) for one in answers] == [(NOTHING, {})] * (len(answers) - 1) + [
            (advice(WORKLOADS[name.partition(" ")[0]]), {})
        ], name


def _changed(workload: Workload, version: str, old: Raw) -> list[Raw]:
    """In nothing, in three ways that are nobody's business, and with another container."""
    return [
        old,
        {**old, "metadata": {"name": "w", "annotations": {"deployment.kubernetes.io/revision": "2"}, "generation": 2}},
        {**old, "metadata": {"name": "w", "labels": {"team": "a"}, "finalizers": ["example.com/f"]}},
        {**old, "status": {"observedGeneration": 2}},
        with_templates(workload, version, [template_of(pod_with(1, ["nvidia.com/gpu", "cpu"]))]),
    ]


def test_an_update_may_come_with_any_null() -> None:
    """A spec that is null or missing, before or after, is no error."""
    workload = WORKLOADS["RayCluster"]
    full = with_templates(workload, workload.api_version[0], [template_of(GPU_POD)])
    hollowed = [{**full, "spec": None}, {key: value for key, value in full.items() if key != "spec"}, {**full, "spec": {}}]
    asked = [request_for(workload, new, **updated(old)) for old in hollowed for new in [*hollowed, full]]
    _, answers = judge(asked)
    assert [(one.called, dict(one.errors)) for one in answers] == [
        (OPERATORS if (one.old or {}).get("spec") != one.object.get("spec") else NOTHING, {}) for one in asked
    ]
