"""LimitRange: what it gives containers, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from kube.namespace_limits.limit_range import limit_range_refusals, read_limit_range, with_defaults

Raw = dict[str, Any]
GPU = "nvidia.com/gpu"


def _range(*limits: Raw) -> Any:
    return read_limit_range({"metadata": {"name": "r"}, "spec": {"limits": list(limits)}})


def _pod(resources: Raw | None = None, **spec: Any) -> Raw:
    return {"spec": {"containers": [{"name": "c", **({} if resources is None else {"resources": resources})}], **spec}}


def _resources(pod: Raw, field: str = "containers") -> Any:
    return pod["spec"][field][0].get("resources")


def test_containers_without_amounts_get_the_defaults() -> None:
    """Init containers too; the request is the default request, or the default, or the least."""
    limit = {"type": "Container", "default": {"cpu": 2}, "defaultRequest": {"cpu": 1}, "min": {"memory": "1Gi"}, "max": {"memory": "4Gi"}}
    filled = with_defaults(_pod(initContainers=[{"name": "i"}]), [_range(limit)])
    expected = {"limits": {"memory": "4Gi", "cpu": 2}, "requests": {"memory": "4Gi", "cpu": 1}}
    assert _resources(filled) == expected
    assert _resources(filled, "initContainers") == expected


def test_what_an_author_set_stays() -> None:
    """A limit of the author's is the request as well, which no default replaces."""
    given = {"limits": {"cpu": 8}, "requests": {"memory": "1Gi"}}
    limit = {"type": "Container", "default": {"cpu": 2, "memory": "2Gi"}, "defaultRequest": {"cpu": 1}}
    assert _resources(with_defaults(_pod(given), [_range(limit)])) == {
        "limits": {"cpu": 8, "memory": "2Gi"},
        "requests": {"memory": "1Gi"},
    }


def test_a_pod_that_needs_nothing_is_the_same_object() -> None:
    """Also where a LimitRange is about pods or volumes."""
    pod = _pod({"limits": {"cpu": 1}})
    ranges = [_range({"type": "Pod", "default": {"cpu": 1}}, {"type": "Container", "default": {"cpu": 2}})]
    assert with_defaults(pod, ranges) is pod


REFUSED: list[tuple[Raw, Raw, list[tuple[str, Any, int]]]] = [
    ({"max": {GPU: 4}}, {"limits": {GPU: 8}}, [("max", 8, 4)]),
    ({"max": {GPU: 4}}, {"limits": {GPU: 4}}, []),
    ({"max": {"cpu": 4}}, {"requests": {"cpu": 1}}, [("max", None, 4000)]),
    ({"max": {"cpu": 4}}, {"requests": {"cpu": 5}, "limits": {"cpu": 4}}, [("max", 5000, 4000)]),
    ({"min": {"memory": "1Gi"}}, {"requests": {"memory": "512Mi"}}, [("min", 2**29, 2**30)]),
    ({"min": {"cpu": 1}}, {}, [("min", None, 1000)]),
    ({"min": {"cpu": 1}}, {"limits": {"cpu": 2}}, []),
    ({"maxLimitRequestRatio": {"cpu": 2}}, {"requests": {"cpu": 1}, "limits": {"cpu": 3}}, [("ratio", 3000, 2000)]),
    ({"maxLimitRequestRatio": {"cpu": "1.5"}}, {"requests": {"cpu": 2}, "limits": {"cpu": 3}}, []),
    ({"maxLimitRequestRatio": {"cpu": 2}}, {"requests": {"cpu": 1}}, [("ratio", None, 2000)]),
]


@pytest.mark.parametrize(("bound", "resources", "found"), REFUSED)
def test_amounts_outside_the_bounds_are_refused(bound: Raw, resources: Raw, found: list[Any]) -> None:
    """Of a container, with its path; a missing amount counts as none."""
    refused = list(limit_range_refusals(_pod(resources)["spec"], [_range({"type": "Container", **bound})]))
    assert [(one.kind, one.need, one.hard) for one in refused] == found
    assert all(one.container == "c" and one.path[:4] == ("spec", "containers", 0, "resources") and not one.passing for one in refused)


def test_a_default_limit_below_the_request_is_refused() -> None:
    """The API server fills it in, and then finds that the limit is below the request."""
    ranges = [_range({"type": "Container", "default": {"memory": "4Gi"}})]
    for resources, kinds in (({"requests": {"memory": "8Gi"}}, ["default"]), ({"limits": {"memory": "8Gi"}}, []), ({}, [])):
        spec = with_defaults(_pod(resources), ranges)["spec"]
        assert [one.kind for one in limit_range_refusals(spec, ranges)] == kinds


def test_bounds_of_the_pod_hold_for_the_sum() -> None:
    """Without the overhead of its runtime class."""
    containers = [{"name": name, "resources": {"limits": {"cpu": 20}}} for name in ("a", "b")]
    spec = {"containers": containers, "overhead": {"cpu": 5}}
    assert [(one.need, one.container) for one in limit_range_refusals(spec, [_range({"type": "Pod", "max": {"cpu": 32}})])] == [(40000, "")]
    assert list(limit_range_refusals(spec, [_range({"type": "Pod", "max": {"cpu": 40}})])) == []
    (unset,) = limit_range_refusals(spec, [_range({"type": "Pod", "max": {"memory": "1Gi"}})])
    assert (unset.need, unset.path) == (None, ("spec", "containers", 0, "resources", "limits", "memory"))


def test_bounds_of_volumes_are_not_for_pods() -> None:
    """They are checked of PersistentVolumeClaims."""
    assert list(limit_range_refusals(_pod({})["spec"], [_range({"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}})])) == []
