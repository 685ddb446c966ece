"""The longest that one review holds the event loop: of reviews that are made to, in a namespace whose owner helps."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import NamedTuple

from bench.in_process import hostile
from bench.in_process.engine import library
from bench.measuring.setting import Setting
from policies.state.own_policies import MOST_OWN
from policies.state.snapshot import Snapshot
from telemetry.metrics import Metrics
from tests.support import results_page
from webhook.admission.app import ROUTES
from webhook.admission.decision_cache import none_decided

MOST_HELD_MS = 50.0
SHOWN = 12


class _Held(NamedTuple):
    ms: float
    name: str
    path: str
    policies: str
    size: int


def run(setting: Setting) -> Iterator[str]:
    """Lines of the section."""
    yield f"In process, every platform in force, {hostile.AUDITED} policies of the cluster in Audit, {MOST_OWN} of a namespace's own in"
    yield "Enforce, which deny every pod, or write what they can. Processor time of a first decision, body to answer; least of several."
    yield "Of each kind as many parts as the bounds let through."
    yield ""
    found = [held for strict in (True, False) for held in _under(setting, strict=strict)]
    everyday = [held for held in found if held.name == EVERYDAY]
    worst = sorted((held for held in found if held.name != EVERYDAY), reverse=True)
    rows = ((h.name, f"/{h.path}", h.policies, f"{h.size:,}", f"{h.ms:.1f}") for h in (*everyday, *worst[:SHOWN]))
    yield from results_page.table(("review", "path", "policies", "bytes", "ms"), rows)
    yield ""
    claim = f"of {len(worst)} hostile reviews none holds the loop for over {MOST_HELD_MS:.0f} ms"
    yield results_page.shown(claim, f"{worst[0].ms:.1f} ms, {worst[0].name}", held=worst[0].ms <= MOST_HELD_MS)


EVERYDAY = "an everyday pod"


def _under(setting: Setting, *, strict: bool) -> Iterator[_Held]:
    snapshot, metrics = library(hostile.policies(setting.folder, strict=strict), platforms=()), Metrics("bench")
    policies = "denying" if strict else "writing"
    for name, path, body in ((EVERYDAY, "mutate", hostile.everyday()), *hostile.reviews()):
        times = [_once(path, body, snapshot, metrics) for _ in range(1 if setting.scale.quick else 7)]
        yield _Held(min(times) * 1000, name, path, policies, len(body))


def _once(path: str, body: bytes, snapshot: Snapshot, metrics: Metrics) -> float:
    begun = time.process_time()
    ROUTES[f"/{path}".encode()].judge(body, snapshot, metrics, none_decided())
    return time.process_time() - begun
