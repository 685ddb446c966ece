"""What Berth answers today, as digests, so that a change of the code which changes nothing else can be told from one that does.

python -m tests.oracles                     compares all, on every core (some minutes)
python -m tests.oracles NAME ...            compares those whose names begin so
python -m tests.oracles show NAME           shows the first difference, with the commit that wrote the digests
python -m tests.oracles accept [NAME ...]   writes the digests anew and lists what changed, for the message of the commit
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from tests.oracles import adapter
from tests.oracles.inputs import ROOT, oracles
from tests.oracles.layers import Seen, rendered_data

RECORDED = Path(__file__).parent / "digests.txt"
UNTRIED = "untried"
"""Stands for the digests of what nothing can be had for here: renderings of the chart where there is no Go to build Helm with."""
MOST_LINES = 200
"""Lines of a difference that are shown."""
BOOT = """
import os, runpy, sys
sys.path[:] = [os.getcwd(), *(place for place in sys.path if place not in ("", sys.argv[1]))]
sys.argv[:] = sys.argv[2:]
runpy.run_module("tests.oracles", run_name="__main__", alter_sys=True)
"""
"""Runs these oracles of the tree in the current folder; the first word is the folder of this tree, of which nothing is then imported."""


class Digests(NamedTuple):
    """Of an input, and of the two layers of its output."""

    inputs: str
    data: str
    text: str


def observed(value: Mapping[str, Any]) -> Iterator[Seen]:
    """Yield what Berth answers to an input."""
    if "sessions" in value:
        for session in value["sessions"]:
            yield from adapter.answers(session)
    elif "words" in value:
        yield from adapter.command(dict(value))
    elif "chart" in value:
        yield from filter(None, [adapter.rendering(value["chart"])])
    else:
        yield from (Seen(name, rendered_data(text), text) for name, text in value["texts"].items())


def digests(name: str) -> Digests:
    """Return the digests of today."""
    value = json.loads(_json(oracles()[name]()))
    seen = list(observed(value))
    if not seen:
        return Digests(_digest(value), UNTRIED, UNTRIED)
    return Digests(_digest(value), _digest([one.data for one in seen]), _digest([[one.label, one.text] for one in seen]))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True)


def _digest(value: Any) -> str:
    return hashlib.sha256(_json(value).encode()).hexdigest()[:12]


def recorded() -> dict[str, Digests]:
    """Return the digests of the repository."""
    lines = [line.split() for line in RECORDED.read_text().splitlines()] if RECORDED.exists() else []
    return {name: Digests(*rest) for name, *rest in lines}


def today(names: Sequence[str], processes: int) -> dict[str, Digests]:
    """Return the digests of today, computed by so many processes."""
    if processes == 1:
        return {name: digests(name) for name in names}
    with ProcessPoolExecutor(processes) as pool:
        return dict(zip(names, pool.map(digests, names, chunksize=8), strict=True))


def differences(before: Mapping[str, Digests], now: Mapping[str, Digests]) -> list[str]:
    """Return a line for each input whose digests differ: what of it, and its name."""
    lines = []
    for name in sorted({*before, *now}):
        old, new = before.get(name), now.get(name)
        if old is None or new is None:
            lines.append(f"{'new' if old is None else 'gone'}: {name}")
        elif parts := [
            part for part, left, right in zip(Digests._fields, old, new, strict=True) if left != right and UNTRIED not in (left, right)
        ]:
            lines.append(f"{' and '.join(parts)}: {name}")
    return lines


def named(beginnings: Sequence[str]) -> list[str]:
    """Return the names that begin so; all, if nothing is said."""
    names = [name for name in oracles() if name.startswith(tuple(beginnings) or "")]
    if not names:
        raise SystemExit(f"no oracle begins with {' or '.join(beginnings)}; they are in {RECORDED}")
    return names


def check(beginnings: Sequence[str], processes: int) -> list[str]:
    """Return the lines of ``differences`` for these names."""
    names = named(beginnings)
    before = {name: one for name, one in recorded().items() if not beginnings or name.startswith(tuple(beginnings))}
    return differences(before, today(names, processes))


def accept(beginnings: Sequence[str], processes: int) -> list[str]:
    """Write the digests of these names anew; return what changed, as ``differences`` does."""
    now = today(named(beginnings), processes)
    before = recorded()
    kept = {name: one for name, one in before.items() if name in oracles()}
    kept |= {name: one for name, one in now.items() if UNTRIED not in one or name not in kept}
    RECORDED.write_text("".join(f"{name} {' '.join(kept[name])}\n" for name in sorted(kept)))
    return differences(before, kept)


# --- the first difference ------------------------------------------------------------------------------------------------


def show(name: str) -> Iterator[str]:
    """Yield the first answer of an oracle that differs from that of the commit which wrote its digests, as a unified difference.

    That commit is checked out beside this one, and both are given the inputs of today.
    """
    name = named([name])[0]
    value = json.loads(_json(oracles()[name]()))
    before = recorded().get(name)
    if before is None:
        raise SystemExit(f"{name} is not recorded: python -m tests.oracles accept {name}")
    if before.inputs != _digest(value):
        yield f"{name}: the inputs changed: a generator or a file that they are made of. Both sides get those of today."
    commit = _git("log", "-1", "--format=%H", f"-S{name} {' '.join(before)}", "--", str(RECORDED.relative_to(ROOT)))
    if not commit:
        raise SystemExit(f"{name}: its digests are in no commit yet")
    with tempfile.TemporaryDirectory() as folder:
        asked, tree = Path(folder, "input.json"), Path(folder, "tree")
        asked.write_text(_json(value))
        _git("worktree", "add", "--detach", str(tree), commit)
        try:
            old, new = (_answered_in(place, asked) for place in (tree, ROOT))
        finally:
            _git("worktree", "remove", "--force", str(tree))
    yield from _first_difference(name, value, commit[:12], old, new)


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def _answered_in(tree: Path, asked: Path) -> list[Seen]:
    """Return what the code of a tree answers."""
    command = [sys.executable, "-c", BOOT, str(ROOT), "tests.oracles", "answer", str(asked)]
    answered = subprocess.run(command, cwd=tree, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [Seen(*json.loads(line)) for line in answered.splitlines()]


def _first_difference(name: str, value: Mapping[str, Any], commit: str, old: Sequence[Seen], new: Sequence[Seen]) -> Iterator[str]:
    pairs = [*zip_longest(old, new, fillvalue=Seen("", None, None))]
    differing = [number for number, (left, right) in enumerate(pairs) if left != right]
    if not differing:
        yield f"{name}: the same as in {commit}"
        return
    counts = {part: sum(getattr(pairs[at][0], part) != getattr(pairs[at][1], part) for at in differing) for part in ("data", "text")}
    yield f"{name}: {len(differing)} of {len(pairs)} answers differ from {commit}: {counts['data']} in data, {counts['text']} in text"
    first = pairs[differing[0]]
    yield f"The first is number {differing[0]}, {first[1].label}. What is asked:"
    yield from _pretty(_input(value, differing[0])).splitlines()[:MOST_LINES]
    for part in ("data", "text"):
        left, right = (_pretty(getattr(side, part)).splitlines() for side in first)
        difference = list(difflib.unified_diff(left, right, f"{part} in {commit}", f"{part} now", lineterm="", n=4))
        yield from difference[:MOST_LINES]
        if len(difference) > MOST_LINES:
            yield f"... {len(difference) - MOST_LINES} more lines"


def _input(value: Mapping[str, Any], number: int) -> Any:
    """Return the part of an input that has this answer."""
    for session in value.get("sessions", ()):
        if number <= len(session["reviews"]):  # the last answer is the metrics
            return [session["reviews"][number : number + 1], session["world"]]
        number -= len(session["reviews"]) + 1
    return {"words": value["words"], "files": [*value["files"]]} if "words" in value else None


def _pretty(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return "\n".join(value)
    return value if isinstance(value, str) else json.dumps(value, indent=1, ensure_ascii=False)


def summary(changed: Iterable[str]) -> Iterator[str]:
    """Yield the lines of ``differences`` for a message of a commit: one for all blocks of reviews, and for all forms of a command."""
    counts = Counter(re.sub(r"-\d+$|_.*", "", line) for line in changed)
    yield from (f"{line} ({count})" for line, count in counts.items())


def main(words: Sequence[str]) -> int:
    """Do what the words say; return the exit code."""
    processes = os.cpu_count() or 1
    match words:
        case ["answer", path]:
            lines: Iterable[str] = map(_json, observed(json.loads(Path(path).read_text())))
        case ["show", name]:
            lines = show(name)
        case ["accept", *beginnings]:
            lines = summary(accept(beginnings, processes))
        case _:
            changed = check(words, processes)
            print("\n".join(changed) or f"{len(named(words))} oracles are as recorded")
            return bool(changed)
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
