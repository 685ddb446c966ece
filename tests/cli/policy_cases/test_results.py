"""The three forms of results, and odd characters in each."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as xml

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.policy_cases.case import DEFAULTS
from cli.policy_cases.results import format_results
from cli.policy_cases.run import Run, run
from documents.printable import printable
from tests.cli.policy_cases.test_run import case, write

ODD = "\x1b[31m\u202e<b>&\ud83d\x00=1"


@pytest.fixture
def found(tmp_path: Path) -> Run:
    """One case that passes, one that fails with odd words, one that is bad input."""
    odd = case(why="\x1b[31m\u202e<b>& x", expect={"remarks": ["\x1b[2J\u2066"]})
    write(tmp_path, good=case(), odd=odd, bad=case(phase="\x1b]0;x"))
    return run([str(tmp_path)], DEFAULTS)


@pytest.mark.parametrize("form", ["text", "junit", "json"])
def test_no_character_acts_on_a_terminal(found: Run, form: str) -> None:
    """Neither an escape nor a change of direction gets through, and of a case that fails enough is shown to know it."""
    out = format_results(form, found, 0)
    assert not {"\x1b", "\u2066", "\u202e"} & set(out)
    assert "odd.yaml" in out
    if form == "text":
        assert r'"\e[2J' in out


def test_junit_counts(found: Run) -> None:
    """Cases, failures and bad input, and a lack of coverage as a case of its own; it is read back whole."""
    root = xml.fromstring(format_results("junit", found, 100))
    suite = root[0]
    counts = {name: int(root.attrib[name]) for name in ("tests", "failures", "errors")}
    assert counts == {"tests": len(suite), "failures": len(suite.findall(".//failure")), "errors": len(suite.findall(".//error"))}
    assert counts["errors"] == 1
    assert counts["failures"] == 1 + (found.coverage.percent < 100)
    failure = suite.find(".//failure")
    assert failure is not None
    assert "+++ actual" in (failure.text or "")


def test_json_has_both_sides_of_a_failure(found: Run) -> None:
    """As data, with the diff; of cases that pass only the result."""
    value = json.loads(format_results("json", found, 0))
    by_result = {one["result"]: one for one in value["cases"]}
    assert by_result["failed"].keys() == {"file", "document", "why", "result", "expected", "actual", "diff"}
    assert by_result["passed"].keys() == {"file", "document", "why", "result"}
    assert [error["path"] for error in value["errors"]] == ["phase"]
    assert value["coverage"] == {"fields": 1, "exercised": 1, "percent": 100, "notExercised": []}


@given(st.text())
def test_printable_text_is_printable(written: str) -> None:
    """Whatever it was; and what was printable is as it was."""
    assert printable(written).isprintable()
    assert not written.isprintable() or printable(written) == written


def test_the_share_is_rounded_down(tmp_path: Path) -> None:
    """Two of three are 66.6 %, and only all are 100 %."""
    spec = {"mode": "Enforce", "require": {"gpusPerPod": {"max": 4}, "protection": {"max": "1h"}}, "default": {"gracePeriod": "1h"}}
    policy = {"kind": "ClusterGPUPolicy", "metadata": {"name": "p"}, "spec": spec}
    container = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    write(tmp_path, a=[case(policies=[policy]), case(policies=[policy], pod={"spec": {"containers": [container]}}, expect={})])
    assert "2 of 3 policy fields covered (66.6 %)" in format_results("text", run([str(tmp_path)], DEFAULTS), 0)
