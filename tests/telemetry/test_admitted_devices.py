"""Admitted devices as series: what adds up, how many series there can be, and when they go."""

from __future__ import annotations

import json
from dataclasses import replace

from policies.facts.cluster_facts import ClusterFacts
from policies.state.snapshot import Facts, Snapshot
from policies.verdict import Holding
from telemetry.admitted_devices import MOST_NAMESPACES, MOST_OF_ONE, MOST_SERIES, OTHER, AdmittedDevices
from telemetry.metrics import Metrics
from tests.support.calls.counted_metrics import NOW, REVIEWS, library, value
from webhook.admission import handlers
from webhook.admission.decision_cache import empty_decisions

USD, GPUS = "berth_admitted_usd_per_hour_total", "berth_admitted_gpus_total"


def of_namespaces(*names: str) -> Snapshot:
    """The library's, in a cluster with these namespaces."""
    return library().with_facts(ClusterFacts(namespaces={name: {} for name in names}))


def samples(devices: AdmittedDevices) -> dict[tuple[str, ...], float]:
    """(namespace) or (namespace, model) -> sum."""
    labels = ("resource_namespace", "model")
    return {
        tuple(sample.labels[label] for label in labels if label in sample.labels): sample.value
        for family in devices.collect()
        for sample in family.samples
    }


def test_what_is_admitted_adds_up() -> None:
    """By namespace, and by model; a replica that admitted nothing has no series."""
    devices, facts = AdmittedDevices(), of_namespaces("a", "b")
    assert samples(devices) == {}
    devices.count(Holding((("T4", 2.0), ("any", 0.5)), 1.5), facts.facts_for("a"))
    devices.count(Holding((("T4", 1.0),), 0.25), facts.facts_for("a"))
    devices.count(Holding((), 0.0), facts.facts_for("b"))
    assert samples(devices) == {("a",): 1.75, ("a", "T4"): 3.0, ("a", "any"): 0.5, ("b",): 0.0}


def test_a_kept_decision_counts_in_the_namespace_of_each_pod() -> None:
    """The same decision, made once, for pods of two namespaces; a dry run and /mutate count nothing."""
    snapshot, metrics, decisions = of_namespaces("one", "two"), Metrics("x"), empty_decisions()
    metrics.snapshot_swapped(snapshot, NOW)
    review = json.loads((REVIEWS / "pods-create-vllm-server.json").read_text())
    for namespace, phase, dry in (
        ("one", "validate", False),
        ("two", "validate", False),
        ("two", "mutate", False),
        ("two", "validate", True),
    ):
        review["request"].update(namespace=namespace, dryRun=dry)
        assert phase in ("mutate", "validate")
        handlers.handle_review(
            "mutate" if phase == "mutate" else "validate", json.dumps(review).encode(), snapshot, metrics, decisions=decisions
        )
    assert len(decisions) == 3
    assert [value(metrics, GPUS, resource_namespace=name, model="any") for name in ("one", "two")] == [1, 1]
    assert value(metrics, USD, resource_namespace="one") == value(metrics, USD, resource_namespace="two") > 0


def test_a_namespace_that_a_caller_made_up_has_no_series() -> None:
    """Only names of the snapshot are labels."""
    devices, facts = AdmittedDevices(), of_namespaces("a")
    for i in range(1000):
        devices.count(Holding((("T4", 1.0),), 1.0), facts.facts_for(f"made-up-{i}"))
    assert samples(devices) == {(OTHER,): 1000.0, (OTHER, "T4"): 1000.0}


def test_the_number_of_series_is_bounded() -> None:
    """By namespace, by model of one namespace, and in all; nothing is lost of the sums."""
    names = [f"n{i}" for i in range(1000)]
    devices, facts = AdmittedDevices(), of_namespaces(*names)
    for i in range(100):
        devices.count(Holding(((f"m{i}", 1.0),), 1.0), facts.facts_for("n0"))
    assert sum(key[0] == "n0" for key in samples(devices)) == MOST_OF_ONE + 1
    for name in names:
        devices.count(Holding(tuple((f"m{i}", 1.0) for i in range(5)), 1.0), facts.facts_for(name))
    found = samples(devices)
    assert sum(len(key) == 1 for key in found) == MOST_NAMESPACES + 1
    assert sum(len(key) == 2 and key[0] != OTHER for key in found) <= MOST_SERIES
    assert sum(number for key, number in found.items() if len(key) == 1) == 1100
    assert sum(number for key, number in found.items() if len(key) == 2) == 5100


def test_series_go_with_their_namespace() -> None:
    """And leave room for others; what counts as other stays."""
    devices, facts = AdmittedDevices(), of_namespaces("a", "b")
    for name in ("a", "b", "made-up"):
        devices.count(Holding((("T4", 1.0),), 1.0), facts.facts_for(name))
    devices.keep(of_namespaces("b"))
    assert samples(devices).keys() == {("b",), ("b", "T4"), (OTHER,), (OTHER, "T4")}


def test_a_namespace_with_policies_of_its_own_is_known() -> None:
    """From files too, which list no namespaces."""
    first = library().policies[0]
    snapshot = library().with_policies([replace(first, policy=replace(first.policy, name="own", namespace="team"))])
    devices = AdmittedDevices()
    facts: Facts = snapshot.facts_for("team")
    devices.count(Holding((), 1.0), facts)
    assert samples(devices) == {("team",): 1.0}
