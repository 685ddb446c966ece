"""Answer what Berth costs, beside what others cost (``make bench``). The tables go into bench/RESULTS.md.

    python -m bench [all | QUESTION ...] [--quick] [--rounds N] [--results FILE]
    python -m bench ab --other CHECKOUT [--rounds N]     compare this checkout of Berth with another one; nothing is recorded

Needs Linux, two cores, Go and wrk (or BERTH_WRK=/path/to/wrk). All of it takes some half an hour, after the rivals are built.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from bench.harness.setting import BenchSetting, prepared
from bench.questions import ab, audit, console, endtoend, holds, memory, openloop, policies, replay, servers, sizing
from tests.support import machine, results_page
from tests.support.machine import BenchError

QUESTIONS: dict[str, tuple[str, Callable[[BenchSetting], Iterable[str]]]] = {
    "servers": ("Berth beside handlers with the same edits hard-coded", servers.servers),
    "holds": ("The longest hold of the event loop", holds.run),
    "policies": ("Many policies, and their change under load", policies.run),
    "memory": ("Memory", memory.run),
    "giant": ("A pod of 3 MiB", servers.giant),
    "handshakes": ("New TLS connections", servers.handshakes),
    "openloop": ("Calls at fixed times", openloop.run),
    "endtoend": ("Pods created on a real control plane", endtoend.run),
    "sizing": ("How many replicas", sizing.run),
    "replay": ("Recordings evaluated again", replay.run),
    "audit": ("Reports of a cluster", audit.run),
    "console": ("Pages of a cluster", console.run),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, record. Return 0 whatever the figures are, and 2 if something that measuring needs is missing."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="What Berth costs, beside what others cost.")
    parser.add_argument("questions", nargs="*", metavar="QUESTION", default=["all"], help=f"{', '.join(QUESTIONS)}, ab, all (the default)")
    parser.add_argument("--quick", action="store_true", help="tiny amounts, only what is built already, nothing recorded: does it work?")
    parser.add_argument("--rounds", type=int, help="how many rounds; default: 7, of ab 20")
    parser.add_argument("--other", type=Path, metavar="CHECKOUT", help="the checkout that ab compares this one with")
    parser.add_argument("--results", type=Path, help=f"the page to record in; default: {results_page.RESULTS.name} beside this program")
    given = parser.parse_args(arguments)
    every = {**QUESTIONS, "ab": ("Two checkouts of Berth", ab.run)}
    names = list(QUESTIONS) if "all" in given.questions else given.questions
    if unknown := [name for name in names if name not in every]:
        parser.error(f"there is no question {' or '.join(unknown)}; give {', '.join(every)}")
    results: Path | None = given.results or (None if given.quick else results_page.RESULTS)
    try:
        cores = machine.cores()
        for name in names:
            rounds = given.rounds or (1 if given.quick else 20 if name == "ab" else 7)
            with prepared(cores, quick=given.quick, rounds=rounds, other=given.other and given.other.resolve()) as setting:
                os.sched_setaffinity(0, {cores.load})
                _answer(name, *every[name], setting, None if name == "ab" else results)
    except BenchError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    return 0


def _answer(name: str, title: str, run: Callable[[BenchSetting], Iterable[str]], setting: BenchSetting, results: Path | None) -> None:
    begun, machine_text, lines = time.monotonic(), machine.described(), [f"## {title}", ""]
    print(f"\n## {title}\n", flush=True)
    for line in run(setting):
        print(line, flush=True)
        lines.append(line)
    footer = f"`python -m bench {name}`: {machine_text}; took {time.monotonic() - begun:.0f} s."
    print(f"\n{footer}", flush=True)
    if results is not None:
        results_page.write(f"bench {name}", [*lines, "", footer], results)


if __name__ == "__main__":
    sys.exit(main())
