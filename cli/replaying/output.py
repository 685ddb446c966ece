"""The output of a replay: text, JSON, JUnit XML, and workflow commands of GitHub Actions; and what was not compared, in sentences."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from analysis.replay.creations import Passed
from analysis.replay.difference import TURNS, Difference, Side, Turn
from analysis.replay.tally import ChangedGroup, GroupLine
from catalog.nearest import list_known
from cli.output.junit import JUnitCase, format_junit
from cli.output.table import OutputTable, Row, Styled
from cli.replaying.total import Total
from cli.terminal.screen import PLAIN, Style, Terminal
from documents.printable import counted, printable
from policies.document import InputError

WORDS: dict[Turn, str] = {
    "newly-denied": "newly denied",
    "newly-admitted": "newly admitted",
    "other-reasons": "denied differently",
    "other-edits": "edited differently",
    "other-would": "audited differently",
}
"""``audited differently``: policies in Audit or Warn would do something else."""
_HEADS = tuple(WORDS[turn].upper() for turn in TURNS)
MOST_ROWS = 50
"""Groups of pods in the text: what is read at one sitting. The JSON has all."""
_LONGEST = 320
"""Characters of a name in a table: a kind and a name of Kubernetes, whose longest has 253."""
_STYLES: dict[Turn, Style] = {"newly-denied": "bad", "newly-admitted": "good", "other-reasons": "unsure", "other-edits": "unsure"}
_LONGEST_REASON = 1000
_SUITE = "berth replay"
_MOST_FIELDS = 4
_SENTENCES: dict[Passed, str] = {
    "accelerator": "pods that request no accelerator",
    "stage": "pod events at stages other than ResponseComplete",
    "dry-run": "dry runs",
    "resource": "entries about other resources than pods",
    "verb": "pod events that create no pod: reads, deletions, changes of subresources",
    "update": "updates of pods (an audit log does not have the previous pod)",
    "level": "creations at level Metadata, which does not include the pod; log pods at level Request",
    "truncated": "creations whose event was truncated; raise --audit-log-truncate-max-event-size",
    "early": "creations that failed before the API server read the pod",
    "excluded": "pods in namespaces that Berth is not called for",
    "namespace": "pods in other namespaces",
    "repeated": "duplicate events, counted once",
    "large": "pods that are too large to evaluate",
    "unshaped": "objects that are not valid pods",
    "kind": "objects that are not recordings; to check manifests, use berth try FILE",
    "unreadable": "entries that are not JSON",
    "beginning": "files that begin in the middle of a line",
    "end": "files that end in the middle of a line",
    "long": "lines that are too long to be an event",
}
PLACED: tuple[Passed, ...] = ("unreadable", "long", "unshaped", "large", "truncated", "kind")
"""Reasons of which the first place is told."""
NO_RECORD: tuple[Passed, ...] = ("level", "truncated")
"""Pods that were created, and of which the recording has nothing that can be judged."""


def name(text: str) -> str:
    """Return a name of the recording as it is shown: in one line, without characters that do something to a terminal."""
    return printable(text, _LONGEST)


def name_workload(kind_and_name: tuple[str, str]) -> str:
    """Return ``Job/train``; for pods that nobody owns, words."""
    kind, own = kind_and_name
    return name(f"{kind}/{own}") if own else "pods without an owner"


def side(one: Side) -> str:
    """Return one of two decisions: ``denied (BERTH-104)``, ``edited (tolerations, affinity)``."""
    shown = [*one.codes, *one.fields]
    return f"{one.word} ({list_known(map(name, shown), _MOST_FIELDS)})" if shown else one.word


def sentence(total: Total) -> str:
    """Return the result in one sentence."""
    tally = total.tally
    decided = f"{tally.words['admitted']} admitted unchanged, {tally.words['edited']} edited, {tally.words['denied']} denied"
    if not tally.all.pods:
        return "No pod was evaluated."
    if not tally.compared:
        return f"{counted(tally.all.pods, 'pod')} with accelerators: {decided}. The earlier decisions are unknown."
    among = f"Of {counted(tally.all.pods, 'pod')} with accelerators"
    if tally.compared < tally.all.pods:
        among += f" ({tally.compared} with an earlier decision)"
    if not tally.all.otherwise:
        return f"{among}, none has a different decision now: {decided}."
    turns = ", ".join(f"{tally.all.turns[turn]} {WORDS[turn]}" for turn in TURNS if tally.all.turns[turn])
    number = tally.all.otherwise
    return f"{among}, {number} {'has' if number == 1 else 'have'} a different decision now ({stake(tally.all)}): {turns}."


def stake(line: GroupLine) -> str:
    """Return ``8 GPUs, 32.77 USD/h at the least``."""
    return counted(line.gpus, "GPU") + ("" if line.usd is None else f", {line.usd:.2f} USD/h at least")


def ordered(groups: Iterable[tuple[ChangedGroup, GroupLine]]) -> list[tuple[ChangedGroup, GroupLine]]:
    """Return the groups, the gravest differences first, then the most pods."""
    return sorted(groups, key=lambda one: (TURNS.index(one[0].difference.turn), -one[1].pods, one[0]))


def format_text(total: Total, screen: Terminal = PLAIN) -> Iterator[str]:
    """Yield the lines of the text."""
    yield sentence(total)
    tally = total.tally
    if not tally.all.otherwise:
        return
    for head, lines in (("POLICY", tally.policies), ("NAMESPACE", tally.namespaces)):
        yield ""
        rows = [(name(key), *_cells(line)) for key, line in sorted(lines.items(), key=lambda one: (-one[1].otherwise, one[0]))]
        yield from OutputTable((head, "PODS", *_HEADS, "GPUS", "USD/H"), rows[:MOST_ROWS]).text(screen)
        yield from _more(len(rows) - MOST_ROWS)
    yield ""
    yield from groups_table(total, screen)
    for group, _ in ordered(tally.groups.items())[:MOST_ROWS]:
        yield from _example(total, group, screen)


def groups_table(total: Total, screen: Terminal = PLAIN) -> Iterator[str]:
    """Yield the table of workloads with what is decided otherwise of them."""
    groups = ordered(total.tally.groups.items())
    heads = ("NAMESPACE", "WORKLOAD", "PODS", "GPUS", "USD/H", "DIFFERENCE", "BEFORE", "NOW", "POLICIES")
    yield from OutputTable(heads, [_row(group, line) for group, line in groups[:MOST_ROWS]]).text(screen)
    yield from _more(len(groups) - MOST_ROWS)


def _more(number: int) -> Iterator[str]:
    if number > 0:
        yield f"and {number} more; -o json lists them"


def _usd(line: GroupLine) -> str:
    return "" if line.usd is None else f"{line.usd:.2f}"


def _cells(line: GroupLine) -> tuple[str, ...]:
    return str(line.pods), *(str(line.turns[turn]) for turn in TURNS), str(line.gpus), _usd(line)


def _row(group: ChangedGroup, line: GroupLine) -> Row:
    found = group.difference
    names = ", ".join(name(policy) for policy in found.policies)
    counts = str(line.pods), str(line.gpus), _usd(line)
    turn = Styled(WORDS[found.turn], _STYLES.get(found.turn))
    return name(group.namespace), name_workload(group.workload), *counts, turn, side(found.then), side(found.now), names


def _example(total: Total, group: ChangedGroup, screen: Terminal) -> Iterator[str]:
    if group not in total.examples:
        return
    place, example = total.examples[group]
    if not example.diff and not example.reasons:
        return
    where = f"{name(group.namespace)} {name_workload(group.workload)}, pod {name(example.pod)} ({printable(str(place))})"
    yield ""
    if example.diff:
        lines = [f"--- {where}, before", f"+++ {where}, now", *example.diff]
        yield from screen.paint_diff(lines)
    else:
        yield f"{where} is now {screen.paint('bad', 'denied')}:"
    yield from (f"  {printable(reason, _LONGEST_REASON)}" for reason in example.reasons)


# --- JSON ---------------------------------------------------------------------------------------------------


def as_json(total: Total) -> str:
    """Return everything as JSON."""
    tally = total.tally
    value = {
        "pods": tally.all.pods,
        "compared": tally.compared,
        "decided": {word: tally.words[word] for word in ("admitted", "edited", "denied")},
        "admittedWithoutBerth": tally.away,
        **_counts(tally.all),
        "policies": [{"policy": key, **_line(line)} for key, line in sorted(tally.policies.items())],
        "namespaces": [{"namespace": key, **_line(line)} for key, line in sorted(tally.namespaces.items())],
        "differences": [_group(total, group, line) for group, line in ordered(tally.groups.items())],
        "left": dict(tally.left),
        "passedOver": {reason: number for reason, number in sorted(total.passed.items()) if number},
        "files": [{"file": file, "lines": lines} for file, lines in total.files.items()],
    }
    return json.dumps(value, indent=2) + "\n"


def _counts(line: GroupLine) -> dict[str, Any]:
    usd = None if line.usd is None else round(line.usd, 2)
    return {"otherwise": line.otherwise, "turns": {turn: line.turns[turn] for turn in TURNS}, "gpus": line.gpus, "usdPerHour": usd}


def _line(line: GroupLine) -> dict[str, Any]:
    return {"pods": line.pods, **_counts(line)}


def _group(total: Total, group: ChangedGroup, line: GroupLine) -> dict[str, Any]:
    found: Difference = group.difference
    kind, own = group.workload
    value: dict[str, Any] = {
        "namespace": group.namespace,
        "workload": {"kind": kind, "name": own} if own else None,
        "turn": found.turn,
        "policies": list(found.policies),
        "pods": line.pods,
        "gpus": line.gpus,
        "usdPerHour": None if line.usd is None else round(line.usd, 2),
        "then": _side(found.then),
        "now": _side(found.now),
    }
    if group in total.examples:
        place, example = total.examples[group]
        value["example"] = {"pod": example.pod, "file": place.file, "line": place.line or None, "reasons": list(example.reasons)}
        if example.diff:
            value["diff"] = list(example.diff)
    return value


def _side(one: Side) -> dict[str, Any]:
    return {"decision": one.word, "codes": list(one.codes), "fields": list(one.fields)}


# --- sentences ----------------------------------------------------------------------------------------------


def passed_over(total: Total) -> Iterator[str]:
    """Yield a sentence for each reason why something was passed over."""
    for reason, sentence in _SENTENCES.items():
        if number := total.passed[reason]:
            place = f"; the first: {total.first[reason]}" if reason in PLACED and reason in total.first else ""
            yield f"skipped: {sentence} ({number}{place})"
    if total.reports:
        yield f"reports, compared with the pods that exist now ({len(total.reports)})"
    yield from (f"{file}: the compressed data is incomplete; the part before is evaluated" for file in total.damaged)


def uncompared(total: Total) -> Iterator[str]:
    """Yield a sentence if nobody knows what was decided of some pods then."""
    tally = total.tally
    if missing := tally.all.pods - tally.compared:
        yield f"pods without a recorded decision are only counted ({missing}); to compare them, pass the old policies: --against PATH"
    if tally.away:
        yield f"pods admitted while Berth did not answer, compared as admitted unchanged ({tally.away})"


def nothing_to_judge(total: Total) -> InputError | None:
    """Return an error where a recording of pods has none that can be judged: it would say that nothing differs."""
    if total.tally.all.pods or not (found := [reason for reason in NO_RECORD if total.passed[reason]]):
        return None
    file = total.first[found[0]].file
    number = total.passed[found[0]]
    return InputError(file=file, message=f"has nothing to evaluate: {_SENTENCES[found[0]]} ({number})")


# --- CI -----------------------------------------------------------------------------------------------------


def junit(total: Total, statements: list[str]) -> str:
    """Return JUnit XML: a suite for each namespace, a failure for each difference of a workload, and one test that passes for
    the pods that are decided as then."""
    suites: dict[str, list[JUnitCase]] = {}
    for namespace, line in sorted(total.tally.namespaces.items()):
        same = line.pods - line.otherwise
        suites[namespace] = [JUnitCase(namespace, f"{counted(same, 'pod')} with the same decision")] if same else []
    for group, line in ordered(total.tally.groups.items()):
        turn = group.difference.turn
        title = f"{name_workload(group.workload)}: {counted(line.pods, 'pod')} {WORDS[turn]}"
        case = JUnitCase(group.namespace, title, failure=_message(group, line), type=turn, details=list(_details(total, group)))
        suites.setdefault(group.namespace, []).append(case)
    return format_junit(_SUITE, suites, [sentence(total), *statements])


def _message(group: ChangedGroup, line: GroupLine) -> str:
    found = group.difference
    due = f", by {', '.join(map(name, found.policies))}" if found.policies else ""
    return f"before: {side(found.then)}, now: {side(found.now)}{due} ({stake(line)})"


def _details(total: Total, group: ChangedGroup) -> Iterator[str]:
    if group in total.examples:
        place, example = total.examples[group]
        yield f"pod {name(example.pod)}, {printable(str(place), _LONGEST_REASON)}"
        yield from (printable(reason, _LONGEST_REASON) for reason in example.reasons)
        yield from example.diff


def _valid(text: str) -> str:
    """Return the text without characters that are not printable."""
    return "".join(one if one.isprintable() else " " for one in text)


def github(total: Total, statements: list[str]) -> Iterator[str]:
    """Yield workflow commands: a warning for each difference of a workload, and notices with the result."""
    for group, line in ordered(total.tally.groups.items()):
        title = f"{counted(line.pods, 'pod')} {WORDS[group.difference.turn]}"
        message = f"{name(group.namespace)} {name_workload(group.workload)}: {_message(group, line)}"
        details = "\n".join(_valid(one) for one in _details(total, group))
        yield f"::warning title={_property(title)}::{_data(message)}%0A{_data(details)}"
    yield f"::notice title={_SUITE}::{_data(sentence(total))}"
    for statement in statements:
        yield f"::notice title={_SUITE}::{_data(_valid(statement))}"


def _data(text: str) -> str:
    """Escape as the runner reads it (actions/toolkit, packages/core/src/command.ts escapeData)."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Escape as the runner reads it (escapeProperty)."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
