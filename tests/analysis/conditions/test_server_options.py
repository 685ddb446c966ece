"""What commands take for the server's --max-mode: what the statuses of policies show."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.conditions import compute_conditions
from analysis.conditions.server_mode import as_served
from policies.state.objects import Change, Key
from policies.state.updater import Options
from policies.verdict import Mode
from tests.analysis.conditions.found import key, new_updater, policy, template

Raw = dict[str, Any]
CHOSEN = Options(platforms=("karpenter-aws",), follows_server=True)


def served(max_mode: Mode, *objects: Raw) -> dict[Key, Change]:
    """The objects with the statuses that a server of this --max-mode writes."""
    lived = new_updater(max_mode=max_mode).apply({key(one): one for one in objects})
    found = compute_conditions(lived.snapshot, lived.entries, {})
    statuses = {
        one: {"mode": finding.mode, "conditions": [{"type": c.type, "status": c.status, "reason": c.reason} for c in finding.conditions]}
        for one, finding in found.items()
    }
    return {key(one): {**one, "status": statuses[key(one)]} for one in objects}


OBJECTS = (policy("a"), policy("b", mode="Warn"), policy("c", mode="Audit"), template("t"), policy("wrong", require={"x": 1}))


@pytest.mark.parametrize("mode", ["Audit", "Warn", "Enforce"])
def test_the_mode_of_the_server_is_read_of_what_it_wrote(mode: Mode) -> None:
    """Whatever modes its policies have, and with errors in some of them."""
    assert as_served(CHOSEN, served(mode, *OBJECTS)).max_mode == mode


def test_a_mode_that_was_given_stays() -> None:
    """--max-mode of the command says what is asked about."""
    given = Options(platforms=("karpenter-aws",), max_mode="Warn")
    assert as_served(given, served("Audit", *OBJECTS)) is given


@pytest.mark.parametrize(
    "status",
    [
        None, [], {}, {"mode": "Audit"}, {"conditions": {}}, {"mode": [], "conditions": [{"type": "Ready", "reason": "ModeCapped"}]},
        {"mode": "Audit", "conditions": [{"type": "Ready", "reason": "InForce"}, "odd"]},
    ],
    ids=str,
)  # fmt: skip
def test_a_status_that_says_nothing_of_it_caps_nothing(status: Any) -> None:
    """Of an older server, of one that was never there, and whatever else somebody wrote."""
    value = {**policy("a"), "status": status}
    assert as_served(CHOSEN, {key(value): value, ("ClusterGPUPolicy", "", "gone"): None}).max_mode == "Enforce"
