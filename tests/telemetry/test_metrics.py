"""What each event counts, and a scrape in the format that was asked for."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable

import pytest
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics

from policies.request import Phase
from policies.verdict import Verdict
from telemetry.metrics import ANSWERS, CUTS, Metrics
from tests.support import worded
from tests.support.calls.counted_metrics import NOW, OUTCOMES, families, judged, library, lively, new, series, value, with_policies

# --- calls -------------------------------------------------------------------------------------------------------------


def test_an_answer_is_counted_and_timed() -> None:
    """By path and decision; the histogram's count is the same number."""
    metrics = new()
    for seconds in (0.0003, 0.0004, 0.7):
        metrics.answered("mutate", "patched", seconds)
    labels = {"phase": "mutate", "decision": "patched"}
    assert value(metrics, "berth_requests_total", **labels) == 3
    assert value(metrics, "berth_request_duration_seconds_count", **labels) == 3
    assert value(metrics, "berth_request_duration_seconds_sum", **labels) == pytest.approx(0.7007)
    assert value(metrics, "berth_request_duration_seconds_bucket", le="0.0005", **labels) == 2


def test_every_way_to_end_is_there_at_zero() -> None:
    """Before the first call: a rate over a series that begins at 1 would miss the first failure."""
    metrics = Metrics("1.2.3")
    found = {(labels["phase"], labels["decision"]) for labels in series(metrics, "berth_requests_total")}
    assert found == {(phase, decision) for phase, decisions in ANSWERS.items() for decision in decisions}
    assert {labels["reason"] for labels in series(metrics, "berth_connections_cut_total")} == set(CUTS)
    assert series(metrics, "berth_request_duration_seconds_count") == []


@pytest.mark.parametrize(("phase", "decision"), [("mutate", "maybe"), ("eject", "patched"), ("advise", "denied")])
def test_a_word_that_is_none_is_a_mistake_of_ours(phase: str, decision: str) -> None:
    """It makes no series."""
    with pytest.raises((AssertionError, KeyError)):
        new().answered(phase, decision, 0.1)


def test_calls_in_flight() -> None:
    """Up when one comes, down when it is answered."""
    metrics = new()
    metrics.in_flight.inc()
    metrics.in_flight.inc()
    metrics.in_flight.dec()
    assert value(metrics, "berth_requests_in_flight") == 1


# --- decisions ---------------------------------------------------------------------------------------------------------


def test_a_pod_is_counted_once() -> None:
    """Twice through /mutate and once through /validate is one pod admitted."""
    metrics = new()
    phases: tuple[Phase, ...] = ("mutate", "mutate", "validate")
    for phase in phases:
        metrics.decided(*judged("pods-create-amd-bench", phase))
    assert value(metrics, "berth_pods_total", decision="admitted") == 1
    assert value(metrics, "berth_pods_total", decision="denied") == 0


@pytest.mark.parametrize("phase", ["mutate", "validate"])
def test_a_denied_pod_is_counted_where_it_is_denied(phase: Phase) -> None:
    """The API server stops there; its policy and rule are named."""
    metrics = new()
    metrics.decided(*judged("pods-create-mismatch", phase))
    assert value(metrics, "berth_pods_total", decision="denied") == 1
    found = series(metrics, OUTCOMES)
    assert {labels["outcome"] for labels in found} == {"denied"}
    assert "requests_match_limits" in {labels["rule"] for labels in found}
    assert [value(metrics, OUTCOMES, **labels) for labels in found] == [1.0] * len(found)


def test_an_update_makes_no_pod() -> None:
    """It may be denied, which its policy's outcome and the call's decision tell."""
    metrics = new()
    denial = worded.denial("BERTH-131", "f", rule="tolerations", policies=(library().policies[0].policy.id,))
    metrics.decided("validate", "UPDATE", Verdict(violations=(denial,)))
    assert value(metrics, "berth_pods_total", decision="denied") == 0
    assert len(series(metrics, OUTCOMES)) == 1


def test_a_pod_that_no_policy_is_for_is_counted() -> None:
    """At /validate, where it is admitted; one without accelerators is nobody's."""
    metrics = new()
    metrics.decided("mutate", "CREATE", Verdict())
    metrics.decided("validate", "CREATE", Verdict())
    metrics.decided(*judged("pods-create-web", "validate"))
    assert value(metrics, "berth_unmatched_pods_total") == 1
    assert value(metrics, "berth_pods_total", decision="admitted") == 1


def test_what_an_audited_policy_would_do_is_counted() -> None:
    """With its mode, and nothing as enforced."""
    metrics = new(library("Audit"))
    metrics.decided(*judged("pods-create-finetune", snapshot=library("Audit")))
    found = {(labels["mode"], labels["outcome"]) for labels in series(metrics, OUTCOMES)}
    assert found == {("Audit", "would_edit")}


def test_audits_past_the_sixteenth_are_counted() -> None:
    """As many as were left out."""
    metrics = new()
    metrics.decided("mutate", "CREATE", Verdict(uncounted=3))
    assert value(metrics, "berth_audits_skipped_total") == 3


def test_a_remark_is_counted_once_a_review() -> None:
    """Under its code."""
    metrics = new()
    metrics.decided("mutate", "CREATE", Verdict(remarks=tuple(worded.remark("BERTH-201", text) for text in "abc")))
    assert value(metrics, "berth_remarks_total", code="BERTH-201") == 1


# --- state -------------------------------------------------------------------------------------------------------------


def test_the_policies_in_force_are_counted_by_mode() -> None:
    """And so is each reading, good or bad; a bad one leaves the moment of the last good one."""
    metrics = new()
    metrics.snapshot_swapped(library("Audit"), NOW + 60)
    metrics.snapshot_rejected()
    assert value(metrics, "berth_policies", kind="ClusterGPUPolicy", mode="Audit") == len(library().policies)
    assert value(metrics, "berth_policies", kind="ClusterGPUPolicy", mode="Enforce") == 0
    assert value(metrics, "berth_snapshot_timestamp_seconds") == NOW + 60
    assert value(metrics, "berth_snapshot_reloads_total", result="ok") == 2
    assert value(metrics, "berth_snapshot_reloads_total", result="rejected") == 1
    assert value(metrics, "berth_snapshot_last_reload_successful") == 0
    metrics.snapshot_swapped(with_policies(7), NOW + 90)
    assert value(metrics, "berth_policies", kind="GPUPolicy", mode=library().policies[0].mode) == 7
    assert value(metrics, "berth_snapshot_last_reload_successful") == 1


def test_a_certificate_that_is_not_there_has_not_expired() -> None:
    """NaN is below and above nothing, so no alert fires before the first."""
    metrics = Metrics("1.2.3")
    assert math.isnan(value(metrics, "berth_certificate_expiry_timestamp_seconds"))
    metrics.certificate(NOW)
    assert value(metrics, "berth_certificate_expiry_timestamp_seconds") == NOW
    assert value(metrics, "berth_build_info", version="1.2.3") == 1


def test_two_servers_in_a_process_count_apart() -> None:
    """No registry is shared."""
    one, other = new(), new()
    one.answered("mutate", "patched", 0.1)
    assert value(other, "berth_requests_total", phase="mutate", decision="patched") == 0


# --- scrapes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("", "text/plain; version=0.0.4; charset=utf-8"),
        ("*/*", "text/plain; version=0.0.4; charset=utf-8"),
        ("text/plain;version=x", "text/plain; version=0.0.4; charset=utf-8"),
        ("application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5", "application/openmetrics-text; version=1.0.0"),
        ("application/openmetrics-text;version=\u00b2", "text/plain; version=0.0.4; charset=utf-8"),
        (";=,;" * 2000, "text/plain; version=0.0.4; charset=utf-8"),
    ],
    ids=["nothing", "anything", "a version that is none", "as Prometheus asks", "a digit that is none", "noise"],
)
def test_the_scraper_chooses_the_format(accept: str, content_type: str) -> None:
    """What it can't say gets the text format."""
    body, media_type = lively().exposition(accept)
    assert media_type.startswith(content_type)
    assert body.endswith(b"# EOF\n") == ("openmetrics" in media_type)


def test_both_formats_say_the_same() -> None:
    """Read back with both parsers."""
    metrics = lively()

    def values(found: Iterable[Metric]) -> dict[tuple[str, str], float]:
        ours = [s for family in found for s in family.samples if s.name.startswith("berth_")]
        return {(s.name, json.dumps(s.labels, sort_keys=True)): s.value for s in ours}

    other = metrics.exposition("application/openmetrics-text;version=1.0.0")[0].decode()
    parsed = openmetrics(other)  # type: ignore[no-untyped-call]
    assert values(parsed) == values(families(metrics))


def test_no_series_tells_when_it_was_made() -> None:
    """``_created`` would double them."""
    assert b"_created" not in lively().exposition("")[0]
