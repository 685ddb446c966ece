"""One run over files and folders of cases: each decided, compared, and filled in where that is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from cli.policy_cases import case as cases
from cli.policy_cases import expectation_writer
from cli.policy_cases.case import Case
from cli.policy_cases.changes import Seen, look
from cli.policy_cases.comparison import differences
from cli.policy_cases.coverage import Coverage
from cli.policy_cases.decisions import read_request
from cli.policy_cases.files import files
from cli.policy_cases.worlds import CaseError, Worlds
from cli.terminal.progress import each
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
