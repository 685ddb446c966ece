"""One object of a cluster, whatever it is: what it says is understood whole, and what is wrong is told within bounds."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.names import CatalogNames
from kube.taints import Taint
from policies.objects.definition import KINDS, SPECS
from policies.objects.field_types import Kind
from policies.objects.parse import LONGEST_MESSAGE, MOST_REPORTED, Understood, understand
from policies.policy import Bounds, DeviceLimit, LongRuns, Match, NodeTemplate, Policy, Require
from policies.verdict import MODES
from tests.support.counts import count
from tests.support.generators import random_worlds
from tests.support.generators.strategies import examples
from tests.support.generators.written_objects import read_back, sayable, written

NAMES = CatalogNames(random_worlds.catalog())
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63), st.floats(), st.text(max_size=20))
ANYTHING = st.recursive(
    LEAVES, lambda inner: st.one_of(st.lists(inner, max_size=5), st.dictionaries(st.text(max_size=12), inner, max_size=5))
)
METADATA = st.one_of(ANYTHING, st.fixed_dictionaries({}, optional={"name": ANYTHING, "namespace": ANYTHING, "uid": ANYTHING}))


def understood(spec: Any, kind: Kind = "ClusterGPUPolicy") -> Understood:
    metadata = {"name": "one", **({"namespace": "team"} if kind == "GPUPolicy" else {})}
    return understand({"metadata": metadata, "spec": spec}, kind, NAMES)


def of_fields(names: list[str]) -> st.SearchStrategy[Any]:
    """Values under names that are fields somewhere, so that nonsense gets past the first level."""
    key = st.one_of(st.sampled_from(names), st.text(max_size=5))
    words = st.one_of(LEAVES, st.sampled_from(["hopper", "Enforce", "spot", "2h", "10gb", "In", "team", "MIG", "Always", "Tolerate"]))
    return st.recursive(words, lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(key, inner, max_size=4)), max_leaves=30)


def names_of(shape: Any) -> set[str]:
    """Every field below a shape."""
    inside = getattr(shape, "of", None)
    found = names_of(inside) if inside is not None and not callable(inside) else set()
    for field in getattr(shape, "fields", ()):
        found |= {field.name} | names_of(field.shape)
    return found


FIELDS = sorted({name for kind in KINDS for name in names_of(SPECS[kind])})


def random_object(random: Random) -> Policy | NodeTemplate:
    if random.random() < 0.3:
        return random_worlds.template(random, "t0")
    return random_worlds.policy(random, 0, ["t0", "t1"], MODES, random.choice((None, "team-a")))


def test_what_is_written_is_what_is_understood() -> None:
    """A random policy or template, written as an object, is read back as it was, without an error."""
    for seed in range(count(150, 20_000)):
        one = sayable(random_object(Random(seed)))
        thing = written(one)
        found = understand(thing, thing["kind"], NAMES)
        assert (found.errors, read_back(found)) == ((), one), f"Random({seed})"


@pytest.mark.parametrize(
    "one",
    [
        Policy(name="a", mode="Warn", match=Match(gpus=Bounds(min=0, max=0)), exclude_users=("anna",)),
        Policy(
            name="a",
            require=Require(gpus_per_pod=DeviceLimit(max=1), long_runs=LongRuns(over=1, capacity=("spot",), unknown_is_long=False)),
        ),
        NodeTemplate(name="a", labels=(("a/b", ""), ("c", "d")), taints=(Taint(key="k", effect="NoExecute"),)),
    ],
)
def test_a_nought_a_one_and_an_empty_text_are_said(one: Policy | NodeTemplate) -> None:
    """They are values like others."""
    thing = written(one)
    assert read_back(understand(thing, thing["kind"], NAMES)) == one


def test_what_is_left_out_or_taken_away_is_no_longer_the_same() -> None:
    """Each field that is written counts: without any one of them the object says something else, or nothing."""
    for seed in range(count(40, 1_000)):
        one = sayable(random_object(Random(seed)))
        for name in written(one)["spec"]:
            thing = written(one)
            del thing["spec"][name]
            assert read_back(understand(thing, thing["kind"], NAMES)) != one, f"Random({seed}) without {name}"


@examples(50, 20_000)
@given(
    st.sampled_from(KINDS), st.dictionaries(st.text(max_size=12), ANYTHING, max_size=4), METADATA, st.one_of(ANYTHING, of_fields(FIELDS))
)
def test_any_json_is_understood_or_told(kind: Kind, others: dict[str, Any], metadata: Any, spec: Any) -> None:
    """Nothing raises; what is wrong is told, and acts in no part."""
    found = understand({**others, "metadata": metadata, "spec": spec}, kind, NAMES)
    assert (read_back(found) is None) == bool(found.errors)
    assert not isinstance(found.acting, Policy) or kind != "GPUNodeTemplate"
    assert len(found.errors) <= MOST_REPORTED + 8
    assert all(len(text) <= LONGEST_MESSAGE for text in (*found.errors, *found.warnings))


@pytest.mark.parametrize("metadata", [None, [], "x", {}, {"name": None}, {"name": 3}, {"name": "Not A Name"}, {"name": "a" * 10**6}])
def test_metadata_of_any_shape_is_told(metadata: Any) -> None:
    """The object has no name that it could act under."""
    found = understand({"metadata": metadata, "spec": {"mode": "Audit"}}, "ClusterGPUPolicy", NAMES)
    assert found.acting is None
    assert any(error.startswith("metadata") for error in found.errors)


HOSTILE = {
    "unknown fields": {f"require{number}": 1 for number in range(50_000)},
    "wrong labels": {"match": {"namespaceSelector": {"matchLabels": {f"k{number}$": "$" for number in range(50_000)}}}},
    "wrong expressions": {"match": {"podSelector": {"matchExpressions": [{"key": "$", "operator": "x", "values": ["$"] * 256}] * 256}}},
    "wrong names": {part: {"families": {"in": ["hopper" * 20] * 256, "notIn": ["h" * 9000] * 256}} for part in ("require", "default")},
    "a huge name": {"x" * 1_500_000: 1},
    "a huge text": {"mode": "x" * 1_500_000},
    "deep": [[[[]]]],
}


@pytest.mark.parametrize("spec", HOSTILE.values(), ids=HOSTILE.keys())
def test_of_what_is_hostile_little_is_told(spec: Any) -> None:
    """An object as large as etcd takes, past every rule of the schema: a hundred errors at most, none long."""
    found = understood(spec)
    assert 0 < len(found.errors) <= MOST_REPORTED
    assert all(len(error) <= LONGEST_MESSAGE for error in found.errors)
    assert found.acting is None


def test_the_first_mistakes_are_those_that_are_told() -> None:
    """As many as there are while they are few, and each as long as it is."""
    found = understood({f"f{number}": 1 for number in range(MOST_REPORTED - 1)})
    assert len(found.errors) == MOST_REPORTED - 1
    assert found.errors[0].startswith('spec.f0: unknown field "f0"')


def test_doubts_are_bounded_too() -> None:
    """Instance families that nobody knows are kept, all of them, and a hundred are warned of."""
    names = [f"x{number}" for number in range(256)]
    found = understood({"require": {"instanceFamilies": {"in": names}}})
    assert isinstance(found.acting, Policy)
    assert found.acting.require.machine.instance_families is not None
    assert len(found.acting.require.machine.instance_families.in_) == 256
    assert len(found.warnings) == MOST_REPORTED


def test_templates_are_named_with_their_places() -> None:
    """Whether they are there is for others to say."""
    found = understood({"default": {"nodeTemplate": "a"}, "allow": {"nodeTemplates": ["b"]}})
    assert found.templates == (("spec.default.nodeTemplate", "a"), ("spec.allow.nodeTemplates[0]", "b"))
