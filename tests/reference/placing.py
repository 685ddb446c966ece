"""Where a pod may run: what is left of the nodes, what could be said, what is outside."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from policies.policy import MachineFields, NodeTemplate, Require
from tests.reference.case import AXES
from tests.reference.denials import Denials
from tests.reference.nodes import Node, in_capacity, in_machine
from tests.reference.say import can_say

Raw = dict[str, Any]
Inside = Callable[[Node], bool]
WHOLE = "nvidia.com/gpu"
"""of which a scheduler takes the part that a pod has by annotation"""


def every(tests: list[Inside]) -> Inside:
    """Whether a node passes all."""
    return lambda node: all(test(node) for test in tests)


class Placing(Denials):
    def required(self, node: Node, axis: str) -> bool:
        """Whether a node is inside what policies require on one axis."""
        if (node, axis) not in self.remembered:
            self.remembered[node, axis] = self.judged(node, axis)
        return self.remembered[node, axis]

    def judged(self, node: Node, axis: str) -> bool:
        return all(inside(node) for policy in self.policies for inside in self.required_by(policy.require, axis))

    def shared(self) -> set[str]:
        """What shares a device, or is a part of one, where no known node tells so: none has the name, or takes the pod."""
        ways = {"TimeSliced"} if self.asking.in_part else set()
        cells = [self.cells(term) for term in self.terms]
        cut = [set(self.atlas.renamed(term, "product")) for term in self.terms]
        if any(cells) and all(set(there) <= sliced for there, sliced in zip(cells, cut, strict=True)):
            ways |= {"MIG"}
        taken = self.platforms_left(lambda node: True, self.now, self.terms)
        for name, resource in self.asked.items():
            if resource.kind == "dra" and resource.vendor and "MIG" in (found := self.world.ways_of_class(name)):
                ways |= {"MIG"} if len(found) > 1 or not self.world.lists(name) else set()
            if not taken or self.row.affinity == "no" or not self.world.lists(name):
                ways |= {"TimeSliced"} if resource.kind == "shared" or not resource.vendor else set()
                ways |= {"MIG"} if resource.kind == "mig" or (resource.parts and 1 not in resource.parts) else set()
        wanted = [set[str](p.require.sharing) for p in self.policies if p.require.sharing]
        return {"BERTH-117"} if any(ways - admitted for admitted in wanted) else set()

    def cells(self, term: list[Raw]) -> list[str]:
        """Platforms that a term may be for: all whose keys it names, if it names any listed platform's."""
        wants = [e["key"] for e in term if e["operator"] in ("In", "Exists", "Gt", "Lt")]
        keyed = [key for key in wants if any(key in t.keys for t in self.atlas.tables.values())]
        return [name for name, table in self.atlas.tables.items() if all(key in table.keys for key in keyed)]

    def offers(self, name: str, count: int) -> list[Node]:
        """Nodes with enough devices under a resource name."""
        return self.world.offers(name, count)

    def wanted(self) -> dict[str, int]:
        """The resource names that are placed, with the least that is asked for: those that some listed platform may offer."""
        if self.row.in_part:
            return {WHOLE: self.asking.parted[0]} if self.world.nodes_of(WHOLE) else {}
        return {name: self.asking.spans[name][0] for name in self.asked if self.world.nodes_of(name)}

    def platforms_left(self, inside: Callable[[Node], bool], names: dict[str, int], terms: list[list[Raw]]) -> set[str]:
        """Platforms where every name has a node that the terms select and ``inside`` keeps."""
        left, selected = [], self.atlas.selected(terms)
        for name, count in names.items():
            left.append({n.platform for n in self.offers(name, count) if n in selected and inside(n)})
        return set.intersection(*left) if left else set()

    def in_require(self, node: Node) -> bool:
        if node not in self.all_required:
            self.all_required[node] = all(self.required(node, axis) for axis in AXES)
        return self.all_required[node]

    def left(
        self,
        more: Callable[[Node], bool] = lambda n: True,
        terms: list[list[Raw]] | None = None,
        names: dict[str, int] | None = None,
    ) -> set[str]:
        def inside(node: Node) -> bool:
            return self.in_require(node) and all(chosen(node) for chosen in self.chosen) and more(node)

        return self.platforms_left(inside, self.now if names is None else names, self.terms if terms is None else terms)

    def all_undecided(self) -> bool:
        live = [t for t in self.terms if self.platforms_left(self.in_require, self.now, [t])]
        return all(any(self.atlas.undecided(table, e) for table in self.atlas.tables.values() for e in t) for t in live)

    def outside(self, names: dict[str, int]) -> set[str]:
        """What the stored terms still select outside what is required, on an axis that could be written there."""
        for term in self.terms:
            possible = self.platforms_left(lambda n: True, names, [term])
            if len(possible) == 1 and self.constrained() and not self.held(term, *possible):
                return {"BERTH-123"}
            selected = self.atlas.landing(term)
            lands = [n for name, count in names.items() for n in self.offers(name, count) if n in selected]
            for platform in possible:
                for axis in AXES:
                    inside, _, _ = self.sayable(platform, axis, term)
                    if any(n.platform == platform and not inside(n) for n in lands):
                        return {"BERTH-123"}
        return set()

    def constrained(self) -> bool:
        """Whether anything is required of nodes."""
        return any(self.required_by(p.require, axis) for p in self.policies for axis in AXES)

    def held(self, term: list[Raw], platform: str) -> bool:
        """Whether a term can match nodes of this platform alone: by a label that only they have; on gfd by what the others' have."""
        mine = self.atlas.tables[platform].platform
        others = [t for name, t in self.atlas.tables.items() if name != platform]
        if mine.cloud is None:
            missing = {e["key"] for e in term if e["operator"] == "DoesNotExist"}
            return all(t.platform.anchor in missing for t in others)
        telling = {key for key in (mine.anchor, *mine.labels) if not any(key in t.keys for t in others)}
        return not others or any(e["key"] in telling and e["operator"] in ("In", "Exists", "Gt", "Lt") for e in term)

    def universe(self, platform: str, axis: str) -> list[Node]:
        """The nodes among which an axis is said: those of the vendors asked for; for sharing, of the names asked for."""
        if (platform, axis) not in self.universes:
            listed = self.atlas.tables[platform].nodes
            asked = {n for name in self.now for n in self.world.nodes_of(name)}
            elsewhere = [name for name in self.now if not any(n in listed for n in self.world.nodes_of(name))]
            known = (self.catalog.resource(name) for name in elsewhere)
            vendors = {n.vendor for n in listed if n in asked} | {resource.vendor for resource in known if resource is not None}
            nodes = [n for n in listed if n in asked or (axis != "sharing" and n.vendor in vendors)]
            self.universes[platform, axis] = nodes
        return self.universes[platform, axis]

    def constraints(self, axis: str) -> list[list[Inside]]:
        """What narrows an axis, by scope: the cluster's policies, the namespace's own, what was chosen."""
        scopes: list[list[Inside]] = [[], [], []]
        for policy in self.policies:
            scopes[policy.namespace is not None] += self.required_by(policy.require, axis)
        if self.out.template is not None:
            scopes[2] += self.of_template(self.atlas.templates[self.out.template], axis)
        scopes[2] += [inside for a, inside in self.axes if a == axis]
        return scopes

    def required_by(self, require: Require, axis: str) -> list[Inside]:
        if axis == "machine":
            return self.of_machine(require.machine, required=True)
        if axis == "sharing":
            return [lambda n: n.sharing in require.sharing] if require.sharing and not self.row.in_part else []
        runs = require.long_runs
        wanted = [require.capacity] if require.capacity else []
        wanted += [runs.capacity] if runs is not None and self.is_long(runs) else []
        return [partial(in_capacity, wanted=one) for one in wanted]

    def of_machine(self, machine: MachineFields, *, required: bool = False, new: bool = False) -> list[Inside]:
        """Field by field; ``new``: families with models that nobody knows.

        Machines without families are in no list of them that is required, where there are clouds with such machines."""
        names = ("families", "models", "instance_families", "gpu_memory")
        alone = [MachineFields(**{name: getattr(machine, name)}) for name in names if getattr(machine, name) is not None]
        found: list[Inside] = [partial(in_machine, machine=one, catalog=self.catalog) for one in alone]
        if new and machine.families is not None:
            found[names.index("families")] = self.of_families(machine)
        clouds = {name for name, table in self.atlas.tables.items() if table.platform.cloud is not None}
        if required and clouds and machine.instance_families is not None and machine.instance_families.in_:
            found.append(lambda node: node.platform in clouds)
        return found

    def of_families(self, machine: MachineFields) -> Inside:
        """A family's models, and unknown ones of its vendors where there are some of it and no label tells families."""
        alone = MachineFields(families=machine.families)
        assert machine.families is not None
        vendors = {gpu.vendor for gpu in self.catalog.gpus if gpu.family in machine.families.in_}
        there = {n.platform for t in self.atlas.tables.values() for n in t.nodes if in_machine(n, alone, self.catalog)}
        by_family = {name for name, t in self.atlas.tables.items() if any(a.endswith("gpuFamily") for a in t.platform.labels.values())}
        return lambda n: in_machine(n, alone, self.catalog) or (n.gpu is None and n.vendor in vendors and n.platform in there - by_family)

    def of_template(self, template: NodeTemplate, axis: str) -> list[Inside]:
        if axis == "machine":
            vendors: list[Inside] = [lambda n: n.vendor in template.vendors] if template.vendors else []
            return self.of_machine(template.machine) + vendors
        if axis == "sharing":
            return [lambda n: n.sharing in template.sharing] if template.sharing else []
        return [lambda n: in_capacity(n, template.capacity)] if template.capacity else []

    def sayable(self, platform: str, axis: str, term: list[Raw]) -> tuple[Inside, bool, Inside]:
        """All that narrows an axis, whether that can be said whole, and what is said; what can't be said is left out one by
        one, of the narrowest scope first. A part is said only if it leaves the term something."""
        taken, whole, selected = list[Inside](), True, None
        inside = self.universe(platform, axis)
        for at, scope in enumerate(self.constraints(axis)):
            expressed = self.expressed(platform, axis, term, [n for n in inside if every(scope)(n)], at)
            for group in ([scope] if expressed is not None else [[one] for one in scope]) if scope else []:
                narrowed = [n for n in inside if every(group)(n)]
                expressed = self.expressed(platform, axis, term, narrowed, at)
                if expressed is not None:
                    taken, inside, whole, selected = taken + group, narrowed, len(expressed) == len(narrowed), expressed
        return every(taken), whole, (lambda n: selected is None or n in selected)

    def can_be_had(self) -> bool:
        """Whether all that is chosen so far leaves some term something, by what can be said there."""
        if not (self.world.placed and self.row.affinity == "write"):
            return bool(self.left())
        for term in self.terms:
            for platform in self.left(terms=[term]):
                expressed = [self.sayable(platform, axis, term)[2] for axis in AXES]
                if platform in self.left(more=every(expressed), terms=[term]):
                    return True
        return False

    def expressed(self, platform: str, axis: str, term: list[Raw], inside: list[Node], scope: int) -> set[Node] | None:
        if axis == "machine" and platform in self.atlas.renamed(term, "type") and 0 < len(inside) < len(self.universe(platform, axis)):
            return set(inside)  # by types, which tell all
        found = self.atlas.saying(can_say, platform, axis, self.universe(platform, axis), inside)
        rest = every(self.chosen) if scope == 2 else (lambda n: True)
        selected = self.atlas.landing(term)
        offered = [{n for n in self.offers(*item) if n.platform == platform and n in selected} for item in self.now.items()]
        left = [{n for n in nodes if self.in_require(n) and rest(n)} for nodes in offered]
        for part in found:
            lost = [nodes for nodes in left if not nodes & part]
            useless = len(lost) == len(offered) or all(nodes & part for nodes in offered)
            if not all(left) or len(part) == len(inside) or not (lost and useless):
                return part
        return None
