"""Runtimes that templates rest on: found by whoever names them, in a bounded size."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from cluster.reports import bases
from cluster.reports.bases import Bases
from tests.support.cluster.collecting_store import at_once

KINDS = (("trainer.kubeflow.org", "ClusterTrainingRuntime"), ("trainer.kubeflow.org", "TrainingRuntime"))
EVERYWHERE, SOMEWHERE = (f"{kind}.{group}" for group, kind in KINDS)


def one(name: str, value: Any, namespace: str = "") -> dict[str, Any]:
    return {"metadata": {"name": name, **({"namespace": namespace} if namespace else {})}, "base": orjson.dumps(value)}


def test_an_object_is_found_by_kind_namespace_and_name() -> None:
    """Of several kinds the first that has it; what is in another namespace is not."""
    found = Bases(asyncio.Event())
    at_once(found.replace(EVERYWHERE, [one("torch", 1)]))
    at_once(found.replace(SOMEWHERE, [one("torch", 2, "a"), one("mine", 3, "a")]))
    wanted = [(KINDS, "a", "torch"), (KINDS[1:], "a", "torch"), (KINDS, "b", "torch"), (KINDS, "a", "mine"), (KINDS, "b", "mine")]
    documents = [found.find(*asked) for asked in wanted]
    assert [document and document.value for document in documents] == [1, 2, 1, 3, None]
    at_once(found.replace(EVERYWHERE, []))
    found.remove(SOMEWHERE, one("mine", 3, "a"))
    assert [found.find(*asked) is None for asked in wanted] == [False, False, True, True, True]


def test_only_a_change_is_told() -> None:
    """Each costs a list of all workloads that rest on such objects."""
    changed = asyncio.Event()
    found = Bases(changed)
    for value, told in ((1, True), (1, False), (2, True)):
        changed.clear()
        found.put(EVERYWHERE, one("torch", value))
        assert changed.is_set() == told
    changed.clear()
    at_once(found.replace(EVERYWHERE, [one("torch", 2)]))
    found.put(EVERYWHERE, {**one("large", 0), "base": None})
    assert not changed.is_set()


def test_all_of_them_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is past it is not found; what goes makes room."""
    monkeypatch.setattr(bases, "MOST", 10)
    found = Bases(asyncio.Event())
    at_once(found.replace(EVERYWHERE, [one("a", "123"), one("b", "123"), one("c", "123")]))
    assert [found.find(KINDS, "n", name) is not None for name in "abc"] == [True, True, False]
    found.put(EVERYWHERE, one("a", ""))
    found.put(EVERYWHERE, one("c", "123"))
    assert [found.find(KINDS, "n", name) is not None for name in "abc"] == [True, True, False]
    found.remove(EVERYWHERE, one("b", "123"))
    found.put(EVERYWHERE, one("c", "123"))
    assert found.find(KINDS, "n", "c") is not None
