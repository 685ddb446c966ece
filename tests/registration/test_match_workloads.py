"""The API server, by its own code, asks for advice on exactly the workloads with a template that the engine judges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

from policies.catalog import Workload
from registration.entries import ALWAYS
from tests.support.calls.expected_calls import ADVICE, GPU_POD, LIMIT_OF_ONE, NOTHING, pod_with, wanted
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


def test_advice_is_asked_for_workloads_with_an_accelerator() -> None:
    """At any template path of the kind, in every version of it, on create and update; a plain one is not sent."""
    plain, gpu = template_of(pod_with(1, ["cpu"])), template_of(GPU_POD)
    rounds: list[list[Raw | None]] = [[plain], [plain, plain], [gpu], [plain, gpu], [gpu, plain]]
    asked = {
        name: [
            request_for(workload, with_templates(workload, version, templates), **before)
            for version in workload.api_version
            for before in ({}, updated(with_templates(workload, version, [template_of(pod_with(2, ["cpu"]))])))
            for templates in rounds
        ]
        for name, workload in WORKLOADS.items()
    }
    for name, answers in together(asked):
        workload = WORKLOADS[name]
        single = len(workload.templates) == 1 and "*" not in workload.templates[0]
        one_round = [NOTHING, NOTHING, ADVICE, NOTHING if single else ADVICE, ADVICE]
        assert [one.errors for one in answers] == [{}] * len(answers), name
        assert [one.called for one in answers] == one_round * (2 * len(workload.api_version)), name


def test_advice_on_generated_templates() -> None:
    """A workload is sent where pods of any of its templates are, whatever else is null or missing."""
    random = Random(4)
    asked, expected = [], []
    for _ in range(count(400, 10000)):
        workload = random.choice(list(WORKLOADS.values()))
        templates = [template_of(odd_pod(random, canonical=True)) for _ in range(random.choice((1, 2, 3)))]
        manifest = with_templates(workload, random.choice(workload.api_version), list(templates))
        used = templates if any("*" in path for path in workload.templates) else templates[: len(workload.templates)]
        asked.append(request_for(workload, manifest))
        expected.append(ADVICE if any(wanted(template) for template in used) else NOTHING)
    _, answers = judge(asked)
    decoded = [(one, answer, calls) for one, answer, calls in zip(asked, answers, expected, strict=True) if not answer.undecodable]
    assert len(decoded) > 0.8 * len(asked)
    for one, answer, calls in decoded:
        assert (answer.called, answer.errors) == (calls, {}), one.object


INSIDE = ("metadata.annotations", "spec.resourceClaims", "spec.containers[*].resources.limits", "spec.initContainers[*].resources.requests")


def hollow(manifest: Raw, path: str) -> Iterator[Raw]:
    """The manifest with each step of the path null, missing, or empty as its type can be."""
    steps = path.split(".")
    for depth, step in enumerate(steps, 1):
        empties: list[object] = [{}]
        if step.endswith("[*]"):
            empties = [[], [None], [{}]]
        elif step == "resourceClaims":
            empties = [[]]
        elif steps[depth : depth + 1] == ["*"]:
            empties = [{}, {"a": None}, {"a": {}}]
        for value in [None, MISSING, *empties]:
            yield _replaced(manifest, [step.removesuffix("[*]") for step in steps[:depth]], value)


MISSING = object()


def _replaced(manifest: Any, steps: list[str], value: object) -> Any:
    if isinstance(manifest, list):
        return [_replaced(item, steps, value) for item in manifest]
    if not isinstance(manifest, dict):
        return manifest
    step, *rest = steps
    if not rest:
        others = {key: item for key, item in manifest.items() if key != step}
        return others if value is MISSING else {**others, step: value}
    keys = list(manifest) if step == "*" else [step]
    return {**manifest, **{key: _replaced(manifest.get(key), rest, value) for key in keys}}


def test_a_custom_resource_may_be_null_anywhere() -> None:
    """Its schema may let pass what Kubernetes' own kinds do not: nothing on the way to a template errors."""
    custom = {name: w for name, w in WORKLOADS.items() if w.api_version[0].partition("/")[0] not in BUILT_IN}
    for name, answers in together({name: list(_hollowed(workload)) for name, workload in custom.items()}):
        assert [(one.called, dict(one.errors)) for one in answers] == [(NOTHING, {})] * len(answers), name
        assert len(answers) > 20


def _hollowed(workload: Workload) -> Iterator[AdmissionRequest]:
    full = with_templates(workload, workload.api_version[0], [template_of(pod_with(1, ["cpu"]))])
    for path in workload.templates:
        for inside in INSIDE:
            yield from (request_for(workload, manifest) for manifest in hollow(full, f"{path}.{inside}"))


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
        assert [(one.called, dict(one.errors)) for one in answers] == [(NOTHING, {})] * (len(answers) - 1) + [(ADVICE, {})], name


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
    assert [(one.called, dict(one.errors)) for one in answers] == [*[(NOTHING, {})] * 3, (ADVICE, {})] * 3


def test_a_workload_of_a_thousand_containers_is_within_the_budget() -> None:
    """Spread over its templates, with resources that are no accelerators."""
    template = template_of(pod_with(100, ["cpu", "memory", "a.example/x", "b.example/x", "c.example/x"]))
    asked = [
        request_for(w, with_templates(w, w.api_version[0], [template] * (10 // len(w.templates))), cost=True) for w in WORKLOADS.values()
    ]
    _, answers = judge(asked)
    assert [(one.called, dict(one.errors)) for one in answers] == [(NOTHING, {})] * len(asked)
    assert max(cost for one in answers for cost in one.cost.values()) < LIMIT_OF_ONE / 3
