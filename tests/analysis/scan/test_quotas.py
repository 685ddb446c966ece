"""Quotas that limit nothing."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.scan import wording
from tests.support.recorded.parts import GPU, node
from tests.support.recorded.scanned import scanned


def quota(hard: dict[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "gpus", "namespace": "ml"}, "spec": {"hard": hard}}


@pytest.mark.parametrize(
    ("hard", "fact", "advice"),
    [
        ({GPU: "1"}, f"has {GPU},", f"write requests.{GPU} instead;"),
        ({f"limits.{GPU}": "1"}, f"has limits.{GPU},", f"write requests.{GPU} instead;"),
        ({"amd.com/gpu": "1", "cpu": "1"}, "has amd.com/gpu,", "write requests.amd.com/gpu instead;"),
        ({GPU: "1", f"requests.{GPU}": "1"}, f"has {GPU},", f"remove {GPU};"),
    ],
)
def test_entries_that_nothing_counts_for_are_found(hard: dict[str, str], fact: str, advice: str) -> None:
    """With the entry that counts, or without one where the quota has it already."""
    (found,) = scanned([node("n", {}, {GPU: 1}), quota(hard)]).of("quota-counts-nothing")
    assert fact in wording.fact(found)
    assert advice in wording.advice(found)
    assert (found.where.namespace, found.where.name) == ("ml", "gpus")


def test_quotas_that_count_are_no_finding() -> None:
    """Of requests, of objects, and of devices of a class."""
    hard = {f"requests.{GPU}": "1", "count/jobs.batch": "1", "gpu.deviceclass.resource.k8s.io/devices": "1", "limits.memory": "1Gi"}
    assert scanned([node("n", {}, {GPU: 1}), quota(hard)]).of("quota-counts-nothing") == []
