"""Where a pod may run: what is left of the nodes, what could be said, what is outside."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tests.reference import pods
from tests.reference.case import AXES
from tests.reference.nodes import Atlas, Node, in_capacity, in_machine
from tests.reference.refusals import Refusals
from tests.reference.say import can_say

Raw = dict[str, Any]


class Placing(Refusals):
    def required(self, node: Node, axis: str) -> bool:
        """Whether a node is inside what policies require on one axis."""
        if (node, axis) not in self.remembered:
            self.remembered[node, axis] = self.judged(node, axis)
        return self.remembered[node, axis]

    def judged(self, node: Node, axis: str) -> bool:
        for require in (p.require for p in self.policies):
            if axis == "machine" and not in_machine(node, require.machine, self.catalog):
                return False
            if axis == "capacity" and require.capacity and not in_capacity(node, require.capacity):
                return False
            runs = require.long_runs
            if axis == "capacity" and runs is not None and self.is_long(runs) and not in_capacity(node, runs.capacity):
                return False
            if axis == "sharing" and require.sharing and node.sharing not in require.sharing:
                return False
        return True

    def offers(self, name: str, count: int | None) -> list[Node]:
        """Nodes with enough devices under a resource name."""
        every = self.world.by_resource.get(name, [])
        return [n for n in every if n.devices is None or count is None or n.devices >= count]

    def wanted(self) -> dict[str, int | None]:
        """The resource names that are placed, with their counts: those that some listed platform offers."""
        found = {}
        for name in self.asked:
            if name in self.world.by_resource:
                found[name] = pods.devices(self.pod, name)
        return found

    def platforms_left(self, inside: Callable[[Node], bool], names: dict[str, int | None], terms: list[list[Raw]]) -> set[str]:
        """Platforms where every name has a node that the terms select and ``inside`` keeps."""
        left, selected = [], self.atlas.selected(terms)
        for name, count in names.items():
            left.append({n.platform for n in self.offers(name, count) if n in selected and inside(n)})
        return set.intersection(*left) if left else set()

    def in_require(self, node: Node) -> bool:
        return all(self.required(node, axis) for axis in AXES)

    def left(
        self,
        more: Callable[[Node], bool] = lambda n: True,
        terms: list[list[Raw]] | None = None,
        names: dict[str, int | None] | None = None,
    ) -> set[str]:
        def inside(node: Node) -> bool:
            return self.in_require(node) and all(chosen(node) for chosen in self.chosen) and more(node)

        return self.platforms_left(inside, self.now if names is None else names, self.terms if terms is None else terms)

    def all_undecided(self) -> bool:
        live = [t for t in self.terms if self.platforms_left(lambda n: True, self.now, [t])]
        return all(any(self.atlas.undecided(table, e) for table in self.atlas.tables.values() for e in t) for t in live)

    def known_node(self) -> set[str]:
        """A known node whose labels fit only offers outside what is required."""
        name = self.pod["spec"].get("nodeName") or pods.pinned(self.pod)
        labels = self.cluster.nodes.get(name or "")
        if labels is None:
            return set()
        carried: list[Node] = []
        for table in self.atlas.tables.values():
            if not set(labels) & set(table.platform.labels):
                continue
            said = [{"key": key, "operator": "In", "values": [value]} for key, value in labels.items() if key in table.keys]
            carried += [n for n in table.nodes if n.resource in self.asked and all(fits(n, e, self.atlas) for e in said)]
        return {"BERTH-124"} if carried and not any(self.in_require(n) for n in carried) else set()

    def outside(self, names: dict[str, int | None]) -> set[str]:
        """What the stored terms still select outside what is required, on an axis that could be written there."""
        alive = self.platforms_left(lambda n: True, names, self.terms)
        selected = self.atlas.selected(self.terms)
        for axis in AXES:
            for platform in alive:
                if self.say(platform, axis, lambda n, a=axis: self.required(n, a), names) == "no":
                    continue
                for name, count in names.items():
                    for node in self.offers(name, count):
                        if node.platform == platform and node in selected and not self.required(node, axis):
                            return {"BERTH-123"}
        return set()

    def say(self, platform: str, axis: str, inside: Callable[[Node], bool], names: Iterable[str]) -> str:
        """Whether an axis can be said on a platform: ``all``, ``part`` or ``no``."""
        every = self.atlas.tables[platform].nodes
        vendors = {n.vendor for n in every if n.resource in names}
        nodes = [n for n in every if n.resource in names or (axis != "sharing" and n.vendor in vendors)]
        return can_say(self.atlas, platform, axis, nodes, [n for n in nodes if inside(n)])

    def sayable(self, platform: str, axis: str) -> tuple[Callable[[Node], bool], str]:
        """All that was chosen on an axis, or what is required alone where no more can be said."""
        how = self.say(platform, axis, lambda n: self.on_axis(n, axis), self.now)
        if how != "no":
            return lambda n: self.on_axis(n, axis), how
        return lambda n: self.required(n, axis), self.say(platform, axis, lambda n: self.required(n, axis), self.now)

    def on_axis(self, node: Node, axis: str) -> bool:
        return self.required(node, axis) and all(inside(node) for a, inside in self.axes if a == axis)

    def undecided_there(self, node: Node) -> bool:
        table = self.atlas.tables[node.platform]
        return any(any(self.atlas.undecided(table, e) for e in t) for t in self.terms if self.atlas.lands(node, t))


def fits(node: Node, expression: Raw, atlas: Atlas) -> bool:
    value = expression["values"][0]
    return any(
        v in (value, "*") or (v == "?" and value not in atlas.known(expression["key"])) for v in node.labels.get(expression["key"], (None,))
    )
