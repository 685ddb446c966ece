"""The registry of rules: which of them run under which policies."""

from __future__ import annotations

from random import Random

import pytest

from policies import engine
from policies.planning.requirements import Demands, demands
from policies.pods.permissions import PLAIN
from policies.request import Phase
from policies.rules import RULES, Rule, acting_rules
from policies.verdict import Verdict
from tests.support.generators import random_pods, random_worlds

PHASES: tuple[Phase, ...] = ("mutate", "validate")


def every_rule(merged: Demands) -> tuple[Rule, ...]:
    """Return all rules, whatever the policies are."""
    return RULES


def verdicts() -> list[Verdict]:
    """Return the verdicts on random pods under random policies, the same ones with each call."""
    found = []
    for seed in range(12):
        random = Random(seed)
        world = random_worlds.maintained(random_worlds.world(random))
        for request in [random_pods.request(random, world) for _ in range(6)]:
            facts = world.snapshot.facts_for(request.namespace)
            found += [engine.evaluate(request.in_phase(phase), facts) for phase in PHASES]
    return found


def test_a_rule_that_does_not_run_has_nothing_to_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """A verdict is the same if every rule runs, also those of which no policy has a field."""
    acting = verdicts()
    monkeypatch.setattr(engine, "acting_rules", every_rule)
    assert acting == verdicts()
    assert any(verdict.edits for verdict in acting)


def test_a_rule_runs_only_if_a_policy_has_one_of_its_fields() -> None:
    """Under no policies only the rules run that do not depend on their fields."""
    world = random_worlds.maintained(random_worlds.world(Random(0)))
    of_none, _ = demands(world.snapshot, (), (), None, PLAIN)
    assert acting_rules(of_none) == tuple(rule for rule in RULES if not rule.fields)
