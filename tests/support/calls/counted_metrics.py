"""Metrics to count with, and what Prometheus reads of them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from analysis.reviews.review import from_document
from policies.engine import evaluate
from policies.facts.device_modes import Advertised
from policies.request import Phase
from policies.state.snapshot import Snapshot
from policies.verdict import Edit, Verdict
from sources.sources import Sources, load_sources
from telemetry.device_modes import collect_device_modes
from telemetry.metrics import ANSWERS, Metrics
from telemetry.watch_metrics import Watching, Writes, collect_watches
from webhook.reload.registration_check import Registered
from webhook.reload.reload_results import collect_file_checks
from webhook.reload.shared_certificate import collect_ca

ROOT = Path(__file__).parent.parent.parent.parent
REVIEWS = ROOT / "tests" / "reviews"
NOW = 1_800_000_000.0
OUTCOMES = "berth_policy_outcomes_total"


@cache
def library(max_mode: str = "Enforce") -> Snapshot:
    """The shipped policies."""
    return load_sources(Sources(policies=(str(ROOT / "policies" / "library"),), platforms=("karpenter-aws",), max_mode=max_mode)).snapshot


def new(snapshot: Snapshot | None = None) -> Metrics:
    made = Metrics("1.2.3")
    made.snapshot_swapped(snapshot or library(), NOW)
    return made


def judged(name: str, phase: Phase = "mutate", snapshot: Snapshot | None = None) -> tuple[str, str, Verdict]:
    """What ``decided`` is told of a recorded review."""
    review = from_document(json.loads((REVIEWS / f"{name}.json").read_text()))
    return phase, review.operation, evaluate(review.in_phase(phase), (snapshot or library()).facts_for(review.namespace))


def families(metrics: Metrics) -> list[Metric]:
    return list(text_string_to_metric_families(metrics.exposition("")[0].decode()))


def value(metrics: Metrics, name: str, **labels: str) -> float:
    """Of one series; 0 where it is not there."""
    found = [s.value for f in families(metrics) for s in f.samples if s.name == name and s.labels == labels]
    return found[0] if found else 0.0


def series(metrics: Metrics, name: str = "") -> list[dict[str, str]]:
    """The labels of every series of a name, or of all."""
    return [s.labels for f in families(metrics) for s in f.samples if name in ("", s.name)]


def edited(policies: Iterable[str], rule: str = "tolerations") -> Verdict:
    return Verdict(edits=(Edit(op="add", path=(), rule=rule, policies=tuple(policies)),), matched=("ClusterGPUPolicy/a",))


def with_policies(number: int) -> Snapshot:
    """The library's first policy, so many times, each of another namespace."""
    first = library().policies[0]
    return library().with_policies(replace(first, policy=replace(first.policy, name="own", namespace=f"ml-{i}")) for i in range(number))


def lively() -> Metrics:
    """Everything has happened."""
    made = new()
    for phase, decisions in ANSWERS.items():
        for decision in decisions:
            made.answered(phase, decision, 0.0003)
    for file in REVIEWS.glob("pods-*.json"):
        made.decided(*judged(file.stem, "mutate"))
        made.decided(*judged(file.stem, "validate"))
    made.decided(*judged("pods-create-finetune", snapshot=library("Audit")))
    made.decided(*judged("pods-create-vllm-server", "validate"), library().facts_for("made-up"))
    made.decided("mutate", "CREATE", edited(["GPUPolicy/gone/own"]))
    made.cut("slow")
    made.snapshot_rejected()
    made.also(lambda: collect_file_checks({"policies": NOW}))
    made.certificate(NOW + 86_400)
    made.also(lambda: collect_watches(FOLLOWED, (1, 2), Writes(held=True, written=3)))
    made.also(Registered(differs=True, missing=(), overlooked=("acme.example/gpu",)).collect_metrics)
    made.also(lambda: collect_ca((NOW + 86_400, True)))
    made.also(lambda: collect_device_modes(replace(library(), advertised=Advertised(nodes=(("nvidia", "both", 2),)))))
    return made


FOLLOWED = (
    Watching(
        kind="GPUPolicy",
        synced=True,
        healthy=True,
        error="",
        without="",
        silent=2.5,
        objects=7,
        isolated=(),
        unread=0,
        counts={"lists": 1, "watches": 4, "events": 9, "errors": 0},
        digest=lambda: "",
    ),
    Watching(
        kind="NodePool",
        synced=False,
        healthy=False,
        error="forbidden",
        without="",
        silent=None,
        objects=0,
        isolated=(),
        unread=0,
        counts={"lists": 0, "watches": 0, "events": 0, "errors": 3},
        digest=lambda: "",
    ),
)
"""Two kinds of a cluster: one that is followed, one that can't be."""
