"""Pods of which two objects say something."""

from __future__ import annotations

from typing import Any

from policies.workloads.bases import laid
from policies.workloads.described import Described
from policies.workloads.parts import PodPart, at, own, template

GPUS = {"limits": {"nvidia.com/gpu": 4}}


def base(**spec: Any) -> Described:
    containers = [{"name": "node", "image": "i", "resources": {"limits": {"cpu": 8, "nvidia.com/gpu": 1}}}]
    return Described(at=("spec", "t"), template={"metadata": {"labels": {"a": "1"}}, "spec": {"containers": containers, **spec}}, parts=())


def over(spec: dict[str, Any], *parts: PodPart) -> Described:
    return Described(at=("spec",), template={"metadata": {"labels": {"b": "2"}}, "spec": spec}, parts=parts)


def test_replaced_resources_are_all_that_the_container_has() -> None:
    """As Kubeflow's trainer writes them; the rest of the pod is the runtime's."""
    part = PodPart(("spec", "containers", 0, "resources"), ("spec", "trainer", "resources"), ("spec", "trainer", "resources"))
    found = laid(base(nodeSelector={"n": "1"}), over({"containers": [{"name": "node", "resources": GPUS}]}, part), replaced=True)
    assert found.template["spec"]["containers"] == [{"name": "node", "image": "i", "resources": GPUS}]
    assert found.template["spec"]["nodeSelector"] == {"n": "1"}
    assert found.template["metadata"]["labels"] == {"a": "1", "b": "2"}
    assert at(("spec", "containers", 0, "resources", "limits"), found.parts) == ("spec", "trainer", "resources", "limits")
    assert own(("spec", "containers", 0, "livenessProbe"), found.parts) is None


def test_a_pod_without_that_container_has_no_use_for_them() -> None:
    """A runtime's initializers are other pods."""
    found = laid(base(), over({"containers": [{"name": "other", "resources": GPUS}]}), replaced=True)
    assert [one["name"] for one in found.template["spec"]["containers"]] == ["node"]


def test_merged_resources_are_those_of_both() -> None:
    """As KServe lays a model over its runtime; of that container only resources are edited where the model is."""
    part = PodPart(("spec", "containers", 0), ("spec", "model"), ("spec", "model"))
    found = laid(base(), over({"containers": [{"name": "node", "resources": GPUS}]}, part), replaced=False)
    assert found.template["spec"]["containers"][0]["resources"] == {"limits": {"cpu": 8, "nvidia.com/gpu": 4}}
    assert own(("spec", "containers", 0, "resources", "requests"), found.parts) == ("spec", "model", "resources", "requests")
    assert own(("spec", "containers", 0, "image"), found.parts) is None


def test_a_base_that_is_wrong_is_judged_by_itself() -> None:
    """What is wrong with it is told where it stands."""
    wrong = Described(at=("spec",), template={"spec": {"containers": "x"}}, parts=template(("spec",)))
    assert laid(wrong, over({"containers": []}), replaced=False).template == wrong.template
