"""Alerts and recording rules before Prometheus' own tool: what fires when, what does not, and what each alert tells who is woken by it."""

from __future__ import annotations

import json
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.monitoring.alert_cases import CASES, HEALTHY, OTHERS, QUIET, Case
from tests.deploy.monitoring.alert_rules import RULES, alerts, rules
from tests.deploy.rendering import of_kind
from tests.deploy.variants import VARIANTS
from tests.support import go_tools
from tests.support.module_imports import LAYERS
from tests.testcluster.addons.helm import CHART
from tests.testcluster.calls import PATIENCE

ROOT = CHART.parents[1]
RUNBOOKS = ROOT / "docs" / "runbooks.md"
PARTS = ("Meaning.", "Impact.", "Diagnosis.")
ENDS_AT = "65m"
EVALUATED = "2m"
"""Twice as long as by default, which halves what the tests take; shorter than what any alert waits for but two minutes"""
Raw = dict[str, Any]


@cache
def promtool() -> Path:
    return go_tools.program("promtool")


def asked(*arguments: str) -> tuple[int, str]:
    """Exit code and everything said."""
    done = subprocess.run(
        [promtool(), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE * 2, check=False, text=True
    )
    return done.returncode, done.stdout


def hour(case: Case) -> list[Raw]:
    """The series of an hour, as promtool takes them."""
    unknown = [start for start in case.gone if not any(name.startswith(start) for name in HEALTHY)]
    assert not unknown, f"no such series: {unknown}"
    series = {**HEALTHY, **case.series}
    values = {name: "1x9 stale _x59" if name.startswith(case.gone or ("\0",)) else text for name, text in series.items()}
    return [{"series": name, "values": text} for name, text in values.items()]


def firing(name: str, case: Case) -> Raw:
    """A test of promtool: this alert fires with these labels, and none but those beside it."""
    alert = name.partition(":")[0]
    own = {"namespace": "berth-system", "job": "berth-system/berth", **case.labels}
    labels = {key: value for key, value in own.items() if key not in case.without}
    sample = {"alertname": alert, "alertstate": "firing", "severity": alerts()[alert]["labels"]["severity"], **labels}
    text = ", ".join(f"{key}={json.dumps(value)}" for key, value in sample.items())
    every = sorted({alert, *case.also})
    return {
        "name": name,
        "interval": "1m",
        "input_series": hour(case),
        "promql_expr_test": [
            {
                "expr": f'ALERTS{{alertname="{alert}", alertstate="firing"}}',
                "eval_time": ENDS_AT,
                "exp_samples": [{"labels": f"ALERTS{{{text}}}", "value": 1}],
            },
            {
                "expr": 'group by (alertname) (ALERTS{alertstate="firing"})',
                "eval_time": ENDS_AT,
                "exp_samples": [{"labels": f'{{alertname="{one}"}}', "value": 1} for one in every],
            },
        ],
    }


def silent(name: str = "the healthy hour", alerts: str = "ALERTS", series: dict[str, str] | None = None) -> Raw:
    """A test of promtool: in an hour, the healthy one by default, there are none of these alerts; by default not even pending."""
    test = {"expr": f"count_over_time({alerts}[70m])", "eval_time": ENDS_AT, "exp_samples": []}
    return {"name": name, "interval": "1m", "input_series": hour(Case(series=series or {})), "promql_expr_test": [test]}


def tried(folder: Path, *tests: Raw) -> tuple[int, str]:
    """What `promtool test rules` says of them."""
    file = folder / "tests.json"
    file.write_text(json.dumps({"rule_files": [str(RULES)], "evaluation_interval": EVALUATED, "tests": tests}))  # JSON is YAML
    return asked("test", "rules", str(file))


def test_prometheus_takes_the_rules() -> None:
    """`promtool check rules` with everything that it may find."""
    code, output = asked("check", "rules", "--lint=all", "--lint-fatal", str(RULES))
    assert (code, f"{len(rules('alert')) + len(rules('record'))} rules found" in output) == (0, True), output


def test_every_alert_has_an_hour_in_which_it_fires() -> None:
    """And no hour is of an alert that is not there."""
    assert set(CASES) == set(alerts())
    assert {name.partition(":")[0] for name in OTHERS} <= set(alerts())


def test_an_alert_fires_alone_and_with_its_labels(tmp_path: Path) -> None:
    """In its bad hour; each other one is silent unless the case says that it is right."""
    code, output = tried(tmp_path, *(firing(name, case) for name, case in {**CASES, **OTHERS}.items()))
    assert code == 0, output


def test_nothing_fires_in_a_healthy_hour(tmp_path: Path) -> None:
    """Nothing is pending either, though others' targets are ill, and old failures are counted."""
    code, output = tried(tmp_path, silent())
    assert code == 0, output


def test_nothing_fires_where_little_happens(tmp_path: Path) -> None:
    """Few calls, of which one is answered only when the API server tries it again, wake nobody."""
    code, output = tried(tmp_path, *(silent(name, 'ALERTS{alertstate="firing"}', series) for name, series in QUIET.items()))
    assert code == 0, output


def test_the_judge_is_awake(tmp_path: Path) -> None:
    """A healthy hour in which a thing fires, and a bad one in which nothing does, are told."""
    bad = silent() | {"input_series": hour(CASES["BerthNobodyWrites"])}
    good = firing("BerthNobodyWrites", Case(series={}))
    assert [tried(tmp_path, one)[0] for one in (bad, good)] == [1, 1]


@pytest.mark.parametrize("name", sorted(alerts()))
def test_an_alert_tells_what_a_mixin_tells(name: str) -> None:
    """As the guidelines of monitoring-mixins, which mixtool checks, have it: a name in CamelCase, one of three severities, a summary that
    is a sentence, a description, and a runbook."""
    alert = alerts()[name]
    summary, description = alert["annotations"]["summary"], alert["annotations"]["description"]
    assert re.fullmatch(r"Berth([A-Z][a-z]+)+", name)
    assert alert["labels"] == {"severity": alert["labels"]["severity"]}
    assert alert["labels"]["severity"] in ("critical", "warning", "info")
    assert re.fullmatch(r"(?s)(?:[A-Z]|\{\{ \$labels\.(?:instance|job) \}\}).+\.", summary), summary
    assert "\n" not in summary
    assert description.endswith(".")
    assert summary != description
    assert set(alert["annotations"]) == {"summary", "description", "runbook_url"}
    assert "job=" not in alert["expr"], "no job is named: the chart's monitors and one's own name it as they like"


@pytest.mark.parametrize("name", sorted(alerts()))
def test_a_summary_tells_apart_what_may_fire_together(name: str) -> None:
    """A label of which one alert may have several values, beside the job and its namespace, is in its text."""
    text = json.dumps(alerts()[name]["annotations"])
    labels = {**CASES[name].labels}
    assert [label for label in labels if f"$labels.{label} " not in text] == []


def test_every_alert_has_a_runbook() -> None:
    """A section of docs/runbooks.md with all parts and something to type; in the order of the rules."""
    sections = dict(re.findall(r"^### (\w+)\n(.*?)(?=^##|\Z)", RUNBOOKS.read_text(), re.MULTILINE | re.DOTALL))
    assert list(sections) == list(alerts())
    for name, text in sections.items():
        assert (
            alerts()[name]["annotations"]["runbook_url"] == f"https://github.com/gpu-berth/berth/blob/main/docs/runbooks.md#{name.lower()}"
        )
        assert [part for part in PARTS if f"**{part}**" not in text] == [], name
        assert re.search(r"```\n\S[^`]+\n```", text), name


@pytest.mark.parametrize("page", ["runbooks.md", "operations.md"])
def test_commands_select_pods_of_the_chart(page: str) -> None:
    """Each label selector selects pods of a Deployment: one that selects nothing prints nothing."""
    pods = [one["spec"]["template"]["metadata"]["labels"] for one in of_kind(VARIANTS["default"].objects(), "Deployment")]
    selectors = re.findall(r"-l '?([\w./-]+)(?:=| in \()([\w,-]+)", (ROOT / "docs" / page).read_text())
    assert selectors
    for key, values in selectors:
        assert set(values.split(",")) <= {labels.get(key) for labels in pods}, key


def test_runbooks_name_events_that_there_are() -> None:
    """Who looks for a line of the log finds it."""
    text = RUNBOOKS.read_text() + RULES.read_text()
    source = "".join(file.read_text() for room in LAYERS for file in (ROOT / room).rglob("*.py"))
    named = re.findall(r'"event":"\(?([a-z_|]+)', text) + re.findall(r"event=([a-z_]+)", text)
    events = {event for found in named for event in found.split("|")}
    assert len(events) > 8
    assert [event for event in sorted(events) if f'"{event}' not in source] == []


def test_recording_rules_are_named_as_prometheus_recommends() -> None:
    """level:metric:operation, where the level is what is left of the labels."""
    for rule in rules("record"):
        level, metric, operation = rule["record"].split(":")
        kept = re.fullmatch(r"sum by \(([\w, ]+)\) \((rate|increase)\((\w+)\[(\w+)\]\)\)", rule["expr"])
        assert kept is not None, rule
        assert (level, metric, operation) == (kept[1].replace(", ", "_"), kept[3].removesuffix("_total"), kept[2] + kept[4])
