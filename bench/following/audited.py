"""`berth audit --serve` beside a cluster full of GPU pods: how soon its reports are there, what they take, and whether the replicas that
answer reviews notice it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bench.creations.registrations import control_plane
from bench.following.filled import CALLS, EACH, Filled, busy, fill, filled
from bench.load.arrivals import Arrivals
from bench.measuring import intervals
from bench.measuring.setting import Setting
from tests.support import results_page
from tests.testcluster.addons import metrics
from tests.testcluster.addons.audit import REPORTS, Audit, audit, install_reports
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster

JOBS, NAMESPACES, NODES = 2_500, 500, 1_300
"""Jobs of four pods: 10,000 pods."""
QUICK_JOBS, QUICK_NAMESPACES, QUICK_NODES = 20, 5, 10
ROUNDS = 5
"""Rounds of calls at fixed times, beside an audit that begins anew and without one."""
REST = 60.0
NAME = "audited"
MOST_SECONDS, MOST_BYTES, MOST_CALLS, MOST_MB, MOST_SLOWER = 60.0, 5_000_000, 1.0, 200.0, 1.1
SPECS: dict[str, Raw] = {
    "grace": {"mode": "Audit", "default": {"gracePeriod": "10m", "protectFor": "12h"}},
    "few": {"mode": "Audit", "require": {"gpusPerPod": {"max": 4}}},
    "taints": {"mode": "Enforce", "default": {"acceleratorTaints": "Tolerate"}},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Audited:
    """What is measured."""

    filled: Filled

    def audit(self, name: str) -> Audit:
        """One process, beside the control plane on the core that is not the replica's."""
        running = audit(self.filled.cluster, name, self.filled.kubeconfig)
        os.sched_setaffinity(running.process.popen.pid, {self.filled.setting.cores.load})
        return running

    def until(self, running: Audit, *, more_than: float) -> float:
        """Seconds until nothing is due, and more reports were written than that."""
        begun = time.monotonic()

        def settled() -> bool | None:
            page = running.page("/metrics").body.decode()
            due = sum(metrics.total(page, name) for name in ("berth_audit_pods_due", "berth_audit_reports_due"))
            return (not due and _written(page) > more_than) or None

        self.filled.cluster.wait_for(settled, "reports", 600)
        return time.monotonic() - begun

    def forget(self) -> None:
        """No report is there any more."""
        for one in self.filled.cluster.api.list("v1", "Namespace"):
            self.filled.cluster.api.delete_all(REPORTS, "Report", one["metadata"]["name"])


def run(setting: Setting) -> Iterator[str]:
    """Lines of the section."""
    quick = setting.scale.quick
    jobs, namespaces, nodes = (QUICK_JOBS, QUICK_NAMESPACES, QUICK_NODES) if quick else (JOBS, NAMESPACES, NODES)
    with control_plane(setting) as cluster:
        install_reports(cluster)
        world = _Audited(filled=filled(cluster, setting, NAME, SPECS))
        fill(world.filled, jobs, namespaces, nodes)
        yield f"{jobs * EACH:,} GPU pods of {jobs:,} Jobs in {namespaces:,} namespaces, on nodes, admitted by the replica; two policies in"
        yield "Audit, one in Enforce. The audit shares a core with the control plane."
        yield ""
        yield from _reported(world)
        yield ""
        yield from _beside(world)


def _reported(world: _Audited) -> Iterator[str]:
    """The reports of a process that starts, after a policy has changed, and at rest."""
    running = world.audit("first")
    first = world.until(running, more_than=0)
    written = _written(running.page("/metrics").body.decode())
    world.filled.policy("few", {**SPECS["few"], "require": {"gpusPerPod": {"max": 1}}})
    changed = world.until(running, more_than=written)
    rewritten = _written(running.page("/metrics").body.decode()) - written
    world.filled.policy("few", SPECS["few"])
    world.until(running, more_than=written + rewritten)
    reports = world.filled.cluster.api.list(REPORTS, "Report")
    stored = sum(len(json.dumps(one, separators=(",", ":"))) for one in reports)
    memory = running.metric("process_resident_memory_bytes") / 1e6
    calls = _at_rest(world, lambda: running.end(world.filled.cluster))
    rows = [
        (f"first full report: {len(reports):,} reports", f"{first:.1f} s", f"{MOST_SECONDS:.0f} s", _bar(first <= MOST_SECONDS)),
        (f"a policy change: {rewritten:,.0f} of them written", f"{changed:.1f} s", f"{MOST_SECONDS:.0f} s", _bar(changed <= MOST_SECONDS)),
        ("bytes of all as etcd has them", f"{stored / 1e6:.1f} MB", f"{MOST_BYTES / 1e6:.0f} MB", _bar(stored <= MOST_BYTES)),
        ("of one", f"{stored / max(1, len(reports)):,.0f}", "", ""),
        ("memory of the process", f"{memory:.0f} MB", f"{MOST_MB:.0f} MB", _bar(memory <= MOST_MB)),
        ("API calls a second at rest", f"{calls:.2f}", f"{MOST_CALLS:.0f}", _bar(calls < MOST_CALLS)),
    ]
    yield from results_page.table(("what", "measured", "at most", ""), rows)


def _bar(held: bool) -> str:
    return "held" if held else "**missed**"


def _written(page: str) -> float:
    return metrics.total(page, "berth_audit_report_writes_total", result="written")


def _at_rest(world: _Audited, end: Callable[[], None]) -> float:
    """API calls a second that are the audit's: with it, less without it."""

    def rate() -> float:
        time.sleep(5.0)
        before, begun = _calls(world.filled.cluster), time.monotonic()
        time.sleep(2.0 if world.filled.setting.scale.quick else REST)
        return (_calls(world.filled.cluster) - before) / (time.monotonic() - begun)

    with_it = rate()
    end()
    return with_it - rate()


def _calls(cluster: Cluster) -> float:
    return metrics.total(cluster.api.text("/metrics"), "apiserver_request_total")


def _beside(world: _Audited) -> Iterator[str]:
    """Calls of a replica at fixed times, in turn: alone; while something that knows nothing of the cluster keeps the other core busy, where
    the calls come from; and while an audit reads, judges and writes everything anew there."""
    seen: dict[str, list[Arrivals]] = {"without": [], "another program at work": [], "the audit begins anew": []}
    for number in range(1 if world.filled.setting.scale.quick else ROUNDS):
        world.forget()
        seen["without"].append(world.filled.arrivals())
        with busy(world.filled.setting.cores.load):
            seen["another program at work"].append(world.filled.arrivals())
        running = world.audit(f"beside-{number}")
        seen["the audit begins anew"].append(world.filled.arrivals())
        running.end(world.filled.cluster)
    rows = []
    for name, runs in seen.items():
        figures = (f"{sorted(one.at(share) for one in runs)[len(runs) // 2] / 1000:.2f}" for share in (50, 99))
        rows.append((name, f"{sum(one.calls for one in runs):,}", str(sum(one.shed for one in runs)), *figures))
    yield f"A replica's answers to {CALLS:.0f} calls a second at fixed times, medians of rounds in turn. The replica has one core; the"
    yield "caller, the control plane and what else is at work share the other."
    yield ""
    yield from results_page.table(("beside it", "calls", "shed", "p50 ms", "p99 ms"), rows)
    yield ""
    alone, other, audited = ([one.at(99) for one in runs] for runs in seen.values())
    to_alone, to_other = intervals.ratio(audited, alone), intervals.ratio(audited, other)
    yield results_page.shown(
        f"p99 beside the audit at most {MOST_SLOWER} of that without", str(to_alone), held=to_alone.middle <= MOST_SLOWER
    )
    claim = f"p99 beside the audit at most {MOST_SLOWER} of that beside another program"
    yield results_page.shown(claim, str(to_other), held=to_other.middle <= MOST_SLOWER)
