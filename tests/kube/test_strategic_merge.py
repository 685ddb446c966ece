"""One pod's spec over another, as Kubernetes merges them."""

from __future__ import annotations

from typing import Any

import pytest

from kube.strategic_merge import merge_strategic

UNDER: dict[str, Any] = {
    "nodeSelector": {"a": "1", "b": "2"},
    "tolerations": [{"key": "x"}],
    "containers": [{"name": "main", "image": "i", "resources": {"limits": {"cpu": 1, "nvidia.com/gpu": 1}}}, {"name": "side"}],
}


@pytest.mark.parametrize(
    ("over", "field", "wanted"),
    [
        ({"nodeSelector": {"b": "3", "c": "4"}}, "nodeSelector", {"a": "1", "b": "3", "c": "4"}),
        ({"nodeSelector": {"a": None}}, "nodeSelector", {"b": "2"}),
        ({"tolerations": [{"key": "y"}]}, "tolerations", [{"key": "y"}]),
        ({"tolerations": None}, "tolerations", None),
        ({"containers": [{"name": "new"}]}, "containers", [*UNDER["containers"], {"name": "new"}]),
        ({"schedulerName": "kai"}, "schedulerName", "kai"),
    ],
    ids=str,
)
def test_maps_merge_and_lists_are_replaced(over: dict[str, Any], field: str, wanted: Any) -> None:
    """All lists but those that have a key to merge by; null removes."""
    assert merge_strategic(UNDER, over).get(field) == wanted


def test_containers_merge_by_name() -> None:
    """Their resources name by name, in their places; what was given stays as it was."""
    found = merge_strategic(UNDER, {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": 2}}}]})
    assert found["containers"][0] == {"name": "main", "image": "i", "resources": {"limits": {"cpu": 1, "nvidia.com/gpu": 2}}}
    assert found["containers"][1] is UNDER["containers"][1]
    assert UNDER["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == 1


@pytest.mark.parametrize("containers", ["x", [1], [{"image": "i"}], {"name": 1}])
def test_a_list_without_names_is_no_patch(containers: Any) -> None:
    """Kubernetes denies it too."""
    with pytest.raises(ValueError, match="containers must be a list of maps, each with its name"):
        merge_strategic(UNDER, {"containers": containers})
