"""Offers: every kind of place for a pod that a platform has is a row; every constraint on nodes is a set of
rows.

An offer is a row (platform, machine, devices on it, model, resource name, sharing, capacity) with the labels
that such a node has. A set of rows is a Python integer with one bit for each row, so that combining is AND:
the order does not matter, and the result can only get tighter. There is one table per platform, built once
per snapshot. All tables share one bit space, in which a platform is a mask (``Table.all``), so one integer is
a set of offers on every platform.

An expression matches a row if it matches one of the possible values of its label (``kube.labels``), so a
table never excludes a node that could exist. One row per resource, sharing and capacity stands for a model
that the catalog does not know (``gpu`` None, labels ``"?"``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from catalog import Gpu, MigProfile, Network, Platform, Resource
from catalog.platforms import Capacity, Sharing
from kube.labels import Expression, Possible, is_among
from policies.lru import LruCache
from policies.offers.label_readings import Names, is_product

Axis = Literal["machine", "capacity", "sharing"]
AXES: tuple[Axis, ...] = ("machine", "capacity", "sharing")
CAPACITIES: tuple[Capacity, ...] = ("spot", "on-demand", "reserved")
MOST_MEMO = 4 * 2**20
"""bytes of each memo of a table: thousands of expressions, more than authors write; a hostile one writes 10,000 values in each"""
_OVERHEAD = 512
"""bytes of a memo's entry without its strings: the key, and two sets of some thousand rows"""
_TEXT = 64
"""bytes of a short string besides its characters"""
_MOST_DEVICES = 1024
"""Larger counts are treated as this one: no machine has as many (the most are 16 whole GPUs of 7 slices)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A kind of machine: an instance type, or on gfd one product string. ``gpu`` is None for the unknown model."""

    vendor: str
    gpu: Gpu | None
    family: str | None
    """instance family; None where the platform has none"""
    count: int | None
    """the number of devices; None for any number"""
    resource: str
    attributes: Mapping[str, Possible]
    name: str
    """for messages: ``p4d.24xlarge``, ``NVIDIA-L4``, ``unknown``"""
    network: Mapping[str, int] = field(default_factory=dict)
    """all of its network devices by extended resource, where they are known"""
    usd_per_hour: float | None = None
    """the catalog's price of the instance type; of one device of the model where the platform has no types"""
    arch: str | None = None
    """``MachineType.arch``"""
    uncounted: bool = False
    """``MachineType.uncounted``: there for pods that select it, and made for none by itself"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    host: Host
    resource: str
    """"" if the catalog knows no machine of the platform with devices of this vendor: it stands for any resource name"""
    sharing: Sharing
    capacity: Capacity
    further: bool = False
    """True if nodes show the capacity type by labels that are never written (``Platform.further_capacity``)"""
    profile: str | None
    """the MIG profile of the device, else None"""
    template: str | None
    """the GPUNodeTemplate without which no such nodes are known to exist here, else None"""
    labels: Mapping[str, Possible]


@dataclass(slots=True)
class Table:
    """All offers of one platform and their index. ``build`` makes it; it is read-only except for its memos."""

    platform: Platform
    offers: tuple[Offer, ...]
    first: int
    """the bit of the first offer; the others follow"""
    all: int
    """the platform as a mask"""
    known: Mapping[str, frozenset[str]]
    """every value that any platform's table has for a key: a value that is in none of them is undecided"""
    by_resource: Mapping[str, int]
    """no row is under two names"""
    by_vendor: Mapping[str, int]
    by_capacity: Mapping[str, int]
    by_sharing: Mapping[str, int]
    by_arch: Mapping[str, int]
    """rows of machines whose architecture is known"""
    unknown: int
    """the rows of unknown models"""
    further: int
    """the rows with labels of ``Platform.further_capacity``"""
    by_network: Mapping[Network, int]
    """whole GPUs of machines whose network devices are known"""
    templated: Mapping[str, int]
    """template -> the rows that exist only on its nodes"""
    slices: Mapping[tuple[str, str], tuple[MigProfile, int]]
    """(profile, resource name) of the MIG slices of known GPUs -> (the profile, the rows of such slices)"""
    values: Mapping[str, Mapping[Possible, int]]
    resource: Callable[[str], Resource | None]
    """``Catalog.resource``"""
    other_names: Names
    listed: frozenset[str] = frozenset()
    """the resource names of which some table in force has offers"""
    served: Mapping[str, int] = field(default_factory=dict)
    """the same rows by the names of DeviceClasses (``policies.offers.build``)"""
    unmaintained: frozenset[str] = frozenset()
    """the label keys that nobody keeps on nodes now (``policies.facts.device_modes``): read where authors write them, never written"""
    stand_ins: LruCache[int] = field(default_factory=lambda: LruCache(MOST_MEMO))
    memo: LruCache[tuple[int, bool]] = field(default_factory=lambda: LruCache(MOST_MEMO))
    fitting: dict[tuple[str, int], int] = field(default_factory=dict)
    profiles: set[str] = field(default_factory=set)
    """the MIG profiles of all GPUs here, filled once: a profile that none has may be any text"""
    vendors: LruCache[int] = field(default_factory=lambda: LruCache(MOST_MEMO))
    rendered: LruCache[Any] = field(default_factory=lambda: LruCache(MOST_MEMO))
    """Results of ``policies.offers.selectors``, the only module that writes here: (axis, rows, universe) ->
    renderings (``renderings``), and (key, rows, other rows) -> values (``values_among``)."""

    def where(self, wanted: Iterable[bool]) -> int:
        """Return the set of rows for which ``wanted`` (in row order) is true."""
        return sum(1 << i for i, yes in enumerate(wanted) if yes) << self.first

    def offers_in(self, rows: int) -> Iterator[Offer]:
        """Yield this table's offers in a set of rows, in order."""
        rows = (rows & self.all) >> self.first
        while rows:
            lowest = rows & -rows
            yield self.offers[lowest.bit_length() - 1]
            rows ^= lowest

    def select(self, key: str, operator: str, values: tuple[str, ...]) -> tuple[int, bool]:
        """Return the rows that can satisfy the expression, and whether it is undecided.

        For a key that the table lacks, these are all rows. ``In`` with a value that no table knows under any
        name is undecided, since the GPU may be new: these are all rows too.
        """
        classes = self.values.get(key)
        if classes is None:
            return self.all, False
        found = self.memo.get((key, operator, values))
        if found is None:
            found = self._select(classes, key, operator, values)
            self.memo.keep((key, operator, values), found, _OVERHEAD + sum(_TEXT + len(value) for value in values))
        return found

    def _select(self, classes: Mapping[Possible, int], key: str, operator: str, values: tuple[str, ...]) -> tuple[int, bool]:
        known = self.known.get(key, frozenset())
        if operator == "In":
            values = tuple(self.meant(key, value) for value in values)
            if known and not all(value in known or is_among(value, classes) for value in values):
                return self.all, True
        expression = Expression(key, operator, values)
        return sum(rows for possible, rows in classes.items() if expression.may_hold(possible, known)), False

    def meant(self, key: str, value: str) -> str:
        """Return the value itself if some table knows it, else the one that it is another name of, else itself."""
        return value if value in self.known.get(key, ()) else self.other_names.get(key, {}).get(value, value)

    def knows(self, key: str, value: str) -> bool:
        """Return whether some table has the value for the key, or the value that it is another name of."""
        return self.meant(key, value) in self.known.get(key, ()) or is_among(value, self.values.get(key, {}))

    def other_names_in(self, key: str, values: Sequence[str]) -> list[str]:
        """Return those values that are another name of a machine or product and that no table in force has."""
        names, known = self.other_names.get(key, {}), self.known.get(key, ())
        return [value for value in values if value in names and value not in known]

    def under_every_name(self, key: str, values: Collection[str]) -> set[str]:
        """Return the values with all their other names: what NotIn must list to leave out every node that one of them stands for."""
        return {*values, *(name for name, value in self.other_names.get(key, {}).items() if value in values)}

    def is_cut(self, key: str, value: str) -> bool:
        """Return whether the value is such a name of a GPU partitioned into slices, whose rows do not tell how it is shared."""
        return is_product(self.platform, key) and bool(self.other_names_in(key, (value,)))

    def enough(self, resource: str, count: int | None) -> int:
        """Return the rows of this resource on machines that have ``count`` devices of it.

        For a slice or replica, any count up to what fits will do. For a resource that no table in force lists, the count is not known,
        since GPUs may have been partitioned by hand: these are all its rows.
        """
        rows = self.of_resource(resource)
        if not count or not rows or resource not in self.listed:
            return rows
        count = min(count, _MOST_DEVICES)
        if (resource, count) not in self.fitting:
            self.fitting[resource, count] = rows & self.where(_fits(offer, count) for offer in self.offers)
        return self.fitting[resource, count]

    def of_resource(self, name: str) -> int:
        """Return the rows that may offer this resource.

        For an accelerator that no table in force lists, any machine of its vendor may: it may be a slice made by hand, or a device for
        which the catalog has no machines. One that the catalog lacks is of an unknown model.
        """
        rows = self.by_resource.get(name, self.served.get(name))
        return self._stand_in(name) if rows is None and name not in self.listed else rows or 0

    def _stand_in(self, name: str) -> int:
        found = self.stand_ins.get(name)
        if found is None:
            known = self.resource(name)
            found = self.unknown if known is None else self.by_vendor.get(known.vendor, 0) & self._with_profile(known)
            if known is None or known.kind not in ("mig", "shared"):  # a whole device: slices and replicas have other names
                found &= self.by_sharing.get("Exclusive", 0)
            self.stand_ins.keep(name, found, _OVERHEAD + len(name))
        return found

    def _with_profile(self, known: Resource) -> int:
        if known.kind != "mig" or known.profile is None:
            return self.all
        name = known.profile
        if name not in self.mig_profiles:
            return self.unknown
        return self.where(o.host.gpu is None or name in o.host.gpu.slices for o in self.offers)

    @property
    def mig_profiles(self) -> set[str]:
        """The MIG profiles of the GPUs that machines here are known to have, spelled as in resource names."""
        if not self.profiles:
            self.profiles.update(name for o in self.offers if o.host.gpu is not None for name in o.host.gpu.slices)
        return self.profiles

    def of_vendors(self, resources: tuple[str, ...]) -> int:
        """Return the rows of the vendors that make these resources. A name that only another table has belongs to its vendor here
        too, since such slices may have been made by hand."""
        found = self.vendors.get(resources)
        if found is None:
            names = {vendor for name in resources for vendor, rows in self.by_vendor.items() if self._makes(vendor, rows, name)}
            found = sum(self.by_vendor[vendor] for vendor in names)
            self.vendors.keep(resources, found, _OVERHEAD + 8 * len(resources))
        return found

    def _makes(self, vendor: str, rows: int, name: str) -> bool:
        if offered := self.of_resource(name):
            return bool(rows & offered)
        known = self.resource(name)
        return known is not None and known.vendor == vendor


def _fits(offer: Offer, count: int) -> bool:
    if offer.host.count is None or offer.sharing == "TimeSliced" or (offer.sharing == "MIG" and offer.profile is None):
        return True
    slices = offer.host.gpu.mig if offer.host.gpu is not None else ()
    return count <= offer.host.count * next((one.count for one in slices if one.name == offer.profile), 1)
