"""The one swap: what decides from now on, what is forgotten with it, and what is logged."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from policies.state.objects import Change, Key
from policies.state.updater import Options, Update, Updater
from policies.verdict import Holding
from server.limits import Limits
from telemetry.metrics import Metrics
from tests.support.cases.golden import catalog_with
from webhook.admission.app import AdmissionState
from webhook.reload import activation
from webhook.reload.reload_results import ReloadResults

POLICY: dict[Key, Change] = {("ClusterGPUPolicy", "", "one"): {"metadata": {"name": "one"}, "spec": {"mode": "Enforce"}}}
OWN: dict[Key, Change] = {("GPUPolicy", "ml", "own"): {"metadata": {"name": "own"}, "spec": {"mode": "Enforce"}}}
TEMPLATE: dict[Key, Change] = {("GPUNodeTemplate", "", "t"): {"metadata": {"name": "t"}, "spec": {"labels": {"a": "b"}}}}
NAMESPACE: dict[Key, Change] = {("Namespace", "", "ml"): {"metadata": {"name": "ml", "labels": {"team": "x"}}}}
CLASS: dict[Key, Change] = {("DeviceClass", "", "c"): {"metadata": {"name": "c"}, "spec": {"extendedResourceName": "a.b/c"}}}


def results() -> ReloadResults:
    return ReloadResults(admission=AdmissionState(limits=Limits(), metrics=Metrics("0")))


def updater() -> Updater:
    return Updater(catalog_with(), Options(platforms=("gke",)))


def activated(it: ReloadResults, update: Update) -> None:
    asyncio.run(activation.activate(it, update))


@pytest.mark.parametrize(
    ("change", "holds"),
    [(OWN, True), (NAMESPACE, True), (TEMPLATE, False), (CLASS, False)],
    ids=["a policy", "a namespace", "a template", "a DeviceClass"],
)
def test_decisions_are_dropped_where_they_may_not_hold(change: dict[Key, Change], *, holds: bool) -> None:
    """What rests on the policies alone is found by them; a new template or fact gives the replica a new cache."""
    it, following = results(), updater()
    activated(it, following.apply(POLICY))
    before, snapshot = it.admission.decisions, it.admission.snapshot
    activated(it, following.apply(change))
    assert it.admission.snapshot is not snapshot
    assert (it.admission.decisions is before) is holds


def test_a_namespace_that_is_gone_takes_its_series_with_it() -> None:
    """Of facts alone too: policies may stay the same for months."""
    it, following = results(), updater()
    activated(it, following.apply({**POLICY, **NAMESPACE}))
    assert it.admission.snapshot is not None
    it.admission.metrics.devices.count(Holding((("T4", 1.0),), 0.5), it.admission.snapshot.facts_for("ml"))
    assert b'resource_namespace="ml"' in it.admission.metrics.exposition("")[0]
    activated(it, following.apply({("Namespace", "", "ml"): None}))
    assert b'resource_namespace="ml"' not in it.admission.metrics.exposition("")[0]


def test_an_object_that_is_denied_is_known_though_nothing_else_is_decided() -> None:
    """``/policies`` and the metrics tell of it, and the same snapshot goes on."""
    it, following = results(), updater()
    activated(it, following.apply(POLICY))
    snapshot = it.admission.snapshot
    activated(it, following.apply({("GPUPolicy", "ml", "own"): {"metadata": {"name": "own"}, "spec": {"mode": "Enforec"}}}))
    assert it.admission.snapshot is snapshot
    assert [key[2] for key, entry in it.entries.items() if entry.understood.errors] == ["own"]


def test_the_log_tells_of_policies_and_not_of_facts(capsys: pytest.CaptureFixture[str]) -> None:
    """One line for each change of policies, with ids; none where a namespace has other labels or nothing has changed."""
    it, following = results(), updater()
    for change in (POLICY, NAMESPACE, NAMESPACE, OWN, dict.fromkeys(POLICY)):
        activated(it, following.apply(change))
    lines: list[dict[str, Any]] = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(line["event"], line["policies"], line["added"], line["removed"]) for line in lines] == [
        ("policies_loaded", 1, ["ClusterGPUPolicy/one"], []),
        ("policies_loaded", 2, ["GPUPolicy/ml/own"], []),
        ("policies_loaded", 1, [], ["ClusterGPUPolicy/one"]),
    ]
    assert {(line["maxMode"], tuple(line["platforms"])) for line in lines} == {("Enforce", ("gke",))}


def test_a_set_of_files_that_was_read_is_told_though_it_is_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    """Who writes a file looks for the line that says that it was read, and a set that was rejected before is in force again."""
    it, following = results(), updater()
    activated(it, following.apply(POLICY))
    it.rejected_at = 1
    asyncio.run(activation.activate_update(it, following.apply({}), ["a.yaml: odd"]))
    first, warning, second = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert (warning["event"], warning["text"]) == ("policies_warning", "a.yaml: odd")
    assert (second["policies"], second["added"], it.rejected_at) == (first["policies"], [], 0)
