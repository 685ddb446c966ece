"""Where parts of pods stand in a manifest: for messages and for edits."""

from __future__ import annotations

from typing import Any

from kube.tree import Path
from policies.verdict import Edit
from policies.workloads.parts import PodPart, at, in_pod, moved, own, placed, template, unshown, write_parts

PARTS = (
    PodPart(("spec", "tolerations"), ("spec", "tolerations"), ("spec", "items", 0, "tolerations")),
    PodPart(("spec", "containers", 0), ("spec", "items", 0, "box"), ("spec", "items", 0, "box")),
    PodPart(("spec", "containers", 0, "resources"), ("spec", "items", 0, "amounts"), ("spec", "items", 0, "amounts")),
    PodPart(("spec", "containers", 1, "resources", "limits", "nvidia.com/gpu"), ("spec", "gpus"), None),
    PodPart(("spec", "nodeSelector"), ("spec", "patch"), None, within=True),
)


def test_the_narrowest_part_tells_where_it_is() -> None:
    """A container's resources may stand elsewhere than the container."""
    assert at(("spec", "containers", 0, "name"), PARTS) == ("spec", "items", 0, "box", "name")
    assert at(("spec", "containers", 0, "resources", "limits", "cpu"), PARTS) == ("spec", "items", 0, "amounts", "limits", "cpu")
    assert at(("spec", "affinity"), PARTS) is None


def test_an_edit_belongs_where_the_manifest_has_its_own_field() -> None:
    """What several pods share is not where one of them is edited; what is only told has no field."""
    assert own(("spec", "tolerations", "-"), PARTS) == ("spec", "items", 0, "tolerations", "-")
    assert own(("spec", "containers", 1, "resources", "limits", "nvidia.com/gpu"), PARTS) is None
    edits = [Edit(op="add", path=path, rule="r", policies=()) for path in (("spec", "tolerations", "-"), ("spec", "affinity"))]
    assert [edit.path for edit in unshown(edits, PARTS)] == [("spec", "affinity")]


def test_what_stands_at_a_path_of_the_manifest() -> None:
    """Of a template all of it, of other parts what was read there."""
    assert in_pod(("spec", "template", "spec", "nodeName"), template(("spec", "template"))) == (("spec", "nodeName"),)
    assert in_pod(("spec", "items", 0, "box", "image"), PARTS) == (("spec", "containers", 0, "image"),)
    assert in_pod(("spec", "other"), PARTS) == ()


def test_a_path_is_named_as_the_manifest_has_it() -> None:
    """What the manifest lacks stays the pod's; a text is named beside the path."""
    requested: Path = ("spec", "containers", 0, "resources", "requests", "nvidia.com/gpu")
    assert placed(requested, PARTS) == 'spec.items[0].amounts.requests["nvidia.com/gpu"]'
    assert placed(("spec", "affinity"), PARTS) == "spec.affinity"
    assert placed(("spec", "nodeSelector"), PARTS) == "spec.nodeSelector in spec.patch"
    assert placed(("spec", "tolerations", 0), template(("spec", "t"))) == "spec.t.spec.tolerations[0]"


def test_what_became_of_the_pod_is_written_where_it_belongs() -> None:
    """In the part's own field, whole where another one was read; nothing else changes."""
    value: dict[str, Any] = {"spec": {"tolerations": [{"key": "a"}], "items": [{"box": {"image": "i"}, "amounts": {"limits": {"x": 1}}}]}}
    before: dict[str, Any] = {
        "spec": {"tolerations": [{"key": "a"}], "containers": [{"name": "made", "image": "i", "resources": {"limits": {"x": 1}}}]}
    }
    container = {**before["spec"]["containers"][0], "resources": {"limits": {"x": 1}, "requests": {"x": 1}}}
    after = {"spec": {"tolerations": [*before["spec"]["tolerations"], {"key": "b"}], "containers": [container]}}
    shown = write_parts(value, before, after, PARTS)
    assert shown["spec"]["tolerations"] == [{"key": "a"}]
    assert shown["spec"]["items"] == [
        {"box": {"image": "i"}, "amounts": {"limits": {"x": 1}, "requests": {"x": 1}}, "tolerations": [{"key": "a"}, {"key": "b"}]}
    ]
    assert write_parts(value, before, before, PARTS) is value


def test_parts_of_an_object_inside_of_another() -> None:
    """Lie behind the path to it."""
    assert moved(template(("spec", "template")), ("a", 0)) == template(("a", 0, "spec", "template"))
    assert moved(PARTS, ("a",))[3].own is None
