"""Facts from dumped objects: what is read of each kind, and that nothing malformed stops the others."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from random import Random
from typing import Any

import pytest

from kube.namespace_limits.limit_range import LimitRange, limit_range_refusals, with_defaults
from kube.namespace_limits.resource_quota import ResourceQuota, quota_refusals
from kube.taints import Taint
from policies.facts import cluster_facts as facts
from policies.facts.admission_queues import ClusterQueue, Flavor, LocalQueue
from policies.facts.cluster_facts import KINDS, NAMESPACE_LIMITS, ClusterFacts, FactEntry, NodePool
from policies.facts.device_requests import DeviceClass, RequestChoice
from policies.facts.offered_devices import OfferedSlice, Offering, Stack
from policies.facts.places import NodePlace
from tests.support.counts import count


def read(*objects: dict[str, Any]) -> ClusterFacts:
    return ClusterFacts.from_objects(objects)


def thing(kind: str, name: str = "x", spec: Any = None, **metadata: Any) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}


def test_labels_of_namespaces_and_nodes() -> None:
    """As text, whatever YAML made of them."""
    found = read(
        thing("Namespace", "ml", labels={"team": "a", "number": 1}), thing("Node", "n", labels={"zone": "b"}), thing("Node", "bare")
    )
    assert found.namespaces == {"ml": {"team": "a", "number": "1"}}
    assert found.nodes == {"n": {"zone": "b"}, "bare": {}}


def test_other_kinds_are_passed_over() -> None:
    """A dump of everything may be given."""
    assert read(thing("ConfigMap"), {}, {"kind": None}) == ClusterFacts()


@pytest.mark.parametrize(("text", "seconds"), [("48h", 172800), (None, None), ("soon", None), (30, None)], ids=repr)
def test_a_nodepools_own_grace(text: object, seconds: int | None) -> None:
    """In seconds; None where it has none."""
    pool = thing("NodePool", spec={"template": {"spec": {"terminationGracePeriod": text}}})
    assert read(pool).nodepool_grace == {"x": seconds}
    assert read(thing("NodePool", spec="?")).nodepool_grace == {"x": None}


@pytest.mark.parametrize(
    ("selectors", "driver"),
    [
        ([{"cel": {"expression": "device.driver == 'gpu.nvidia.com'"}}], "gpu.nvidia.com"),
        ([{"cel": {"expression": 'device.driver=="a" && true'}}, {"cel": {"expression": "device.driver == 'b'"}}], "a"),
        ([{"cel": {"expression": "true && (device.driver == 'a')"}}], "a"),
        ([{"cel": {"expression": "device.driver == 'a' || true"}}], ""),
        ([{"cel": {"expression": "true ? true : device.driver == 'a'"}}], ""),
        ([{"cel": {"expression": "device.driver != 'a'"}}], ""),
        ([{"cel": {"expression": "!(device.driver == 'a')"}}], ""),
        ([{"cel": {"expression": "true"}}, "?"], ""),
        (None, ""),
    ],
    ids=str,
)
def test_a_device_class_names_its_driver(selectors: object, driver: str) -> None:
    """By the CEL that published classes use; "" where it names none, or not it alone."""
    assert read(thing("DeviceClass", spec={"selectors": selectors})).device_classes["x"].driver == driver


@pytest.mark.parametrize(
    ("text", "equal", "plain"),
    [
        ("device.driver == 'a' && device.attributes['a'].type == 'mig'", (("a/type", "mig"),), True),
        ("""(device.attributes["a"].x == "b && device.driver == 'c'")""", (("a/x", "b && device.driver == 'c'"),), True),
        ("device.driver == 'a' && device.attributes['a'].type != 'mig'", (), False),
        ("device.driver == 'a' && 'x' in device.attributes['a']", (), False),
        ("device.driver == 'a'", (), True),
    ],
)
def test_what_else_a_device_class_selects(text: str, equal: tuple[tuple[str, str], ...], *, plain: bool) -> None:
    """The values of attributes, and whether these and a driver are all."""
    found = read(thing("DeviceClass", spec={"selectors": [{"cel": {"expression": text}}]})).device_classes["x"]
    assert (found.equal, found.plain) == (equal, plain)
    assert found.driver in ("a", "")


def test_a_device_class_names_its_extended_resource() -> None:
    """By which pods ask for its devices in place of a claim."""
    assert read(thing("DeviceClass", spec={"extendedResourceName": "example.com/h100"})).device_classes == {
        "x": DeviceClass("", "example.com/h100", (), plain=True)
    }


@pytest.mark.parametrize(
    ("device_class", "driver"), [("named", "gpu.nvidia.com"), ("silent", "silent"), ("gpu.nvidia.com", "gpu.nvidia.com")]
)
def test_the_driver_of_a_class_that_does_not_tell_is_called_as_the_class(device_class: str, driver: str) -> None:
    """As published classes are, so that a class which is not there yet is known all the same."""
    known = {"named": DeviceClass("gpu.nvidia.com"), "silent": DeviceClass()}
    assert ClusterFacts(device_classes=known).driver(device_class) == driver


def test_what_a_node_repels_and_offers() -> None:
    """Its taints, and the resources with a domain that is not Kubernetes' own, of capacity and allocatable."""
    taints = [
        {"key": "team", "value": "a", "effect": "NoSchedule"},
        {"key": "bare", "effect": "NoExecute"},
        {"key": "odd", "effect": "Sometimes"},
        {"effect": "NoSchedule"},
        "?",
    ]
    status = {"capacity": {"cpu": "8", "nvidia.com/gpu": "8", "kubernetes.io/batch": "1"}, "allocatable": {"example.com/x": "0"}}
    found = read({**thing("Node", "n", spec={"taints": taints}), "status": status}, thing("Node", "bare"))
    assert found.taints == {
        "n": (Taint(key="team", value="a", effect="NoSchedule"), Taint(key="bare", value="", effect="NoExecute")),
        "bare": (),
    }
    assert found.resources == {"n": ("example.com/x", "nvidia.com/gpu"), "bare": ()}


@pytest.mark.parametrize(
    ("request_", "claim"),
    [
        ({"exactly": {"deviceClassName": "gpu", "count": 2}}, (RequestChoice("gpu", 2, 2),)),
        ({"deviceClassName": "gpu"}, (RequestChoice("gpu"),)),
        ({"exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}, (RequestChoice("gpu", 1, None),)),
        ({"exactly": {"deviceClassName": "gpu", "allocationMode": "All", "count": 4}}, (RequestChoice("gpu", 1, None),)),
        ({"exactly": {"deviceClassName": "gpu", "count": "two"}}, (RequestChoice("gpu", 1, None),)),
        (
            {"firstAvailable": [{"deviceClassName": "a", "count": 3}, {"deviceClassName": "b"}]},
            (RequestChoice("a", 3, 3), RequestChoice("b")),
        ),
        ({"firstAvailable": []}, (RequestChoice(""),)),
        ({"exactly": {"deviceClassName": "gpu", "adminAccess": True}}, (RequestChoice("gpu", admin=True),)),
        ({"exactly": {"deviceClassName": "gpu", "adminAccess": "true"}}, (RequestChoice("gpu"),)),
        ({"exactly": {"deviceClassName": "gpu", "tolerations": [{"key": "a"}, "?"]}}, (RequestChoice("gpu", tolerations='[{"key":"a"}]'),)),
    ],
    ids=str,
)
def test_what_a_claim_asks_for(request_: dict[str, Any], claim: tuple[RequestChoice, ...]) -> None:
    """v1 and v1beta1; every way to meet it, with an open end where nobody can count."""
    assert read(thing("ResourceClaim", namespace="ml", spec={"devices": {"requests": [request_, "?"]}})).claims == {
        ("ResourceClaim", "ml", "x"): (claim,)
    }
    template = thing("ResourceClaimTemplate", spec={"spec": {"devices": {"requests": [request_]}}})
    assert read(template).claims == {("ResourceClaimTemplate", "default", "x"): (claim,)}


def test_what_a_nodepool_makes() -> None:
    """The group of its node class, of v1 and of v1beta1, and its requirements."""
    requirements = [{"key": "a", "operator": "In", "values": ["1", 2]}, {"key": "b", "operator": "Exists"}, "?", {"values": 3}]
    spec = {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass"}, "requirements": requirements}
    assert read(thing("NodePool", spec={"template": {"spec": spec}})).nodepools == {
        "x": NodePool("karpenter.k8s.aws", (("a", "In", ("1", "2")), ("b", "Exists", ()), ("", "", ())))
    }
    older = {"nodeClassRef": {"apiVersion": "karpenter.k8s.aws/v1beta1", "kind": "EC2NodeClass"}}
    assert read(thing("NodePool", spec={"template": {"spec": older}})).nodepools == {"x": NodePool("karpenter.k8s.aws")}
    assert read(thing("NodePool", spec={"template": {"spec": {"nodeClassRef": "default"}}})).nodepools == {"x": NodePool()}


@pytest.mark.parametrize(
    ("written", "counted"), [(None, 1), (0, 1), (3, 3), (-3, None), (2**63, None), (True, None), (1.0, None)], ids=repr
)
def test_a_claims_count_is_one_that_a_request_can_have(written: object, counted: int | None) -> None:
    """Absent and 0 are 1, as the API server fills in; no count takes from that of another request, and what is none is open."""
    request = {"exactly": {"deviceClassName": "gpu", "count": written}}
    assert list(read(thing("ResourceClaim", spec={"devices": {"requests": [request]}})).claims.values()) == [
        ((RequestChoice("gpu", counted or 1, counted),),)
    ]


def test_an_item_of_a_list_does_not_say_its_kind() -> None:
    """Whoever asked for the list knows it."""
    node = {"metadata": {"name": "n", "labels": {"zone": "b", "rack": "1"}}}
    taints, place = FactEntry("taints", "n", ()), FactEntry("places", "n", NodePlace(labels=(("rack", "1"), ("zone", "b"))))
    shown = FactEntry("resources", "n", ()), FactEntry("offerings", "n", Offering())
    assert facts.read_facts("Node", node) == (FactEntry("nodes", "n", {"zone": "b", "rack": "1"}), taints, place, *shown)
    place = FactEntry("places", "n", NodePlace(labels=(("zone", "b"),)))
    assert facts.read_facts("Node", node, frozenset({"zone", "other"})) == (FactEntry("nodes", "n", {"zone": "b"}), taints, place, *shown)
    assert facts.read_facts("Pod", node) == ()


def test_the_name_alone_says_what_is_gone() -> None:
    """The keys of an object's entries do not depend on what else is in it."""
    for one in (SOME_POOL, thing("Node", "n", labels={"a": "b"}), thing("ResourceClaim", "c", namespace="ml", spec={"devices": {}})):
        bare = {"metadata": {key: value for key, value in one["metadata"].items() if key != "labels"}}
        assert (
            [(e.part, e.key) for e in facts.read_facts(one["kind"], bare)]
            == [(e.part, e.key) for e in facts.read_facts(one["kind"], one)]
            != []
        )


SOME_POOL = thing("NodePool", "p", spec={"template": {"spec": {"terminationGracePeriod": "1h", "nodeClassRef": {"group": "g"}}}})


def test_what_differs_is_copied_and_nothing_else() -> None:
    """One map for one changed object, and the very same facts where nothing changed; those before stay as they were."""
    before = read(SOME_POOL, thing("Node", "a", labels={"x": "1"}), thing("Node", "b"))
    assert before.changed(facts.read_facts("Node", thing("Node", "a", labels={"x": "1"}))) is before
    assert before.changed((), facts.read_facts("Node", thing("Node", "c"))) is before
    after = before.changed(facts.read_facts("Node", thing("Node", "a", labels={"x": "2"})), facts.read_facts("Node", thing("Node", "b")))
    assert after.nodes == {"a": {"x": "2"}}
    assert before.nodes == {"a": {"x": "1"}, "b": {}}
    assert after.nodepools is before.nodepools
    assert after.changed((), facts.read_facts("NodePool", SOME_POOL)) == ClusterFacts(
        nodes={"a": {"x": "2"}},
        taints={"a": ()},
        resources={"a": ()},
        places={"a": NodePlace(labels=(("x", "2"),))},
        offerings={"a": Offering()},
    )


def test_a_list_read_at_once_and_one_by_one_is_the_same() -> None:
    """In any order of different objects."""
    things = [SOME_POOL, thing("Node", "a", labels={"x": "1"}), thing("Namespace", "ml"), thing("DeviceClass", "d")]
    for order in itertools.permutations(things):
        one_by_one = ClusterFacts()
        for one in order:
            one_by_one = one_by_one.changed(facts.read_facts(one["kind"], one))
        assert one_by_one == read(*things)


# --- whatever is in an object ------------------------------------------------------------------------------------------

FIELDS = (
    "metadata", "name", "namespace", "labels", "spec", "template", "terminationGracePeriod", "nodeClassRef", "group", "apiVersion",
    "requirements", "key", "operator", "values", "selectors", "cel", "expression", "devices", "requests", "exactly", "firstAvailable",
    "deviceClassName", "count", "allocationMode", "adminAccess", "tolerations", "taints", "effect", "value", "status", "capacity",
    "allocatable", "extendedResourceName", "driver", "nodeName", "pool", "generation", "basic", "gfd", "enabled", "creationTimestamp",
    "nvidia.com/gpu.present", "nvidia.com/gpu.product", "nvidia.com/gfd.timestamp",
)  # fmt: skip
"""what is read of any kind"""
LEAVES = (None, True, False, 0, 1, -1, 2**200, -(2**63), 0.5, math.nan, "", "x", "30s", "All", "x" * 10_000, "\ud800")


def anything(random: Random, depth: int = 4) -> Any:
    """JSON of any shape, of the fields that are read."""
    if depth == 0 or random.random() < 0.3:
        return random.choice(LEAVES)
    if random.random() < 0.4:
        return [anything(random, depth - 1) for _ in range(random.randrange(4))]
    return {random.choice(FIELDS): anything(random, depth - 1) for _ in range(random.randrange(6))}


EXACT = {"deviceClassName": "gpu", "count": 2, "allocationMode": "ExactCount", "adminAccess": True, "tolerations": [{"key": "a"}]}
DEVICES = {"devices": {"requests": [{"exactly": EXACT}, {"firstAvailable": [EXACT, EXACT]}, EXACT]}}
MADE = {
    "terminationGracePeriod": "30s",
    "nodeClassRef": {"group": "g", "apiVersion": "g/v1"},
    "requirements": [{"key": "a", "operator": "In", "values": ["b"]}],
}
WHOLE = {
    "apiVersion": "nvidia.com/v1",
    "metadata": {
        "name": "x",
        "namespace": "ml",
        "labels": {"a": "b", "labels": "c", "nvidia.com/gpu.present": "true", "nvidia.com/gfd.timestamp": "1700000000"},
        "creationTimestamp": "2026-11-25T08:05:34Z",
    },
    "spec": {
        "template": {"spec": MADE},
        "selectors": [{"cel": {"expression": "device.driver == 'a'"}}],
        **DEVICES,
        "spec": DEVICES,
        "extendedResourceName": "example.com/x",
        "taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}],
        "driver": "gpu.nvidia.com",
        "nodeName": "x",
        "pool": {"name": "x", "generation": 1},
        "gfd": {"enabled": True},
        "hard": {"pods": "0", "requests.cpu": "1", "limits.memory": "1Gi"},
        "scopes": ["BestEffort"],
        "scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["a"]}]},
        "limits": [{"type": "Container", "max": {"cpu": "1"}, "min": {"cpu": "1"}, "maxLimitRequestRatio": {"cpu": "2"}}],
    },
    "status": {"hard": {"pods": "0"}, "used": {"pods": "0"}, "capacity": {"example.com/x": "1"}, "allocatable": {"example.com/x": "1"}},
}
"""of every kind at once"""


def odd(random: Random, value: Any) -> Any:
    """``value`` with something else here and there."""
    if random.random() < 0.08:
        return anything(random, 2)
    if isinstance(value, dict):
        return {random.choice(LEAVES[:8]) if random.random() < 0.03 else key: odd(random, item) for key, item in value.items()}
    return [odd(random, item) for item in value] if isinstance(value, list) else value


def test_nothing_in_an_object_is_an_error() -> None:
    """Lists for maps, nulls, numbers for names: it is read, to values of the right types."""
    read_of: Counter[str] = Counter()
    for seed in range(count(700, 200_000)):
        random = Random(seed)
        for kind in (*KINDS, *NAMESPACE_LIMITS, "Queue"):
            one = odd(random, WHOLE) if random.random() < 0.8 else anything(random)
            for entry in facts.read_facts(kind, one, random.choice((None, frozenset({"a", "labels"})))):
                assert of_its_type(entry), (seed, entry)
                read_of[entry.part] += 1
            ClusterFacts.from_objects([one, {"kind": kind}, 3, None])
    assert len(read_of) == 18, "all but the queues of schedulers, whose API groups are others"


def of_its_type(entry: FactEntry) -> bool:
    if not entry.key or not isinstance(entry.key, str | tuple):
        return False
    match entry.part:
        case "namespaces" | "nodes":
            return all(isinstance(text, str) for pair in entry.value.items() for text in pair)
        case "claims":
            return all(choices and all(a_choice(choice) for choice in choices) for choices in entry.value)
        case "places":
            return isinstance(entry.value, NodePlace) and all(isinstance(number, int) for _, number in entry.value.devices)
        case "pool_specs":
            return isinstance(entry.value, str)
        case "device_classes":
            texts = (*entry.value[:2], *(text for pair in entry.value.equal for text in pair))
            return isinstance(entry.value, DeviceClass) and all(isinstance(text, str) for text in texts)
        case "taints":
            return all(isinstance(one, Taint) and one.key and isinstance(one.value, str) for one in entry.value)
        case "resources":
            return all(isinstance(name, str) for name in entry.value)
        case "nodepools":
            return isinstance(hash(entry.value), int)
        case "nodepool_grace":
            return entry.value is None or isinstance(entry.value, int)
        case "offerings":
            return isinstance(entry.value, Offering) and all(isinstance(name, str) for name in entry.value.resources)
        case "slices":
            return isinstance(entry.value, OfferedSlice) and 0 <= entry.value.devices < 2**63 and isinstance(hash(entry.value), int)
        case "stacks":
            return isinstance(entry.value, Stack) and isinstance(entry.value.created, int | None)
        case "flavors" | "cluster_queues" | "local_queues":
            return isinstance(entry.value, Flavor | ClusterQueue | LocalQueue) and isinstance(hash(entry.value), int)
        case "quotas":
            refused = list(quota_refusals({"containers": [{}]}, [entry.value]))
            return isinstance(entry.value, ResourceQuota) and all(isinstance(one.hard, int) for one in refused)
        case "limit_ranges":
            pod = with_defaults({"spec": {"containers": [{}]}}, [entry.value])
            refused = list(limit_range_refusals(pod["spec"], [entry.value]))
            return isinstance(entry.value, LimitRange) and all(isinstance(one.hard, int) for one in refused)
    raise AssertionError(entry.part)


def a_choice(choice: RequestChoice) -> bool:
    most = choice.least if choice.most is None else choice.most
    whole = type(choice.least) is int and type(most) is int and 1 <= choice.least <= most < 2**63
    fields: list[object] = [choice.device_class, choice.admin, *choice.tolerations]
    return whole and all(isinstance(one, str | bool | dict) for one in fields)


def test_a_number_that_python_will_not_write() -> None:
    """Of more than 4,300 digits: a name, a label, a count."""
    huge = 10**5000
    request = {"deviceClassName": huge, "count": huge}
    assert read(thing("Node", "n", labels={"a": huge, huge: "b"}), {"kind": "Node", "metadata": {"name": huge}}).nodes == {
        "n": {"a": "", "": "b"}
    }
    assert list(read(thing("ResourceClaim", spec={"devices": {"requests": [request]}})).claims.values()) == [
        ((RequestChoice("", 1, None),),)
    ]


def test_nested_as_deep_as_a_parser_allows() -> None:
    """Nothing here goes down with it."""
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]
    for kind in KINDS:
        assert read(thing(kind, spec=deep, labels=deep)) == read(thing(kind))
        assert read({"kind": deep, "metadata": {"name": deep}}, thing(kind, deep)) == ClusterFacts()
