"""Denials as somebody reads them who may not list every policy."""

from __future__ import annotations

from dataclasses import replace

from console.berths.group_page import words
from console.berths.groups import groups
from console.berths.landing import find_landing, of_group
from console.world.scope import EVERYTHING, NOTHING
from console.world.view import View
from policies.messages import phrase
from tests.support.console.worlds import world
from tests.support.recorded.parts import GPU, Raw, node

TEAM: Raw = {"key": "team", "value": "vision", "effect": "NoSchedule"}
REQUIRE: Raw = {"tolerations": {"forbid": [{"key": "team", "value": "vision"}]}}
SECRET: Raw = {
    "apiVersion": "berth.dev/v1alpha1",
    "kind": "ClusterGPUPolicy",
    "metadata": {"name": "secret"},
    "spec": {"mode": "Enforce", "require": REQUIRE},
}


def test_names_of_policies_are_for_those_who_may_list_them() -> None:
    """The whole sentence, else fact and fix without the name; only the title where the fact itself has the name."""
    found = world([node("n0", {"karpenter.sh/nodepool": "train"}, {GPU: 8}, TEAM)], [SECRET])
    (one,) = find_landing(found, "web", of_group(groups(found)[0], GPU, found.seen.fleet)).violations
    everybody, nobody = View(world=found, scope=EVERYTHING), View(world=found, scope=NOTHING)
    assert words(one, everybody) == str(one)
    assert "ClusterGPUPolicy/secret" in str(one)
    assert words(one, nobody) == f"{one.code}: {one.fact}; {one.fix}. (required by policies that you may not list)"
    within = replace(one, found=phrase("fact", path="spec", taint=("of", "ClusterGPUPolicy/secret")))
    assert "secret" in words(within, everybody)
    assert "secret" not in words(within, nobody)
    assert within.code in words(within, nobody)
