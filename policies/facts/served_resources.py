"""The extended resources by which DeviceClasses give out their devices (KEP-5004): the name that a class gives itself, and the one that
every class has. A pod that asks by such a name gets a device of the class, on whichever node the scheduler finds one."""

from __future__ import annotations

from typing import NamedTuple

from catalog import Catalog
from catalog.platforms import Sharing
from catalog.resources import OF_A_CLASS
from policies.facts.cluster_facts import ClusterFacts
from policies.facts.device_requests import DeviceClass

_WAYS: tuple[Sharing, ...] = ("Exclusive", "MIG")


class Served(NamedTuple):
    """The devices that stand behind such a name. A pod has its device alone, be it a whole one or a slice: a driver's own time-slicing
    is between the containers of one claim."""

    vendor: str
    sharing: Sharing = "Exclusive"
    """``MIG`` if the class selects slices."""
    mixed: bool = False
    """True if its driver tells whole devices and slices apart, and the class does not: either may be given out."""


def served(facts: ClusterFacts, catalog: Catalog) -> dict[str, Served]:
    """Return what stands behind each name of a class whose vendor is known. Of the classes that drivers' charts bring, and those that
    are called like a driver, the ones that are not known are taken as they are published."""
    published = (name for devices in catalog.published.values() for name in devices.classes)
    found: dict[str, Served] = {}
    for name in dict.fromkeys((*facts.device_classes, *published, *catalog.dra_drivers)):
        known = facts.device_classes.get(name)
        one = _of_class(name, known, catalog.driver(facts.driver(name)), catalog)
        if one is None:
            continue
        found[OF_A_CLASS + name] = one
        listed = catalog.resource(known.extended) if known is not None else None
        if known is not None and known.extended and listed is None:
            found.setdefault(known.extended, one)
    return found


def _of_class(name: str, known: DeviceClass | None, driver: str, catalog: Catalog) -> Served | None:
    vendor, devices = catalog.dra_drivers.get(driver, ""), catalog.published.get(driver)
    if not vendor:
        return None
    if devices is None or devices.type is None:
        return Served(vendor)
    type_ = dict(known.equal).get(devices.type_key, "") if known is not None else devices.classes.get(name, "")
    ways = [way for way in _WAYS if type_ in devices.sharing.get(way, ())]
    return Served(vendor, ways[0]) if ways else Served(vendor, mixed=True)
