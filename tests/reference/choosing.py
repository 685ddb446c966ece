"""What authors name and policies default: template, slice, machine, capacity, in that order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from catalog import MigProfile
from policies.facts.places import NodePlace
from policies.policy import MachineFields, Policy
from tests.reference import pods
from tests.reference.known_nodes import KnownNodes
from tests.reference.nodes import Node, Table, in_capacity, in_machine, in_template
from tests.reference.placing import Inside, every
from tests.reference.tolerations import tolerates, toleration

Raw = dict[str, Any]
PLAIN = {"topology.kubernetes.io/zone", "topology.kubernetes.io/region", *(f"kubernetes.io/{what}" for what in ("os", "arch", "hostname"))}
POSITIVE = ("In", "Exists", "Gt", "Lt")


class Choosing(KnownNodes):
    def chosen_by_all(self) -> set[str]:
        """Templates and slices, then the other defaults; denials of what the author names and cannot have."""
        self.unread = any(self.is_unread(term, expression) for term in self.terms for expression in term)
        codes = self.choose_template() | self.choose_slice()
        self.choose_rest()
        return codes

    def is_unread(self, term: list[Raw], expression: Raw) -> bool:
        """Of nodes, and on a key that no table has and no template that the term demands, or with a value that nobody knows."""
        key, tables = expression["key"], self.atlas.tables.values()
        if key in PLAIN:
            return False
        if not any(key in table.keys for table in tables):
            return key not in {k for t in self.atlas.templates.values() if self.demands(term, t.labels) for k, _ in t.labels}
        return any(self.atlas.undecided(table, expression) for table in tables if not self.of_others(term, table))

    def demands(self, term: list[Raw], labels: tuple[tuple[str, str], ...]) -> bool:
        only = [(e["key"], set(map(str, e.get("values") or ()))) for e in term if e["operator"] == "In"]
        return all((key, {value}) in only for key, value in labels)

    def of_others(self, term: list[Raw], table: Table) -> bool:
        """Whether the term names what only other platforms' nodes have."""
        others = [other for other in self.atlas.tables.values() if other is not table]
        named = [e["key"] for e in term if e["operator"] in POSITIVE and e["key"] not in table.keys]
        return any(key in other.keys for key in named for other in others)

    def choose_template(self) -> set[str]:
        allowed = {n for p in self.certain if p.namespace is None for n in p.allow.node_templates}
        annotation = self.annotations.get("berth.dev/node-template")
        if annotation is not None:
            if annotation not in self.atlas.templates or annotation not in allowed:
                return {"BERTH-152"}
            if not self.placeable():
                return set()
            impossible = not self.platforms_left(lambda n: True, self.now, self.terms)
            self.template_by = [p for p in self.certain if annotation in p.allow.node_templates]
            return set() if self.take_template(annotation, by_default=False) or impossible else {"BERTH-152"}
        wish = self.speaker(lambda p: p.default.node_template) if self.silent("template") and self.row.chooses and not self.unread else None
        own = any(p.namespace is not None and p.default.node_template for p in self.certain)
        self.template_by = [p for p in self.certain if p.default.node_template and (p.namespace is not None or not own)]
        if wish is not None and not (own and wish not in allowed):
            self.take_template(wish, by_default=True)
        return set()

    def placeable(self) -> bool:
        """Whether nodes are known for all that is asked for: a default never chooses among nodes that nobody knows."""
        return bool(self.now) and all(self.world.lists(name) for name in self.now)

    def take_template(self, name: str, *, by_default: bool) -> bool:
        """Taken if something is left, or a slice would be; an author's where the pod fits nowhere anyway."""
        forbidden = [f for p in self.policies for f in p.require.forbid_tolerations]
        taints = [toleration(t.key, t.value, t.effect) for t in self.atlas.templates[name].taints]
        if not self.placeable() or any(tolerates(t, f) for t in taints for f in forbidden):
            return False
        before = self.terms
        possible = self.platforms_left(lambda n: True, self.now, before)
        self.terms = [[*t, *({"key": k, "operator": "In", "values": [v]} for k, v in self.atlas.templates[name].labels)] for t in before]
        possible |= self.platforms_left(lambda n: True, self.now, self.terms)
        if (possible or by_default) and not self.left() and not self.slices():
            self.terms = before
            return False
        self.out.template = name
        return True

    def slice_wish(self) -> tuple[int | None, int | None] | None:
        """(nominal GB, usable MiB) of the slice wished for; None: no wish, or not for this pod."""
        annotation = self.annotations.get("berth.dev/mig-slice")
        kinds = {(r.vendor, r.kind) for r in self.asked.values()}
        if (
            ("nvidia", "gpu") not in kinds
            or kinds & {("nvidia", "mig"), ("nvidia", "shared")}
            or not self.placeable()
            or not self.silent("sharing")
            or self.names_shared()
        ):
            return None
        if annotation is not None and annotation.endswith("gb") and annotation[:-2].isdigit():
            return int(annotation[:-2]), None
        wish = self.speaker(lambda p: p.default.mig) if annotation != "none" and not self.unread else None
        return None if wish is None else (wish.slice_gb, wish.usable_mib)

    def names_shared(self) -> bool:
        """A product label of sliced or shared GPUs alone also speaks of sharing."""
        if any(self.atlas.renamed(term, "product") for term in self.terms):
            return True
        for table in self.atlas.tables.values():
            for term in self.terms if table.platform.cloud is None else ():
                products = [e for e in term if e["key"].endswith("gpu.product") and e["operator"] == "In"]
                mine = [n for n in table.nodes if n.sharing == "Exclusive" and self.atlas.lands(n, products)]
                if products and not mine:
                    return True
        return False

    def slices(self, *, judged: bool = True) -> list[tuple[str, str]]:
        """(profile, resource) of the slices that fit the wish and leave something, best first."""
        wish = self.slice_wish()
        whole = [c for c in pods.containers(self.pod) if c.asks("nvidia.com/gpu")]
        if wish is None or not self.row.rename or any(pods.number(c.amount("nvidia.com/gpu")) != 1 for c in whole):
            return []
        gb, usable = wish
        found: dict[tuple[str, str], MigProfile] = {}
        for table in self.atlas.tables.values():
            for node in table.nodes:
                if node.gpu is None or node.sharing != "MIG" or node.profile is None:
                    continue
                profile = next(p for p in node.gpu.mig if p.name == node.profile)
                enough = usable is not None and profile.usable_mib is not None and profile.usable_mib >= usable
                if profile.attribute is None and (profile.memory_gb == gb or enough):
                    found.setdefault((profile.name, node.resource), profile)
        order = sorted(found.items(), key=lambda f: (f[1].usable_mib or 0 if usable else 0, f[1].compute, f[1].name, f[0][1]))
        return [key for key, _ in order if self.slice_left(key[0], key[1], judged=judged)]

    def slice_left(self, profile: str, resource: str, *, judged: bool) -> bool:
        names = {resource if n == "nvidia.com/gpu" else n: c for n, c in self.now.items()}
        chosen = self.in_slice(profile, resource)

        def inside(node: Node) -> bool:
            return chosen(node) and (not judged or self.is_known_slice(node))

        return bool(self.left(more=inside, names=names) if judged else self.platforms_left(inside, names, self.terms))

    def is_known_slice(self, node: Node) -> bool:
        """Whether some node has such slices, or somebody declares them. What its author asks for need not be known."""
        annotation, table = self.annotations.get("berth.dev/mig-slice", ""), self.atlas.tables[node.platform]
        if (annotation.endswith("gb") and annotation[:-2].isdigit()) or node.resource in table.platform.slices:
            return True
        if any(node.profile in t.mig_profiles and in_template(node, t, self.catalog) for t in self.atlas.templates.values()):
            return True
        return any(self._may_be_on(node, place) for place in self.cluster.places.values())

    def _may_be_on(self, node: Node, place: NodePlace) -> bool:
        """Whether a node of this kind may have the slice; where slices have the name of whole GPUs, its label must tell."""
        table = self.atlas.tables[node.platform]
        terms = {key: {"key": key, "operator": "In", "values": [value]} for key, value in place.labels if key in table.keys}
        if node.resource not in dict(place.devices) or not self.atlas.lands(node, list(terms.values())):
            return False
        if not any(other.resource == node.resource and other.sharing == "Exclusive" for other in table.nodes):
            return True
        product = next((key for key, attribute in table.platform.labels.items() if attribute.endswith("product")), "")
        key = self.catalog.schemes[table.platform.sharing].slice_key or (product if table.platform.cloud is None else "")
        return key in terms and not self.atlas.undecided(table, terms[key])

    def in_slice(self, profile: str, resource: str) -> Callable[[Node], bool]:
        return lambda n: (
            (n.resource, n.profile, n.sharing) == (resource, profile, "MIG") and (resource != "nvidia.com/gpu" or self.by_label(n))
        )

    def by_label(self, node: Node) -> bool:
        """Whether a slice can be chosen by a label there: GKE's partition size, the product on nodes that nobody makes."""
        platform = self.atlas.tables[node.platform].platform
        return self.catalog.schemes[platform.sharing].slice_key is not None or platform.cloud is None

    def choose_slice(self) -> set[str]:
        found = self.slices()
        if found:
            profile, resource = found[0]
            self.now = {resource if n == "nvidia.com/gpu" else n: c for n, c in self.now.items()}
            self.out.slice, self.slice_resource = profile, resource
            self.chosen.append(self.in_slice(profile, resource))
            return set()
        annotation = self.annotations.get("berth.dev/mig-slice")
        return {"BERTH-153"} if annotation is not None and annotation[:-2].isdigit() and self.slices(judged=False) else set()

    def choose_rest(self) -> None:
        machine = self.speaker(lambda p: None if p.default.machine == MachineFields() else p.default.machine, self.same_machines)
        if not self.row.chooses or self.unread:
            return
        if machine is not None and self.silent("machine"):
            before = self.chosen, self.axes
            if self.keep("machine", self.of_machine(machine)) and machine.families is not None and machine.families.in_:
                self.chosen, self.axes = before
                wide = self.of_machine(machine, new=True)
                self.chosen, self.axes = [*before[0], every(wide)], [*before[1], *(("machine", test) for test in wide)]
        wanted = self.speaker(self.capacity_wish)
        elsewhere = any(self.atlas.renamed(term, "type") for term in self.terms)
        silent = self.silent("capacity") and not elsewhere
        if wanted is not None and silent and self.keep("capacity", [partial(in_capacity, wanted=wanted)]):
            own = [p for p in self.certain if p.namespace is not None and self.capacity_wish(p)]
            self.named_capacity = own or self.certain

    def same_machines(self, one: MachineFields, other: MachineFields) -> bool:
        """Field by field the same nodes, however the lists are written."""
        if one == other:
            return True
        for name in ("families", "models", "instance_families", "gpu_memory"):
            alone = [replace(MachineFields(), **{name: getattr(machine, name)}) for machine in (one, other)]
            if (getattr(one, name) is None) != (getattr(other, name) is None):
                return False
            nodes = (n for table in self.atlas.tables.values() for n in table.nodes)
            if any(in_machine(n, alone[0], self.catalog) != in_machine(n, alone[1], self.catalog) for n in nodes):
                return False
        return True

    def capacity_wish(self, policy: Policy) -> frozenset[str] | None:
        """longRuns beats capacity where the run is long."""
        default = policy.default
        capacities = (
            default.long_runs.capacity if default.long_runs and self.is_long(default.long_runs, longest=False) else default.capacity
        )
        return (
            frozenset(c for c in ("spot", "on-demand", "reserved") if c in capacities or (c == "reserved" and "on-demand" in capacities))
            or None
        )

    def keep(self, axis: str, tests: list[Inside]) -> bool:
        """Kept only if something is left; where nothing was left before, to no effect."""
        if not self.placeable() or not self.left():
            return False
        chosen, axes = self.chosen, self.axes
        self.chosen = [*chosen, every(tests)]
        self.axes = [*axes, *((axis, test) for test in tests)]
        if not self.can_be_had():
            self.chosen, self.axes = chosen, axes
            return False
        return True
