"""How long can one review hold the event loop? Reviews that are made for it, in a namespace whose owner helps."""

from __future__ import annotations

import time
from collections.abc import Iterator

from bench.harness.setting import BenchSetting
from policies.state.compilation import MOST_OWN
from policies.state.snapshot import Snapshot
from sources.sources import Sources, load_sources
from telemetry import log
from telemetry.metrics import Metrics
from tests.support import results_page
from tests.support.cases import hostile_reviews as hostile
from webhook.admission.app import ROUTES
from webhook.admission.decision_cache import empty_decisions

MOST_HELD_MS = 50.0


def run(setting: BenchSetting) -> Iterator[str]:
    yield f"In process, every platform in force, {hostile.AUDITED} policies of the cluster in Audit, {MOST_OWN} of a namespace's own in"
    yield "Enforce, which write what they can. Processor time of a first decision, body to answer; least of several. Of each kind as many"
    yield "parts as the bounds let through."
    yield ""
    log.to(lambda _: None)  # from now on
    snapshot, metrics = load_sources(Sources(policies=(str(hostile.policies(setting.folder)),))).snapshot, Metrics("bench")
    reviews = [("an everyday pod", "mutate", hostile.everyday()), *hostile.reviews()]
    everyday, *holds = ((_hold(path, body, snapshot, metrics, setting.pick(7, 1)), name, path, body) for name, path, body in reviews)
    worst = sorted(holds, reverse=True)
    rows = ((name, f"/{path}", f"{len(body):,}", f"{ms:.1f}") for ms, name, path, body in (everyday, *worst[:12]))
    yield from (*results_page.table(("review", "path", "bytes", "ms"), rows), "")
    claim = f"of {len(worst)} hostile reviews none holds the loop for over {MOST_HELD_MS:.0f} ms"
    yield results_page.shown(claim, f"{worst[0][0]:.1f} ms, {worst[0][1]}", held=worst[0][0] <= MOST_HELD_MS)


def _hold(path: str, body: bytes, snapshot: Snapshot, metrics: Metrics, times: int) -> float:
    """Return the least milliseconds of several."""
    least = float("inf")
    for _ in range(times):
        begun = time.process_time()
        ROUTES[f"/{path}".encode()].handle(body, snapshot, metrics, empty_decisions())
        least = min(least, time.process_time() - begun)
    return least * 1000
