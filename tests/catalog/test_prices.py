"""What a device costs an hour."""

from __future__ import annotations

import pytest

from catalog.prices import prices
from kube.labels import INSTANCE_TYPE
from tests.support.generators.random_worlds import catalog


def test_a_device_of_a_machine_costs_its_share() -> None:
    """By the instance type that the node's label names."""
    machine = next(one for one in catalog().machines if one.type == "p4d.24xlarge")
    assert prices(catalog()).of_device({INSTANCE_TYPE: "p4d.24xlarge"}) == (machine.usd_per_hour or 0) / (machine.count or 1) > 0


def test_given_prices_come_first() -> None:
    """Of a machine, and of one device of a model where the node says no more than its product."""
    given = prices(catalog(), {"p4d.24xlarge": 8.0, "T4": 0.25})
    assert given.of_device({INSTANCE_TYPE: "p4d.24xlarge"}) == 1.0
    assert given.of_device({"nvidia.com/gpu.product": "Tesla-T4"}) == 0.25


@pytest.mark.parametrize("labels", [{}, {INSTANCE_TYPE: "m5.large"}, {"nvidia.com/gpu.product": "NVIDIA-Z1"}])
def test_what_is_not_known_has_no_price(labels: dict[str, str]) -> None:
    """Rather than a guess."""
    assert prices(catalog()).of_device(labels) is None
