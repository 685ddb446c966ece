"""Karpenter's NodePools: what the machines are like that one may make.

Read as sigs.k8s.io/karpenter v1.14 does: pkg/controllers/provisioning/scheduling/nodeclaimtemplate.go (the labels
and requirements of a template), pkg/controllers/provisioning/provisioner.go (which NodePools take part), and
scheduler.go ``filterByRemainingResources`` (limits).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from catalog import Catalog
from kube.karpenter import Ranges, Requirement, requirement
from kube.labels import NODE_POOL, OF_KARPENTER, OLDER_NAMES, integer
from kube.quantity import QuantityError, parse
from kube.requests import HostPort
from kube.taints import Taint, taints_in
from kube.tree import condition_status, map_at, text_of, texts_at
from policies.facts.cluster_facts import NodePool, read_facts
from policies.facts.platform_detection import Detector
from policies.offers.table import Table
from policies.placement.unchecked import Unchecked


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMachine:
    """A machine that a NodePool may make (``policies.placement.new_machines``)."""

    name: str
    """The instance type."""
    rows: int
    """Its offers in the table of the platform."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Those that tell its size (``Platform.size_labels``)."""
    capacity: Ranges = field(default_factory=dict)
    """What it counts against limits."""
    free: Ranges = field(default_factory=dict)
    """What it has for a pod beside the pods of DaemonSets. Of a resource that is absent nothing is known."""
    ports: tuple[HostPort, ...] = ()
    """Those that DaemonSets take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """One NodePool."""

    name: str
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    """They go before pods come, so that no pod need tolerate them."""
    requirements: Mapping[str, Requirement]
    """Label -> its values on such nodes; labels of the template are among them."""
    unread: frozenset[str] = frozenset()
    """Labels whose requirement could not be read: they are not judged."""
    node_class: str = ""
    """API group of its node class."""
    node_class_name: str = ""
    limits: Mapping[str, Fraction] = field(default_factory=dict)
    made: Mapping[str, Fraction] = field(default_factory=dict)
    """What its nodes have together (``status.resources``)."""
    weight: int = 0
    static: bool = False
    """True if it keeps a number of nodes (``spec.replicas``) and makes none for pods."""
    ready: bool = True
    """False if Karpenter says that it is not, or if it is being deleted."""
    platform: str = ""
    """The catalog's platform of its node class; "" if it has none."""
    without_gpus: bool = False
    """True if its requirements leave no machine with a GPU."""
    table: Table | None = None
    """The machines that the catalog knows of its platform; None if it knows none."""
    rows: int = 0
    """Those of them that it may make."""
    uncounted: int = 0
    """Those of them whose GPUs its cloud does not count (``MachineType.uncounted``): it makes none of them for a pod that requests one,
    unless somebody tells it of these GPUs."""
    sized: bool = False
    """True if the sizes of machines are judged too (``policies.placement.new_machines``)."""
    machines: tuple[NewMachine, ...] = ()
    """The machines by their sizes, where these are judged."""
    unchecked: frozenset[Unchecked] = frozenset()
    """What these sizes leave out."""
    discovered: frozenset[str] = frozenset()
    """Labels that feature discovery alone writes, once a node runs (``nvidia.com/gpu.product``)."""

    def knows(self, key: str) -> bool:
        """Return whether machines of its cloud may have a label that it does not require itself: one of ``OF_KARPENTER``
        or of the cloud. Where the cloud is not known, any may be that feature discovery does not write."""
        if key in OF_KARPENTER or key in self.unread:
            return True
        if self.table is None:
            return key not in self.discovered
        return _owner(key) in {_owner(f"{self.node_class}/"), *(_owner(one) for one in self.table.platform.labels)} - {"kubernetes.io"}

    def left(self, resource: str) -> Fraction | None:
        """Return what it may still add of a resource; None without a limit."""
        limit = self.limits.get(resource)
        return None if limit is None else limit - self.made.get(resource, Fraction(0))


def _owner(key: str) -> str:
    """Return the last two labels of a key's domain: ``k8s.aws`` of ``karpenter.k8s.aws/instance-family``."""
    return ".".join(key.rpartition("/")[0].rsplit(".", 2)[-2:])


class PoolReader:
    """Reads NodePool objects. ``tables``: those of the platforms in force, by name."""

    def __init__(self, catalog: Catalog, tables: Mapping[str, Table]) -> None:
        self._tables = tables
        self._detector = Detector(catalog)
        self._discovered = frozenset(key for platform in catalog.platforms.values() if platform.cloud is None for key in platform.labels)
        self._uncounted_rows: dict[str, int] = {}

    def _uncounted(self, table: Table) -> int:
        if table.platform.name not in self._uncounted_rows:
            self._uncounted_rows[table.platform.name] = table.where(offer.host.uncounted for offer in table.offers)
        return self._uncounted_rows[table.platform.name]

    def read(self, value: Mapping[str, Any]) -> Pool | None:
        """Return the NodePool; None for an object without a name. No content makes it raise."""
        entries = read_facts("NodePool", value)
        if not entries:
            return None
        facts = next(entry for entry in entries if entry.part == "nodepools").value
        seen = self._detector.of_pool(facts)
        requirements, unread = _requirements(value, facts, str(entries[0].key))
        table = self._tables.get(seen.platform)
        spec = map_at(value, "spec")
        template = map_at(spec, "template", "spec")
        return Pool(
            name=str(entries[0].key),
            taints=tuple(taints_in(template.get("taints"))),
            startup_taints=tuple(taints_in(template.get("startupTaints"))),
            requirements=requirements,
            unread=unread,
            node_class=facts.node_class,
            node_class_name=text_of(map_at(template, "nodeClassRef").get("name")),
            limits=_quantities(map_at(spec, "limits")),
            made=_quantities(map_at(value, "status", "resources")),
            weight=weight if isinstance(weight := spec.get("weight"), int) else 0,
            static=spec.get("replicas") is not None,
            ready=not map_at(value, "metadata").get("deletionTimestamp") and condition_status(value, "Ready") != "False",
            platform=seen.platform,
            without_gpus=bool(seen.platform) and not seen.gpus,
            table=table,
            rows=0 if table is None else _rows(table, facts),
            uncounted=0 if table is None else self._uncounted(table),
            discovered=self._discovered,
        )


def _requirements(value: Mapping[str, Any], facts: NodePool, name: str) -> tuple[dict[str, Requirement], frozenset[str]]:
    found: dict[str, Requirement] = {}
    unread = set()
    for key, operator, values in (*facts.requirements, *_labels(value, name)):
        key = OLDER_NAMES.get(key, key)
        one = requirement(operator, values)
        if one is None:
            unread.add(key)
        else:
            found[key] = found[key] & one if key in found else one
    return {key: one for key, one in found.items() if key not in unread}, frozenset(unread)


def _labels(value: Mapping[str, Any], name: str) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield the labels that every node of the NodePool has, as requirements."""
    template = map_at(value, "spec", "template")
    reference = map_at(template, "spec", "nodeClassRef")
    labels = texts_at(template, "metadata", "labels")
    labels |= {
        NODE_POOL: name,
        "karpenter.sh/registered": "true",
        "karpenter.sh/initialized": "true",
    }
    if group := text_of(reference.get("group")):
        labels[f"{group}/{text_of(reference.get('kind')).lower()}"] = text_of(reference.get("name"))
    for key, one in labels.items():
        yield key, "In", (one,)


def _rows(table: Table, facts: NodePool) -> int:
    """Return the machines that all requirements admit on labels that the cloud gives."""
    rows = table.all
    known = {*table.platform.labels, *table.platform.capacity_keys}
    for key, operator, values in facts.requirements:
        if OLDER_NAMES.get(key, key) in known and operator in _OPERATORS:
            rows &= selected(table, OLDER_NAMES.get(key, key), *_strict(operator, values))
    return rows


_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte")


def _strict(operator: str, values: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Return the same bound as Gt or Lt: Gte and Lte are Karpenter's own."""
    bound = integer(values[0]) if operator in ("Gte", "Lte") and len(values) == 1 else None
    return (operator, values) if bound is None else (operator[:2], (str(bound - 1 if operator == "Gte" else bound + 1),))


def selected(table: Table, key: str, operator: str, values: tuple[str, ...]) -> int:
    """Return the machines that an expression admits. A value that no table knows is that of a machine that the catalog lacks, and of
    no other."""
    if operator != "In":
        return table.select(key, operator, values)[0]
    known = tuple(value for value in values if table.knows(key, value))
    rows = table.select(key, operator, known)[0] if known else 0
    return rows if len(known) == len(values) else rows | table.unknown


def _quantities(value: Mapping[Any, Any]) -> dict[str, Fraction]:
    found = {}
    for name, one in value.items():
        try:
            found[text_of(name)] = parse(one)
        except QuantityError:
            continue
    return found
