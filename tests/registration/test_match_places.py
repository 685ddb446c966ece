"""The API server, by its own code, asks for advice on kinds that have no pod templates just where their pods ask for an accelerator."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from policies.patch.json_tree import set_at, value_at
from policies.workloads.controllers import group_of
from policies.workloads.templates import workload_of
from tests.support.calls.expected_calls import NOTHING
from tests.support.calls.webhook_dispatch import judge
from tests.support.cases.kind_manifests import FOUND, Raw, calls
from tests.support.cases.workload_manifests import request_for
from tests.support.generators.random_worlds import catalog


def without_devices(value: Raw) -> Raw:
    """The same manifest of pods that ask for nothing that is listed."""
    text = json.dumps(value).replace("nvidia.com/gpu", "example.com/sail").replace("gpu.intel.com/xe", "example.com/oar")
    plain: Raw = json.loads(text.replace('"gpu":', '"sail":').replace("draResources", "sails"))
    return plain


def test_what_asks_for_an_accelerator_is_sent() -> None:
    """To one webhook; what asks for none is not, unless a text says something that may be one."""
    both = [(workload, value) for workload, one in FOUND for value in (one, without_devices(one))]
    _, answers = judge([request_for(workload, value) for workload, value in both])
    assert [dict(one.errors) for one in answers] == [{}] * len(answers)
    for (workload, value), one in zip(both, answers, strict=True):
        assert one.called == calls(workload, value) or ("podSpecPatch" in str(value) and one.called > calls(workload, value)), value
    assert sum(one.called != NOTHING for one in answers) > 40


def test_an_update_of_anything_but_the_spec_is_not() -> None:
    """Labels, annotations of the object itself and a status change no pod."""
    old = [(w, v) for w, v in FOUND if calls(w, v) != NOTHING]
    quiet = [{**v, "metadata": {**v["metadata"], "labels": {"a": "b"}}, "status": {"ready": True}} for _, v in old]
    _, answers = judge([request_for(w, new, operation="UPDATE", old=v) for (w, v), new in zip(old, quiet, strict=True)])
    assert [(one.called, dict(one.errors)) for one in answers] == [(NOTHING, {})] * len(answers)


def hollowed(value: Any) -> Iterator[Any]:
    """The manifest with each thing in its spec null in turn, and each map and list empty."""
    for path in list(paths(value)):
        if path[0] in ("apiVersion", "kind", "metadata"):
            continue
        found = value_at(value, path)
        yield set_at(value, path, None)
        if isinstance(found, dict | list) and found:
            yield set_at(value, path, type(found)())


def paths(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*at, key)
        yield from paths(inner, (*at, key))


def test_nothing_on_the_way_need_be_there() -> None:
    """An operator's schema may let null pass anywhere: no condition errors, and what is called for is never less than what is judged."""
    variants = [(workload, value) for workload, full in FOUND if workload.places for value in hollowed(full)]
    _, answers = judge([request_for(workload, value) for workload, value in variants])
    for (workload, value), one in zip(variants, answers, strict=True):
        assert dict(one.errors) == {}, value
        assert one.called >= calls(workload, value), value
    assert len(variants) > 1000


def test_a_manifest_of_a_thousand_containers_is_within_the_budget() -> None:
    """In the kinds that cost most: lists within lists."""
    resources = {"limits": {f"{letter}.example/x": "1" for letter in "abcde"}}
    steps = [{"name": f"s{n}", "computeResources": resources} for n in range(100)]
    pipeline = {
        "apiVersion": "tekton.dev/v1",
        "kind": "Pipeline",
        "metadata": {"name": "p"},
        "spec": {"tasks": [{"taskSpec": {"steps": steps}}] * 10},
    }
    workload = workload_of(catalog(), "tekton.dev/v1", "Pipeline")
    assert workload is not None
    assert group_of("tekton.dev/v1") == "tekton.dev"
    _, (answers,) = judge([request_for(workload, pipeline, cost=True)])
    assert (answers.called, dict(answers.errors)) == (NOTHING, {})
    assert max(answers.cost.values()) < 400_000
