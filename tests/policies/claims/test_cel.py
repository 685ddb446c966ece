"""Demands as texts, and back; and what implies what."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from random import Random

import pytest

from policies.claims import cel
from policies.claims.cel import AtLeast, Demand, OneOf
from tests.reference import claims as reference
from tests.support.counts import count

ARCHITECTURE = OneOf(driver="gpu.nvidia.com", domain="gpu.nvidia.com", attribute="architecture", values=("Ada Lovelace", "Hopper"))
MEMORY = AtLeast(driver="gpu.nvidia.com", domain="gpu.nvidia.com", capacity="memory", mebibytes=9728)
ODD = replace(ARCHITECTURE, values=('a "b"', "c\\d", "é", "]", '", "', ""), outside=True, spaces=True)


@pytest.mark.parametrize("demand", [ARCHITECTURE, replace(ARCHITECTURE, outside=True), MEMORY, ODD, replace(ARCHITECTURE, values=())])
def test_a_text_is_read_as_what_it_was_written_from(demand: Demand) -> None:
    """Whatever its values."""
    assert cel.parse_demand(demand.text) == demand


@pytest.mark.parametrize(
    "text",
    [
        "",
        "true",
        ARCHITECTURE.text + " ",
        ARCHITECTURE.text.replace(", ", ","),
        ARCHITECTURE.text + " || true",
        ARCHITECTURE.text.replace("Hopper", "Hopp\\u0065r"),
        replace(ARCHITECTURE, outside=True).text[:-1],
        ARCHITECTURE.text + ")",
        MEMORY.text.replace("9728", "09728"),
        MEMORY.text.replace(">=", "<="),
        ARCHITECTURE.text.replace("architecture in", "brand in"),
        replace(ARCHITECTURE, values=("x" * cel.LONGEST,)).text,
    ],
)
def test_any_other_text_is_not_understood(text: str) -> None:
    """Not even one that means the same: an author's word that is taken for a policy's would be worth less than it is."""
    assert cel.parse_demand(text) is None


def test_what_is_implied_is_what_every_device_meets() -> None:
    """By trying each device: one that meets all that is given meets what is implied, and where nothing is implied some device shows it."""
    random, implied = Random(1), 0
    values = ("a", "b", "c", "other")
    for _ in range(count(500, 20_000)):
        given = [some(random) for _ in range(random.randint(0, 3))]
        demand = some(random)
        devices = [
            {"driver": "d", "attributes": {"x": {"string": x}, "y": {"string": y}}, "capacity": {"m": {"value": f"{m}Gi"}}}
            for x, y, m in product(values, values, (1, 2, 3))
        ]
        met = [device for device in devices if all(reference.passes(one.text, device) for one in given)]
        every = all(reference.passes(demand.text, device) for device in met)
        assert not cel.implied(demand, given) or every, (demand, given)
        if met and any(one.subject == demand.subject for one in given):
            assert cel.implied(demand, given) is every, (demand, given)
        implied += cel.implied(demand, given)
    assert implied > 20


def some(random: Random) -> Demand:
    if random.random() < 0.3:
        return AtLeast(driver="d", domain="d", capacity="m", mebibytes=random.choice([1024, 2048, 3072]))
    listed = tuple(sorted(random.sample("abc", random.randint(1, 3))))
    return OneOf(driver="d", domain="d", attribute=random.choice("xy"), values=listed, outside=random.random() < 0.5)
