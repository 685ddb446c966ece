"""A replay for machines that test: JUnit XML, and workflow commands of GitHub Actions."""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

from analysis.replay.tally import ChangedGroup, GroupLine
from cli.replaying.text_output import WORDS, name, name_workload, ordered, sentence, side, stake
from cli.replaying.total import Total
from documents.printable import counted, printable

_LONGEST = 1000
_SUITE = "berth replay"


def junit(total: Total, statements: list[str]) -> Iterator[str]:
    """Yield JUnit XML: a suite for each namespace, a failure for each difference of a workload, and one test that passes for
    the pods that are decided as then."""
    groups: dict[str, list[tuple[ChangedGroup, GroupLine]]] = {}
    for group, line in ordered(total.tally.groups.items()):
        groups.setdefault(group.namespace, []).append((group, line))
    suites = sorted(total.tally.namespaces.items())
    tests = sum(_tests(line, groups.get(namespace, [])) for namespace, line in suites)
    failures = len(total.tally.groups)
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f'<testsuites name="{_SUITE}" tests="{tests}" failures="{failures}">'
    for namespace, line in suites:
        failed = groups.get(namespace, [])
        yield f'  <testsuite name={_quoted(namespace)} tests="{_tests(line, failed)}" failures="{len(failed)}">'
        yield from _cases(total, namespace, line, failed)
        yield "  </testsuite>"
    yield f"  <system-out>{_text(sentence(total))}"
    yield from map(_text, statements)
    yield "</system-out>"
    yield "</testsuites>"


def _tests(line: GroupLine, failed: list[tuple[ChangedGroup, GroupLine]]) -> int:
    """Return the number of tests of a namespace: one is of all pods that are decided as then."""
    return len(failed) + (line.pods > line.otherwise)


def _cases(total: Total, namespace: str, line: GroupLine, groups: list[tuple[ChangedGroup, GroupLine]]) -> Iterator[str]:
    if same := line.pods - line.otherwise:
        yield f"    <testcase classname={_quoted(namespace)} name={_quoted(counted(same, 'pod') + ' with the same decision')}/>"
    for group, found in groups:
        title = f"{name_workload(group.workload)}: {counted(found.pods, 'pod')} {WORDS[group.difference.turn]}"
        yield f"    <testcase classname={_quoted(namespace)} name={_quoted(title)}>"
        yield f'      <failure type="{group.difference.turn}" message={_quoted(_message(group, found))}>'
        yield from map(_text, _details(total, group))
        yield "      </failure>"
        yield "    </testcase>"


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


def _quoted(text: str) -> str:
    return quoteattr(_valid(text))


def _text(text: str) -> str:
    return escape(_valid(text))


def _valid(text: str) -> str:
    """Return the text without characters that XML 1.0 has no form for, or that turn its lines around."""
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
