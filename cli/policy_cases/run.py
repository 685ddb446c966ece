"""One run over files and folders of cases: each decided, compared, and filled in where that is asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import yaml

from cli.policy_cases import case as cases
from cli.policy_cases.case import Case
from cli.policy_cases.coverage import Coverage
from cli.policy_cases.decisions import read_request
from cli.policy_cases.files import Seen, files, look
from cli.policy_cases.outcome import Sentence
from cli.policy_cases.worlds import CaseError, Worlds
from cli.terminal.progress import each
from documents.diff import unified
from documents.files import read_documents
from documents.yaml_reader import one_value
from kube.pod import PodError
from policies.document import Document, InputError

Result = Literal["passed", "failed", "written"]
Fill = Literal["nothing", "empty", "all"]
"""Which expectations are written: none, those that are empty, or all."""
KEY = "expect"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """One case and what came of it."""

    case: Case
    result: Result
    outcome: Mapping[str, Any]
    diff: Sequence[str] = ()
    """Expected against actual, of a case that failed."""


@dataclass(slots=True, kw_only=True)
class Run:
    """The results so far."""

    tested: list[Tested] = field(default_factory=list)
    errors: list[InputError] = field(default_factory=list)
    warnings: Sequence[str] = ()
    coverage: Coverage = field(default_factory=Coverage)
    seen: Seen = field(default_factory=dict)
    """All files and folders that the results rest on, as they looked before they were read."""

    @property
    def failed(self) -> list[Tested]:
        return [one for one in self.tested if one.result == "failed"]


def run(paths: Sequence[str], defaults: Mapping[str, Any], fill: Fill = "nothing") -> Run:
    """Test every case. ``defaults``: for keys that a case leaves out."""
    found, worlds = Run(), Worlds()
    found.seen = worlds.seen
    found.seen |= {path: look(path) for path in paths}
    named = list(dict.fromkeys(files(paths)))
    found.errors += [one for one in named if isinstance(one, InputError)]
    sources = [one for one in named if isinstance(one, str)]
    documents, errors = read_documents(sources) if sources else ([], [])
    found.errors += errors
    for document in each("tested", "documents", documents):
        if cases.is_object(document):
            continue
        case = cases.read_case(document, defaults)
        if isinstance(case, Case):
            _test(found, case, worlds, fill)
        else:
            found.errors += case
    if not found.tested and not found.errors:
        found.errors.append(
            InputError(file=", ".join(paths), message="has no test case; a case is a map with why, policies, pod and expect")
        )
    found.errors = list(dict.fromkeys(found.errors))
    found.warnings = tuple(worlds.warnings)
    return found


def _test(found: Run, case: Case, worlds: Worlds, fill: Fill) -> None:
    try:
        question = read_request(case, worlds)
        decision = question.decide()
        diff = differences(case.expected, decision.outcome)
        result: Result = "failed" if diff else "passed"
        if diff and (fill == "all" or (fill == "empty" and not case.expected)):
            write_expectation(case.document, decision.outcome)
            result, diff = "written", []
    except CaseError as error:
        found.errors += error.errors
        return
    except InputError as error:
        found.errors.append(error)
        return
    except PodError as error:
        found.errors.append(case.document.error(("pod",), str(error)))
        return
    except OSError as error:
        found.errors.append(InputError(file=case.document.file, message=f"cannot be written: {error.strerror}"))
        return
    found.coverage.add(question, decision)
    found.tested.append(Tested(case=case, result=result, outcome=decision.outcome, diff=diff))


def differences(expected: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """Return the lines of a diff of the two as YAML; none where they are equal.

    Equal as data: the order of keys does not matter, empty parts are left out, and an expected sentence may be its
    code alone.
    """
    meant = _without_empty(_meant(expected, found))
    came = _without_empty(_plain(found))
    before, after = _text(meant), _text(came)
    if before == after:
        return []
    return unified(_aligned(meant, came), came, "expected", "actual") or [f"-{before}", f"+{after}"]


def _meant(expected: Any, found: Any) -> Any:
    """Return what is expected, with the whole sentence where its code is expected in that place."""
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        return {key: _meant(value, found.get(key)) for key, value in expected.items()}
    if isinstance(expected, list) and isinstance(found, list):
        return [_meant(one, found[at] if at < len(found) else None) for at, one in enumerate(expected)]
    return str(found) if isinstance(found, Sentence) and expected == found.code else expected


def _plain(found: Any) -> Any:
    if isinstance(found, Mapping):
        return {key: _plain(value) for key, value in found.items()}
    if isinstance(found, list):
        return [_plain(one) for one in found]
    return str(found) if isinstance(found, str) else found


def _without_empty(expected: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in expected.items() if value not in ([], False, 0)}


def _aligned(value: Any, like: Any) -> Any:
    """Return a value with its keys in the order of another one, so that only what differs is shown."""
    if isinstance(value, dict) and isinstance(like, dict):
        order = [*(key for key in like if key in value), *(key for key in value if key not in like)]
        return {key: _aligned(value[key], like.get(key)) for key in order}
    if isinstance(value, list) and isinstance(like, list):
        return [_aligned(one, like[at] if at < len(like) else None) for at, one in enumerate(value)]
    return value


def _text(value: Any) -> str:
    """Return a value for comparison: in Python 1 equals true, in JSON it does not."""
    return json.dumps(value, sort_keys=True)


class _InlineMap(dict[str, Any]):
    """A map that is written on one line."""


class _Dumper(yaml.SafeDumper):
    """Lists indented, sentences and edits on one line."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: FBT001, FBT002 - as PyYAML calls it
        super().increase_indent(flow=flow, indentless=False)

    def ignore_aliases(self, data: object) -> bool:
        return True


def _text_node(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    """Quote text that kubectl's grammar, by which cases are read, takes for something else: y, 1e3."""
    misread = one_value(f"- {value}\n") != [value]
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(value), style="'" if misread else None)


_Dumper.add_representer(_InlineMap, lambda dumper, row: dumper.represent_mapping("tag:yaml.org,2002:map", row, flow_style=True))
_Dumper.add_representer(str, _text_node)
_Dumper.add_representer(Sentence, _text_node)


def _rows(value: Any) -> Any:
    """Edits and operations as rows, wherever they stand."""
    if isinstance(value, dict):
        return _InlineMap(value) if "op" in value else {key: _rows(item) for key, item in value.items()}
    return [_rows(item) for item in value] if isinstance(value, list) else value


def format_outcome(found: Mapping[str, Any]) -> str:
    """Return an outcome as it stands in a file, without the last line end."""
    if not found:
        return f"{KEY}: {{}}"
    written: str = yaml.dump({KEY: _rows(dict(found))}, Dumper=_Dumper, sort_keys=False, width=10_000, allow_unicode=False)
    return written.rstrip("\n")


def write_expectation(document: Document, found: Mapping[str, Any]) -> None:
    """Put an outcome under ``expect`` of the case. Raises InputError where it has no line of its own."""
    file = Path(document.file)
    with file.open(encoding="utf-8", newline="") as opened:
        whole = opened.read()
    start, end = _place(document, whole)
    new = format_outcome(found)
    if "\r\n" in whole:
        new = new.replace("\n", "\r\n")
    with file.open("w", encoding="utf-8", newline="") as opened:
        opened.write(whole[:start] + new + whole[end:])


def _place(document: Document, whole: str) -> tuple[int, int]:
    """Return where ``expect`` and its value begin and end."""
    roots = list(yaml.compose_all(whole.removeprefix("\ufeff"), Loader=yaml.SafeLoader))
    root = roots[document.index - 1]
    if not isinstance(root, yaml.MappingNode) or root.flow_style:
        raise document.error((KEY,), "can be filled in only if it is on its own line; write the case as block YAML, or fill it in by hand")
    key, value = next((key, value) for key, value in root.value if key.value == KEY)
    before = len(whole) - len(whole.removeprefix("\ufeff"))
    start, end = key.start_mark.index, max(value.end_mark.index, key.end_mark.index + 1)
    return start + before, before + _last(whole[before:], start, end)


def _last(whole: str, start: int, end: int) -> int:
    """Return the end of the last line that belongs to a value: a block ends for YAML where the next token begins."""
    lines = whole[start:end].splitlines(keepends=True)
    if not lines[-1].endswith(("\n", "\r")) and not _aside(lines[-1]):
        return end
    while _aside(lines[-1]):
        lines.pop()
    return start + len("".join(lines).rstrip("\r\n"))


def _aside(line: str) -> bool:
    """Return whether a line is empty or a comment at the margin."""
    return not line.strip() or line.startswith("#")
