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
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
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
BOOT = "import runpy, sys; sys.path[:] = ['.', *(p for p in sys.path if p != sys.argv[1])]; sys.argv[:] = sys.argv[2:]; "
BOOT += "runpy.run_module('tests.oracles', run_name='__main__', alter_sys=True)"


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
        elif parts := [part for part in Digests._fields if UNTRIED not in (b := getattr(old, part), n := getattr(new, part)) and b != n]:
            lines.append(f"{' and '.join(parts)}: {name}")
    return lines


def named(beginnings: Sequence[str]) -> list[str]:
    """Return the names that begin so; all, if nothing is said."""
    names = [name for name in oracles() if name.startswith(tuple(beginnings) or "")]
    if not names:
        raise SystemExit(
            f"no oracle begins with {' or '.join(beginnings)}; there are {', '.join(sorted({n.split('/')[0] for n in oracles()}))}"
        )
    return names


def check(beginnings: Sequence[str], processes: int) -> list[str]:
    """Return the lines of ``differences`` for these names."""
    names = named(beginnings)
    before = {name: one for name, one in recorded().items() if not beginnings or name.startswith(tuple(beginnings))}
    return differences(before, today(names, processes))


def accept(beginnings: Sequence[str], processes: int) -> list[str]:
    """Write the digests of these names anew; return what changed, as ``differences`` does."""
    before, now = recorded(), today(named(beginnings), processes)
    kept = {name: one for name, one in before.items() if name in oracles()}
    kept |= {name: one for name, one in now.items() if UNTRIED not in one or name not in kept}
    RECORDED.write_text("".join(f"{name} {' '.join(kept[name])}\n" for name in sorted(kept)))
    return differences(before, kept)


# --- the first difference ------------------------------------------------------------------------------------------------


def show(name: str) -> Iterator[str]:
    """Yield the first answer of an oracle that differs from that of the commit which wrote its digests, as a unified difference.

    That commit is checked out beside this one, and both are given the inputs of today.
    """
    value = json.loads(_json(oracles()[named([name])[0]]()))
    before = recorded().get(name)
    if before is not None and before.inputs != _digest(value):
        yield f"{name}: the inputs changed: a generator or a file that they are made of. Both sides get those of today."
    commit = _git("log", "-1", "--format=%H", "--", str(RECORDED.relative_to(ROOT)))
    if not commit:
        raise SystemExit(f"{RECORDED.name} is in no commit yet")
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
    differing = [number for number, (left, right) in enumerate(zip(old, new, strict=False)) if left != right]
    if not differing and len(old) == len(new):
        yield f"{name}: the same as in {commit}"
        return
    if not differing:
        yield f"{name}: {len(old)} answers in {commit}, {len(new)} now"
        return
    layers = Counter(part for number in differing for part in ("data", "text") if getattr(old[number], part) != getattr(new[number], part))
    yield f"{name}: {len(differing)} of {len(new)} answers differ from {commit}: " + ", ".join(
        f"{count} in {part}" for part, count in layers.items()
    )
    first = differing[0]
    yield f"The first is number {first}, {new[first].label}. Its input:"
    yield from _pretty(_input(value, first)).splitlines()[:MOST_LINES]
    for part in ("data", "text"):
        left, right = (_pretty(getattr(side[first], part)).splitlines() for side in (old, new))
        difference = list(difflib.unified_diff(left, right, f"{part} in {commit}", f"{part} now", lineterm="", n=4))
        yield from difference[:MOST_LINES]
        if len(difference) > MOST_LINES:
            yield f"... {len(difference) - MOST_LINES} more lines"


def _input(value: Mapping[str, Any], number: int) -> Any:
    """Return the part of an input that has this answer."""
    for session in value.get("sessions", ()):
        if number < len(session["reviews"]):
            path, body = session["reviews"][number]
            return {"path": path, "body": body}
        if number == len(session["reviews"]):
            return {"metrics of": session["world"]["policies"]}
        number -= len(session["reviews"]) + 1
    return {"words": value["words"], "files": [*value["files"]]} if "words" in value else [*value.get("texts", ())]


def _pretty(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return "\n".join(value)
    return value if isinstance(value, str) else json.dumps(value, indent=1, ensure_ascii=False)


def main(words: Sequence[str]) -> int:
    """Do what the words say; return the exit code."""
    processes = os.cpu_count() or 1
    match words:
        case ["answer", path]:
            print("\n".join(_json(one) for one in observed(json.loads(Path(path).read_text()))))
            return 0
        case ["show", name]:
            print("\n".join(show(name)))
            return 0
        case ["accept", *beginnings]:
            changed = accept(beginnings, processes)
            print("\n".join(summary(changed)) or "nothing changed")
            return 0
    changed = check(words, processes)
    print("\n".join(changed) or f"{len(named(words))} oracles: as recorded")
    if changed:
        print(f"python -m tests.oracles show {changed[0].rpartition(': ')[2]}", file=sys.stderr)
    return bool(changed)


def summary(changed: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a message of a commit: blocks of reviews are counted, all else is named."""
    counts = Counter(line.rpartition("/random-")[0] for line in changed if "/random-" in line)
    yield from (f"{line}/random: {count} blocks" for line, count in counts.items())
    yield from (line for line in changed if "/random-" not in line)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
