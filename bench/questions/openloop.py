"""How long do calls wait that come at fixed times, at half and at nine tenths of what one core can answer?"""

from __future__ import annotations

from collections.abc import Iterator

from bench.harness.candidates import berth
from bench.harness.setting import BenchSetting, milliseconds
from tests.support import results_page

SHARES = {"half": 0.5, "nine tenths": 0.9}


def run(setting: BenchSetting) -> Iterator[str]:
    rows = []
    with berth(setting) as server:
        setting.closed(server, "mixed", 16)
        capacity = setting.closed(server, "mixed", 16, setting.pick(5, 1)).rate
        for name, share in SHARES.items():
            run = setting.start(server, "mixed", setting.pick(30.0, 1.5), {"rate": int(capacity * share)}).result()
            latencies = (milliseconds(us) for us in (run.p50, run.p99, run.longest))
            rows.append((name, f"{run.rate:,.0f}", f"{run.calls:,}", f"{run.failed:,}", *latencies))
    yield f"One core answers {capacity:,.0f} reviews a second (load mixed, 16 connections, closed loop). Then calls come at fixed times"
    yield "over 25 connections, as many as an API server keeps, whether or not earlier ones were answered."
    yield ""
    yield from results_page.table(("of capacity", "calls/s", "calls", "shed", "p50 ms", "p99 ms", "longest ms"), rows)
