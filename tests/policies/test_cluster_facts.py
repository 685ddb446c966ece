"""Facts from dumped objects: what is read of each kind, and that nothing malformed stops the others."""

from __future__ import annotations

from typing import Any

import pytest

from policies.cluster_facts import ClusterFacts


def read(*objects: dict[str, Any]) -> ClusterFacts:
    return ClusterFacts.from_objects(objects)


def thing(kind: str, name: str = "x", spec: Any = None, **metadata: Any) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}


def test_labels_of_namespaces_and_nodes() -> None:
    """As text, whatever YAML made of them."""
    facts = read(
        thing("Namespace", "ml", labels={"team": "a", "number": 1}), thing("Node", "n", labels={"zone": "b"}), thing("Node", "bare")
    )
    assert facts.namespaces == {"ml": {"team": "a", "number": "1"}}
    assert facts.nodes == {"n": {"zone": "b"}, "bare": {}}


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
        ([{"cel": {"expression": "true"}}, "?"], ""),
        (None, ""),
    ],
    ids=str,
)
def test_a_device_class_names_its_driver(selectors: object, driver: str) -> None:
    """By the CEL that published classes use; "" where it names none."""
    assert read(thing("DeviceClass", spec={"selectors": selectors})).device_classes == {"x": driver}


@pytest.mark.parametrize(
    ("request_", "claim"),
    [
        ({"exactly": {"deviceClassName": "gpu", "count": 2}}, ("gpu", 2)),
        ({"deviceClassName": "gpu"}, ("gpu", 1)),
        ({"exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}, ("gpu", 0)),
        ({"exactly": {"deviceClassName": "gpu", "count": "two"}}, ("gpu", 0)),
        ({"firstAvailable": [{"deviceClassName": "a", "count": 3}, {"deviceClassName": "b"}]}, ("a", 3)),
        ({"firstAvailable": []}, ("", 1)),
    ],
    ids=str,
)
def test_what_a_claim_asks_for(request_: dict[str, Any], claim: tuple[str, int]) -> None:
    """v1 and v1beta1; 0 stands for what can't be counted."""
    assert read(thing("ResourceClaim", namespace="ml", spec={"devices": {"requests": [request_, "?"]}})).claims == {
        ("ResourceClaim", "ml", "x"): (claim,)
    }
    template = thing("ResourceClaimTemplate", spec={"spec": {"devices": {"requests": [request_]}}})
    assert read(template).claims == {("ResourceClaimTemplate", "default", "x"): (claim,)}
