"""Hypothesis strategies over the random worlds and pods: its own ``Random`` draws them, so that what fails is made small."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from policies.policy import Policy
from policies.request import Request
from policies.verdict import MODES, Mode
from tests.support.counts import count
from tests.support.generators import random_pods, random_worlds
from tests.support.generators.random_worlds import World

ENFORCE: tuple[Mode, ...] = ("Enforce",)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One request under one world."""

    world: World
    request: Request


def case_of(random: Random, modes: Sequence[Mode]) -> Case:
    """A world with policies in these modes, and a pod for it."""
    world = random_worlds.world(random, modes)
    return Case(world=world, request=random_pods.request(random, world))


def randoms() -> st.SearchStrategy[Random]:
    """Half of them plain seeds, which reach further; half hypothesis' own, which shrink."""
    return st.one_of(st.integers(0, 2**32).map(Random), st.randoms(use_true_random=False))


def cases(modes: Sequence[Mode] = ENFORCE) -> st.SearchStrategy[Case]:
    """A world and a pod for it, every policy in one of the modes."""
    return randoms().map(lambda random: case_of(random, modes))


def audited() -> st.SearchStrategy[Case]:
    """The same, with policies in every mode."""
    return cases(MODES)


def hostile() -> st.SearchStrategy[tuple[Case, tuple[Policy, ...]]]:
    """A case under the cluster's policies alone, and what its namespace adds to them."""

    def make(random: Random) -> tuple[Case, tuple[Policy, ...]]:
        case = case_of(random, ENFORCE)
        names = [t.name for t in case.world.policy_set.templates]
        own = tuple(random_worlds.policy(random, i, names, namespace=case.request.namespace) for i in range(random.randint(1, 3)))
        guards = [p for p in case.world.policy_set.policies if p.namespace is None]
        return Case(world=random_worlds.with_policies(case.world, guards), request=case.request), own

    return randoms().map(make)


def examples(small: int, full: int) -> Callable[[Any], Any]:
    """How often a law is tried, on the same examples every time (``tests.support.generators.same_examples``)."""
    decorator: Callable[[Any], Any] = settings(max_examples=count(small, full))
    return decorator
