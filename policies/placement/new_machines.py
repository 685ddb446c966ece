"""How much the machines that a NodePool may make have for one pod: by the catalog's sizes, without what Karpenter's provider takes for
the kubelet, and without the pods of DaemonSets that come onto each new node
(pkg/controllers/provisioning/scheduling/scheduler.go ``buildDaemonOverheadGroups``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from catalog import Catalog, MachineType
from kube.karpenter import EC2, KWOK, MIB, MachineSize, NodeClass, Range, Ranges, allocatable, capacity, simulated
from kube.requests import PODS, HostPort
from kube.scheduling import CLAIMS, Wants
from policies.offers.table import Table
from policies.placement.pool_blockers import accepts, rows_of, without
from policies.placement.pools import NewMachine, Pool
from policies.placement.unchecked import Unchecked

_ARM = "arm64"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewNodes:
    """What is known of the nodes that NodePools make."""

    daemons: tuple[Wants, ...] | None = None
    """The pods of DaemonSets; None if these are not known."""
    node_classes: Mapping[str, NodeClass]
    """EC2NodeClasses by name."""


class MachineReader:
    """Reads the machines of NodePools."""

    def __init__(self, catalog: Catalog, known: NewNodes) -> None:
        self._types = {(machine.cloud, machine.type): machine for machine in catalog.machines if machine.type is not None}
        self._known = known
        self._rows: dict[str, dict[str, int]] = {}

    def sized(self, pool: Pool) -> Pool:
        """Return the NodePool with the sizes of its machines."""
        table = pool.table
        node_class = self._known.node_classes.get(pool.node_class_name) if pool.node_class == EC2 else None
        unchecked: set[Unchecked] = set() if pool.node_class in (EC2, KWOK) else {"machineSizes"}
        if pool.node_class == EC2 and (node_class is None or not node_class.readable):
            unchecked.add("nodeClasses")
        if self._known.daemons is None:
            unchecked.add("daemonSets")
        if table is None:
            return replace(pool, sized=True, unchecked=frozenset(unchecked))
        machines = []
        for name, every in self._rows_of(table).items():
            if rows := every & pool.rows:
                machines.append(self._machine(name, rows, table, pool, node_class or NodeClass()))
        others = 0
        for key, wanted in pool.requirements.items():
            others |= without(machines, key, wanted)
        left = replace(
            pool, rows=pool.rows & ~others, machines=tuple(machine for machine in machines if not machine.rows & others), sized=True
        )
        return replace(left, machines=tuple(self._with_daemons(left, table)), unchecked=frozenset(unchecked))

    def _rows_of(self, table: Table) -> dict[str, int]:
        rows = self._rows.get(table.platform.name)
        if rows is None:
            rows = self._rows[table.platform.name] = {}
            for number, offer in enumerate(table.offers, table.first):
                if offer.host.gpu is not None:
                    rows[offer.host.name] = rows.get(offer.host.name, 0) | 1 << number
        return rows

    def _machine(self, name: str, rows: int, table: Table, pool: Pool, node_class: NodeClass) -> NewMachine:
        machine = self._types.get((table.platform.cloud or "", name.removeprefix(table.platform.type_prefix)))
        devices: dict[str, Range] = {}
        for offer in table.offers_in(rows & table.by_sharing.get("Exclusive", 0)):
            if offer.resource and offer.host.count:
                devices[offer.resource] = offer.host.count, offer.host.count
        size = None if machine is None else _size(machine)
        if size is None:
            return NewMachine(name=name, rows=rows, capacity=devices)
        labels = {key: str(size.vcpus if what == "cpu" else size.memory_mib) for key, what in table.platform.size_labels.items()}
        whole: Ranges = {"cpu": (size.vcpus * 1000, size.vcpus * 1000), "memory": (1, size.memory_mib * MIB)}
        free: Ranges = {name: (0, most) for name, (_, most) in whole.items()}
        if pool.node_class == EC2:
            whole, free = capacity(size, node_class), allocatable(size, node_class)
        elif pool.node_class == KWOK:
            whole, free = simulated(size)
        return NewMachine(name=name, rows=rows, labels=labels, capacity={**devices, **whole}, free=free)

    def _with_daemons(self, pool: Pool, table: Table) -> Iterable[NewMachine]:
        """Yield the machines without what the pods of DaemonSets take. Karpenter ignores those with claims."""
        every = [daemon for daemon in self._known.daemons or () if CLAIMS not in daemon.unjudged and accepts(daemon, pool)]
        placed = [(daemon, rows_of(daemon, pool, table)) for daemon in every]
        for machine in pool.machines:
            here = [daemon for daemon, rows in placed if rows & machine.rows]
            yield replace(machine, free=_without(machine.free, here), ports=_ports(here)) if here else machine


def _size(machine: MachineType) -> MachineSize | None:
    if machine.vcpus is None or machine.memory_mib is None:
        return None
    return MachineSize(machine.vcpus, machine.memory_mib, machine.pods, machine.arch == _ARM)


def _without(free: Ranges, daemons: Sequence[Wants]) -> Ranges:
    """Return what is left beside these pods."""

    def taken(name: str) -> int:
        return len(daemons) if name == PODS else sum(daemon.requests.get(name, 0) for daemon in daemons)

    return {name: (max(0, least - taken(name)), most - taken(name)) for name, (least, most) in free.items()}


def _ports(daemons: Iterable[Wants]) -> tuple[HostPort, ...]:
    return tuple(port for daemon in daemons for port in daemon.ports)
