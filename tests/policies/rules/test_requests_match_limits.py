"""Requests match limits: the sentence stays short whatever the names."""

from __future__ import annotations

from typing import Any

import pytest

from policies.engine import evaluate
from policies.request import Request
from policies.snapshot import build
from policies.verdict import Violation
from tests import golden

CATALOG = golden.catalog_with()
POLICY = {
    "kind": "ClusterGPUPolicy",
    "metadata": {"name": "x"},
    "spec": {"mode": "Enforce", "require": {"requestsEqualLimits": ["accelerators"]}},
}
FACTS = build(golden.policies_of([POLICY], CATALOG), CATALOG).facts_for("ml")


def violations(name: str, container: str, limit: Any, request: Any) -> tuple[Violation, ...]:
    pod = {"spec": {"containers": [{"name": container, "resources": {"limits": {name: limit}, "requests": {name: request}}}]}}
    return evaluate(Request(namespace="ml", pod=pod), FACTS).violations


@pytest.mark.parametrize("container", ["c", "c" * 40])
@pytest.mark.parametrize("name", ["nvidia.com/gpu", "nvidia.com/mig-1g.10gb.shared", "deviceclass.resource.kubernetes.io/gpu.nvidia.com"])
@pytest.mark.parametrize(("limit", "request_"), [("2", "1"), ("$" * 100, "1"), ("1", None)], ids=["mismatch", "unreadable", "null"])
def test_the_fix_is_within_the_first_200_characters(name: str, container: str, limit: str, request_: object) -> None:
    """Long resource names are not said twice."""
    for violation in violations(name, container, limit, request_):
        assert len(f"{violation.code}: {violation.fact}; {violation.fix}.") <= 200


def test_a_null_amount_is_no_number_of_devices() -> None:
    """It is neither zero nor absent."""
    (violation,) = violations("nvidia.com/gpu", "c", 1, None)
    assert violation.code == "BERTH-102"
