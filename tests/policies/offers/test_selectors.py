"""Rendering: what is written selects the wanted rows, exactly or as a subset, and stays short."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from random import Random

import pytest

from kube.labels import Expression
from policies.engine import evaluate
from policies.offers.selectors import natural, render, slice_by_label, values_among
from policies.offers.table import Axis, Table
from policies.request import Request
from tests.support.cases import golden
from tests.support.snapshots import build

CATALOG = golden.catalog_with()
NOTHING = golden.policies_of([], CATALOG)
TABLES = build(NOTHING, CATALOG, platforms=tuple(CATALOG.platforms)).tables
MOST_BYTES, MOST_CUT = 300, 3400
"""of what ``models: {notIn: [...]}`` may add to a pod on gfd"""


def selected(table: Table, expressions: tuple[Expression, ...]) -> int:
    rows = table.all
    for e in expressions:
        rows &= table.select(e.key, e.operator, e.values)[0]
    return rows


def wanted(table: Table, random: Random) -> Iterator[tuple[Axis, int]]:
    """Sets of rows along one axis, as policies make them: some machines, some capacities, some ways to share."""
    hosts = sorted({o.host.name for o in table.offers})
    names = set(random.sample(hosts, random.randint(1, len(hosts))))
    yield "machine", table.where(o.host.name in names for o in table.offers)
    groups: tuple[tuple[Axis, Mapping[str, int]], ...] = (("capacity", table.by_capacity), ("sharing", table.by_sharing))
    for axis, by_name in groups:
        yield axis, sum(by_name[name] for name in random.sample(sorted(by_name), random.randint(1, len(by_name))))


def may_be_asked_for(table: Table, inside: int) -> int:
    return sum(rows for rows in table.by_resource.values() if rows & inside)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_an_expression_selects_what_it_says_and_nothing_outside(table: Table, seed: int) -> None:
    """Of the rows of one vendor whose resource name may be asked for inside; ``exact`` means all that were wanted and are ever written.

    A slice and a whole GPU of one node (mixed strategy) differ in their resource names alone, which no label says.
    """
    random = Random(seed)
    for axis, inside in wanted(table, random):
        universe = table.by_vendor[random.choice(sorted(table.by_vendor))]
        found = render(CATALOG, table, axis, inside, universe)
        if found is not None:
            assert found.rows & ~(inside & universe) == 0
            assert selected(table, found.expressions) & universe & ~inside & may_be_asked_for(table, inside) == 0
            unwritten = table.further if axis == "capacity" else 0
            assert found.exact is (found.rows == inside & universe & ~unwritten or found.rows == inside & universe)


def test_what_is_everything_needs_no_expression() -> None:
    """Nothing is written where nothing is left out."""
    table = TABLES["gfd"]
    found = render(CATALOG, table, "machine", table.all, table.by_vendor["nvidia"])
    assert found is not None
    assert found.expressions == ()


def test_the_empty_set_is_said_by_what_no_node_satisfies() -> None:
    """A dead ORed term must not select what is outside R: its key is there and is not."""
    table = TABLES["gfd"]
    keys: dict[Axis, str] = {"machine": "nvidia.com/gpu.family", "sharing": "nvidia.com/gpu.sharing-strategy"}
    for axis, key in keys.items():
        rendering = render(CATALOG, table, axis, 0, table.by_vendor["nvidia"])
        assert rendering is not None
        assert [(e.key, e.operator) for e in rendering.expressions] == [(key, "Exists"), (key, "DoesNotExist")]


def test_a_slice_by_label_needs_a_label() -> None:
    """Karpenter has none; GKE has none for a profile of no machine."""
    assert slice_by_label(CATALOG, TABLES["karpenter-aws"], "1g.10gb", TABLES["karpenter-aws"].all) is None
    assert slice_by_label(CATALOG, TABLES["gke"], "1g.10gb", 0) is None
    assert slice_by_label(CATALOG, TABLES["gke"], "9g.99gb", TABLES["gke"].all) is None


def test_values_are_sorted_as_people_read_them() -> None:
    """81920 before 183359."""
    assert sorted(["183359", "81920", "a100", "a10g"], key=natural) == ["a100", "a10g", "81920", "183359"]


# --- how long it gets ------------------------------------------------------------------------------------------------


def added_bytes(model: str) -> int:
    """Bytes of compact JSON that excluding one model adds to a pod on gfd."""
    policy = {"kind": "ClusterGPUPolicy", "metadata": {"name": "x"}, "spec": {"mode": "Enforce", "require": {"models": {"notIn": [model]}}}}
    facts = build(golden.policies_of([policy], CATALOG), CATALOG, platforms=("gfd",)).facts_for("ml")
    whole = CATALOG.whole[CATALOG.models(model)[0].vendor]
    pod = {"spec": {"containers": [{"resources": {"limits": {whole: "1"}}}]}}
    (edit,) = (e for e in evaluate(Request(namespace="ml", pod=pod), facts).edits if e.rule == "node_affinity")
    (term,) = edit.value["nodeSelectorTerms"]
    return len(json.dumps(term["matchExpressions"], separators=(",", ":")))


PLACED = [gpu.model for gpu in CATALOG.gpus if gpu.vendor in ("nvidia", "amd", "intel") and gpu.products]


@pytest.mark.parametrize("model", PLACED)
def test_excluding_a_model_on_gfd_is_short(model: str) -> None:
    """Under 300 bytes as NotIn, and under 3,400 where it has its products of slices too, up to fifty names; listing what remains would
    take hundreds of values."""
    assert added_bytes(model) < (MOST_CUT if CATALOG.models(model)[0].mig else MOST_BYTES)


@pytest.mark.parametrize(
    ("platform", "count", "kept", "example"),
    [
        ("karpenter-aws", 8, ("hopper",), "rtx-pro-server-6000"),
        ("karpenter-aws", 1, ("blackwell",), "h100"),
        ("eks-nodegroup", 1, ("hopper", "blackwell"), "g6e.xlarge"),
        ("gke", 8, ("ampere", "hopper", "blackwell"), "nvidia-l4"),
        ("gfd", 1, ("blackwell",), "hopper"),
    ],
)
def test_an_example_is_the_newest_model_on_machines_of_the_size(platform: str, count: int, kept: tuple[str, ...], example: str) -> None:
    """An example is the newest model that is left, on machines with the fewest devices that suffice."""
    table = TABLES[platform]
    enough = table.enough("nvidia.com/gpu", count)
    inside = table.where(offer.host.gpu is not None and offer.host.gpu.family in kept for offer in table.offers)
    assert values_among(table, table.platform.machine_keys[0][0], enough & ~inside & ~table.unknown, inside)[0] == example


def test_a_machine_that_a_cloud_sells_no_longer_is_no_example() -> None:
    """K80s and M60s have prices in EC2's list: neither is an example, although nothing else is left."""
    table = TABLES["karpenter-aws"]
    old = table.where(offer.host.gpu is not None and offer.host.gpu.family in ("kepler", "maxwell") for offer in table.offers)
    assert values_among(table, "karpenter.k8s.aws/instance-gpu-name", old, 0) == ()
