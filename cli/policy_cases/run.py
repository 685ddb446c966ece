"""One run over files and folders of cases: each decided, compared, and filled in where that is asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from cli.policy_cases import case as cases
from cli.policy_cases import expectation_writer
from cli.policy_cases.case import Case
from cli.policy_cases.coverage import Coverage
from cli.policy_cases.decisions import read_request
from cli.policy_cases.files import Seen, files, look
from cli.policy_cases.outcome import Sentence
from cli.policy_cases.worlds import CaseError, Worlds
from cli.terminal.progress import each
from documents.diff import unified
from documents.files import read_documents
from kube.pod import PodError
from policies.document import InputError

Result = Literal["passed", "failed", "written"]
Fill = Literal["nothing", "empty", "all"]
"""Which expectations are written: none, those that are empty, or all."""


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
            expectation_writer.write(case.document, decision.outcome)
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
