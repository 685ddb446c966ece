"""Prometheus metrics of one replica: the calls, the effects of policies, and the state that Berth decides by.
``docs/metrics.md`` lists them.

A label's value is a word of this package, the name of one of our rules or codes, or the id of a policy in the
snapshot; never what a caller sent. Everything is called on the event loop.
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from math import nan
from typing import Literal

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    Metric,
    ProcessCollector,
    disable_created_metrics,
)

from policies.state.snapshot import Facts, Snapshot
from policies.verdict import MODES, Verdict
from telemetry.admitted_devices import AdmittedDevices
from telemetry.exposition import Scraped, exposition
from telemetry.policy_metrics import REMARKS, OutcomeCounter, OutcomeTally, tally

# Else each counter and histogram has a second series, for a feature of Prometheus that is off by default.
disable_created_metrics()  # type: ignore[no-untyped-call]

ANSWERS: Mapping[str, tuple[str, ...]] = {
    "mutate": ("admitted", "patched", "denied", "unmatched", "passed", "restored", "rejected", "unavailable", "shed", "failed"),
    "validate": ("admitted", "denied", "unmatched", "passed", "rejected", "unavailable", "shed", "failed"),
    "advise": ("advised", "rejected", "unavailable", "shed", "failed"),
}
"""The decisions in which a call on each path can end.

All series exist from the start, at 0: ``rate()`` does not see a series that begins at 1.
"""
BUCKETS = (0.00025, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.1, 0.5, 2.0, 5.0)
"""Seconds. Reviews take some hundred microseconds, so steps are close below 5 ms; 25 ms separates a pause (a
full garbage collection is 36 ms) from a queue; 2 s and 5 s are the timeouts with which the API server calls
/advise and the rest. Fourteen series each."""
CUTS = ("handshake", "idle", "slow", "head", "unread", "crowded", "garbled")
"""The reasons for which ``server.connection`` ends a connection."""


class Metrics:
    """The metrics; each method is one event. ``version`` is Berth's own."""

    def __init__(self, version: str) -> None:
        self._registry = CollectorRegistry()
        self._calls = _Calls(self._registry)
        self._pods = _PodMetrics(self._registry)
        self._outcomes = OutcomeCounter(self._registry)
        self.devices = AdmittedDevices()
        self.also(self.devices.collect)
        self._state = _StateMetrics(self._registry, version)
        ProcessCollector(registry=self._registry)
        self.in_flight = self._calls.in_flight
        """Call inc() when a call arrives, dec() when it is answered."""

    def answered(self, phase: str, decision: str, seconds: float) -> None:
        """Count a call on /mutate, /validate or /advise that was answered. The words are those of
        ``ANSWERS``."""
        self._calls.answered(phase, decision, seconds)

    def cut(self, reason: str) -> None:
        """Count a connection that was ended early, by a reason of ``CUTS``."""
        self._calls.cuts.labels(reason).inc()

    def log_line_dropped(self) -> None:
        """Count a log line that nobody took in time, or that could not be written."""
        self._state.dropped.inc()

    def decided(self, phase: str, operation: str, verdict: Verdict, facts: Facts | None = None) -> None:
        """Count a pod that was judged, and not as a dry run. ``operation``: CREATE or UPDATE."""
        self.count(tally(phase, operation, verdict), facts)

    def count(self, counts: OutcomeTally, facts: Facts | None = None) -> None:
        """Count a decision whose tally is already computed. ``facts``: of a pod's namespace; None for no pod."""
        if counts.judged:
            self._pods.count(counts)
            if counts.admitted and facts is not None:
                self.devices.count(counts.holding, facts)
            for outcome in counts.outcomes:
                self._outcomes.count(outcome)

    def snapshot_swapped(self, snapshot: Snapshot, now: float) -> None:
        """Note that new policies are in force, the first ones included. ``now``: seconds since 1970."""
        self._outcomes.keep(snapshot)
        self._state.swapped(snapshot, now)

    def snapshot_rejected(self) -> None:
        """Note that a set of policies was rejected: the last valid one stays active."""
        self._state.reloads.labels("rejected").inc()
        self._state.reloaded.set(0)

    def certificate(self, expires: float) -> None:
        """Note the certificate that is served from now on. ``expires``: seconds since 1970."""
        self._state.expiry.set(expires)
        self._state.certified.set(1)

    def certificate_rejected(self) -> None:
        """Note that the certificate on disk cannot be served: the last good one is served on."""
        self._state.certified.set(0)

    def also(self, collect: Callable[[], Iterable[Metric]]) -> None:
        """Add the families that a function yields at each scrape."""
        self._registry.register(Scraped(collect))

    def exposition(self, accept: str) -> tuple[bytes, str]:
        """Return body and content type for a scrape: see ``exposition``."""
        return exposition(self._registry, accept)


class _Calls:
    """The metrics of HTTP calls and connections, independent of their content."""

    def __init__(self, registry: CollectorRegistry) -> None:
        counter, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        labels = ("phase", "decision")
        self._requests = counter("berth_requests_total", "Answered calls, by path and decision.", labels)
        self._durations = Histogram(
            "berth_request_duration_seconds",
            "Time from the head of a call to its answer, including the wait for its body.",
            labels,
            buckets=BUCKETS,
            registry=registry,
        )
        self.in_flight = gauge("berth_requests_in_flight", "Calls whose body is incomplete, or that wait inside Berth.")
        self.cuts = counter("berth_connections_cut_total", "Connections that Berth closed, by reason.", ("reason",))
        self._bound: dict[tuple[str, str], tuple[Counter, Histogram]] = {}
        for phase, decisions in ANSWERS.items():
            for decision in decisions:
                self._requests.labels(phase, decision)
        for reason in CUTS:
            self.cuts.labels(reason)

    def answered(self, phase: str, decision: str, seconds: float) -> None:
        requests, durations = self._bound.get((phase, decision)) or self._bind(phase, decision)
        requests.inc()
        durations.observe(seconds)

    def _bind(self, phase: str, decision: str) -> tuple[Counter, Histogram]:
        assert decision in ANSWERS[phase], f"/{phase} does not end as {decision}"
        bound = self._requests.labels(phase, decision), self._durations.labels(phase, decision)
        self._bound[phase, decision] = bound
        return bound


class _PodMetrics:
    """The metrics of pods with accelerators, and of the remarks about them."""

    def __init__(self, registry: CollectorRegistry) -> None:
        counter = partial(Counter, registry=registry)
        self._pods = counter(
            "berth_pods_total", "Pods with accelerators that were admitted by /validate or denied, each once.", ("decision",)
        )
        self._unmatched = counter("berth_unmatched_pods_total", "Pods with accelerators that were admitted because no policy matches them.")
        self._unaudited = counter(
            "berth_audits_skipped_total", "Policies in Audit or Warn that were not tried on a pod, because too many match it."
        )
        self._remarks = counter("berth_remarks_total", "Reviews with this warning: see docs/codes.md.", ("code",))
        self._codes = {code: self._remarks.labels(code) for code in REMARKS}
        self._admitted, self._denied = self._pods.labels("admitted"), self._pods.labels("denied")

    def count(self, counts: OutcomeTally) -> None:
        if counts.denied:
            self._denied.inc()
        if counts.admitted:
            self._admitted.inc()
        if counts.unmatched:
            self._unmatched.inc()
        if counts.uncounted:
            self._unaudited.inc(counts.uncounted)
        for code in counts.codes:
            (self._codes.get(code) or self._remarks.labels(code)).inc()  # also denials that a pod is spared


Kind = Literal["ClusterGPUPolicy", "GPUPolicy"]
KINDS: tuple[Kind, ...] = ("ClusterGPUPolicy", "GPUPolicy")


class _StateMetrics:
    """The metrics of the state: policies, certificate, log and version."""

    def __init__(self, registry: CollectorRegistry, version: str) -> None:
        counter, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        self._policies = gauge("berth_policies", "Active policies, by the mode that --max-mode leaves them.", ("kind", "mode"))
        self._swapped = gauge(
            "berth_snapshot_timestamp_seconds", "When the active policies were loaded, in seconds since 1970; 0 before the first."
        )
        self.reloads = counter(
            "berth_snapshot_reloads_total",
            "Reads of policies, including the first; rejected: the last valid set stays active.",
            ("result",),
        )
        self.reloaded = gauge("berth_snapshot_last_reload_successful", "1 if the last read of policies was valid, 0 if they have errors.")
        self.expiry = gauge(
            "berth_certificate_expiry_timestamp_seconds",
            "When the serving certificate expires, in seconds since 1970; NaN before the first.",
        )
        self.certified = gauge("berth_certificate_last_reload_successful", "1 if the certificate on disk is served, 0 if it is invalid.")
        self.expiry.set(nan)  # 0 would say that it expired in 1970
        self.dropped = counter("berth_log_lines_dropped_total", "Lost log lines: nothing read them in time, or the disk is full.")
        Info("berth_build", "Berth's version; always 1.", registry=registry).info({"version": version})
        for result in ("ok", "rejected"):
            self.reloads.labels(result)

    def swapped(self, snapshot: Snapshot, now: float) -> None:
        found = collections.Counter((c.policy.namespace is not None, c.mode) for c in snapshot.policies)
        for (own, kind), mode in itertools.product(enumerate(KINDS), MODES):
            self._policies.labels(kind, mode).set(found[bool(own), mode])
        self._swapped.set(now)
        self.reloads.labels("ok").inc()
        self.reloaded.set(1)
