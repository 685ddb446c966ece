"""A replay for machines that test: JUnit XML, and workflow commands of GitHub Actions."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.replay.tally import ChangedGroup, GroupLine
from cli.output.junit import JUnitCase, format_junit
from cli.replaying.text_output import WORDS, name, name_workload, ordered, sentence, side, stake
from cli.replaying.total import Total
from documents.printable import counted, printable

_LONGEST = 1000
_SUITE = "berth replay"


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
        yield f"pod {name(example.pod)}, {printable(str(place), _LONGEST)}"
        yield from (printable(reason, _LONGEST) for reason in example.reasons)
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
