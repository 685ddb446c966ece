"""How many series there can be, whatever callers and policies do."""

from __future__ import annotations

import json
from dataclasses import replace

from analysis.reviews.review import from_document
from policies.engine import evaluate
from policies.verdict import MODES, AuditOutcome
from telemetry.metrics import ANSWERS, BUCKETS, Metrics
from telemetry.policy_metrics import MOST_OF_ONE, MOST_OF_TENANTS, MOST_POLICY_SERIES, OTHER
from tests.support.calls.counted_metrics import NOW, OUTCOMES, REVIEWS, edited, library, new, series, value, with_policies
from tests.support.counts import count


def test_series_of_a_policy_go_with_it() -> None:
    """Also those of a mode that it has no longer; what stays keeps its count."""
    metrics = new(with_policies(3))
    for i in range(3):
        metrics.decided("mutate", "CREATE", edited([f"GPUPolicy/ml-{i}/own"]))
    fewer = with_policies(2)
    softer = replace(fewer, policies=(fewer.policies[0], replace(fewer.policies[1], mode="Warn")))
    metrics.snapshot_swapped(softer, NOW)
    assert [labels["policy"] for labels in series(metrics, OUTCOMES)] == ["GPUPolicy/ml-0/own"]
    metrics.decided("mutate", "CREATE", edited(["GPUPolicy/ml-0/own"]))
    (labels,) = series(metrics, OUTCOMES)
    assert value(metrics, OUTCOMES, **labels) == 2


def test_a_policy_that_is_gone_counts_as_other() -> None:
    """A verdict of the snapshot before makes no series for it."""
    metrics = new()
    metrics.decided("mutate", "CREATE", edited(["GPUPolicy/gone/own"]))
    assert [labels["policy"] for labels in series(metrics, OUTCOMES)] == [OTHER]


def test_twenty_thousand_hostile_verdicts_make_a_bounded_number_of_series() -> None:
    """Over the cap, and for names of no policy, they count as other; room that comes free is used."""
    metrics, policies = new(with_policies(2_500)), [compiled.id for compiled in with_policies(2_500).policies]
    for i in range(20_000):
        known, rule = policies[i % 2_500], ("tolerations", "disruption", "mig_resources")[i % 3]
        audit_outcomes = AuditOutcome(policy=f"ClusterGPUPolicy/{i}\n\"{{}}'", mode=MODES[i // 3 % 3], edits=edited((), rule).edits)
        metrics.decided(
            "mutate", "CREATE", replace(edited([known, f"GPUPolicy/ml-{i}/{'x' * 300}"], rule), audit_outcomes=(audit_outcomes,))
        )
    named = [labels for labels in series(metrics, OUTCOMES) if labels["policy"] != OTHER]
    others = [labels for labels in series(metrics, OUTCOMES) if labels["policy"] == OTHER]
    assert len(named) == MOST_OF_TENANTS
    assert {labels["policy"] for labels in named} <= set(policies)
    assert len(others) == 3 + 9  # a rule each in Enforce; a rule and mode each
    assert sum(value(metrics, OUTCOMES, **labels) for labels in [named[0], *others]) >= 40_000
    metrics.snapshot_swapped(with_policies(10), NOW)
    metrics.decided("mutate", "CREATE", edited(["GPUPolicy/ml-9/own"], "checkpoint_grace"))
    assert {"policy": "GPUPolicy/ml-9/own", "rule": "checkpoint_grace", "mode": "Enforce", "outcome": "edited"} in series(metrics, OUTCOMES)


def test_the_clusters_policies_have_series_whatever_tenants_write() -> None:
    """A namespace of 300 policies has its forty series, all namespaces half of all, and the cluster's policies the rest."""
    first = library().policies[0]
    loud = [replace(first, policy=replace(first.policy, name=f"p{i}", namespace="loud")) for i in range(300)]
    others = [replace(first, policy=replace(first.policy, name="own", namespace=f"ml-{i}")) for i in range(1_000)]
    cluster = [replace(first, policy=replace(first.policy, name=f"c{i}")) for i in range(1_000)]
    metrics = new(library().with_policies([*loud, *others, *cluster]))
    for compiled in (*loud, *others, *cluster):
        metrics.decided("mutate", "CREATE", edited([compiled.id]))
    named = [labels["policy"] for labels in series(metrics, OUTCOMES) if labels["policy"] != OTHER]
    assert sum(name.startswith("GPUPolicy/loud/") for name in named) == MOST_OF_ONE
    assert sum(name.startswith("GPUPolicy/") for name in named) == MOST_OF_TENANTS
    assert len(named) == MOST_POLICY_SERIES
    metrics.snapshot_swapped(library().with_policies([*loud[200:], *cluster]), NOW)
    for compiled in loud[200:]:
        metrics.decided("mutate", "CREATE", edited([compiled.id]))
    named = [labels["policy"] for labels in series(metrics, OUTCOMES) if labels["policy"] != OTHER]
    assert sum(name.startswith("GPUPolicy/") for name in named) == MOST_OF_ONE, "room that comes free is used"


def test_what_callers_send_is_no_label() -> None:
    """Namespaces, users, pod names, labels and unknown GPUs, each new in every review, add no series after the first."""
    metrics, numbers = new(), []
    document = json.loads((REVIEWS / "pods-create-finetune.json").read_text())
    for i in range(count(1_000, 20_000)):
        request = document["request"]
        request.update(uid=f"u{i}", namespace=f"team-{i}", userInfo={"username": f"user-{i}"})
        request["object"]["metadata"].update(name=f"p{i}", labels={f"l{i}": f"v{i}"}, annotations={"berth.dev/node-template": f"t{i % 2}"})
        request["object"]["spec"]["nodeSelector"] = {"karpenter.k8s.aws/instance-gpu-name": f"h{i}"}
        review = from_document(document)
        metrics.decided("mutate", review.operation, evaluate(review, library().facts_for(review.namespace)))
        if i in (10, 999):
            numbers.append(len(series(metrics)))
    assert len(series(metrics)) == numbers[0] == numbers[1]


def test_the_whole_is_small() -> None:
    """With every call and without policies: what one replica costs Prometheus."""
    metrics = Metrics("1.2.3")
    for phase, decisions in ANSWERS.items():
        for decision in decisions:
            metrics.answered(phase, decision, 0.1)
    durations = sum(len(d) for d in ANSWERS.values()) * (len(BUCKETS) + 3)
    assert durations < len(series(metrics)) < durations + 90
