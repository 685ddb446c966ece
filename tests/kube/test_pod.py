"""The pod view: what it reads, and what it says of a pod that is not shaped like one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.pod import (
    ANY_NUMBER,
    NONE,
    ONE,
    CountInterval,
    Pod,
    PodError,
    containers_of,
    controlling_owner,
    field_of,
    is_requested,
    of_amounts,
)
from kube.tree import Path


def container(name: str = "c", amount: object = "1", **more: Any) -> dict[str, Any]:
    return {"name": name, "resources": {"limits": {"nvidia.com/gpu": amount}}, **more}


def with_terms(terms: object) -> dict[str, Any]:
    return {"spec": {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}}}


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"spec": []}, "spec: expected a map"),
        ({"metadata": {"labels": "x"}}, "metadata.labels: expected a map"),
        ({"spec": {"containers": {}}}, "spec.containers: expected a list"),
        ({"spec": {"containers": ["x"]}}, "spec.containers[0]: expected a map"),
        ({"spec": {"containers": [{"resources": {"limits": []}}]}}, "spec.containers[0].resources.limits: expected a map"),
        ({"spec": {"nodeName": 1}}, "spec.nodeName: expected a string"),
        ({"spec": {"tolerations": "all"}}, "spec.tolerations: expected a list"),
        (with_terms("x"), "nodeSelectorTerms: expected a list"),
        (with_terms([{"matchExpressions": {}}]), "nodeSelectorTerms[0].matchExpressions: expected a list"),
        (with_terms([{"matchExpressions": [{"key": 1}]}]), "matchExpressions[0].key: expected a string"),
        (with_terms([{"matchFields": [{"key": "a", "operator": "In", "values": [1]}]}]), "values: expected a list of strings"),
        (with_terms([{"matchFields": [{"key": "a", "operator": "In", "values": "x"}]}]), "values: expected a list of strings"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_field_of_the_wrong_type_is_named_by_its_path(raw: dict[str, Any], message: str) -> None:
    """No answer is given on a guess."""
    with pytest.raises(PodError) as caught:
        Pod(raw)
    assert str(caught.value).endswith(message)


@pytest.mark.parametrize(
    "raw", [{}, {"metadata": None, "spec": None}, {"spec": {"containers": None, "tolerations": None, "affinity": None}}]
)
def test_null_and_absent_read_as_empty(raw: dict[str, Any]) -> None:
    """As the API server reads them."""
    pod = Pod(raw)
    assert (pod.containers, pod.tolerations, pod.terms, pod.preferred, pod.claims, pod.grace, pod.pinned_node) == (
        (),
        [],
        [],
        [],
        [],
        None,
        None,
    )


def test_a_malformed_preference_is_named_by_its_path() -> None:
    """Preferred terms are read only when they matter, and just as strictly."""
    pod = Pod({"spec": {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"preference": []}]}}}})
    with pytest.raises(PodError, match=r"preferredDuringSchedulingIgnoredDuringExecution\[0\].preference: expected a map"):
        _ = pod.preferred


def test_the_owner_is_the_controlling_one() -> None:
    """An owner that does not control says nothing about the workload."""
    owners = [{"kind": "ConfigMap", "name": "a"}, {"kind": "Job", "name": "b", "controller": True}]
    assert Pod({"metadata": {"ownerReferences": owners}}).owner["kind"] == "Job"
    assert Pod({"metadata": {"ownerReferences": owners[:1]}}).owner == {}


@pytest.mark.parametrize(("value", "grace"), [(30, 30), (None, None), (True, None), ("30", None)], ids=repr)
def test_grace_is_a_number_or_nothing(value: object, grace: int | None) -> None:
    """A grace of another type is the API server's business."""
    assert Pod({"spec": {"terminationGracePeriodSeconds": value}}).grace == grace


def pin(*names: str) -> dict[str, Any]:
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": list(names)}]}


@pytest.mark.parametrize(
    ("terms", "node"),
    [
        ([pin("a")], "a"),
        ([pin("a"), pin("a")], "a"),
        ([pin("a"), pin("b")], None),
        ([pin("a"), {}], None),
        ([pin("a", "b")], None),
        ([{}], None),
    ],
)
def test_a_pod_is_pinned_where_every_term_names_one_node(terms: list[dict[str, Any]], node: str | None) -> None:
    """One term that does not pin it leaves it free."""
    assert Pod(with_terms(terms)).pinned_node == node


def test_devices_is_the_peak_of_init_containers_and_containers() -> None:
    """An init container runs alone, with the sidecars started before it; containers run with all sidecars."""
    spec = {
        "initContainers": [
            container(amount=1),
            container(amount=2, restartPolicy="Always"),
            container(amount=5),
            container(amount=1, restartPolicy="Always"),
        ],
        "containers": [container(amount="1"), container(amount="2")],
    }
    assert Pod({"spec": spec}).devices("nvidia.com/gpu") == CountInterval(7, 7)
    assert Pod({"spec": spec}).devices("amd.com/gpu") == NONE


def test_what_cannot_be_read_takes_nothing_from_what_can() -> None:
    """The upper end is open, wherever the unreadable amount stands; the lower end is the peak of the others."""
    assert Pod({"spec": {"containers": [container(amount="x")]}}).devices("nvidia.com/gpu") == ANY_NUMBER
    assert Pod({"spec": {"containers": [container(amount=8), container(amount="x")]}}).devices("nvidia.com/gpu") == CountInterval(8, None)
    spec = {"initContainers": [container(amount="x")], "containers": [container(amount=8)]}
    assert Pod({"spec": spec}).devices("nvidia.com/gpu") == CountInterval(8, None)
    assert Pod({"spec": {**spec, "initContainers": [container(amount=9)]}}).devices("nvidia.com/gpu") == CountInterval(9, 9)


def test_claims_by_name_and_by_template() -> None:
    """Kind and name of each."""
    claims = [{"name": "a", "resourceClaimName": "mine"}, {"name": "b", "resourceClaimTemplateName": "gpus"}, {"name": "c"}]
    assert Pod({"spec": {"resourceClaims": claims}}).claims == [
        ("ResourceClaim", "mine"),
        ("ResourceClaimTemplate", "gpus"),
        ("ResourceClaim", ""),
    ]


@pytest.mark.parametrize(
    ("limits", "requests", "yes"), [({}, {}, False), ({"g": 0}, {"g": "0"}, False), ({}, {"g": 1}, True), ({"g": "x"}, {}, True)]
)
def test_zero_is_not_asking_and_what_cannot_be_read_asks(limits: dict[str, Any], requests: dict[str, Any], *, yes: bool) -> None:
    """So that an unreadable amount is judged and not passed over."""
    one = Pod({"spec": {"containers": [{"resources": {"limits": limits, "requests": requests}}]}}).containers[0]
    assert is_requested(one, "g") is yes


COUNTS = st.builds(
    lambda least, more: CountInterval(least, None if more is None else least + more), st.integers(0, 9), st.none() | st.integers(0, 9)
)
BOUNDS = st.none() | st.integers(0, 12)


def numbers(count: CountInterval) -> set[int]:
    """Every number up to 40 that it may be."""
    return set(range(count.least, (40 if count.most is None else count.most) + 1))


@given(COUNTS, COUNTS)
def test_a_sum_and_the_larger_hold_all_that_may_be(first: CountInterval, second: CountInterval) -> None:
    """Whichever numbers the two are; neither end is wider than it must be."""
    assert {a + b for a in numbers(first) for b in numbers(second) if a + b <= 40} == numbers(first + second)
    assert {max(a, b) for a in numbers(first) for b in numbers(second)} == numbers(first | second)


@given(COUNTS, BOUNDS, BOUNDS)
def test_certain_is_every_number_and_possible_is_some(count: CountInterval, least: int | None, most: int | None) -> None:
    """Within bounds of which either may be absent."""
    inside = [(least is None or n >= least) and (most is None or n <= most) for n in numbers(count)]
    assert count.certainly(least, most) is all(inside)
    assert count.possibly(least, most) is any(inside)


def test_nothing_is_certain_of_what_nobody_can_count() -> None:
    """But that it is no less than nothing."""
    assert ANY_NUMBER.certainly(None, None)
    assert ANY_NUMBER.certainly(0, None)
    assert not ANY_NUMBER.certainly(1, None)
    assert not ANY_NUMBER.certainly(None, 10**30)
    assert ANY_NUMBER.possibly(10**30, None)


@pytest.mark.parametrize(
    ("count", "text"), [(CountInterval(8, 8), "8"), (CountInterval(1, 8), "1 to 8"), (CountInterval(8, None), "at least 8")], ids=str
)
def test_a_count_is_said_in_words(count: CountInterval, text: str) -> None:
    """As sentences use it."""
    assert str(count) == text


@pytest.mark.parametrize(
    ("limit", "request_", "count"),
    [
        (None, None, NONE),
        ("8", None, CountInterval(8, 8)),
        (None, 8, CountInterval(8, 8)),
        ("8", "1", CountInterval(8, 8)),
        ("1", "$GPUS", ONE),
        ("$GPUS", "1", ANY_NUMBER),
        ("500m", None, ONE),
        ("1e3", None, CountInterval(1000, 1000)),
        ("-8", None, ANY_NUMBER),
        (True, None, ANY_NUMBER),
        ([], None, ANY_NUMBER),
        ("0", "8", NONE),
    ],
)
def test_devices_are_counted_by_their_limit(limit: Any, request_: Any, count: CountInterval) -> None:
    """Else by their request, rounded up; a negative amount is none that anybody can read."""
    assert of_amounts(limit, request_) == count


@pytest.mark.parametrize(
    ("limit", "request_", "count"),
    [
        ("8", "1", CountInterval(1, 8)),
        ("1", "8", CountInterval(1, 8)),
        ("8", "8", CountInterval(8, 8)),
        ("8", "$GPUS", CountInterval(0, None)),
        ("8", None, CountInterval(8, 8)),
        (None, "8", CountInterval(8, 8)),
        (None, None, NONE),
    ],
)
def test_where_the_two_may_differ_the_number_lies_between_them(limit: Any, request_: Any, count: CountInterval) -> None:
    """As for DRA's extended resources, of which the API server stores both and the scheduler allocates by one."""
    assert of_amounts(limit, request_, both=True) == count


def test_containers_of_a_spec_of_any_shape() -> None:
    """Containers before init containers, each with its path; an ephemeral one takes no resources."""
    spec = {"initContainers": [{"name": "i"}], "containers": [{"name": "c"}, "x"], "ephemeralContainers": [{"name": "e"}]}
    assert list(containers_of(spec)) == [(("spec", "containers", 0), {"name": "c"}), (("spec", "initContainers", 0), {"name": "i"})]
    assert list(containers_of({"containers": {}, "initContainers": None})) == []


def test_the_controlling_owner_is_the_one_that_says_so() -> None:
    """Other owners only keep an object from being collected."""
    job = {"kind": "Job", "controller": True}
    assert controlling_owner({"ownerReferences": [{"kind": "ConfigMap"}, {"kind": "Job", "controller": "true"}, job]}) == job
    assert controlling_owner({"ownerReferences": [{"kind": "ConfigMap"}]}) == controlling_owner({"ownerReferences": 1}) == {}


@pytest.mark.parametrize(
    ("path", "field"),
    [
        (("spec", "tolerations", 0), "tolerations"),
        (("spec", "containers", 0, "resources", "limits", "cpu"), "resources"),
        (("spec", "containers", 0), "containers"),
        (("metadata", "annotations", "a/b"), "a/b"),
        (("metadata", "annotations"), "annotations"),
        (("spec",), "spec"),
    ],
)
def test_the_field_that_a_path_leads_into(path: Path, field: str) -> None:
    """Of a container its own field, of labels and annotations the key."""
    assert field_of(path) == field
