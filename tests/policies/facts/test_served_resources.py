"""Names of DeviceClasses: what stands behind them."""

from __future__ import annotations

import pytest

from catalog.resources import OF_A_CLASS
from policies.facts.cluster_facts import ClusterFacts
from policies.facts.device_requests import DeviceClass
from policies.facts.served_resources import Served, served
from tests.support.cases.golden import catalog_with

CATALOG = catalog_with()
TYPE = "gpu.nvidia.com/type"


def found(**classes: DeviceClass) -> dict[str, Served]:
    return served(ClusterFacts(device_classes=classes), CATALOG)


@pytest.mark.parametrize(
    ("one", "wanted"),
    [
        (DeviceClass("gpu.nvidia.com", "", ((TYPE, "gpu"),)), Served("nvidia")),
        (DeviceClass("gpu.nvidia.com", "", ((TYPE, "mig"),)), Served("nvidia", "MIG")),
        (DeviceClass("gpu.nvidia.com", "", ((TYPE, "vfio"),)), Served("nvidia")),
        (DeviceClass("gpu.nvidia.com", "", ((TYPE, "new"),)), Served("nvidia", mixed=True)),
        (DeviceClass("gpu.nvidia.com"), Served("nvidia", mixed=True)),
        (DeviceClass("dra.cpu"), None),
        (DeviceClass(), None),
    ],
)
def test_a_class_is_told_by_its_driver_and_the_type_that_it_selects(one: DeviceClass, wanted: Served | None) -> None:
    """Where it selects no type that its driver knows, either may come; behind no known vendor nothing is known."""
    assert found(one=one).get(f"{OF_A_CLASS}one") == wanted


def test_a_class_has_the_name_that_it_gives_itself_too() -> None:
    """Unless the catalog lists that name, under which a device plugin may offer them as well; the first class of a name counts."""
    whole = DeviceClass("gpu.nvidia.com", "example.com/gpu", ((TYPE, "gpu"),))
    names = found(first=whole, second=DeviceClass("gpu.amd.com", "example.com/gpu"), third=DeviceClass("gpu.nvidia.com", "nvidia.com/gpu"))
    assert names["example.com/gpu"] == Served("nvidia")
    assert names[f"{OF_A_CLASS}second"].vendor == "amd"
    assert "nvidia.com/gpu" not in names


def test_classes_of_charts_are_known_without_the_cluster() -> None:
    """Each as its driver publishes it, until the cluster has one of this name that says otherwise."""
    names = found()
    assert (names[f"{OF_A_CLASS}gpu.nvidia.com"], names[f"{OF_A_CLASS}mig.nvidia.com"]) == (Served("nvidia"), Served("nvidia", "MIG"))
    assert found(**{"gpu.nvidia.com": DeviceClass("dra.cpu")}).get(f"{OF_A_CLASS}gpu.nvidia.com") is None
