"""The metrics and docs/metrics.md before Prometheus' own linter and parser."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from telemetry.metrics import Metrics
from tests.support import go_tools
from tests.support.calls.counted_metrics import ROOT, families, lively
from tests.testcluster.calls import PATIENCE

DOCUMENTATION = ROOT / "docs" / "metrics.md"


@cache
def promtool() -> Path:
    """Prometheus' own tool, without the service discoveries of the clouds, which are most of it."""
    return go_tools.program("promtool")


def asked(*arguments: str, given: bytes = b"") -> tuple[int, str]:
    """Exit code and everything said."""
    done = subprocess.run(
        [promtool(), *arguments], input=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE, check=False
    )
    return done.returncode, done.stdout.decode()


@pytest.mark.parametrize("made", [lively, lambda: Metrics("1.2.3")], ids=["lively", "fresh"])
def test_promtool_finds_nothing_to_say(made: Callable[[], Metrics]) -> None:
    """``promtool check metrics``: exit 0, no output."""
    assert asked("check", "metrics", given=made().exposition("")[0]) == (0, "")


def test_promtool_does_complain() -> None:
    """The judge above is awake."""
    code, output = asked("check", "metrics", given=b"# HELP berth_pods x\n# TYPE berth_pods counter\nberth_pods 1\n")
    assert code == 3
    assert "_total" in output


def test_the_documentation_lists_every_metric() -> None:
    """Name, type and labels, and no other."""
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.*?) ?\| .+ \|$", DOCUMENTATION.read_text(), re.MULTILINE)
    listed = {(name, kind, frozenset(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}
    assert listed == {
        (
            family.name + ("_total" if family.type == "counter" else ""),
            family.type,
            frozenset(label for s in family.samples for label in s.labels if label != "le"),
        )
        for family in families(lively())
    }


def queries() -> list[str]:
    """The PromQL of docs/metrics.md."""
    (block,) = re.findall(r"```promql\n(.*?)```", DOCUMENTATION.read_text(), re.DOTALL)
    return [line for line in block.splitlines() if not line.startswith("#")]


def test_promtool_understands_the_queries(tmp_path: Path) -> None:
    """Each is an expression that Prometheus can parse."""
    rules = [{"alert": f"Alert{i}", "expr": query} for i, query in enumerate(queries())]
    (tmp_path / "rules.json").write_text(json.dumps({"groups": [{"name": "berth", "rules": rules}]}))  # JSON is YAML
    code, output = asked("check", "rules", str(tmp_path / "rules.json"))
    assert (code, "4 rules found" in output) == (0, True), output


def test_the_queries_name_what_is_there() -> None:
    """Metrics, and the words for their labels."""
    names = {s.name for family in families(lively()) for s in family.samples}
    asked_for = {name for query in queries() for name in re.findall(r"\bberth_\w+", query)}
    assert asked_for <= names
    assert [word for query in queries() for word in re.findall(r'outcome="(\w+)"', query)] == ["denied", "would_deny"]
