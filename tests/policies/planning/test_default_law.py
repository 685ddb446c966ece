"""``docs/laws.md``, law 11 ("defaults never harm"): what one chooses may be what the author's own words rule out."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import given

from policies.engine import evaluate
from policies.policy import Policy, Require
from policies.request import Request
from tests.support.generators import random_pods, random_worlds
from tests.support.generators.random_worlds import World, with_policies
from tests.support.generators.strategies import examples, randoms
from tests.support.generators.unread_words import WORDS, with_word

PLACES = {"node_affinity", "mig_resources"}
"""rules that write where a pod may run"""
BY_ANNOTATION = ("berth.dev/node-template", "berth.dev/mig-slice")
"""how authors choose a place themselves"""


def wishing(world: World) -> World:
    """The same world, whose policies require nothing."""
    return with_policies(world, [_wishing(policy) for policy in world.policy_set.policies])


def _wishing(policy: Policy) -> Policy:
    return replace(policy, require=Require())


def silent(random: Random, world: World) -> Request:
    """A pod whose author chose no place by annotation."""
    asked = random_pods.request(random, world)
    annotations = asked.pod["metadata"].get("annotations", {})
    for key in BY_ANNOTATION:
        annotations.pop(key, None)
    return asked


@examples(40, 20_000)
@given(randoms())
def test_no_default_chooses_beside_a_word_that_nobody_knows(random: Random) -> None:
    """Whatever else the pod says, and whichever defaults there are, its nodes and the names of its devices stay as they are."""
    world = wishing(random_worlds.world(random))
    asked = silent(random, world)
    asked = replace(asked, pod=with_word(asked.pod, random.choice(WORDS), random))
    verdict = evaluate(asked, world.snapshot.facts_for(asked.namespace))
    assert PLACES.isdisjoint(edit.rule for edit in verdict.edits)


def test_defaults_choose_where_every_word_is_known() -> None:
    """Of the same pods without the word: else the law above would hold of a program that never chooses."""
    chosen = 0
    for seed in range(60):
        random = Random(seed)
        world = wishing(random_worlds.world(random))
        asked = silent(random, world)
        chosen += not PLACES.isdisjoint(edit.rule for edit in evaluate(asked, world.snapshot.facts_for(asked.namespace)).edits)
    assert chosen > 3
