"""What `berth try` says of the pods of a differential run, as the API server defaulted them: without a cluster."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.differential.forms import Case, cleaned
from tests.testcluster.addons.berth import COMMAND, ROOT

Raw = dict[str, Any]
_LINE = re.compile(r"\S* items\[(\d+)\]: Pod \".*\": (.*)")
_DENIAL = re.compile(r"(BERTH-1\d\d): ")


@dataclass(frozen=True, slots=True)
class TryResult:
    """Of one pod."""

    pod: Raw
    denials: tuple[str, ...]
    """whole sentences; empty where it is admitted"""
    warnings: tuple[str, ...]


def tried(cases: Sequence[Case], options: Sequence[str], folder: Path) -> dict[int, TryResult]:
    """By the number of the case. All are judged by one command, as the items of a List."""
    file = folder / "pods.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [item(case) for case in cases]}))
    command = [*COMMAND, "try", *options, "-o", "json", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr[-2000:]
    lines: dict[int, list[str]] = {}
    for index, line in _lines(done.stderr):
        lines.setdefault(index, []).append(line)
    items = json.loads(done.stdout)["items"]
    assert len(items) == len(lines) == len(cases), "berth try judges each pod, and says so in a line"
    return {case.number: _result_of(items[i], lines[i]) for i, case in enumerate(cases)}


def _result_of(pod: Raw, lines: Sequence[str]) -> TryResult:
    warnings = tuple(line.removeprefix("warning: ") for line in lines if line.startswith("warning: "))
    return TryResult(pod, tuple(line for line in lines if _DENIAL.match(line)), warnings)


def item(case: Case) -> Raw:
    """The pod as the API server defaulted it, in its world's namespace."""
    found = cleaned(case.plain.body)
    found["metadata"] |= {"name": f"p{case.number}", "namespace": case.world.name}
    return found


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """(index of the item, line about it)."""
    index = -1
    for line in text.splitlines():
        if (found := _LINE.fullmatch(line)) is not None:
            index = int(found.group(1))
            yield index, found.group(2)
        elif index >= 0:
            yield index, line.strip()
