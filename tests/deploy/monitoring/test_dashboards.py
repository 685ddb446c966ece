"""The dashboards as Grafana would load them: the rules of Grafana's dashboard linter, which mixtool runs, and what the files hold."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.deploy.monitoring.alert_rules import RULES, rules
from tests.deploy.monitoring.dashboards import DASHBOARDS, files, panels
from tests.deploy.monitoring.panels import COLUMNS
from tests.deploy.rendering import component, of_kind
from tests.deploy.variants import VARIANTS
from tests.testcluster.addons.installed import DEPLOY

Raw = dict[str, Any]
LOADED = [json.loads(text) for text in files().values()]
PANELS = panels()
NAMES = [f"{uid} {panel['title']}" for uid, panel in PANELS]
UNITS = {"bool_yes_no", "bytes", "cpm", "cps", "currencyUSD", "percentunit", "reqps", "s", "short", "wps"}
"""Ids of Grafana's units (packages/grafana-data/src/valueFormats/categories.ts)"""
OF_API_SERVER = "apiserver_"
COUNTERS = re.compile(r"\b(berth_\w+_total|process_cpu_seconds_total|apiserver_\w+_count)\{")


def queries() -> Iterator[tuple[str, str]]:
    """(uid, PromQL) of every query."""
    for uid, panel in PANELS:
        for target in panel["targets"]:
            yield uid, target["expr"]


@pytest.mark.parametrize(("uid", "panel"), PANELS, ids=NAMES)
def test_a_panel_says_what_it_is(uid: str, panel: Raw) -> None:
    """A title of its own, how to read it, a unit, the chosen data source, and something that is asked."""
    assert re.fullmatch(r"[A-Z].+[^.]", panel["title"])
    assert sum(name == f"{uid} {panel['title']}" for name in NAMES) == 1
    assert re.fullmatch(r"(?s)[A-Za-z0-9].{30,}\.", panel["description"])
    assert panel["fieldConfig"]["defaults"]["unit"] in UNITS
    assert panel["targets"]
    assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    assert all(target["datasource"] == panel["datasource"] for target in panel["targets"])


@pytest.mark.parametrize("board", LOADED, ids=lambda board: str(board["uid"]))
def test_panels_lie_beside_one_another(board: Raw) -> None:
    """None over another, none over the edge, and each with an id of its own."""
    taken: dict[tuple[int, int], str] = {}
    for panel in board["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= COLUMNS
        for place in ((x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])):
            assert place not in taken, f"{panel['title']} lies on {taken[place]}"
            taken[place] = panel["title"]
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])


@pytest.mark.parametrize("board", LOADED, ids=lambda board: str(board["uid"]))
def test_a_dashboard_can_be_imported_again(board: Raw) -> None:
    """By its uid it is the same one; nobody edits what the next upgrade replaces; its choices lead from the data source to the instance."""
    assert re.fullmatch(r"berth-[a-z-]{1,34}", board["uid"]), "Grafana takes 40 characters"
    assert (board["schemaVersion"], board["editable"], "id" in board) == (39, False, False)
    names = [one["name"] for one in board["templating"]["list"]]
    assert names == ["datasource", "cluster", "namespace", "job", *(["instance"] if "health" in board["uid"] else [])]
    assert (board["templating"]["list"][0]["type"], board["templating"]["list"][0]["query"]) == ("datasource", "prometheus")
    for one in board["templating"]["list"][1:]:
        assert (one["type"], one["refresh"], one["multi"], one["includeAll"], one["datasource"]["uid"]) == (
            "query",
            2,
            True,
            True,
            "${datasource}",
        )
        assert one["label"] == one["name"].capitalize()
        assert one["allValue"] == (".*" if one["name"] in ("cluster", "namespace") else ".+")
    assert {link["url"].removeprefix("/d/") for link in board["links"]} < {one.uid for one in DASHBOARDS}


@pytest.mark.parametrize(("uid", "query"), list(queries()))
def test_a_query_asks_only_of_what_was_chosen(uid: str, query: str) -> None:
    """Every selector is narrowed by every choice (the API server's by the cluster alone: its job is not Berth's), names no job, and reads a
    counter by its rate, over the interval that Grafana reckons or over that of a recording rule."""
    selectors = re.findall(r"([\w:]*)\{([^}]*)\}", query)
    assert selectors
    for metric, matchers in selectors:
        wanted = ["cluster", "namespace", "job"] + (["instance"] if "health" in uid else [])
        for name in wanted[:1] if metric.startswith(OF_API_SERVER) else wanted:
            assert f'{name}=~"${name}"' in matchers, metric
        assert not re.search(r'job="|namespace="', matchers)
    for found in COUNTERS.finditer(query):
        assert re.search(r"(rate|increase)\($", query[: found.start()]), found[0]
    assert set(re.findall(r"\[([^\]]+)\]", re.sub(r"\[\.\]", "", query))) <= {"$__rate_interval", "1h"}


def test_every_recording_rule_is_read() -> None:
    """By a dashboard or an alert: one that nobody reads costs for nothing."""
    text = "\n".join([*(query for _, query in queries()), *(rule["expr"] for rule in rules("alert"))])
    assert [rule["record"] for rule in rules("record") if f"{rule['record']}{{" not in text] == []


def test_every_metric_that_is_read_is_exported() -> None:
    """By the server or the audit, as their pages list it: a panel of a misspelled metric is empty, and an alert on it silent, for ever."""
    pages = "".join((DEPLOY.parent / "docs" / name).read_text() for name in ("metrics.md", "audit.md"))
    exported = set(re.findall(r"^\| `(berth_\w+)`", pages, re.MULTILINE))
    texts = [*(query for _, query in queries()), *(rule["expr"] for rule in rules("alert") + rules("record"))]
    read = {name for text in texts for name in re.findall(r"(?<![:\w])berth_\w+", text)}
    assert len(read) > 20
    assert {name for name in read if not {name, re.sub("_(bucket|count|sum)$", "", name)} & exported} == set()


def test_the_chart_renders_what_is_there() -> None:
    """The rules and dashboards of deploy/monitoring, with the labels by which Prometheus and Grafana find them; nothing unless it is asked
    for."""
    objects = VARIANTS["metrics and network"].objects()
    [rule] = of_kind(objects, "PrometheusRule")
    assert rule["spec"] == yaml.safe_load(RULES.read_text())
    assert rule["metadata"]["labels"]["role"] == "alert-rules"
    boards = [one for one in of_kind(objects, "ConfigMap") if "grafana_dashboard" in one["metadata"]["labels"]]
    assert [one["metadata"]["name"] for one in boards] == ["berth-overview", "berth-replica-health"]
    assert {name: text.strip() for one in boards for name, text in one["data"].items()} == {
        name: text.strip() for name, text in files().items()
    }
    assert all(one["metadata"]["labels"]["grafana_folder"] == "gpus" for one in boards)
    usual = VARIANTS["default"].objects()
    assert of_kind(usual, "PrometheusRule") == []
    assert [one for one in of_kind(usual, "ConfigMap") if "grafana_dashboard" in one["metadata"].get("labels", {})] == []


def test_the_monitors_find_the_server_and_the_audit() -> None:
    """Each selects the labels of the pods, or of the Service, that are its own; without the audit there is none of it."""
    objects = VARIANTS["metrics and network"].objects()
    pods = {component(one): one["spec"]["template"]["metadata"]["labels"] for one in of_kind(objects, "Deployment")}
    for monitor in of_kind(objects, "PodMonitor"):
        chosen = monitor["spec"]["selector"]["matchLabels"].items()
        assert [name for name, labels in pods.items() if chosen <= labels.items()] == [component(monitor)]
    services = {one["metadata"]["name"]: one for one in of_kind(objects, "Service")}
    for monitor in of_kind(objects, "ServiceMonitor"):
        chosen = monitor["spec"]["selector"]["matchLabels"].items()
        [found] = [one for one in services.values() if chosen <= one["metadata"].get("labels", {}).items()]
        assert found["spec"]["selector"].items() <= pods[component(monitor)].items()
    assert {component(one) for kind in ("PodMonitor", "ServiceMonitor") for one in of_kind(objects, kind)} == {"berth", "berth-audit"}


def test_what_the_linter_passes_over_is_there() -> None:
    """`dashboard-linter lint --strict` holds but for what .lint names, with a reason: panels and dashboards that exist."""
    exclusions = yaml.safe_load((DEPLOY / "monitoring" / "dashboards" / ".lint").read_text())["exclusions"]
    named = {(board["title"], panel["title"]) for board in LOADED for panel in board["panels"]}
    for rule, excluded in exclusions.items():
        assert rule.endswith("-rule")
        assert excluded["reason"].endswith(".")
        for entry in excluded["entries"]:
            assert entry["dashboard"] in {board["title"] for board in LOADED}
            assert "panel" not in entry or (entry["dashboard"], entry["panel"]) in named
