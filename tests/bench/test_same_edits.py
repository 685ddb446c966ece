"""The check that all candidates do the same work."""

from __future__ import annotations

import base64
from typing import Any

import orjson
import pytest

from bench.harness.same_edits import APPLIED, difference, patched
from tests.support.machine import BenchError

POD: dict[str, Any] = {"metadata": {"annotations": {"a": "b"}}, "spec": {"containers": [{"name": "c", "resources": {}}]}}
BODY = orjson.dumps({"request": {"object": POD}})


def answer(*operations: dict[str, Any]) -> bytes:
    """An allowed review with a patch."""
    return orjson.dumps({"response": {"allowed": True, "patch": base64.b64encode(orjson.dumps(operations)).decode()}})


def add(path: str, value: object) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}


NOTE = add("/metadata/annotations/berth.dev~1applied", "whatever")


def test_what_typed_structs_add_is_no_difference() -> None:
    """Nulls and empty maps mean nothing to Kubernetes, nor does the wording of the annotation."""
    bare = patched(BODY, answer(add("/metadata/annotations/berth.dev~1applied", "other words")))
    typed = patched(BODY, answer(NOTE, add("/status", {}), add("/metadata/creationTimestamp", None)))
    assert bare == typed
    assert bare["metadata"]["annotations"] == {"a": "b", APPLIED: "..."}


def test_a_missing_edit_is_a_difference_with_its_place() -> None:
    """A handler that does less is not compared with."""
    ours = patched(BODY, answer(NOTE, add("/spec/terminationGracePeriodSeconds", 1800)))
    theirs = patched(BODY, answer(NOTE))
    assert difference(ours, theirs) == str({"op": "add", "path": "/spec/terminationGracePeriodSeconds", "value": 1800})
    assert difference(ours, ours) == ""


def test_a_denial_is_an_error() -> None:
    """Denying is cheap: a load in which pods are denied measures something else."""
    with pytest.raises(BenchError, match="was denied: no"):
        patched(BODY, orjson.dumps({"response": {"allowed": False, "status": {"message": "no"}}}))
