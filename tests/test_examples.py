"""Property tests are tried on the same examples everywhere, and on worlds of every kind."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import fields
from random import Random
from typing import TYPE_CHECKING

from policies.facts.cluster_facts import ClusterFacts
from policies.policy import Allow, Default, Match, NodeTemplate, Policy, Require
from policies.verdict import MODES
from tests.support.generators.random_cluster import CLUSTER, DEAD_LABELS
from tests.support.generators.random_fields import SHARINGS
from tests.support.generators.random_worlds import GROUNDS, PLATFORMS, Ground, ground, policies
from tests.support.module_imports import ROOT

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

DRAWN = """
import sys
sys.path.insert(0, {root!r})
from tests.support.generators import same_examples
same_examples.load()
{imported}
from hypothesis import given, strategies as st
seen = []
@given(st.integers(0, 2**32), st.text(), st.randoms(use_true_random=False).map(lambda random: random.random()))
def law(number, text, fraction):
    seen.append((number, text, fraction))
law()
print(seen)
"""


def drawn(imported: str) -> str:
    """The examples of a law in a process of its own."""
    code = DRAWN.format(root=str(ROOT), imported=imported)
    return subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout


def test_examples_are_the_same_whatever_is_imported() -> None:
    """Where few modules are, and where half of the repository is: constants of it are no examples."""
    assert drawn("") == drawn("import policies.engine, webhook.serve, tests.support.generators.random_worlds") != ""


GROUND_FEATURES = {
    *PLATFORMS,
    *(f"{number} platforms" for number in range(4)),
    *(f"{number} templates" for number in range(3)),
    *("mixed", "single", "no queues", "kueue", "slurm-bridge", "known cluster", "unknown cluster", "unmaintained labels"),
    *("vendor nvidia", "vendor amd", *(f"shared as {sharing}" for sharing in SHARINGS)),
}


def set_fields(*values: DataclassInstance) -> Iterator[str]:
    """The fields that are not as they are where nothing is written."""
    for value in values:
        default = {field.name: field.default for field in fields(value)}
        yield from (f"{type(value).__name__}.{name}" for name in default if getattr(value, name) not in (default[name], None))


def every_field(*types: type[DataclassInstance]) -> set[str]:
    """All fields of these types."""
    return {f"{of.__name__}.{field.name}" for of in types for field in fields(of)}


def ground_features(drawn: Ground) -> Iterator[str]:
    """Everything that one ground adds to the pool."""
    clusters = ((CLUSTER, "known cluster"), (ClusterFacts(), "unknown cluster"), (DEAD_LABELS, "unmaintained labels"))
    yield from (*drawn.platforms, f"{len(drawn.platforms)} platforms", f"{len(drawn.templates)} templates", drawn.mig_strategy)
    yield from drawn.queues or ("no queues",)
    yield from (name for cluster, name in clusters if drawn.cluster == cluster)
    for template in drawn.templates:
        yield from set_fields(template)
        yield from (*(f"shared as {sharing}" for sharing in template.sharing), *(f"vendor {vendor}" for vendor in template.vendors))


def test_the_pool_of_grounds_has_every_feature() -> None:
    """Each field of a ground has each of its forms among those that ``make test`` knows."""
    seen = Counter(feature for number in range(GROUNDS) for feature in ground_features(ground(Random(number))))
    assert GROUND_FEATURES | every_field(NodeTemplate) == set(seen)
    assert seen["unmaintained labels"] >= GROUNDS / 10


def test_random_policies_have_every_field() -> None:
    """Every field is written in some policy of few worlds, every mode is set, and some worlds have policies that contradict each other."""
    drawn = [policies(Random(seed), ("t0", "t1"), MODES) for seed in range(100)]
    every = [policy for found in drawn for policy in found]
    parts = {name for policy in every for name in set_fields(policy, policy.match, policy.require, policy.default, policy.allow)}
    assert every_field(Policy, Match, Require, Default, Allow) - parts == set()
    assert {policy.mode for policy in every} == set(MODES)
    assert any(_contradict([policy.require.capacity for policy in found if policy.require.capacity]) for found in drawn)


def _contradict(capacities: Sequence[Sequence[str]]) -> bool:
    """Whether no capacity is in all of the lists, of which there are two at least."""
    return len(capacities) > 1 and not set(capacities[0]).intersection(*capacities)
