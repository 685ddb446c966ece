"""The alerts and recording rules of deploy/monitoring as data."""

from __future__ import annotations

from functools import cache
from typing import Any

import yaml

from tests.testcluster.addons.helm import CHART

RULES = CHART.parent / "monitoring" / "rules.yaml"
Raw = dict[str, Any]


@cache
def rules(kind: str) -> list[Raw]:
    """Those with this field: alert or record."""
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"] if kind in rule]


def alerts() -> dict[str, Raw]:
    """By name."""
    return {rule["alert"]: rule for rule in rules("alert")}
