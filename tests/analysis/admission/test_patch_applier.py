"""Patches applied by the library: as ours does it, without a change to what was given."""

from __future__ import annotations

import copy
import subprocess
import sys
from typing import Any

import jsonpatch
import pytest

from analysis.admission.patch_applier import apply_patch
from kube import tree as json_tree

POD: dict[str, Any] = {
    "metadata": {"annotations": {"a/b~c": "1"}, "labels": {"l": "1"}},
    "spec": {"tolerations": [{"key": "a"}, {"key": "b"}], "nodeSelector": {"zone": "x"}},
}
PATCH: list[dict[str, Any]] = [
    {"op": "add", "path": "/spec/tolerations/0", "value": {"key": "first"}},
    {"op": "add", "path": "/spec/tolerations/1/value", "value": ["x"]},
    {"op": "add", "path": "/spec/tolerations/1/value/-", "value": "y"},
    {"op": "replace", "path": "/metadata/annotations/a~1b~0c", "value": "2"},
    {"op": "remove", "path": "/spec/tolerations/2"},
    {"op": "add", "path": "/spec/affinity", "value": {"nodeAffinity": {}}},
    {"op": "add", "path": "/spec/affinity/nodeAffinity/x", "value": 1},
]


def test_the_library_and_ours_agree() -> None:
    """Indices that earlier operations shift, escaped keys, and parents that an operation before has made."""
    assert apply_patch(POD, PATCH) == json_tree.apply_patch(POD, PATCH) == jsonpatch.apply_patch(POD, copy.deepcopy(PATCH))


def test_what_was_given_stays_as_it_was() -> None:
    """Neither the tree nor the operations are written to, and what no operation touched is shared."""
    pod, patch = copy.deepcopy(POD), copy.deepcopy(PATCH)
    after = apply_patch(pod, patch)
    assert (pod, patch) == (POD, PATCH)
    assert after["metadata"]["labels"] is pod["metadata"]["labels"]
    assert after["spec"]["nodeSelector"] is pod["spec"]["nodeSelector"]


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "replace", "path": "/spec/terminationGracePeriodSeconds", "value": 1},
        {"op": "remove", "path": "/metadata/annotations/none"},
        {"op": "add", "path": "/spec/affinity/nodeAffinity", "value": {}},
        {"op": "add", "path": "/spec/tolerations/7", "value": {}},
    ],
    ids=["nothing to replace", "nothing to remove", "no parent", "beyond the end"],
)
def test_what_the_api_server_would_deny_is_denied(operation: dict[str, Any]) -> None:
    """A patch that does not fit is a mistake of ours, and is not shown as if it did."""
    with pytest.raises((jsonpatch.JsonPatchException, LookupError)):
        apply_patch(POD, [operation])


def test_the_server_does_not_load_the_library() -> None:
    """It applies no patch, and has no use for the package's memory."""
    code = "import sys, cli.main, cli.serve, webhook.serve, webhook.reload.cluster_watcher; sys.exit('jsonpatch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
