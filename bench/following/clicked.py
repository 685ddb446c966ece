"""`berth console` beside a cluster full of GPU pods, while twenty people click: how long its pages take, what memory it has, and whether
the replicas that answer reviews notice it."""

from __future__ import annotations

import contextlib
import http.client
import os
import random
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlencode, urlsplit

from bench.creations.registrations import control_plane
from bench.following.filled import CALLS, EACH, Filled, busy, fill, filled
from bench.load.arrivals import Arrivals
from bench.measuring import intervals
from bench.measuring.pinned import on_core
from bench.measuring.setting import Setting
from console.screens import SCREENS
from tests.support import results_page
from tests.support.machine import BenchError
from tests.testcluster.controlplane.api import Raw

JOBS, NAMESPACES, NODES, POLICIES = 2_500, 60, 500, 200
"""Jobs of four pods: 10,000 pods."""
QUICK_JOBS, QUICK_NAMESPACES, QUICK_NODES, QUICK_POLICIES = 20, 5, 10, 6
ROUNDS, PEOPLE, THINKS = 5, 20, 1.0
"""Rounds of calls at fixed times; people, and the seconds that each looks at a page before the next click, in the mean."""
EVERY = 15
"""Seconds between two readings of the cluster: the default."""
MOST_MS, MOST_MB, MOST_SLOWER = 200.0, 250.0, 1.1
NAME = "clicked"
LOCAL = re.compile(rb'href="(/[^"]*)"')
_AUDIT: Raw = {"mode": "Audit", "default": {"gracePeriod": "10m"}}
_ENFORCE: Raw = {"mode": "Enforce", "default": {"acceleratorTaints": "Tolerate"}}


def specs(number: int) -> dict[str, Raw]:
    """So many policies: a tenth in Audit for all pods, one in Enforce, the others for pods of one count of GPUs."""
    every: dict[str, Raw] = {"taints": _ENFORCE}
    for at in range(number - 1):
        match = {} if at % 40 == 0 else {"match": {"gpus": {"min": 1 + at % 8, "max": 1 + at % 8}, "namespaceSelector": _namespace(at)}}
        every[f"policy-{at}"] = {**_AUDIT, "default": {"gracePeriod": f"{1 + at % 50}m"}, **match}
    return every


def _namespace(at: int) -> Raw:
    return {"matchLabels": {"kubernetes.io/metadata.name": f"team-{at % NAMESPACES}"}}


@dataclass(slots=True)
class Clicks:
    """What people got, by screen."""

    milliseconds: dict[str, list[float]] = field(default_factory=dict)
    failed: int = 0
    largest: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, path: str, took: float, status: int, size: int) -> None:
        """Count one page."""
        with self.lock:
            self.milliseconds.setdefault(path, []).append(took)
            self.failed += status >= 500
            self.largest = max(self.largest, size)


@dataclass(slots=True)
class Console:
    """The process."""

    popen: subprocess.Popen[str]
    address: str
    cookie: str

    def get(self, connection: http.client.HTTPConnection, path: str) -> tuple[int, bytes]:
        """Return status and body of a page."""
        connection.request("GET", path, headers={"Cookie": self.cookie})
        answer = connection.getresponse()
        return answer.status, answer.read()

    def megabytes(self) -> float:
        """Return its resident memory."""
        with open(f"/proc/{self.popen.pid}/status") as status:
            return next(int(line.split()[1]) / 1000 for line in status if line.startswith("VmRSS"))


@contextmanager
def console(world: Filled) -> Iterator[Console]:
    """Start it beside the control plane, and wait until it has read the cluster."""
    command = [sys.executable, "-m", "cli.main", "console", "--kubeconfig", str(world.kubeconfig), "--listen", "127.0.0.1:0"]
    popen = subprocess.Popen(
        [*command, "--every", str(EVERY)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        preexec_fn=on_core(world.setting.cores.load),
    )  # fmt: skip
    assert popen.stdout is not None
    try:
        url = urlsplit(popen.stdout.readline().strip())
        connection = http.client.HTTPConnection(url.netloc, timeout=60)
        connection.request("GET", f"/?{url.query}")
        answer = connection.getresponse()
        answer.read()
        found = Console(popen, url.netloc, (answer.headers["set-cookie"] or "").partition(";")[0])
        deadline = time.monotonic() + 600
        while found.get(connection, "/impact")[0] != 200:
            if time.monotonic() > deadline:
                raise BenchError("the console did not read the cluster")
            time.sleep(1)
        yield found
    finally:
        popen.terminate()
        popen.wait()


@contextmanager
def clicking(shown: Console, clicks: Clicks) -> Iterator[None]:
    """People who follow links from page to page, until the end of the block."""
    over = threading.Event()

    def person(number: int) -> None:
        chance = random.Random(number)
        connection = http.client.HTTPConnection(shown.address, timeout=60)
        path = "/impact"
        while not over.wait(chance.expovariate(1 / THINKS)):
            begun = time.perf_counter()
            status, body = shown.get(connection, path)
            clicks.add(urlsplit(path).path, (time.perf_counter() - begun) * 1e3, status, len(body))
            links = [one.decode().replace("&amp;", "&") for one in LOCAL.findall(body) if not one.startswith((b"/static", b"/logout"))]
            path = chance.choice(links or ["/impact"]) if chance.random() < 0.8 else _anywhere(chance)

    people = [threading.Thread(target=person, args=(number,)) for number in range(PEOPLE)]
    for one in people:
        one.start()
    try:
        yield
    finally:
        over.set()
        for one in people:
            one.join()


def _anywhere(chance: random.Random) -> str:
    screen = chance.choice([one for one in SCREENS if one.section])
    return f"{screen.path}?{urlencode({'namespace': f'team-{chance.randrange(NAMESPACES)}'})}"


def run(setting: Setting) -> Iterator[str]:
    """Lines of the section."""
    quick = setting.scale.quick
    jobs, namespaces, nodes, policies = (
        (QUICK_JOBS, QUICK_NAMESPACES, QUICK_NODES, QUICK_POLICIES) if quick else (JOBS, NAMESPACES, NODES, POLICIES)
    )
    with control_plane(setting) as cluster, contextlib.ExitStack() as stack:
        world = filled(cluster, setting, NAME, specs(policies))
        fill(world, jobs, namespaces, nodes)
        yield f"{jobs * EACH:,} GPU pods in {namespaces} namespaces on {nodes} nodes, {policies} policies; {PEOPLE} people, a click a"
        yield "second each. The console shares a core with the control plane, and with whoever clicks."
        yield ""
        shown, clicks = stack.enter_context(console(world)), Clicks()
        os.sched_setaffinity(0, {setting.cores.load})
        seen: dict[str, list[Arrivals]] = {"without": [], "another program at work": [], "twenty people click": []}
        for _ in range(1 if quick else ROUNDS):
            seen["without"].append(world.arrivals())
            with busy(setting.cores.load):
                seen["another program at work"].append(world.arrivals())
            with clicking(shown, clicks):
                seen["twenty people click"].append(world.arrivals())
        yield from _pages(clicks, shown.megabytes())
        yield ""
        yield from _beside(seen)


def _pages(clicks: Clicks, megabytes: float) -> Iterator[str]:
    rows = []
    for path, took in sorted(clicks.milliseconds.items()):
        rows.append(
            (path, str(len(took)), f"{_at(took, 50):.0f}", f"{_at(took, 95):.0f}", "held" if _at(took, 95) < MOST_MS else "**missed**")
        )
    yield from results_page.table(("page", "clicks", "p50 ms", "p95 ms", f"p95 under {MOST_MS:.0f}"), rows)
    yield ""
    yield f"Failed: {clicks.failed}; the largest page {clicks.largest / 1024:.0f} KiB. The times are those of whoever clicks."
    yield results_page.shown(f"memory under {MOST_MB:.0f} MB", f"{megabytes:.0f} MB", held=megabytes < MOST_MB)


def _beside(seen: dict[str, list[Arrivals]]) -> Iterator[str]:
    rows = []
    for name, runs in seen.items():
        figures = (f"{sorted(one.at(share) for one in runs)[len(runs) // 2] / 1000:.2f}" for share in (50, 99))
        rows.append((name, f"{sum(one.calls for one in runs):,}", str(sum(one.shed for one in runs)), *figures))
    yield f"A replica's answers to {CALLS:.0f} calls a second at fixed times, medians of rounds in turn; it has one core for itself."
    yield ""
    yield from results_page.table(("beside it", "calls", "shed", "p50 ms", "p99 ms"), rows)
    yield ""
    alone, other, clicked = ([one.at(99) for one in runs] for runs in seen.values())
    for beside, claim in ((alone, "that without"), (other, "that beside another program")):
        ratio = intervals.ratio(clicked, beside)
        yield results_page.shown(f"p99 while they click at most {MOST_SLOWER} of {claim}", str(ratio), held=ratio.middle <= MOST_SLOWER)


def _at(took: Sequence[float], share: int) -> float:
    return sorted(took)[min(len(took) - 1, len(took) * share // 100)]
