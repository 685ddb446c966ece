"""The pod view: what it reads, and what it says of a pod that is not shaped like one."""

from __future__ import annotations

from typing import Any

import pytest

from policies.pods.interval import ANY_NUMBER, NONE, CountInterval
from policies.pods.view import Pod, PodError, is_requested
from policies.verdict import dotted


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


def test_paths_are_written_as_people_type_them() -> None:
    """Dots and slashes in a key are quoted."""
    assert (
        dotted(("spec", "containers", 0, "resources", "limits", "nvidia.com/gpu"))
        == 'spec.containers[0].resources.limits["nvidia.com/gpu"]'
    )
