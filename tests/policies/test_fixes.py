"""Fixes as rules write them."""

from __future__ import annotations

from kube.pod import Pod
from policies.fixes import MOST_VALUES, choose_label, equalize, request_fewer, round_amounts, write_or_leave_out

GPU = "nvidia.com/gpu"


def test_a_number_that_is_known_to_do_is_requested() -> None:
    """Else one fewer, then halves, of no more than a machine may have."""
    assert [fix.value for fix in request_fewer(GPU, 12, 8, 4, 0, 16)] == [8, 4]
    assert [fix.value for fix in request_fewer(GPU, 6, 8)] == [5, 3, 1]
    assert request_fewer(GPU, 1) == ()
    assert len(request_fewer(GPU, 10**999)) == 11


def test_an_amount_is_rounded_to_whole_devices() -> None:
    """Up or down, on every side that has one; what is no amount above zero, or is larger than Kubernetes stores, is not."""

    def values(limit: object, request: object) -> list[object]:
        amounts = {"limits": {GPU: limit}, "requests": {GPU: request}}
        (container,) = Pod({"spec": {"containers": [{"name": "c", "resources": amounts}]}}).containers
        fixes = list(round_amounts(container, GPU))
        assert all(len(fix.paths) == 2 for fix in fixes)
        return [fix.value for fix in fixes]

    assert values("1500m", "$GPUS") == ["2", "1"]
    assert values("0.5", "3") == ["1", "3"]
    assert values("-1", "1e999") == []


def test_values_are_written_before_one_is_left_out() -> None:
    """The first few of many; None is no value."""
    path = ("metadata", "annotations", "a")
    assert [(fix.kind, fix.value) for fix in write_or_leave_out(path, "x", None)] == [("write", "x"), ("unwrite", None)]
    values = [fix.value for fix in choose_label("zone", map(str, range(100)))]
    assert values == [*map(str, range(MOST_VALUES)), None]


def test_one_side_is_written_as_the_other() -> None:
    """The limit as request first; a side without an amount is no model."""
    resources = ("spec", "containers", 0, "resources")
    assert [(fix.paths[0][-2], fix.value) for fix in equalize(resources, GPU, limit="2", request="1")] == [
        ("requests", "2"),
        ("limits", "1"),
    ]
    assert [fix.value for fix in equalize(resources, GPU, limit=None, request="1")] == ["1"]
