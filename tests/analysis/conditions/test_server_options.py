"""What commands take for the server's options: what the statuses of policies show."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from analysis.conditions import compute_conditions
from analysis.conditions.server_options import as_served, describe_platforms, selected_platforms, used_platforms
from documents.files import read_catalog
from policies.state.objects import Change, Key
from policies.state.updater import Options, Updater
from policies.verdict import Mode
from tests.analysis.conditions.found import key, new_updater, policy, template

Raw = dict[str, Any]
CHOSEN = Options(platforms=("auto",), follows_server=frozenset({"platforms", "queues", "max_mode"}))
CATALOG = read_catalog([])


def served(max_mode: Mode, *objects: Raw) -> dict[Key, Change]:
    """The objects with the statuses that a server of this --max-mode writes."""
    lived = new_updater(("karpenter-aws", "gfd"), max_mode=max_mode, queues=("kueue",)).apply({key(one): one for one in objects})
    found = compute_conditions(lived.snapshot, lived.entries, {})
    statuses = {
        one: {
            "mode": finding.mode,
            "server": finding.server,
            "conditions": [{"type": c.type, "status": c.status, "reason": c.reason} for c in finding.conditions],
        }
        for one, finding in found.items()
    }
    return {key(one): {**one, "status": statuses[key(one)]} for one in objects}


OBJECTS = (policy("a"), policy("b", mode="Warn"), policy("c", mode="Audit"), template("t"), policy("wrong", require={"x": 1}))


@pytest.mark.parametrize("mode", ["Audit", "Warn", "Enforce"])
def test_the_mode_of_the_server_is_read_of_what_it_wrote(mode: Mode) -> None:
    """Whatever modes its policies have, and with errors in some of them."""
    assert as_served(CHOSEN, served(mode, *OBJECTS), CATALOG).max_mode == mode


def test_a_mode_that_was_given_stays() -> None:
    """--max-mode of the command says what is asked about."""
    given = Options(platforms=("karpenter-aws",), max_mode="Warn")
    assert as_served(given, served("Audit", *OBJECTS), CATALOG) is given


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
    assert as_served(CHOSEN, {key(value): value, ("ClusterGPUPolicy", "", "gone"): None}, CATALOG).max_mode == "Enforce"


def test_the_platforms_and_queues_of_the_server_are_read_of_what_it_wrote() -> None:
    """They replace what nodes show; one that was given stays, and a name that this version does not know is left out."""
    objects = served("Enforce", *OBJECTS)
    taken = as_served(CHOSEN, objects, CATALOG)
    assert (taken.platforms, taken.queues) == (("karpenter-aws", "gfd"), ("kueue",))
    given = replace(CHOSEN, platforms=("gke",), follows_server=frozenset({"queues"}))
    assert (as_served(given, objects, CATALOG).platforms, as_served(given, objects, CATALOG).queues) == (("gke",), ("kueue",))
    newer = {**policy("a"), "status": {"server": {"platforms": ["gke", "moon"], "queues": "odd"}}}
    assert as_served(CHOSEN, {key(newer): newer}, CATALOG).platforms == ("gke",)


def test_an_answer_says_where_its_platforms_come_from() -> None:
    """From the server's status, from nodes where it shows none, or from the command line."""
    objects = served("Enforce", *OBJECTS)
    given = replace(CHOSEN, platforms=("gke",), follows_server=frozenset())
    for chosen, values, source in ((CHOSEN, objects, "server"), (CHOSEN, {}, "nodes"), (given, objects, "given")):
        taken = as_served(chosen, values, CATALOG)
        used = used_platforms(Updater(CATALOG, taken).apply(values).snapshot, chosen, taken, ())
        assert (used.source, used.names) == (source, () if source == "nodes" else taken.platforms)


def test_platforms_that_nobody_may_read_are_unknown() -> None:
    """Not none; what a pod selects by is something to go by."""
    used = used_platforms(Updater(CATALOG, CHOSEN).apply({}).snapshot, CHOSEN, CHOSEN, {"Node"})
    assert describe_platforms(used).startswith("unknown (neither nodes nor the server's can be read")
    terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "cloud.google.com/gke-accelerator", "operator": "Exists"}]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    assert selected_platforms([{"spec": {"affinity": affinity}}], CATALOG) == ("gke",)
    assert selected_platforms([{"spec": {"nodeSelector": {"nvidia.com/gpu.product": "Tesla-T4"}}}], CATALOG) == ("gfd",)
    assert selected_platforms([{"spec": {"nodeSelector": {"disk": "ssd"}}}], CATALOG) == ()
