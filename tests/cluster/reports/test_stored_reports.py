"""What is remembered of a stored report: whether it says what Berth would write, and which causes it names."""

from __future__ import annotations

import asyncio
from typing import Any

from analysis.audit.workload_report import OPEN_REPORTS, POLICY_REPORTS
from cluster.reports.stored_reports import FORMS, StoredReports, as_stored, causes, digest
from tests.support.cluster.collecting_store import at_once

REPORT: dict[str, Any] = {
    "apiVersion": OPEN_REPORTS,
    "kind": "Report",
    "metadata": {"name": "r", "namespace": "n", "labels": {"app.kubernetes.io/managed-by": "berth"}},
    "source": "berth",
    "scope": {"kind": "Job", "name": "j"},
    "summary": {"fail": 1, "warn": 0},
    "results": [{"policy": "ClusterGPUPolicy/few", "properties": {"finding": "would-deny", "codes": "BERTH-111"}}, "odd", {}],
}


def stored(**changes: Any) -> dict[str, Any]:
    """As the API server has it."""
    of_server = {"uid": "u", "resourceVersion": "7", "generation": 2, "managedFields": [{}], "creationTimestamp": "now"}
    return {**REPORT, **changes, "metadata": {**REPORT["metadata"], **of_server, **changes.get("metadata", {})}}


def test_what_the_api_server_adds_is_no_difference() -> None:
    """Nor is the order of fields; a field that somebody changed is."""
    assert digest(stored()) == digest(dict(reversed(REPORT.items())))
    for other in (
        stored(summary={"fail": 2}),
        stored(results=[]),
        stored(metadata={"labels": {}}),
        stored(scope={"kind": "Job", "name": "k"}),
    ):
        assert digest(other) != digest(REPORT)


def test_causes_are_read_of_whatever_is_stored() -> None:
    """A report that others wrote may hold anything."""
    assert causes(REPORT) == {("ClusterGPUPolicy/few", "would-deny", "BERTH-111"), ("", "", "")}
    assert causes({"results": {}}) == causes({}) == frozenset()


def test_a_change_is_told_once() -> None:
    """A list tells what differs from what was known, ends included."""
    filled = asyncio.Event()
    store, form = StoredReports(filled), FORMS[0]
    api_version = form.api_version(form.versions[0])
    one, other = (form.trim(stored(metadata={"name": name}), api_version, form.kind) for name in ("one", "other"))
    at_once(store.replace(form.kind, [one, other]))
    assert (store.changed(), store.changed(), filled.is_set()) == ({("n", "one"), ("n", "other")}, set(), True)
    store.put(form.kind, one)
    assert store.changed() == set()
    at_once(store.replace(form.kind, [one]))
    store.remove(form.kind, other)
    assert store.changed() == {("n", "other")}
    assert store.reports == {("n", "one"): as_stored(REPORT)}


def test_only_our_own_reports_are_followed() -> None:
    """By label: those of other engines are often many, and large."""
    assert [form.selectors for form in FORMS] == [(("labelSelector", "app.kubernetes.io/managed-by=berth"),)] * 2
    assert [form.api_version(form.versions[0]) for form in FORMS] == [OPEN_REPORTS, POLICY_REPORTS]
