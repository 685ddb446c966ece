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
from urllib.parse import urlsplit

from bench.harness.following import PODS_OF_A_JOB, FullCluster, full_cluster
from bench.harness.generators import on_core
from bench.harness.setting import PATIENCE, BenchSetting
from console.screens import SCREENS
from tests.support import machine, results_page
from tests.support.cluster.policy_writes import quantile
from tests.testcluster.addons.berth import COMMAND
from tests.testcluster.controlplane.api import Raw

AMOUNTS, QUICK_AMOUNTS = (2_500, 60, 500, 200), (20, 5, 10, 6)
"""Jobs of four pods, namespaces, nodes, policies"""
PEOPLE, THINKS = 20, 1.0
"""People, and the mean of the seconds that each looks at a page before the next click"""
MOST_MS, MOST_MB = 200.0, 250.0
START = "/impact"
LOCAL = re.compile(rb'href="(/[^"]*)"')


@dataclass(slots=True, kw_only=True)
class ClickedConsole:
    """The console's process, and the pages that people got from it: (path, milliseconds, status)."""

    pid: int
    address: str
    cookie: str
    pages: list[tuple[str, float, int]] = field(default_factory=list)

    def get(self, connection: http.client.HTTPConnection, path: str) -> tuple[int, bytes]:
        """Return status and body of a page, and note it."""
        begun = time.perf_counter()
        connection.request("GET", path, headers={"Cookie": self.cookie})
        answer = connection.getresponse()
        body = answer.read()
        self.pages.append((urlsplit(path).path, (time.perf_counter() - begun) * 1e3, answer.status))
        return answer.status, body

    @contextmanager
    def clicking(self) -> Iterator[None]:
        """Let people follow links from page to page until the end of the block."""
        is_over = threading.Event()
        people = [threading.Thread(target=self._click, args=(is_over, random.Random(i)), daemon=True) for i in range(PEOPLE)]
        for person in people:
            person.start()
        yield
        is_over.set()
        for person in people:
            person.join()

    def _click(self, is_over: threading.Event, chance: random.Random) -> None:
        connection, path = http.client.HTTPConnection(self.address, timeout=PATIENCE), START
        while not is_over.wait(chance.expovariate(1 / THINKS)):
            _, body = self.get(connection, path)
            links = [link.decode().replace("&amp;", "&") for link in LOCAL.findall(body) if not link.startswith((b"/static", b"/logout"))]
            screens = [f"{screen.path}?namespace=team-{chance.randrange(5)}" for screen in SCREENS if screen.section]
            path = chance.choice(links if links and chance.random() < 0.8 else screens)


def specs(number: int, namespaces: int) -> dict[str, Raw]:
    """Return so many policies: one in Enforce, the others in Audit for the pods of one count of GPUs in a namespace."""
    every: dict[str, Raw] = {"taints": {"mode": "Enforce", "default": {"acceleratorTaints": "Tolerate"}}}
    for i in range(number - 1):
        selector = {"matchLabels": {"kubernetes.io/metadata.name": f"team-{i % namespaces}"}}
        match = {"gpus": {"min": 1 + i % 8, "max": 1 + i % 8}, "namespaceSelector": selector} if i % 40 else {}
        every[f"policy-{i}"] = {"mode": "Audit", "default": {"gracePeriod": f"{1 + i % 50}m"}, "match": match}
    return every


def run(setting: BenchSetting) -> Iterator[str]:
    jobs, namespaces, nodes, policies = setting.pick(AMOUNTS, QUICK_AMOUNTS)
    yield f"{jobs * PODS_OF_A_JOB:,} GPU pods in {namespaces} namespaces on {nodes} nodes, {policies} policies; {PEOPLE} people,"
    yield "a click a second each. The console shares a core with the control plane, and with whoever clicks."
    yield ""
    with (
        full_cluster(setting, "clicked", specs(policies, namespaces), jobs, namespaces, nodes) as full,
        _console(full) as console,
    ):
        os.sched_setaffinity(0, {setting.cores.load})
        beside = list(full.disturbed("twenty people click", console.clicking))
        memory = machine.resident(console.pid)
    rows, slowest = [], 0.0
    for path in sorted({path for path, *_ in console.pages}):
        times = [ms for page, ms, _ in console.pages if page == path]
        p50, p95 = quantile(times, 0.5), quantile(times, 0.95)
        rows.append((path, str(len(times)), f"{p50:.0f}", f"{p95:.0f}"))
        slowest = max(slowest, p95)
    failed = sum(status >= 500 for *_, status in console.pages)
    yield from (*results_page.table(("page", "clicks", "p50 ms", "p95 ms"), rows), "")
    yield results_page.shown("no page failed", f"{failed} of {len(console.pages)}", held=failed == 0)
    yield results_page.shown(f"p95 of every page under {MOST_MS:.0f} ms, as clicked", f"{slowest:.0f} ms", held=slowest < MOST_MS)
    yield from (results_page.shown(f"memory under {MOST_MB:.0f} MB", f"{memory:.0f} MB", held=memory < MOST_MB), "", *beside)


@contextmanager
def _console(full: FullCluster) -> Iterator[ClickedConsole]:
    """Start it beside the control plane, and wait until it has read the cluster."""
    command, pin = [*COMMAND, "console", "--kubeconfig", str(full.kubeconfig), "--listen", "127.0.0.1:0"], on_core(full.setting.cores.load)
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=pin)
    assert process.stdout is not None
    try:
        url = urlsplit(process.stdout.readline().decode().strip())
        connection = http.client.HTTPConnection(url.netloc, timeout=PATIENCE)
        connection.request("GET", f"/?{url.query}")
        answer = connection.getresponse()
        answer.read()
        console = ClickedConsole(pid=process.pid, address=url.netloc, cookie=(answer.headers["set-cookie"] or "").partition(";")[0])
        full.cluster.wait_for(lambda: console.get(connection, START)[0] == 200, "the console to read the cluster", 600)
        console.pages.clear()
        yield console
    finally:
        process.terminate()
        process.wait()
