"""Groups of nodes with devices, and what is used and free of each device name, counted once for a world."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from analysis.scan.seen import GpuNode
from analysis.world.world import World
from catalog import Catalog, Gpu
from console.world.derived import Derived
from kube.node import Node
from kube.taints import Taint, passes

_WORDS = {"gpu": ("Whole GPUs", "GPU"), "shared": ("Shared GPUs", "replica"), "partition": ("Partitions", "partition")}
"""Kind of resource -> what its devices are, and one of them."""


class GroupKey(NamedTuple):
    """What a group is called, its name, and the model on its nodes; "" if the labels do not tell."""

    what: str
    name: str
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceLine:
    """The devices of one resource name in a group: whole GPUs, slices of one size, or shared ones."""

    resource: str
    sort: str
    """What they are, in words."""
    unit: str
    """One of them."""
    uses: Sequence[Use]
    """Of each node that has some, by name."""
    usd: tuple[float, float] | None
    """The least and the most that one costs an hour; None if no price is known."""
    usd_free: float | None
    usd_out: float | None
    known: bool
    """False if not all pods were read: what is free is not known then."""

    @property
    def total(self) -> int:
        return sum(one.total for one in self.uses)

    @property
    def held(self) -> int | None:
        return sum(one.held for one in self.uses) if self.known else None

    @property
    def free(self) -> int | None:
        return sum(one.free for one in self.uses) if self.known else None

    @property
    def out(self) -> int | None:
        return sum(one.out for one in self.uses) if self.known else None

    @property
    def hole(self) -> int | None:
        """The most that are free on one node: no pod that asks for more starts now."""
        return max((one.free for one in self.uses), default=0) if self.known else None

    @property
    def whole(self) -> int | None:
        """Nodes of which every device is free."""
        return sum(one.whole for one in self.uses) if self.known else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelGroup:
    """Nodes of one group that have devices of one model, or labels that say so."""

    key: GroupKey
    gpu: Gpu | None
    nodes: Sequence[str]
    """Names, sorted."""
    lines: Sequence[DeviceLine]
    """Most devices first."""
    bare: Sequence[str]
    """Nodes that should have devices, as their labels say, and have none."""
    whole: int
    """Nodes of which every device is free, slices of all sizes among them; 0 if what is free is not known."""
    cordoned: int
    not_ready: int
    spot: int
    """Nodes on spot capacity."""
    taints: Sequence[tuple[Taint, int]]
    """Those that stay, with the nodes that have them."""
    labels: Mapping[str, str]
    """Those that all nodes share."""
    usd: float | None
    """What all nodes cost an hour, as far as that is known."""
    unpriced: int
    """Nodes whose price is not known."""

    @property
    def usd_free(self) -> float | None:
        """What devices that nobody holds cost an hour."""
        return add_known(line.usd_free for line in self.lines)

    @property
    def usd_out(self) -> float | None:
        """What devices that nobody can hold cost an hour."""
        return add_known(line.usd_out for line in self.lines)


def _counted(world: World) -> tuple[ModelGroup, ...]:
    members: dict[GroupKey, list[GpuNode]] = {}
    for node in world.seen.nodes.values():
        if node.gpu is not None or node.has_gpus:
            key = GroupKey(*node.group, node.gpu.model if node.gpu is not None else "")
            members.setdefault(key, []).append(node)
    known = "Pod" not in world.unread and "Node" not in world.unread
    counter = _Counter(world.snapshot.catalog, world.seen.fleet.startup, known=known)
    return tuple(counter.group(key, sorted(found, key=lambda node: node.name)) for key, found in sorted(members.items()))


_GROUPS = Derived(_counted)


def groups(world: World) -> tuple[ModelGroup, ...]:
    """Return all groups, by name. Whoever shows them asks first whether nodes may be listed."""
    return _GROUPS.of(world)


class _Counter:
    def __init__(self, catalog: Catalog, startup: frozenset[str], *, known: bool) -> None:
        self._catalog = catalog
        self._startup = startup
        self._known = known

    def group(self, key: GroupKey, nodes: Sequence[GpuNode]) -> ModelGroup:
        states = Counter(state(node.place) for node in nodes)
        prices = [node.usd_whole for node in nodes]
        names = dict.fromkeys(name for node in nodes for name in node.parts if self._catalog.measure(name) is None)
        lines = [line for name in names if (line := self._line(name, nodes)).uses]
        having = {one.node for line in lines for one in line.uses}
        taken = {used.node for line in lines for used in line.uses if not used.whole}
        shared = set(nodes[0].labels.items()).intersection(*(node.labels.items() for node in nodes))
        taints = Counter(taint for node in nodes for taint in set(node.taints) if not passes(taint.key, self._startup))
        return ModelGroup(
            key=key,
            gpu=nodes[0].gpu,
            nodes=[node.name for node in nodes],
            lines=sorted(lines, key=lambda line: (-line.total, line.resource)),
            bare=[node.name for node in nodes if node.name not in having],
            whole=len(having - taken) if all(line.known for line in lines) else 0,
            cordoned=states["cordoned"],
            not_ready=states["not ready"],
            spot=sum(node.spot for node in nodes),
            taints=sorted(taints.items(), key=lambda one: (-one[1], one[0])),
            labels=dict(sorted(shared)),
            usd=add_known(prices),
            unpriced=prices.count(None),
        )

    def _line(self, name: str, nodes: Sequence[GpuNode]) -> DeviceLine:
        uses, free, out, each = [], [], [], []
        known = self._known
        for node in nodes:
            one = use(name, node)
            if not one.total:
                continue
            uses.append(one)
            known = known and node.place.used is not None
            usd = node.usd_of(name)
            if usd is not None:
                each.append(usd)
                free.append(usd * one.free)
                out.append(usd * one.out)
        sort, unit = self._words(name, divided=any(node.parts.get(name, 1) < 1 for node in nodes if use(name, node).total))
        return DeviceLine(
            resource=name,
            sort=sort,
            unit=unit,
            uses=uses,
            usd=(min(each), max(each)) if each else None,
            usd_free=add_known(free) if known else None,
            usd_out=add_known(out) if known else None,
            known=known,
        )

    def _words(self, name: str, *, divided: bool) -> tuple[str, str]:
        resource = self._catalog.resource(name)
        if resource is not None and resource.kind == "gpu" and divided:
            return _WORDS["shared"]
        if resource is not None and resource.kind == "mig":
            return f"MIG slices {resource.profile}", "slice"
        return _WORDS.get(resource.kind if resource is not None else "", ("Devices", "device"))


def add_known(values: Iterable[float | None]) -> float | None:
    """Return the sum of the values that are known; None if none is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


State = Literal["ready", "cordoned", "not ready"]
MOST = 100_000
"""Devices of one node that are counted: the largest machines have some thousand replicas."""


class Use(NamedTuple):
    """Devices of one name on one node; ``held``, ``free`` and ``out`` together are ``total``."""

    node: str
    state: State
    total: int
    """Those that are there, healthy or not."""
    held: int
    free: int
    """What a pod could take now."""
    out: int
    """Of no use: not healthy, or free on a node that takes no pods."""

    @property
    def whole(self) -> bool:
        """True if a job that takes the whole node could have it."""
        return 0 < self.total == self.free


def state(node: Node) -> State:
    """Return whether a node takes pods: one that starts, or whose devices are set up anew, is not ready."""
    return "cordoned" if node.cordoned else "ready" if node.settled else "not ready"


def use(name: str, node: GpuNode) -> Use:
    """Return what is held of a device name."""
    healthy = _bounded(node.allocatable.get(name, 0))
    total = _bounded(node.place.offered(name))
    now = state(node.place)
    held = min(total, _bounded((node.place.used or {}).get(name, 0)))
    free = max(0, healthy - held) if now == "ready" else 0
    return Use(node=node.name, state=now, total=total, held=held, free=free, out=total - held - free)


def _bounded(number: int) -> int:
    return max(0, min(number, MOST))
