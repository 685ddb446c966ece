"""How long do the pages of `berth console` take while twenty people click, what memory does it have, and do replicas notice it?"""

from __future__ import annotations

import http.client
import os
import random
import re
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from bench.harness.following import PODS_OF_A_JOB, control_plane, disturbed, fill_with_jobs, registered
from bench.harness.generators import on_core
from bench.harness.setting import PATIENCE, BenchSetting
from console.screens import SCREENS
from tests.support import machine, results_page
from tests.support.cluster.policy_writes import quantile
from tests.support.machine import BenchError
from tests.testcluster.addons.berth import COMMAND
from tests.testcluster.controlplane.api import Raw

AMOUNTS, QUICK_AMOUNTS = (2_500, 60, 500, 200), (20, 5, 10, 6)
"""Jobs of four pods, namespaces, nodes, policies"""
PEOPLE, THINKS = 20, 1.0
"""People, and the mean of the seconds that each looks at a page before the next click"""
MOST_MS, MOST_MB = 200.0, 250.0
NAME = "clicked"
LOCAL = re.compile(rb'href="(/[^"]*)"')


@dataclass(slots=True, kw_only=True)
class ClickedConsole:
    """The console's process, and the pages that people got from it."""

    address: str
    cookie: str
    namespaces: int
    milliseconds: dict[str, list[float]] = field(default_factory=dict)
    failed: int = 0
    largest: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, connection: http.client.HTTPConnection, path: str) -> tuple[int, bytes]:
        """Return status and body of a page, and count it."""
        begun = time.perf_counter()
        connection.request("GET", path, headers={"Cookie": self.cookie})
        answer = connection.getresponse()
        body = answer.read()
        with self.lock:
            self.milliseconds.setdefault(urlsplit(path).path, []).append((time.perf_counter() - begun) * 1e3)
            self.failed += answer.status >= 500
            self.largest = max(self.largest, len(body))
        return answer.status, body

    @contextmanager
    def clicking(self) -> Iterator[None]:
        """Let people follow links from page to page until the end of the block."""
        is_over = threading.Event()
        people = [threading.Thread(target=self._click, args=(is_over, random.Random(number))) for number in range(PEOPLE)]
        for person in people:
            person.start()
        yield
        is_over.set()
        for person in people:
            person.join()

    def _click(self, is_over: threading.Event, chance: random.Random) -> None:
        connection, path = http.client.HTTPConnection(self.address, timeout=PATIENCE), "/impact"
        while not is_over.wait(chance.expovariate(1 / THINKS)):
            _, body = self.get(connection, path)
            links = [link.decode().replace("&amp;", "&") for link in LOCAL.findall(body) if not link.startswith((b"/static", b"/logout"))]
            path = chance.choice(links or ["/impact"])
            if chance.random() < 0.2:
                screen, namespace = chance.choice([screen for screen in SCREENS if screen.section]), chance.randrange(self.namespaces)
                path = f"{screen.path}?{urlencode({'namespace': f'team-{namespace}'})}"


def specs(number: int, namespaces: int) -> dict[str, Raw]:
    """Return so many policies: one in Enforce, the others in Audit, of which a few are for all pods and the rest for one count of GPUs."""
    every: dict[str, Raw] = {"taints": {"mode": "Enforce", "default": {"acceleratorTaints": "Tolerate"}}}
    for i in range(number - 1):
        selector = {"matchLabels": {"kubernetes.io/metadata.name": f"team-{i % namespaces}"}}
        match = {"match": {"gpus": {"min": 1 + i % 8, "max": 1 + i % 8}, "namespaceSelector": selector}} if i % 40 else {}
        every[f"policy-{i}"] = {"mode": "Audit", "default": {"gracePeriod": f"{1 + i % 50}m"}, **match}
    return every


def run(setting: BenchSetting) -> Iterator[str]:
    """Yield the section."""
    jobs, namespaces, nodes, policies = setting.pick(AMOUNTS, QUICK_AMOUNTS)
    with control_plane(setting) as cluster:
        following, kubeconfig = registered(cluster, setting, NAME, specs(policies, namespaces))
        fill_with_jobs(cluster, NAME, jobs, namespaces, nodes)
        yield f"{jobs * PODS_OF_A_JOB:,} GPU pods in {namespaces} namespaces on {nodes} nodes, {policies} policies; {PEOPLE} people,"
        yield "a click a second each. The console shares a core with the control plane, and with whoever clicks."
        yield ""
        with _console(setting, kubeconfig, namespaces) as (console, pid):
            os.sched_setaffinity(0, {setting.cores.load})
            console.milliseconds.clear()
            beside = list(disturbed(setting, following, "twenty people click", console.clicking))
            memory = machine.resident(pid)
    rows = []
    for path, times in sorted(console.milliseconds.items()):
        p50, p95 = quantile(times, 0.5), quantile(times, 0.95)
        rows.append((path, str(len(times)), f"{p50:.0f}", f"{p95:.0f}", "held" if p95 < MOST_MS else "**missed**"))
    yield from (*results_page.table(("page", "clicks", "p50 ms", "p95 ms", f"p95 under {MOST_MS:.0f}"), rows), "")
    yield f"Failed: {console.failed}; the largest page {console.largest / 1024:.0f} KiB. The times are those of whoever clicks."
    yield from (results_page.shown(f"memory under {MOST_MB:.0f} MB", f"{memory:.0f} MB", memory < MOST_MB), "", *beside)


@contextmanager
def _console(setting: BenchSetting, kubeconfig: Path, namespaces: int) -> Iterator[tuple[ClickedConsole, int]]:
    """Start it beside the control plane, and wait until it has read the cluster."""
    command = [*COMMAND, "console", "--kubeconfig", str(kubeconfig), "--listen", "127.0.0.1:0", "--every", "15"]
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=on_core(setting.cores.load)
    )  # fmt: skip
    assert process.stdout is not None
    try:
        url = urlsplit(process.stdout.readline().decode().strip())
        connection = http.client.HTTPConnection(url.netloc, timeout=PATIENCE)
        connection.request("GET", f"/?{url.query}")
        answer = connection.getresponse()
        answer.read()
        console = ClickedConsole(address=url.netloc, cookie=(answer.headers["set-cookie"] or "").partition(";")[0], namespaces=namespaces)
        deadline = time.monotonic() + 600
        while console.get(connection, "/impact")[0] != 200:
            if time.monotonic() > deadline:
                raise BenchError("the console did not read the cluster")
            time.sleep(1)
        yield console, process.pid
    finally:
        process.terminate()
        process.wait()
