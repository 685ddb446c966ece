"""``make prove``: every test with its full counts, and the outcome in bench/RESULTS.md with the date and the versions."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import version

from tests.support import results_page

PACKAGES = ("cryptography", "httptools", "hypothesis", "orjson", "prometheus-client", "uvloop")


def main() -> int:
    """Run pytest on every core, pass its output on, and record its closing line; pytest's exit code."""
    command = [sys.executable, "-m", "pytest", "--durations=10", "-n", "auto", "--dist", "loadfile", "--no-loadscope-reorder"]
    lines = []
    with subprocess.Popen(command, env={**os.environ, "BERTH_PROVE": "1"}, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line.rstrip())
    results_page.write("prove", section(lines, datetime.now(UTC)))
    print(f"recorded in {results_page.RESULTS.name}")
    return process.returncode


def section(lines: Iterable[str], now: datetime) -> list[str]:
    """The part of RESULTS.md that ``make prove`` owns, from pytest's output."""
    texts = list(lines)
    closing = texts[-1].strip("= ") if texts else "nothing ran"
    slowest = [line.strip() for line in texts if re.match(r"\s*\d+\.\d+s (call|setup)", line)]
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return [
        "## make prove",
        "",
        f"{now:%Y-%m-%d}, CPython {platform.python_version()}, {platform.system()} {platform.machine()}; {versions}.",
        "",
        f"Outcome: **{closing}**. The longest:",
        "",
        "```",
        *slowest,
        "```",
    ]


if __name__ == "__main__":
    sys.exit(main())
