"""What is read of a pod, and what keeps it off a node. That all of it is as kube-scheduler reads it is shown in
tests/e2e/scheduling."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kube.node import Node, Occupant, nodes
from kube.pod import DEFAULT_SCHEDULER
from kube.requests import HostPort
from kube.scheduling import Blocker, of_node, read_wants, wants
from tests.support.generators.strategies import randoms
from tests.support.scheduling import random_places

KEYS = st.sampled_from(
    [
        "spec",
        "containers",
        "initContainers",
        "resources",
        "requests",
        "limits",
        "ports",
        "hostPort",
        "nodeSelector",
        "affinity",
        "nodeAffinity",
        "requiredDuringSchedulingIgnoredDuringExecution",
        "nodeSelectorTerms",
        "matchExpressions",
        "tolerations",
        "topologySpreadConstraints",
        "volumes",
        "overhead",
    ]
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(KEYS, ANYTHING))
def test_no_content_makes_it_raise(pod: dict[str, Any]) -> None:
    """A pod need not have passed the API server."""
    assert wants({"spec": pod}).scheduler == DEFAULT_SCHEDULER


def test_expressions_know_where_they_stand() -> None:
    """So that a patch can change them."""
    terms = [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["x"]}]}, {"matchFields": [{"key": "metadata.name"}]}, {}]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    found = wants({"spec": {"nodeSelector": {"zone": "b"}, "affinity": affinity}})
    assert [(one.key, one.operator, one.values, one.path[-1]) for one in found.selector] == [("zone", "In", ("b",), "zone")]
    assert found.terms is not None
    assert [term.empty for term in found.terms] == [False, False, True]
    assert found.terms[0].labels[0].path[-3:] == (0, "matchExpressions", 0)


def test_what_other_filters_read_is_named() -> None:
    """They are not judged; preferences are nobody's reason."""
    spec = {
        "affinity": {
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]},
            "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{}]},
        },
        "topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway"}],
        "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "persistentVolumeClaim": {"claimName": "c"}}],
        "schedulingGates": [{"name": "g"}],
    }
    assert wants({"spec": spec}).unjudged == ("podAntiAffinity", "volumes", "schedulingGates")
    assert wants({"spec": {"topologySpreadConstraints": [{"maxSkew": 1}], "resourceClaims": [{"name": "c"}]}}).unjudged == (
        "topologySpreadConstraints",
        "resourceClaims",
    )


def _of(pod: dict[str, Any], value: dict[str, Any], **more: Any) -> list[tuple[str, str, bool]]:
    return [(one.kind, one.key, one.passing) for one in _found(pod, value, **more)]


def _found(pod: dict[str, Any], value: dict[str, Any], **more: Any) -> tuple[Blocker, ...]:
    (node,) = nodes([value], ())
    return of_node(read_wants({"spec": pod}), node, **more)


GPU = "nvidia.com/gpu"
PLACE: dict[str, Any] = {
    "metadata": {"name": "n", "labels": {"zone": "a"}},
    "spec": {"taints": [{"key": GPU, "effect": "NoSchedule"}, {"key": "soft", "effect": "PreferNoSchedule"}]},
    "status": {"allocatable": {GPU: "2", "pods": 5}, "capacity": {GPU: "8", "pods": 5}},
}


def _asks(count: int, **spec: Any) -> dict[str, Any]:
    return {"containers": [{"resources": {"limits": {GPU: count}}}], **spec}


def test_each_reason_is_named_once() -> None:
    """In the order of the filters, each with its place in the pod."""
    pod = _asks(9, nodeSelector={"zone": "b"}, nodeName="other")
    assert _of(pod, PLACE) == [("name", "metadata.name", False), ("taint", GPU, False), ("label", "zone", False), ("resource", GPU, False)]
    taint, label, resource = _found(_asks(9, nodeSelector={"zone": "b"}), PLACE)
    assert (taint.operator, taint.path) == ("NoSchedule", ("spec", "tolerations"))
    assert (label.values, label.found, label.path) == (("b",), "a", ("spec", "nodeSelector", "zone"))
    assert (resource.need, resource.have, resource.path[-1]) == (9, 2, GPU)


def test_devices_that_are_broken_may_come_back() -> None:
    """They are in the capacity, and not allocatable."""
    assert _of(_asks(8, tolerations=[{"operator": "Exists"}]), PLACE) == [("resource", GPU, True)]


def test_the_nearest_of_the_terms_is_the_reason() -> None:
    """Any of them would do, so the one with the fewest reasons is shown."""
    terms: list[dict[str, Any]] = [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}, {"key": "x", "operator": "Exists"}]},
        {"matchExpressions": [{"key": "zone", "operator": "Exists"}, {"key": "y", "operator": "Exists"}]},
        {},
    ]
    pod: dict[str, Any] = {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}}
    plain = {**PLACE, "spec": {}}
    assert _of(pod, plain) == [("label", "y", False)]
    terms[1]["matchExpressions"].pop()
    assert _of(pod, plain) == []
    terms[:2] = []
    assert _of(pod, plain) == [("label", "", False)]


def test_a_cordoned_node_is_one_reason() -> None:
    """Its taint says the same again, and a pod may tolerate it."""
    taints = [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]
    cordoned = {**PLACE, "spec": {"unschedulable": True, "taints": taints}}
    assert _of({}, cordoned) == [("unschedulable", "", True)]
    assert _of({"tolerations": [{"operator": "Exists"}]}, cordoned) == []


def test_a_device_class_may_offer_what_no_node_lists() -> None:
    """Such a resource is left to the allocation of devices."""
    asks = {"containers": [{"resources": {"limits": {"example.com/gpu": 1}}}]}
    plain = {**PLACE, "spec": {}}
    assert _of(asks, plain) == [("resource", "example.com/gpu", False)]
    assert _of(asks, plain, delegated=frozenset({"example.com/gpu"})) == []


@given(randoms())
def test_asking_less_never_adds_a_reason(random: Any) -> None:
    """Without its selector, its affinity, its ports or its requests, and with a toleration more, a pod has the same reasons or fewer."""
    (node,) = nodes([random_places.node(random, "n")], ())
    pod = random_places.pod(random, "p", ["n", "m"])["spec"]
    before = _kinds(pod, node)
    for less in (
        {**pod, "nodeSelector": {}},
        {key: value for key, value in pod.items() if key != "affinity"},
        {**pod, "tolerations": [*pod["tolerations"], {"operator": "Exists"}]},
        {**pod, "containers": [{}], "initContainers": [], "resources": {}},
    ):
        assert _kinds(less, node) <= before


def _kinds(spec: dict[str, Any], node: Node) -> set[tuple[str, str]]:
    return {(one.kind, one.key) for one in of_node(read_wants({"spec": spec}), node)}


def test_names_ports_and_what_is_not_free() -> None:
    """A field that names another node, a port that is taken, devices that others hold."""
    (node,) = nodes([{**PLACE, "spec": {}}], [Occupant("n", {GPU: 2}, (HostPort("0.0.0.0", "TCP", 80),))])
    fields = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["m"]}]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": fields}}
    pod = {"containers": [{"resources": {"limits": {GPU: 1}}, "ports": [{"hostPort": 80}]}], "affinity": affinity}
    assert [(one.kind, one.passing) for one in of_node(read_wants({"spec": pod}), node)] == [
        ("name", False),
        ("ports", True),
        ("capacity", True),
    ]
