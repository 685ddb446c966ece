"""`berth audit --reports` as it is typed, of files: that kubectl wrote, that somebody cut, that others wrote. What a cluster's own
reports say is tried in tests/e2e/audit."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.analysis.audit.test_workload_report import BARE, made, outcome

Run = Callable[..., tuple[int, str, str]]
EVIL = "=cmd|' /C calc'!A0\x1b[31m\u202e<script>alert(1)</script>"


@pytest.fixture
def run(berth: Run) -> Run:
    """Types `berth audit --reports ...`: (exit code, standard output, standard error)."""
    return lambda *words: berth("audit", "--reports", *words)


def job() -> dict[str, Any]:
    """Of three pods with two GPUs: one policy would deny them, another would change them, and something is lacking to them."""
    few = outcome("would-deny", policies=("ClusterGPUPolicy/few",))
    lacking = outcome("not-as-enforced", mode="Enforce", policies=("ClusterGPUPolicy/taints",))
    return made(few, outcome(policies=("ClusterGPUPolicy/grace",)), lacking)


def written(folder: Path, *reports: dict[str, Any], name: str = "reports.yaml") -> str:
    """As `kubectl get reports -A -o yaml` writes them."""
    value = {"apiVersion": "v1", "items": list(reports), "kind": "List", "metadata": {"resourceVersion": ""}}
    (folder / name).write_text(json.dumps(value) if name.endswith("json") else yaml.safe_dump(value))
    return str(folder / name)


@pytest.mark.parametrize("name", ["reports.yaml", "reports.json"])
def test_files_of_reports_are_counted(run: Run, tmp_path: Path, name: str) -> None:
    """By namespace and policy. What three policies find may be of the same pods, so of all of them it is the least."""
    code, out, err = run(written(tmp_path, job(), name=name))
    assert (code, err) == (0, "")
    heads, *rows = out.split("\n\n")[0].splitlines()
    assert heads.split()[:4] == ["NAMESPACE", "POLICY", "MODE", "WITH"]
    assert [row.split() for row in rows] == [
        ["team-a", "(all)", "3+", "6+", "4.50+", "3", "3", "3", "0"],
        ["team-a", "ClusterGPUPolicy/few", "Audit", "3", "6", "4.50", "0", "3", "0", "0"],
        ["team-a", "ClusterGPUPolicy/grace", "Audit", "3", "6", "4.50", "3", "0", "0", "0"],
        ["team-a", "ClusterGPUPolicy/taints", "Enforce", "3", "6", "4.50", "0", "0", "3", "0"],
    ]
    assert "According to 1 report, policies in Audit or Warn would change 3 pods and deny 3." in out
    assert "UNPROTECTED" not in out
    assert "Not in reports: pods without findings, unprotected long runs, pods on spot capacity" in out


def test_programs_read_what_is_the_least(run: Run, tmp_path: Path) -> None:
    """In CSV as a column, in JSON as a list, beside what reports do not say."""
    file = written(tmp_path, job(), made(outcome(), workload=BARE))
    row = next(csv.DictReader(io.StringIO(run(file, "-o", "csv")[1])))
    assert (row["pods_with_findings"], row["would_deny"]) == ("6", "3")
    assert row["at_least"] == "podsWithFindings gpus usdPerHour"
    value = json.loads(run(file, "-o", "json")[1])
    assert value["notSaid"] == ["podsWithoutFindings", "unprotected", "onSpot"]
    whole = value["policies"][0]
    assert (whole["policy"], whole["podsWithFindings"], whole["atLeast"]) == (None, 6, ["podsWithFindings", "gpus", "usdPerHour"])
    assert [one["scope"]["kind"] for one in value["workloads"]] == ["Job", "Namespace"]
    assert value["workloads"][0]["results"] == job()["results"]


def test_one_policy_in_enforce_is_previewed(run: Run, tmp_path: Path) -> None:
    """The sentence, then the list."""
    code, out, err = run(written(tmp_path, job()), "--enforce-preview", "few")
    assert (code, err) == (0, "")
    sentence, _, heads, row = out.splitlines()
    assert sentence == (
        "With few in Enforce, 3 pods would be denied and 0 changed (6 GPUs, 4.50 USD/h), according to reports. "
        "Existing pods are unchanged until recreated."
    )
    assert heads.split() == ["NAMESPACE", "WORKLOAD", "PODS", "GPUS", "USD/H", "FINDING", "MESSAGE"]
    assert row.split()[:5] == ["team-a", "Job/train", "3", "6", "4.50"]
    assert row.endswith("would deny  BERTH-104: a fact; a fix.")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--enforce-preview", "fwe"), '--enforce-preview: no report has a finding of policy "fwe"; did you mean "few"'),
        (("--enforce-preview", "taints"), '--enforce-preview: "taints" is already in Enforce; berth audit --reports lists'),
        (("--policies", "x"), "--reports: reads finished results and evaluates nothing: remove --policies"),
        (("--as", "Audit"), "--reports: reads finished results and evaluates nothing: remove --as"),
    ],
)
def test_what_reports_cannot_answer_is_an_error(run: Run, tmp_path: Path, words: tuple[str, ...], error: str) -> None:
    """That says what to type."""
    code, out, err = run(written(tmp_path, job()), *words)
    assert (code, out) == (2, "")
    assert err.startswith(f"berth: {error}")


def test_reports_of_others_are_passed_over_and_counted(run: Run, tmp_path: Path) -> None:
    """As is what is no report, and one that is there twice."""
    other: dict[str, Any] = {
        "apiVersion": "wgpolicyk8s.io/v1alpha2",
        "kind": "PolicyReport",
        "metadata": {"name": "cpol-x", "namespace": "team-a"},
    }
    other |= {"results": [{"source": "kyverno", "policy": "x", "result": "fail"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    code, out, err = run(written(tmp_path, job(), other, pod, job()))
    assert code == 0
    assert "According to 1 report, " in out
    assert err.splitlines() == [
        "berth: 1 report given twice, counted once",
        "berth: 1 report of other tools skipped",
        "berth: 1 object of other kinds skipped",
    ]


def test_one_namespace(run: Run, tmp_path: Path) -> None:
    """Of files too."""
    elsewhere = job()
    elsewhere["metadata"] = {**elsewhere["metadata"], "namespace": "team-b"}
    file = written(tmp_path, job(), elsewhere)
    assert "team-b" not in run(file, "-n", "team-a")[1]
    assert run(file, "-n", "team-c")[1].startswith("No findings in Berth's reports.")


@pytest.mark.parametrize("form", ["table", "csv", "json", "html"])
def test_what_a_hostile_report_holds_breaks_no_form(run: Run, tmp_path: Path, form: str) -> None:
    """Control characters, formulas, HTML, wrong types; what can't be read is counted."""
    report = made(outcome(policies=(EVIL,)), outcome("would-deny"))
    report["metadata"] |= {"namespace": EVIL, "labels": {"app.kubernetes.io/managed-by": "berth"}}
    report["scope"] = {"kind": EVIL, "name": [EVIL]}
    report["results"] += [7, {"policy": 3, "properties": [EVIL]}, {"properties": {"finding": {"a": 1}}}]
    report["results"][0]["message"] = {EVIL: EVIL}
    code, out, err = run(written(tmp_path, report, name="r.json"), "-o", form)
    assert code == 0
    assert err == "berth: 3 results not readable: counts in their namespaces are minimums\n"
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert "<script" not in out or form != "html"
    if form == "csv":
        assert all(not cell.startswith(("=", "+", "-", "@")) for row in csv.reader(io.StringIO(out)) for cell in row)
    code, out, _ = run(written(tmp_path, report, name="r.json"), "--enforce-preview", "ClusterGPUPolicy/a")
    assert (code, "\x1b" in out) == (0, False)


@pytest.mark.parametrize(
    ("name", "error"),
    [("reports.yaml", "is incomplete: it has items, but no kind: List after them"), ("reports.json", "line 1")],
)
def test_a_file_that_was_cut_is_an_error(run: Run, tmp_path: Path, name: str, error: str) -> None:
    """Where it can be told at all, and not an answer that counts less than there is."""
    file = Path(written(tmp_path, job(), job(), name=name))
    text = file.read_text()
    file.write_text(text[: text.index("kind: List")] if name.endswith("yaml") else text[: len(text) // 2])
    code, out, err = run(str(file))
    assert (code, out) == (2, "")
    assert error in err
    assert "Traceback" not in err


def test_a_file_without_reports_says_what_writes_them(run: Run, tmp_path: Path) -> None:
    """Of kubectl."""
    file = written(tmp_path, {"apiVersion": "v1", "kind": "Pod"})
    code, out, err = run(file)
    assert (code, out) == (2, "")
    assert (
        err
        == f"berth: {file}: has no report, only objects of other kinds; write reports with kubectl get reports -A -o json > reports.json\n"
    )
