"""The laws of the design where labels of GPU Feature Discovery were left behind, on random worlds and pods."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from hypothesis import given

from policies.messages import OF_EDITS
from policies.modes.maintained import unmaintained
from policies.policy import Policy
from tests.policies.test_laws import Raw, judge, patched
from tests.support.counts import count
from tests.support.generators.random_cluster import DEAD_LABELS
from tests.support.generators.random_worlds import World, catalog, with_policies
from tests.support.generators.strategies import ENFORCE, Case, case_of, cases, examples, hostile

DEAD = unmaintained(DEAD_LABELS, catalog())


def dead(world: World) -> World:
    """The same policies and platforms, on nodes whose labels nobody maintains."""
    return replace(world, cluster=DEAD_LABELS)


def keys(pod: Raw) -> Iterator[str]:
    """The labels that required terms name, each as often as it stands there."""
    node = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    terms = (node.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get("nodeSelectorTerms") or ()
    yield from (e["key"] for term in terms for e in term.get("matchExpressions") or ())


def written(case: Case, world: World) -> set[str]:
    """The labels that terms name because of a policy: those of templates are the platform team's word."""
    final = patched(case.request.pod, judge(case, world=world))
    templates = {key for template in world.policy_set.templates for key, _ in template.labels}
    return set(keys(final)) - set(keys(case.request.pod)) - templates


def test_no_term_is_written_on_a_label_that_nobody_maintains() -> None:
    """Of the very cases in which some are while somebody maintains them."""
    alive = 0
    for seed in range(count(400, 20_000)):
        case = case_of(Random(seed), ENFORCE)
        alive += not DEAD.isdisjoint(written(case, case.world))
        assert DEAD.isdisjoint(written(case, dead(case.world))), seed
    assert alive > 10


@examples(40, 5_000)
@given(cases())
def test_a_second_mutate_changes_nothing(case: Case) -> None:
    """And validate admits what mutate lets through."""
    world = dead(case.world)
    first = judge(case, world=world)
    pod = patched(case.request.pod, first)
    again = judge(case, world=world, pod=pod)
    if not first.violations:
        assert (list(again.patch), again.violations) == ([], ())
        assert not [remark for remark in again.remarks if remark.code in OF_EDITS]
        assert judge(case, world=world, phase="validate", pod=pod).violations == ()


@examples(40, 10_000)
@given(hostile())
def test_a_namespace_only_tightens(drawn: tuple[Case, tuple[Policy, ...]]) -> None:
    """Every pod that is admitted with the namespace's own policies is admitted without them, as it came and as mutated."""
    case, own = drawn
    alone = dead(case.world)
    both = with_policies(alone, [*alone.policy_set.policies, *own])
    for pod in (case.request.pod, patched(case.request.pod, judge(case, world=both))):
        if not judge(case, phase="validate", world=both, pod=pod).violations:
            assert judge(case, phase="validate", world=alone, pod=pod).violations == ()
