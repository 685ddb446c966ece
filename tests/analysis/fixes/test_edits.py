"""Amounts lowered by as little as will do, and resources renamed."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from analysis.fixes.edits import changed, lower_amount, rename_resource
from kube.requests import requests

GPU = "nvidia.com/gpu"


def _pod(*counts: int, **spec: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"resources": {"limits": {GPU: count, "cpu": count}}} for count in counts], **spec}}


def _after(pod: dict[str, Any], name: str, most: int) -> dict[str, Any] | None:
    edits = lower_amount(pod, name, most)
    return None if edits is None else changed(pod, [edit for place in edits for edit in place])


@given(st.lists(st.integers(1, 9), min_size=1, max_size=3), st.integers(0, 20))
def test_it_fits_afterwards_or_cannot(counts: list[int], most: int) -> None:
    """A device is asked for once at least by each container that asks for any."""
    after = _after(_pod(*counts), GPU, most)
    if len(counts) > most:
        assert after is None
    else:
        assert after is not None
        assert requests(after["spec"]).amounts[GPU] <= most


@given(st.integers(1, 9), st.integers(1, 9))
def test_no_more_is_given_up_than_must_be(count: int, most: int) -> None:
    """One container gets just what there is."""
    after = _after(_pod(count), GPU, most)
    assert after is not None
    assert requests(after["spec"]).amounts[GPU] == min(count, most)


def test_limits_of_what_may_be_overcommitted_stay() -> None:
    """Only the request of CPU falls; of devices both are the same."""
    after = _after(_pod(4), "cpu", 1500)
    assert after is not None
    assert after["spec"]["containers"][0]["resources"] == {"limits": {GPU: 4, "cpu": 4}, "requests": {"cpu": "1500m"}}


def test_a_whole_pod_asks_for_no_less_than_its_containers() -> None:
    """They are lowered with it."""
    pod = _pod(4, resources={"requests": {"cpu": "8"}}, overhead={"cpu": "500m"})
    after = _after(pod, "cpu", 2000)
    assert after is not None
    assert after["spec"]["resources"]["requests"]["cpu"] == "1500m"
    assert after["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "1500m"
    assert requests(after["spec"]).amounts["cpu"] == 2000
    assert lower_amount(pod, "cpu", 400) is None


def test_a_container_that_asks_for_both_names_keeps_the_amounts_of_the_new_one() -> None:
    """Only the old name goes there; another container asks for the new one instead."""
    both = {"limits": {"nvdia.com/gpu": "2", GPU: "1"}, "requests": {"nvdia.com/gpu": "2"}}
    pod = {"spec": {"containers": [{"resources": both}, {"resources": {"limits": {"nvdia.com/gpu": "3"}}}]}}
    after = changed(pod, rename_resource(pod, "nvdia.com/gpu", GPU))
    assert [container["resources"] for container in after["spec"]["containers"]] == [
        {"limits": {GPU: "1"}, "requests": {}},
        {"limits": {GPU: "3"}},
    ]
