"""``make bench``: what Berth costs, beside what others cost. The tables go into bench/RESULTS.md.

    python -m bench [all | engine holds servers policies memory giant handshakes openloop live endtoend sizing replay audit
                    console]
                    [--quick] [--results FILE]

Needs Linux, two cores, Go and wrk (or BERTH_WRK=/path/to/wrk). All of it takes some half an hour, after rivals are built.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from bench.creations import endtoend
from bench.following import audited, clicked, live, sizing
from bench.handlers import giant, handshakes, memory, openloop, policies, servers
from bench.in_process import engine, holds, replay
from bench.measuring.setting import FULL, QUICK, Setting, prepared
from tests.support import machine, results_page
from tests.support.machine import BenchError

PARTS: dict[str, tuple[str, Callable[[Setting], Iterable[str]]]] = {
    "engine": ("The engine, in process", engine.run),
    "holds": ("The longest hold of the event loop", holds.run),
    "servers": ("Berth beside handlers with the same edits hard-coded", servers.run),
    "policies": ("Many policies, and their change under load", policies.run),
    "memory": ("Memory", memory.run),
    "giant": ("A pod of 3 MiB", giant.run),
    "handshakes": ("New TLS connections", handshakes.run),
    "openloop": ("Calls at fixed times, and where the time goes", openloop.run),
    "live": ("A cluster that is followed", live.run),
    "endtoend": ("Pods created on a real control plane", endtoend.run),
    "sizing": ("How many replicas", sizing.run),
    "replay": ("Recordings judged anew", replay.run),
    "audit": ("Reports of a cluster", audited.run),
    "console": ("Pages of a cluster", clicked.run),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, record. 0: measured, whatever the figures; 2: something that measuring needs is missing."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="What Berth costs, beside what others cost.")
    parser.add_argument("parts", nargs="*", metavar="PART", default=["all"], help=f"of {', '.join(PARTS)}, all (the default)")
    parser.add_argument("--quick", action="store_true", help="tiny counts, only what is built already, nothing recorded: does it work?")
    parser.add_argument("--results", type=Path, help=f"the page to record in; default: {results_page.RESULTS.name} beside this program")
    given = parser.parse_args(arguments)
    names = list(PARTS) if "all" in given.parts else given.parts
    if unknown := [name for name in names if name not in PARTS]:
        parser.error(f"there is no part {' or '.join(unknown)}; give of {', '.join(PARTS)}")
    results: Path | None = given.results or (None if given.quick else results_page.RESULTS)
    try:
        with prepared(QUICK if given.quick else FULL, _drawings(results)) as setting:
            os.sched_setaffinity(0, {setting.cores.load})
            for name in names:
                _measure(name, setting, results)
    except BenchError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    return 0


def _drawings(results: Path | None) -> Path:
    """SVGs are beside the page; of a run that records nothing, nowhere."""
    return results.parent if results else Path(os.devnull)


def _measure(name: str, setting: Setting, results: Path | None) -> None:
    title, run = PARTS[name]
    begun, machine_text = time.monotonic(), machine.described()
    lines = [f"## {title}", ""]
    print(f"\n## {title}\n", flush=True)
    for line in run(setting):
        print(line, flush=True)
        lines.append(line)
    lines += ["", f"`python -m bench {name}`: {machine_text}; took {time.monotonic() - begun:.0f} s."]
    print(lines[-1], flush=True)
    if results is not None:
        results_page.write(f"bench {name}", lines, results)


if __name__ == "__main__":
    sys.exit(main())
