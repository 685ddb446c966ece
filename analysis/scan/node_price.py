"""What a node costs an hour by the GPUs in it: a slice or a replica costs its part of one, however many of them the node offers."""

from __future__ import annotations

from fractions import Fraction

from analysis.scan.machines import Machines
from analysis.scan.seen import GpuNode
from catalog import Catalog
from policies.planning.devices import share

REPLICAS = "nvidia.com/gpu.replicas"
"""GPU Feature Discovery: as how many devices the plugin offers each GPU, by time slicing or MPS."""


class NodePrices:
    """Prices of nodes of one catalog."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._machines = Machines(catalog)

    def of_device(self, name: str, node: GpuNode) -> float | None:
        """Return what one device of this resource name costs; None if the node's price is not known."""
        return None if node.usd is None else node.usd * float(self._part(name, node))

    def of_node(self, node: GpuNode) -> float | None:
        """Return what all its GPUs cost, those that are not healthy too; None if that is not known."""
        if node.usd is None:
            return None
        names = {**node.capacity, **node.allocatable}
        parts = (self._part(name, node) * max(node.capacity.get(name, 0), node.allocatable.get(name, 0)) for name in names)
        return node.usd * float(sum(parts))

    def _part(self, name: str, node: GpuNode) -> Fraction:
        """Return the part of a GPU that one device of this name is."""
        resource = self._catalog.resource(name)
        if resource is None:
            return Fraction(1)
        if resource.kind == "mig":
            return self._slice(resource.profile or "", node) or share(resource, self._catalog)[0]
        if resource.kind not in ("gpu", "shared"):
            return share(resource, self._catalog)[0]
        replicas = node.labels.get(REPLICAS, "")
        if replicas.isascii() and replicas.isdecimal() and len(replicas) < 6 and int(replicas) > 1:
            return Fraction(1, int(replicas))
        machine = self._machines.machine(node.labels)
        offered = max(node.capacity.get(name, 0), node.allocatable.get(name, 0))
        if resource.kind == "shared" and machine is not None and machine.count and offered > machine.count:
            return Fraction(machine.count, offered)
        return Fraction(1)

    def _slice(self, profile: str, node: GpuNode) -> Fraction | None:
        """Return the larger of its parts of compute and of memory, on this model."""
        sizes = node.gpu.mig if node.gpu is not None else ()
        compute, memory = max((one.compute for one in sizes), default=1), max((one.memory_gb for one in sizes), default=1)
        found = (one for one in sizes if one.name.replace("+", ".") == profile)
        return next((max(Fraction(one.compute, compute), Fraction(one.memory_gb, memory)) for one in found), None)
