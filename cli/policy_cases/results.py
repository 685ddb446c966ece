"""The results of a run: text for people, JUnit XML for CI, JSON for programs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from cli.output.junit import JUnitCase, format_junit
from cli.policy_cases.coverage import Coverage, CoveredField
from cli.policy_cases.run import Run, Tested
from cli.terminal.screen import PLAIN, Terminal
from documents.printable import printable
from kube.tree import dotted
from policies.document import InputError


def format_results(form: str, found: Run, least: float, screen: Terminal = PLAIN) -> str:
    """Return the results as ``format_results``, ``junit`` or ``json``. ``least``: the percentage of fields wanted."""
    if form == "json":
        return json.dumps(_value(found), indent=2) + "\n"
    return _junit(found, least) if form == "junit" else "".join(f"{line}\n" for line in _lines(found, least, screen))


# --- for people --------------------------------------------------------------------------------------------------------


def _lines(found: Run, least: float, screen: Terminal) -> Iterator[str]:
    for one in found.tested:
        if one.result == "written":
            yield f"wrote {printable(one.case.name)}"
        elif one.result == "failed":
            yield f"{screen.paint('bad', 'FAIL')} {printable(one.case.name)}: {printable(one.case.why)}"
            yield from (f"  {printable(line)}" for line in one.diff)
    missed = list(found.coverage.missed)
    if missed:
        yield "Policy fields that no case covers:"
        yield from (f"  {printable(_named(one))}" for one in missed)
    yield screen.paint("bad" if found.failed or found.errors else "good", _summary(found))
    if found.coverage.percent < least:
        yield f"{_percent(found.coverage)} is below the minimum of {least:g} %: add cases whose outcome changes without these fields."


def _summary(found: Run) -> str:
    passed = len(found.tested) - len(found.failed)
    coverage = found.coverage
    fields = f"{coverage.exercised} of {len(coverage.fields)} policy fields covered ({_percent(coverage)})"
    errors = f", {len(found.errors)} invalid" if found.errors else ""
    return f"{passed} passed, {len(found.failed)} failed{errors}; {fields}."


def _percent(coverage: Coverage) -> str:
    """Return the share, rounded down: 100 % is all."""
    return f"{int(coverage.percent * 10) / 10:g} %"


def _named(one: CoveredField) -> str:
    return f"{one.policy} {one.path}{f' ({one.file})' if one.file else ''}"


# --- for programs ------------------------------------------------------------------------------------------------------


def _value(found: Run) -> dict[str, Any]:
    coverage = found.coverage
    return {
        "cases": [_case(one) for one in found.tested],
        "errors": [_error(one) for one in found.errors],
        "coverage": {
            "fields": len(coverage.fields),
            "exercised": coverage.exercised,
            "percent": int(coverage.percent * 10) / 10,
            "notExercised": [{"policy": one.policy, "field": one.path, "file": one.file or None} for one in coverage.missed],
        },
    }


def _case(one: Tested) -> dict[str, Any]:
    document = one.case.document
    compared: Mapping[str, Any] = {"expected": one.case.expected, "actual": one.outcome, "diff": list(one.diff)} if one.diff else {}
    return {"file": document.file, "document": document.index, "why": one.case.why, "result": one.result, **compared}


def _error(error: InputError) -> dict[str, Any]:
    return {
        "file": error.file,
        "document": error.document,
        "line": error.line,
        "path": dotted(error.path),
        "message": error.message,
    }


def _junit(found: Run, least: float) -> str:
    """Return a suite of all cases; bad input and too little coverage are cases of their own, so that CI shows them."""
    cases = [
        JUnitCase(
            os.path.dirname(tested.case.document.file),
            os.path.basename(tested.case.name),
            tested.case.document.file,
            failure=tested.case.why if tested.result == "failed" else None,
            details=tested.diff,
        )
        for tested in found.tested
    ]
    cases += [JUnitCase("invalid input", error.place, error.file, error=error.message) for error in found.errors]
    if found.coverage.percent < least:
        covered = f"{_percent(found.coverage)} of the policy fields are covered"
        missed = [_named(field) for field in found.coverage.missed]
        cases.append(JUnitCase("coverage", f"at least {least:g} % of the policy fields", failure=covered, details=missed))
    return format_junit("berth test", {"berth test": cases})
