"""Offers: every kind of berth a platform has, as rows; every wish about nodes, as a set of rows.

An offer is a row (platform, machine, devices on it, model, resource name, sharing, capacity) with the labels that
such a node carries. A set of rows is a Python integer, bit i for row i, so that combining is AND: order-free and
only-tightening by construction. One table per platform, built once per snapshot.

A label may have several possible values (``catalog.Possible``): an expression matches a row when it matches one of
them, so a table never excludes what could be there. One row per resource, sharing and capacity stands for a model
that the catalog does not know (``gpu`` None, labels ``"?"``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from policies.catalog import Gpu, Platform, Possible, Resource
from policies.kept import Kept
from policies.policy import Capacity, Sharing
from policies.readings import Names, is_product

Axis = Literal["machine", "capacity", "sharing"]
AXES: tuple[Axis, ...] = ("machine", "capacity", "sharing")
CAPACITIES: tuple[Capacity, ...] = ("spot", "on-demand", "reserved")
ABSENT: Possible = (None,)
NEW: Possible = ("?",)
ANY: Possible = ("*",)
_MOST_MEMO = 4 * 2**20
"""bytes of each memo of a table: thousands of expressions of some values, far over what a cluster's authors write; a hostile one
writes ten thousand values in each"""
_OVERHEAD = 512
"""bytes of an entry of a memo without its texts: the key, and two sets of some thousand rows"""
_TEXT = 64
"""bytes of a short text beside its characters"""
_MOST_DEVICES = 1024
"""Counts above are judged as this one: no machine has as many (the most are 16 whole GPUs of 7 slices)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A machine as a kind: an instance type, or on gfd one product string. ``gpu`` None: the unknown model."""

    vendor: str
    gpu: Gpu | None
    family: str | None
    """instance family; None where the platform has none"""
    count: int | None
    """devices; None: any"""
    resource: str
    attributes: Mapping[str, Possible]
    name: str
    """for messages: ``p4d.24xlarge``, ``NVIDIA-L4``, ``unknown``"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    host: Host
    resource: str
    """"" where the catalog knows no machine of the platform with devices of this vendor: it stands for whatever their name is"""
    sharing: Sharing
    capacity: Capacity
    profile: str | None
    """MIG profile of the device, else None"""
    template: str | None
    """the GPUNodeTemplate that alone says such nodes exist here, else None"""
    labels: Mapping[str, Possible]


def may_match(possible: Possible, operator: str, values: Sequence[str], known: frozenset[str]) -> bool:
    """Whether a label with these possible values can satisfy the expression, as kube-scheduler reads it.

    A missing key satisfies NotIn and DoesNotExist (k8s.io/component-helpers nodeaffinity; labels.Requirement).
    """
    match operator:
        case "In":
            return any(
                v in values or v == "*" or (v == "?" and not known.issuperset(values)) or any(_is_one_of(value, v) for value in values)
                for v in possible
                if v is not None
            )
        case "NotIn":
            return any(v is None or v in ("*", "?") or v not in values for v in possible)
        case "Exists":
            return possible != ABSENT
        case "DoesNotExist":
            return None in possible
        case "Gt" | "Lt":
            return any(_compares(v, operator, values) for v in possible if v is not None)
    return False


def _covered(value: str, classes: Iterable[Possible]) -> bool:
    """Whether it is one of many that are not listed one by one: ``n1-standard-8`` of ``n1-*``."""
    return any(_is_one_of(value, one) for possible in classes for one in possible if one is not None)


def _is_one_of(value: str, many: str) -> bool:
    return len(many) > 1 and many.endswith("*") and value.startswith(many[:-1])


def _compares(value: str, operator: str, values: Sequence[str]) -> bool:
    if value in ("*", "?"):
        return True
    try:
        label, bound = int(value), int(values[0])
    except (ValueError, IndexError):
        return False
    return label > bound if operator == "Gt" else label < bound


@dataclass(slots=True)
class Table:
    """All offers of one platform and their index. Built by ``build``; read-only but for its memos."""

    platform: Platform
    offers: tuple[Offer, ...]
    all: int
    known: Mapping[str, frozenset[str]]
    """every value that any platform's table has for a key: what is in none of them is undecided"""
    by_resource: Mapping[str, int]
    by_vendor: Mapping[str, int]
    by_capacity: Mapping[str, int]
    by_sharing: Mapping[str, int]
    unknown: int
    """rows of unknown models"""
    templated: Mapping[str, int]
    """template -> rows that exist only on its nodes"""
    values: Mapping[str, Mapping[Possible, int]]
    resource: Callable[[str], Resource | None]
    """``Catalog.resource``"""
    other_names: Names
    listed: frozenset[str] = frozenset()
    """resource names that some table in force has offers of"""
    stand_ins: Kept[int] = field(default_factory=lambda: Kept(_MOST_MEMO))
    memo: Kept[tuple[int, bool]] = field(default_factory=lambda: Kept(_MOST_MEMO))
    fitting: dict[tuple[str, int], int] = field(default_factory=dict)
    profiles: set[str] = field(default_factory=set)
    """of all GPUs here, filled once: a profile that none has may be any text"""
    vendors: Kept[int] = field(default_factory=lambda: Kept(_MOST_MEMO))
    rendered: Kept[Any] = field(default_factory=lambda: Kept(_MOST_MEMO))
    """written by ``render`` alone: (axis, rows, universe) -> expressions, (key, rows, other rows) -> a value"""

    def where(self, wanted: Iterable[bool]) -> int:
        """The set of rows for which ``wanted`` (in row order) is true."""
        return sum(1 << i for i, yes in enumerate(wanted) if yes)

    def select(self, key: str, operator: str, values: tuple[str, ...]) -> tuple[int, bool]:
        """(rows that can satisfy the expression, whether it is undecided).

        A key that the table lacks is unknown: all rows. ``In`` with a value that no table knows, by whatever name, is
        undecided (the GPU may be new): all rows.
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
            if known and not all(value in known or _covered(value, classes) for value in values):
                return self.all, True
        return sum(rows for possible, rows in classes.items() if may_match(possible, operator, values, known)), False

    def meant(self, key: str, value: str) -> str:
        """The value itself where some table knows it, else the one that it is another name of, else itself."""
        return value if value in self.known.get(key, ()) else self.other_names.get(key, {}).get(value, value)

    def knows(self, key: str, value: str) -> bool:
        """Whether some table has the value for the key, or another name of it."""
        return self.meant(key, value) in self.known.get(key, ()) or _covered(value, self.values.get(key, {}))

    def other_names_in(self, key: str, values: Sequence[str]) -> list[str]:
        """Those of the values that are another name of a machine or product, where no table in force has them."""
        names, known = self.other_names.get(key, {}), self.known.get(key, ())
        return [value for value in values if value in names and value not in known]

    def is_cut(self, key: str, value: str) -> bool:
        """Whether it is such a name of a GPU that is cut into slices: what it is shared as, its rows don't tell."""
        return is_product(self.platform, key) and bool(self.other_names_in(key, (value,)))

    def enough(self, resource: str, count: int | None) -> int:
        """Rows of this resource on machines that have ``count`` devices of it (a slice or replica: any count up to what fits). Of one that
        no table in force lists nobody knows how many there are: into how many slices somebody has cut a GPU by hand."""
        rows = self.of_resource(resource)
        if not count or not rows or resource not in self.listed:
            return rows
        count = min(count, _MOST_DEVICES)
        if (resource, count) not in self.fitting:
            self.fitting[resource, count] = rows & self.where(_fits(offer, count) for offer in self.offers)
        return self.fitting[resource, count]

    def of_resource(self, name: str) -> int:
        """The rows that may offer this resource. Of an accelerator that no table in force lists, any machine of its vendor may: a slice
        somebody has cut by hand, a device that the catalog has no machines of. One that the catalog lacks is of an unknown model."""
        rows = self.by_resource.get(name)
        return self._stand_in(name) if rows is None and name not in self.listed else rows or 0

    def _stand_in(self, name: str) -> int:
        found = self.stand_ins.get(name)
        if found is None:
            known = self.resource(name)
            found = self.unknown if known is None else self.by_vendor.get(known.vendor, 0) & self._with_profile(known)
            if known is None or known.kind not in ("mig", "shared"):  # whole ones: slices and replicas have names of their own
                found &= self.by_sharing.get("Exclusive", 0)
            self.stand_ins.keep(name, found, _OVERHEAD + len(name))
        return found

    def _with_profile(self, known: Resource) -> int:
        if known.kind != "mig" or known.profile is None:
            return self.all
        name = known.profile
        if name not in self.mig_profiles:
            return self.unknown
        return self.where(o.host.gpu is None or any(name == p.name.replace("+", ".") for p in o.host.gpu.mig) for o in self.offers)

    @property
    def mig_profiles(self) -> set[str]:
        """Of the GPUs that machines here are known to have, as in resource names."""
        if not self.profiles:
            self.profiles.update(p.name.replace("+", ".") for o in self.offers if o.host.gpu is not None for p in o.host.gpu.mig)
        return self.profiles

    def of_vendors(self, resources: tuple[str, ...]) -> int:
        """Rows of the vendors that make these resources. A name that is another table's alone is its vendor's here too: somebody may have
        cut such slices by hand. Of sets of names there may be many."""
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
    if offer.host.count is None or offer.sharing == "TimeSliced":
        return True
    per_device = 1
    if offer.profile is not None and offer.host.gpu is not None:
        per_device = next((p.count for p in offer.host.gpu.mig if p.name == offer.profile), 1)
    elif offer.sharing == "MIG":
        return True
    return count <= offer.host.count * per_device
