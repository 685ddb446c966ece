"""Every kind of node that the catalog knows, one by one, and which of them a pod's selectors let it land on.

Written apart from ``policies.offers.table`` and ``policies.planning.feasibility``: lists of dicts, no bit sets.
A label's values are those that such a node may carry; None: it may lack the label; ``*``: any value; ``?``: a value that the
catalog does not know.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from catalog import Catalog, Gpu, MachineType, MigProfile, Platform, Resource, Variant
from catalog.platforms import Sharing
from policies.policy import MachineFields, NodeTemplate

Raw = dict[str, Any]
Values = tuple[str | None, ...]
OLDER = {
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""keys that nodes carry beside the newer ones, with the same values"""
CUT = re.compile(r"(?P<product>.+)-MIG-(?P<profile>.+?)(?:-SHARED)?")
"""the product label of a GPU that is cut into equal slices"""
LONGEST = 63
"""characters of a label's value: there is no node of a longer product name"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Node:
    """One kind of node, its capacity and what it offers under one resource name."""

    platform: str
    resource: str
    """"" where no machine of the vendor is known: whatever its devices are called there"""
    vendor: str
    devices: int | None
    sharing: Sharing
    capacity: str
    gpu: Gpu | None
    """None: a model that the catalog does not know"""
    arch: str | None
    machine_family: str | None
    """None: not known, or no such thing on this platform"""
    profile: str | None
    labels: Mapping[str, Values]
    further: bool
    """its capacity type is told by labels that nobody writes: its author has to ask for it"""
    scarce: bool
    """only templates have such nodes: the platform makes none by itself"""


@dataclass(kw_only=True)
class Table:
    platform: Platform
    nodes: list[Node]
    keys: dict[str, set[str | None]] = field(default_factory=dict)
    """label key -> every value on any node of this platform"""


@dataclass(frozen=True, kw_only=True)
class _Host:
    vendor: str
    gpu: Gpu | None
    machine: MachineType | None
    product: str | None = None
    family: str | None = None
    silent: bool = False
    """without the labels that some versions of the platform leave out"""
    unlisted: bool = False
    """no machine of the platform has devices of this vendor, as far as the catalog knows: where there is one, its labels are new"""


def tables(
    catalog: Catalog, platforms: Sequence[str], mig_strategy: str, templates: Sequence[NodeTemplate], families: Sequence[str]
) -> dict[str, Table]:
    """One table per platform. ``families``: instance families that policies name and the catalog lacks."""
    out = {}
    for name in catalog.platforms:
        if name in platforms or not platforms:
            every = _every(catalog, name, mig_strategy, tuple(families))
            nodes = [n for n in every if not n.scarce or any(makes(t, n) and of_template(n, t, catalog) for t in templates)]
            table = out[name] = Table(platform=catalog.platforms[name], nodes=nodes)
            for node in nodes:
                for key, values in node.labels.items():
                    table.keys.setdefault(key, set()).update(values)
    return out


_LISTED: dict[tuple[int, str, str, tuple[str, ...]], tuple[Catalog, list[Node]]] = {}
"""lists that were made, with their catalog, so that its id stays its own"""


def _every(catalog: Catalog, name: str, mig_strategy: str, families: tuple[str, ...]) -> list[Node]:
    key = (id(catalog), name, mig_strategy, families)
    if key not in _LISTED:
        platform = catalog.platforms[name]
        _LISTED[key] = catalog, [n for host in _hosts(catalog, platform, families) for n in _nodes(catalog, platform, host, mig_strategy)]
    return _LISTED[key][1]


def _hosts(catalog: Catalog, platform: Platform, families: Sequence[str]) -> Iterator[_Host]:
    gpus = {gpu.model: gpu for gpu in catalog.gpus}
    vendors = set()
    if platform.cloud is None:
        vendors = set(catalog.whole)
        for gpu in (gpu for gpu in catalog.gpus if gpu.vendor in vendors):
            for product in gpu.products or (None,):
                yield _Host(vendor=gpu.vendor, gpu=gpu, machine=None, product=product)
    for machine in catalog.machines:
        if machine.cloud == platform.cloud and platform.name not in machine.not_on:
            gpu = gpus[machine.model]
            vendors.add(gpu.vendor)
            yield _Host(vendor=gpu.vendor, gpu=gpu, machine=machine, family=machine.family)
            if machine.optional:
                yield _Host(vendor=gpu.vendor, gpu=gpu, machine=machine, family=machine.family, silent=True)
    for vendor in sorted(vendors):
        yield _Host(vendor=vendor, gpu=None, machine=None)
        if platform.cloud is not None:
            for family in families:
                yield _Host(vendor=vendor, gpu=None, machine=None, family=family)
    for vendor in sorted({r.vendor for r in catalog.resources if r.kind != "dra"} - vendors):
        for one in (*(gpu for gpu in catalog.gpus if gpu.vendor == vendor), None):
            yield _Host(vendor=vendor, gpu=one, machine=None, unlisted=True)
        for family in families if platform.cloud is not None else ():
            yield _Host(vendor=vendor, gpu=None, machine=None, family=family, unlisted=True)


def _nodes(catalog: Catalog, platform: Platform, host: _Host, mig_strategy: str) -> Iterator[Node]:
    if host.unlisted:
        for capacity, labels, further in _capacities(platform):
            yield _unlisted(catalog, platform, host, capacity, labels, further=further)
        return
    for variant in catalog.schemes[platform.sharing].variants:
        if variant.vendor != host.vendor or variant.strategy not in (None, mig_strategy):
            continue
        for profile in _profiles(catalog, platform, host, variant):
            resource = _resource(catalog, host, variant, profile)
            suffix = "" if profile is None else variant.suffix.replace("{profile}", profile.name)
            if resource is None or (suffix and host.product is not None and len(host.product + suffix) > LONGEST):
                continue
            kind = catalog.resource(resource)
            assert kind is not None
            special = kind.kind in ("mig", "shared", "partition") or variant.per_profile or variant.sharing == "MIG"
            scarce = not platform.makes_slices and special and resource not in platform.slices
            for capacity, labels, further in _capacities(platform):
                yield Node(
                    platform=platform.name,
                    resource=resource,
                    vendor=host.vendor,
                    devices=_devices(host, variant, profile, kind.kind),
                    sharing=variant.sharing,
                    capacity=capacity,
                    gpu=host.gpu,
                    machine_family=host.family,
                    arch=host.machine.arch if host.machine is not None else None,
                    profile=None if profile is None else profile.name,
                    labels=_labels(catalog, platform, host, variant, profile, labels),
                    further=further,
                    scarce=scarce,
                )


def _capacities(platform: Platform) -> Iterator[tuple[str, Mapping[str, str], bool]]:
    for capacity, labels in platform.capacity.items():
        yield capacity, labels, False
    for capacity, others in platform.further_capacity.items():
        for labels in others:
            yield capacity, labels, True


def _unlisted(catalog: Catalog, platform: Platform, host: _Host, capacity: str, labels: Mapping[str, str], *, further: bool) -> Node:
    """A whole device under whatever name its plugin gives it."""
    return Node(
        platform=platform.name,
        resource="",
        vendor=host.vendor,
        devices=None,
        sharing="Exclusive",
        capacity=capacity,
        gpu=host.gpu,
        machine_family=host.family,
        arch=host.machine.arch if host.machine is not None else None,
        profile=None,
        labels=_labels(catalog, platform, host, Variant(sharing="Exclusive", vendor=host.vendor, labels={}), None, labels),
        further=further,
        scarce=False,
    )


def _profiles(catalog: Catalog, platform: Platform, host: _Host, variant: Variant) -> list[MigProfile | None]:
    if not variant.per_profile:
        return [None]
    if host.gpu is not None:
        sizes = platform.partition_sizes.get(host.gpu.model)
        return [profile for profile in host.gpu.mig if sizes is None or profile.name in sizes]
    every = {p.name: p for gpu in catalog.gpus if gpu.vendor == host.vendor for p in gpu.mig}
    return list(every.values())


def _resource(catalog: Catalog, host: _Host, variant: Variant, profile: MigProfile | None) -> str | None:
    if variant.resource is not None:
        return variant.resource.replace("{profile}", "" if profile is None else profile.name.replace("+", "."))
    return host.machine.resource if host.machine is not None else catalog.whole.get(host.vendor)


def _devices(host: _Host, variant: Variant, profile: MigProfile | None, kind: str) -> int | None:
    parts = variant.sharing == "MIG" and profile is None
    if host.machine is None or host.machine.count is None or variant.sharing == "TimeSliced" or kind in ("shared", "partition") or parts:
        return None
    return host.machine.count * (1 if profile is None else profile.count)


def _labels(
    catalog: Catalog, platform: Platform, host: _Host, variant: Variant, profile: MigProfile | None, capacity: Mapping[str, str]
) -> dict[str, Values]:
    spoken = "" if profile is None else profile.name.replace("+", ".")
    out: dict[str, Values] = {}
    for key, attribute in platform.labels.items():
        out[key] = _attribute(host, attribute, variant, spoken)
        if attribute == "type":
            out[key] = tuple(v if v is None or v[-1] in "*?" else f"{platform.type_prefix}{v}" for v in out[key])
    for key, attribute in platform.after_boot.items():  # written by GFD, which a cluster need not have
        out[key] = tuple(dict.fromkeys((*_attribute(host, attribute, variant, spoken), None)))
    for scheme_variant in catalog.schemes[platform.sharing].variants:
        for key in scheme_variant.labels:
            out.setdefault(key, (None,))
    for key, possible in variant.labels.items():
        out[key] = tuple(None if v is None else v.replace("{profile}", spoken) for v in possible)
    for key in platform.capacity_keys:
        out[key] = (capacity.get(key),)
    for key, value in capacity.items():
        out[key] = (value,)
    out.setdefault(platform.anchor, ("*",))
    return out


def _attribute(host: _Host, attribute: str, variant: Variant, spoken: str) -> Values:
    vendor, colon, what = attribute.rpartition(":")
    if colon and vendor != host.vendor:
        return (None,)
    if what == "vendor" or what == "manufacturer":
        return (host.vendor,)
    if what == "product":
        return _product(host, variant, spoken)
    if host.unlisted and host.gpu is not None and what == "gpuFamily":
        return (host.gpu.family,)
    if host.gpu is None or host.unlisted:
        return (host.family,) if what == "family" and host.family is not None else ("?",)
    if what == "gpuFamily":
        return (host.gpu.family,)
    assert host.machine is not None
    if what == "type":
        return (host.machine.types or ("*",)) if host.machine.type is None else (host.machine.type,)
    if what == "count":
        return ("*",) if host.machine.count is None else (str(host.machine.count),)
    if what == "family":
        return (host.machine.family,)
    return (None if host.silent and what in host.machine.optional else host.machine.attributes.get(what),)


def _product(host: _Host, variant: Variant, spoken: str) -> Values:
    if host.gpu is None or host.unlisted:
        return ("?",)
    if host.machine is None and host.product is None:
        return (None,)
    names = [host.product] if host.product is not None else list(host.gpu.products)
    return tuple(name + variant.suffix.replace("{profile}", spoken) for name in names) or ("?",)


# --- what policies and templates say of a node --------------------------------------------------------------------------


def in_machine(node: Node, machine: MachineFields, catalog: Catalog) -> bool:
    """Whether a node is inside machine fields: an unknown model is inside ``notIn`` and outside ``in`` and bounds."""
    gpu = node.gpu
    if machine.families is not None and not _in_not_in(machine.families, set() if gpu is None else {gpu.family}):
        return False
    if machine.models is not None and not _in_not_in(machine.models, set() if gpu is None else {gpu.model, *gpu.groups}):
        return False
    has_families = catalog.platforms[node.platform].cloud is not None
    if has_families and machine.instance_families is not None:
        prefixes = ["", *(p.type_prefix for p in catalog.platforms.values())]
        named = set() if node.machine_family is None else {f"{prefix}{node.machine_family}" for prefix in prefixes}
        if not _in_not_in(machine.instance_families, named):
            return False
    if machine.gpu_memory is None:
        return True
    size = None if gpu is None else gpu.memory_gb
    low, high = machine.gpu_memory.min, machine.gpu_memory.max
    return size is not None and (low is None or size >= low) and (high is None or size <= high)


def _in_not_in(wanted: Any, names: set[str]) -> bool:
    return (not wanted.in_ or bool(names & set(wanted.in_))) and not names & set(wanted.not_in)


def may_be(node: Node, resource: Resource) -> bool:
    """Whether a device of a name that no platform in force lists may be on this node: of its vendor, and cut from such a GPU."""
    if not resource.vendor:  # of nobody knows whose model
        return node.gpu is None
    if node.vendor != resource.vendor:
        return False
    cut = resource.profile if resource.kind == "mig" else None
    return cut is None or node.gpu is None or any(p.name.replace("+", ".") == cut for p in node.gpu.mig)


def in_capacity(node: Node, wanted: Sequence[str]) -> bool:
    """``on-demand`` includes reserved."""
    return node.capacity in wanted or (node.capacity == "reserved" and "on-demand" in wanted)


def of_template(node: Node, template: NodeTemplate, catalog: Catalog) -> bool:
    """Whether a node's hardware may be one of the template's, whatever it is shared or paid for as."""
    return in_machine(node, template.machine, catalog) and (not template.vendors or node.vendor in template.vendors)


def in_template(node: Node, template: NodeTemplate, catalog: Catalog) -> bool:
    """Whether a node may be one of the template's."""
    return (
        of_template(node, template, catalog)
        and (not template.capacity or in_capacity(node, template.capacity))
        and (not template.sharing or node.sharing in template.sharing)
    )


def makes(template: NodeTemplate, node: Node) -> bool:
    """Whether a template says that its nodes offer this slice or shared name, where the platform makes none by itself."""
    if node.profile is not None:
        return node.profile in template.mig_profiles
    return node.sharing in template.sharing


# --- selectors ----------------------------------------------------------------------------------------------------------


def holds(value: str | None, expression: Raw, known: set[str | None]) -> bool:
    """kube-scheduler's operators on one value that a node may have."""
    operator, wanted = expression["operator"], [str(v) for v in expression.get("values") or ()]
    match operator:
        case "In":
            if value is not None and value.endswith("*"):
                return any(w.startswith(value[:-1]) for w in wanted)
            return value in wanted or (value == "?" and any(w not in known for w in wanted))
        case "NotIn":
            return value is None or value not in wanted
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    if value is None:
        return False
    if value in ("*", "?"):
        return True
    try:
        found, bound = int(value), int(wanted[0])
    except ValueError:
        return False
    return found > bound if operator == "Gt" else found < bound


Saying = Callable[["Atlas", str, str, Sequence[Node], Sequence[Node]], list[set[Node]]]


@dataclass(kw_only=True)
class Atlas:
    """All tables together, with the templates."""

    catalog: Catalog
    tables: dict[str, Table]
    templates: dict[str, NodeTemplate]
    _landing: dict[str, frozenset[Node]] = field(default_factory=dict)
    _known: dict[str, set[str | None]] = field(default_factory=dict)
    _open: dict[tuple[str, str, tuple[str, ...]], bool] = field(default_factory=dict)
    _meant: dict[tuple[str, str, str], str] = field(default_factory=dict)
    _saying: dict[tuple[str, str, frozenset[Node], frozenset[Node]], list[set[Node]]] = field(default_factory=dict)

    def known(self, key: str) -> set[str | None]:
        """Every value that some listed platform's nodes have for a key."""
        if key not in self._known:
            self._known[key] = set().union(*(t.keys.get(key, set()) for t in self.tables.values()))
        return self._known[key]

    def undecided(self, table: Table, expression: Raw) -> bool:
        """An In with a value that nobody knows, on a key that this platform has."""
        key = expression["key"]
        if expression["operator"] != "In" or key not in table.keys:
            return False
        asked = (table.platform.name, key, tuple(map(str, expression.get("values") or ())))
        if asked not in self._open:
            self._open[asked] = self._nobody_knows(table, expression)
        return self._open[asked]

    def _nobody_knows(self, table: Table, expression: Raw) -> bool:
        key = expression["key"]
        known = [v for v in self.known(key) if v is not None and v != "?"]
        listed, many = {v for v in known if v[-1] != "*"}, tuple(v[:-1] for v in known if v[-1] == "*" and v != "*")
        meant = [self.meant(table, key, str(v)) for v in expression.get("values") or ()]
        return bool(listed) and any(v not in listed and not v.startswith(many) for v in meant)

    def meant(self, table: Table, key: str, value: str) -> str:
        """A machine by another platform's name, or a GPU that is cut, where no listed platform has the value; else the value itself."""
        asked = (table.platform.name, key, value)
        if asked not in self._meant:
            self._meant[asked] = self._means(table, key, value)
        return self._meant[asked]

    def _means(self, table: Table, key: str, value: str) -> str:
        platform = table.platform
        attribute = (platform.labels.get(key) or platform.after_boot.get(key) or "").rpartition(":")[2]
        if value in self.known(key) or attribute not in ("type", "product"):
            return value
        if attribute == "type":
            prefixes = {p.type_prefix for p in self.catalog.platforms.values() if p.cloud == platform.cloud} - {"", platform.type_prefix}
            types = {m.type for m in self.catalog.machines}
            return next((value.removeprefix(p) for p in prefixes if value.startswith(p) and value.removeprefix(p) in types), value)
        cut = CUT.fullmatch(value) if platform.sharing == "gfd" else None
        gpus = [gpu for gpu in self.catalog.gpus if cut and cut["product"] in gpu.products]
        profiles = {p.name.replace("+", ".") for gpu in gpus for p in gpu.mig}
        return cut["product"] if cut and cut["profile"] in profiles else value

    def renamed(self, term: Sequence[Raw], what: str) -> list[str]:
        """Platforms on which a term says all values of something, ``type`` or ``product``, by such names."""
        return [name for name, table in self.tables.items() if any(self._renames(table, e, what) for e in term)]

    def _renames(self, table: Table, e: Raw, what: str) -> bool:
        labels = {**table.platform.labels, **table.platform.after_boot}
        if e["operator"] != "In" or labels.get(e["key"], "").rpartition(":")[2] != what:
            return False
        return all(self.meant(table, e["key"], str(v)) != str(v) for v in e["values"])

    def demanded(self, expressions: Sequence[Raw]) -> set[str]:
        """Templates all of whose labels the expressions demand."""
        selected_labels = {
            (e["key"], str(e["values"][0])) for e in expressions if e["operator"] == "In" and len(set(map(str, e.get("values") or ()))) == 1
        }
        return {t.name for t in self.templates.values() if t.labels and all(label in selected_labels for label in t.labels)}

    def lands(self, node: Node, expressions: Sequence[Raw]) -> bool:
        """Whether a pod with these expressions (ANDed) may land on this kind of node."""
        return node in self.landing(expressions)

    def saying(self, can_say: Saying, platform: str, axis: str, nodes: list[Node], inside: list[Node]) -> list[set[Node]]:
        """``can_say``, remembered: the same sets come again and again."""
        key = (platform, axis, frozenset(nodes), frozenset(inside))
        if key not in self._saying:
            self._saying[key] = can_say(self, platform, axis, nodes, inside)
        return self._saying[key]

    def selected(self, terms: Sequence[Sequence[Raw]]) -> set[Node]:
        """Where any of the terms lets a pod land."""
        return set().union(*(self.landing(term) for term in terms))

    def landing(self, expressions: Sequence[Raw]) -> frozenset[Node]:
        """Every kind of node that a pod with these expressions (ANDed) may land on. Remembered: terms come again and again."""
        key = repr(expressions)
        if key not in self._landing:
            self._landing[key] = frozenset(self._find(expressions))
        return self._landing[key]

    def _find(self, expressions: Sequence[Raw]) -> Iterator[Node]:
        demanded = self.demanded(expressions)
        for table in self.tables.values():
            for node in table.nodes:
                there = not node.scarce or any(makes(self.templates[name], node) for name in demanded)
                inside = there and all(in_template(node, self.templates[name], self.catalog) for name in demanded)
                if inside and all(self._may(table, node, e) for e in expressions):
                    yield node

    def _may(self, table: Table, node: Node, expression: Raw) -> bool:
        key = expression["key"]
        if key not in table.keys:
            elsewhere = any(key in t.keys for t in self.tables.values())
            return not (elsewhere and expression["operator"] in ("In", "Exists", "Gt", "Lt"))
        if self.undecided(table, expression):
            return True
        if expression["operator"] == "In":
            expression = {**expression, "values": [self.meant(table, key, str(v)) for v in expression["values"]]}
        return any(holds(value, expression, self.known(key)) for value in node.labels.get(key, (None,)))


def terms_of(pod: Raw) -> list[list[Raw]]:
    """Each ORed alternative as ANDed expressions, nodeSelector first; an empty term selects nothing and is left out."""
    spec = pod.get("spec") or {}
    selector = [{"key": OLDER.get(k, k), "operator": "In", "values": [v]} for k, v in (spec.get("nodeSelector") or {}).items()]
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms = required.get("nodeSelectorTerms")
    if not terms:
        return [selector]
    expressions = [[{**e, "key": OLDER.get(e["key"], e["key"])} for e in t.get("matchExpressions") or ()] for t in terms]
    return [selector + one for one, t in zip(expressions, terms, strict=True) if t.get("matchExpressions") or t.get("matchFields")]
