"""The engine against the reference evaluator, on random policies and pods of every field on every platform."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from random import Random

from policies.request import Request
from policies.rules import RULES
from tests.reference.compare import Compared, compare
from tests.reference.evaluator import Reference
from tests.support.counts import PROVE
from tests.support.generators import random_pods, random_worlds
from tests.support.generators.random_worlds import World

PODS_PER_WORLD = 10
_OF_DEVICES, _OF_THE_REST = (101, 102, 103, 111, 112, 113, 114, 115), (131, 141, 142, 144, 151, 152, 153)
DENIALS = {f"BERTH-{number}" for number in (*_OF_DEVICES, 121, 122, 123, 124, 125, *_OF_THE_REST)}
_OF_EVERY_KIND, _QUICK = (
    (40, 43, 55, 68, 71, 74, 113, 115, 173),
    (35, 36, 38, 39, 41, 42, 45, 49, 52, 56, 58, 60, 65, 69, 73, 80, 84, 90, 94, 95),
)
SEEDS = range(20, 10_020) if PROVE else (*_OF_EVERY_KIND, *_QUICK)
"""of worlds; the first bring up every denial and every rule, the others are those that the reference evaluates soonest"""


def compared() -> Iterator[tuple[int, World, Request, Compared]]:
    """The seed says the world and its pods: ``Random(seed)``."""
    for seed in SEEDS:
        random = Random(seed)
        world = random_worlds.maintained(random_worlds.world(random))
        reference = Reference(
            world.policy_set,
            random_worlds.catalog(),
            platforms=world.platforms,
            mig_strategy=world.mig_strategy,
            queues=world.queues,
            cluster=world.cluster,
        )
        for _ in range(PODS_PER_WORLD):
            request = random_pods.request(random, world)
            yield seed, world, request, compare(request, world.snapshot.facts_for(request.namespace), reference)


def reproduction(seed: int, world: World, request: Request, found: Compared) -> str:
    """All that is needed to see it again: paste it into a test."""
    matched = [p for p in world.policy_set.policies if p.id in found.mutated.matched]
    where = f"platforms {world.platforms}, {world.mig_strategy}, queues {world.queues}"
    lines = [f"Random({seed}), {where}, namespace {request.namespace}, {request.user}"]
    lines += [*map(str, found.differences), json.dumps(request.pod), *map(str, matched), *map(str, world.policy_set.templates)]
    return "\n".join([*lines, *map(str, found.mutated.violations), *map(str, found.mutated.remarks)])


def test_the_engine_does_what_the_reference_says() -> None:
    """No difference in who matches, what is denied, what is edited and where the pod may land; and all of it happens."""
    seen: Counter[str] = Counter()
    for seed, world, request, found in compared():
        assert not found.differences, reproduction(seed, world, request, found)
        for verdict in (found.mutated, found.validated):
            seen.update({v.code for v in verdict.violations})
        seen.update({edit.rule for edit in found.mutated.edits})
        seen.update(part for part, there in _parts(found).items() if there)
    print(", ".join(f"{part} {times}" for part, times in sorted(seen.items())))
    assert DENIALS - set(seen) == set()
    rare = {"device_counts", "queue_words", "queue_keys", "network_devices"}  # three edit nothing, one needs pods of one kind of machine
    assert {rule.name for rule in RULES} - rare - set(seen) == set()
    assert seen["denied"] > seen["pods"] / 10
    assert seen["edited"] > seen["pods"] / 10


def _parts(found: Compared) -> dict[str, bool]:
    verdict = found.mutated
    return {
        "pods": True,
        "not judged": not verdict.is_evaluated,
        "matched": bool(verdict.matched),
        "denied": bool(verdict.violations),
        "edited": bool(verdict.edits),
        "affinity written": any(e.rule == "node_affinity" for e in verdict.edits),
    }
