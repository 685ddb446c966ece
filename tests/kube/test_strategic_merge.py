"""One pod's spec over another; that they are merged as Kubernetes merges them is shown in tests/kube/upstream."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kube.strategic_merge import merge_strategic

UNDER: dict[str, Any] = {
    "nodeSelector": {"a": "1", "b": "2"},
    "containers": [{"name": "main", "image": "i", "resources": {"limits": {"cpu": 1, "nvidia.com/gpu": 1}}}, {"name": "side"}],
}


def test_what_is_laid_over_changes_nothing_below() -> None:
    """Items that no patch names are shared."""
    before = copy.deepcopy(UNDER)
    over = {"nodeSelector": {"a": None}, "containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": 2}}}]}
    assert merge_strategic(UNDER, over)["containers"][1] is UNDER["containers"][1]
    assert before == UNDER


@pytest.mark.parametrize("containers", ["x", [1], [{"image": "i"}], {"name": 1}])
def test_a_list_without_names_is_no_patch(containers: Any) -> None:
    """Kubernetes denies it too."""
    with pytest.raises(ValueError, match="containers must be a list of maps, each with its name"):
        merge_strategic(UNDER, {"containers": containers})
