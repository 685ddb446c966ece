"""Grafana dashboards as rows of panels: each panel is one question, with what is asked of Prometheus and how to read the answer."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Raw = dict[str, Any]
SCHEMA_VERSION = 39
"""Of Grafana 10.4; newer ones migrate it when they load it"""
COLUMNS = 24
"""The width of Grafana's grid"""
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
Kind = Literal["timeseries", "stat", "table", "bargauge"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One question. ``queries``: (PromQL, legend)."""

    title: str
    description: str
    unit: str
    """A unit id of Grafana: reqps, s, short, percentunit, bytes, currencyUSD ..."""
    queries: Sequence[tuple[str, str]]
    kind: Kind = "timeseries"
    width: int = 12
    height: int = 8
    stacked: bool = False
    steps: Sequence[tuple[float | None, str]] = ((None, "green"),)
    """(from this value on, colour), ascending; the first has no value"""
    words: Sequence[tuple[str, str, str]] = ()
    """(value, what is shown instead, colour)"""
    decimals: int | None = None

    def json(self, identity: int, x: int, y: int) -> Raw:
        """As Grafana stores it."""
        defaults: Raw = {"unit": self.unit, "thresholds": {"mode": "absolute", "steps": [_step(*one) for one in self.steps]}}
        if self.words:
            options = {value: {"text": text, "color": colour, "index": i} for i, (value, text, colour) in enumerate(self.words)}
            defaults["mappings"] = [{"type": "value", "options": options}]
        if self.decimals is not None:
            defaults["decimals"] = self.decimals
        if self.kind == "timeseries":
            stacking = {"mode": "normal" if self.stacked else "none", "group": "A"}
            defaults["custom"] = {"fillOpacity": 30 if self.stacked else 10, "showPoints": "never", "stacking": stacking}
        return {
            "id": identity,
            "type": self.kind,
            "title": self.title,
            "description": self.description,
            "datasource": DATASOURCE,
            "gridPos": {"x": x, "y": y, "w": self.width, "h": self.height},
            "fieldConfig": {"defaults": defaults, "overrides": []},
            "options": _options(self.kind),
            "targets": [self._target(i, *query) for i, query in enumerate(self.queries)],
            **({"transformations": [_COLUMNS]} if self.kind == "table" else {}),
        }

    def _target(self, number: int, expr: str, legend: str) -> Raw:
        found: Raw = {"refId": chr(ord("A") + number), "datasource": DATASOURCE, "editorMode": "code", "expr": expr, "legendFormat": legend}
        now = self.kind != "timeseries"
        return found | {"instant": now, "range": not now} | ({"format": "table"} if self.kind == "table" else {})


_COLUMNS: Raw = {
    "id": "organize",
    "options": {"excludeByName": {"Time": True}, "renameByName": {"resource_namespace": "namespace", "Value": "number"}},
}


def _step(value: float | None, colour: str) -> Raw:
    return {"value": value, "color": colour}


def _options(kind: Kind) -> Raw:
    if kind == "timeseries":
        return {
            "legend": {"displayMode": "table", "placement": "bottom", "calcs": ["lastNotNull", "max"]},
            "tooltip": {"mode": "multi", "sort": "desc"},
        }
    if kind == "table":
        return {"showHeader": True}
    calculated = {"calcs": ["lastNotNull"], "fields": "", "values": False}
    shape: Raw = (
        {"orientation": "horizontal", "displayMode": "basic"} if kind == "bargauge" else {"colorMode": "value", "graphMode": "none"}
    )
    return {"reduceOptions": calculated, **shape}


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A choice at the top: the values of a label."""

    name: str
    label: str
    of: str
    """The series whose label it is, narrowed by the choices before"""
    all_value: str = ".+"

    def json(self) -> Raw:
        """As Grafana stores it; its values are read anew with each change of the time range."""
        query = f"label_values({self.of}, {self.name})"
        every = {"text": "All", "value": "$__all"}
        return {
            "name": self.name,
            "label": self.label,
            "type": "query",
            "datasource": DATASOURCE,
            "query": {"qryType": 1, "query": query, "refId": "variable"},
            "definition": query,
            "refresh": 2,
            "sort": 1,
            "multi": True,
            "includeAll": True,
            "allValue": self.all_value,
            "current": {"selected": True, **every},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    """Rows of panels: (title, panels). Panels of a row stand side by side until its width is used up."""

    uid: str
    title: str
    description: str
    rows: Sequence[tuple[str, Sequence[Panel]]]
    variables: Sequence[Variable]
    links: Sequence[tuple[str, str]] = field(default_factory=tuple)
    """(title, uid) of other dashboards"""

    def json(self) -> Raw:
        """As Grafana imports it."""
        return {
            "uid": self.uid,
            "title": self.title,
            "description": self.description,
            "tags": ["berth", "berth-mixin"],
            "schemaVersion": SCHEMA_VERSION,
            "version": 1,
            "editable": False,
            "graphTooltip": 1,
            "time": {"from": "now-6h", "to": "now"},
            "refresh": "1m",
            "timezone": "",
            "annotations": {"list": []},
            "links": [_link(*one) for one in self.links],
            "templating": {"list": [_DATASOURCES, *(one.json() for one in self.variables)]},
            "panels": list(self._panels()),
        }

    def _panels(self) -> Iterator[Raw]:
        identities, y = itertools.count(1), 0
        for title, panels in self.rows:
            place = {"x": 0, "y": y, "w": COLUMNS, "h": 1}
            yield {"id": next(identities), "type": "row", "title": title, "collapsed": False, "gridPos": place, "panels": []}
            x, y, tallest = 0, y + 1, 0
            for panel in panels:
                if x + panel.width > COLUMNS:
                    x, y, tallest = 0, y + tallest, 0
                yield panel.json(next(identities), x, y)
                x, tallest = x + panel.width, max(tallest, panel.height)
            y += tallest


_DATASOURCES: Raw = {
    "name": "datasource",
    "label": "Data source",
    "type": "datasource",
    "query": "prometheus",
    "refresh": 1,
    "includeAll": False,
    "multi": False,
    "current": {"selected": False, "text": "default", "value": "default"},
}


def _link(title: str, uid: str) -> Raw:
    return {"title": title, "type": "link", "url": f"/d/{uid}", "keepTime": True, "includeVars": True, "targetBlank": False}
