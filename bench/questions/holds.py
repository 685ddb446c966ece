"""How long can one review hold the event loop? Reviews that are made for it, in a namespace whose owner helps."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench.harness.setting import BenchSetting
from bench.inputs import hostile
from policies.state.own_policies import MOST_OWN
from policies.state.snapshot import Snapshot
from telemetry import log
from telemetry.metrics import Metrics
from tests.support import results_page
from webhook.admission.app import ROUTES
from webhook.admission.decision_cache import none_decided
from webhook.reload.sources import Sources, load

MOST_HELD_MS = 50.0
SHOWN = 12
EVERYDAY = "an everyday pod"


class LoopHold(NamedTuple):
    """One review and how long it held the loop."""

    ms: float
    name: str
    path: str
    policies: str
    size: int


def run(setting: BenchSetting) -> Iterator[str]:
    """Yield the section."""
    yield f"In process, every platform in force, {hostile.AUDITED} policies of the cluster in Audit, {MOST_OWN} of a namespace's own in"
    yield "Enforce, which deny every pod, or write what they can. Processor time of a first decision, body to answer; least of several."
    yield "Of each kind as many parts as the bounds let through."
    yield ""
    holds = [hold for policies in ("denying", "writing") for hold in _measure(setting, policies)]
    everyday = [hold for hold in holds if hold.name == EVERYDAY]
    worst = sorted((hold for hold in holds if hold.name != EVERYDAY), reverse=True)
    rows = ((h.name, f"/{h.path}", h.policies, f"{h.size:,}", f"{h.ms:.1f}") for h in (*everyday, *worst[:SHOWN]))
    yield from (*results_page.table(("review", "path", "policies", "bytes", "ms"), rows), "")
    claim = f"of {len(worst)} hostile reviews none holds the loop for over {MOST_HELD_MS:.0f} ms"
    yield results_page.shown(claim, f"{worst[0].ms:.1f} ms, {worst[0].name}", worst[0].ms <= MOST_HELD_MS)


def loaded(policies: Path) -> Snapshot:
    """Return policies as ``berth serve --policies`` loads them, with every platform in force. From now on nothing is logged."""
    log.to(lambda _: None)
    return load(Sources(policies=(str(policies),))).snapshot


def _measure(setting: BenchSetting, policies: str) -> Iterator[LoopHold]:
    snapshot, metrics = loaded(hostile.policies(setting.folder, is_strict=policies == "denying")), Metrics("bench")
    for name, path, body in ((EVERYDAY, "mutate", hostile.everyday()), *hostile.reviews()):
        times = []
        for _ in range(setting.pick(7, 1)):
            begun = time.process_time()
            ROUTES[f"/{path}".encode()].judge(body, snapshot, metrics, none_decided())
            times.append(time.process_time() - begun)
        yield LoopHold(min(times) * 1000, name, path, policies, len(body))
