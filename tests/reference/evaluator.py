"""The reference: what the design says should happen to a pod, worked out the slow way, to hold the engine against.

It shares with the engine only the typed inputs (policies, catalog, cluster facts, the request) and quantities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from policies.catalog import Catalog
from policies.cluster_facts import ClusterFacts, duration_seconds
from policies.policy import LongRuns, Machine, NodeTemplate, Policy, PolicySet, TolerationPattern
from policies.request import Request
from tests.reference import pods
from tests.reference.nodes import Atlas, Node, in_capacity, in_machine, tables, terms_of
from tests.reference.say import can_say

Raw = dict[str, Any]
AXES = ("machine", "capacity", "sharing")
PLACEMENT = "placement"
"""one code for BERTH-121, 122 and 125: who is to blame is in the message"""
_ROW_CODES = {
    "left": {PLACEMENT}, "mismatch": {"BERTH-101", "BERTH-102"}, "node": {"BERTH-124"}, "counts": {"BERTH-111", "BERTH-112"},
}  # fmt: skip
FOREVER = 10**12


@dataclass(kw_only=True)
class Expected:
    """What the reference says of one request."""

    judged: bool = True
    matched: tuple[str, ...] = ()
    codes: set[str] = field(default_factory=set)
    """why it is refused; empty: admitted"""
    tolerations: set[tuple[str, str, str | None, str | None]] = field(default_factory=set)
    """added: (key, operator, value, effect)"""
    grace: int | None = None
    probes: int = 0
    """how many probes get the former grace"""
    marks: dict[str, str] = field(default_factory=dict)
    """annotations and labels added"""
    resources: dict[tuple[str, int, str], Raw] = field(default_factory=dict)
    """(containers or initContainers, index, limits or requests) -> what stands there in the end"""
    inside: dict[str, set[Node]] = field(default_factory=dict)
    """resource name (after renaming) -> every node that the pod may land on in the end"""
    at_most: dict[str, set[Node]] = field(default_factory=dict)
    """the same where some axis can only be said by a part of it: never outside these"""
    counts: dict[str, int | None] = field(default_factory=dict)
    """how many devices of each of these names"""
    slice: str | None = None
    template: str | None = None


class Reference:
    """One set of policies, compiled into nothing: nodes are listed once, the rest is worked out for each pod."""

    def __init__(
        self, policy_set: PolicySet, catalog: Catalog, *, platforms: Sequence[str], mig_strategy: str, queues: tuple[str, ...], cluster: ClusterFacts
    ) -> None:
        self.catalog, self.cluster, self.queues, self.mig_strategy = catalog, cluster, queues, mig_strategy
        self.policies = sorted(policy_set.policies, key=lambda p: p.id)
        self.placed = bool(platforms)
        listed = {f for m in _machines(policy_set) if m.instance_families for f in (*m.instance_families.in_, *m.instance_families.not_in)}
        known = {m.family for m in catalog.machines}
        templates = {t.name: t for t in policy_set.templates}
        self.atlas = Atlas(
            catalog=catalog,
            tables=tables(catalog, platforms, mig_strategy, policy_set.templates, sorted(listed - known)),
            templates=templates,
        )

    def evaluate(self, request: Request) -> Expected:
        return _Case(self, request).decide()


def _machines(policy_set: PolicySet) -> list[Machine]:
    return [m for p in policy_set.policies for m in (p.require.machine, p.default.machine)] + [t.machine for t in policy_set.templates]


class _Case:
    def __init__(self, reference: Reference, request: Request) -> None:
        self.reference, self.request, self.pod = reference, request, request.pod
        self.catalog, self.cluster, self.atlas = reference.catalog, reference.cluster, reference.atlas
        self.asked = pods.accelerators(self.pod, self.catalog)
        self.row = pods.row(self.pod, self.catalog, reference.queues, bool(self.asked))
        self.annotations = pods.metadata(self.pod, "annotations")
        self.out = Expected()
        self.policies: list[Policy] = []
        self.terms = terms_of(self.pod)
        self.now: dict[str, int | None] = {}
        self.chosen: list[Callable[[Node], bool]] = []
        self.axes: list[tuple[str, Callable[[Node], bool]]] = []
        self.named_capacity = False
        self.slice_resource = ""

    # -- who is asked ----------------------------------------------------------------------------------------------------

    def decide(self) -> Expected:
        spec = self.pod["spec"]
        misspelt = any(n in self.catalog.misspellings for c in pods.containers(self.pod) for n in c.names())
        fraction = "gpu-fraction" in self.annotations or "gpu-memory" in self.annotations
        if not (self.asked or spec.get("resourceClaims") or fraction or misspelt):
            return Expected(judged=False)
        self.policies = [p for p in self.reference.policies if self.matches(p)]
        self.out.matched = tuple(p.id for p in self.policies)
        self.policies = [p for p in self.policies if p.mode == "Enforce"]
        if self.policies and not self.row.mirror:
            self.judge()
        return self.out

    def matches(self, policy: Policy) -> bool:
        namespace = self.request.namespace
        if policy.namespace not in (None, namespace):
            return False
        labels = {**self.cluster.namespaces.get(namespace, {}), "kubernetes.io/metadata.name": namespace}
        selector = policy.match.namespace_selector
        if selector is not None and not selector.matches(labels):
            return False
        if self.request.user in policy.exclude_users:
            return False
        return pods.matches(policy.match, self.pod, self.catalog, self.count(pods.GPU_KINDS))

    def count(self, kinds: Iterable[str]) -> int | None:
        total = 0
        for name, resource in self.asked.items():
            if resource.kind in kinds:
                count = pods.devices(self.pod, name)
                if count is None:
                    return None
                total += count
        claimed = pods.claims(self.pod, self.request.namespace, self.cluster)
        if claimed is None:
            return None
        return total + sum(n for c, n in claimed if pods.vendor_of_class(c, self.catalog, self.cluster))

    def judge(self) -> None:
        codes: set[str] = set()
        codes |= self.unreadable()
        codes |= self.mismatches()
        codes |= self.counts()
        codes |= self.names()
        codes |= self.forbidden()
        codes |= self.too_long()
        codes |= self.placement()
        if self.row.refuses is not None:
            codes &= set().union(*(_ROW_CODES[r] for r in self.row.refuses))
        self.out.codes = codes
        if self.request.phase == "mutate" and not codes:
            self.edit()

    # -- refusals without placement --------------------------------------------------------------------------------------

    def unreadable(self) -> set[str]:
        duration, size, out = self.annotations.get("berth.dev/expected-duration"), self.annotations.get("berth.dev/mig-slice"), set()
        if duration is not None and duration_seconds(duration) is None:
            out.add("BERTH-151")
        sizes = {f"{p.memory_gb}gb" for gpu in self.catalog.gpus for p in gpu.mig}
        if size is not None and size not in sizes:
            out.add("BERTH-151")
        opted = [o.strip() for o in self.annotations.get("berth.dev/opt-out", "").split(",") if o.strip()]
        return out | ({"BERTH-151"} if any(o != "grace" for o in opted) else set())

    def mismatches(self) -> set[str]:
        out: set[str] = set()
        mends = self.request.phase == "mutate" and self.row.repair and any(p.default.repair for p in self.policies)
        if any("accelerators" in p.require.requests_equal_limits for p in self.policies):
            for container in pods.containers(self.pod):
                for name in container.names():
                    if name in self.asked and container.asks(name):
                        out |= self.mismatch(container, name, mends)
        if self.asked and any("cpuAndMemory" in p.require.requests_equal_limits for p in self.policies):
            for container in pods.containers(self.pod):
                for name in ("cpu", "memory"):
                    limit = container.side("limits").get(name)
                    asked = container.side("requests").get(name, limit)
                    if limit is None or pods.number(limit) != pods.number(asked):
                        out.add("BERTH-103")
        return out

    def mismatch(self, container: pods.Container, name: str, mends: bool) -> set[str]:
        limit, asked = container.side("limits").get(name), container.side("requests").get(name)
        values = [v for v in (limit, asked) if v is not None]
        read = [pods.number(v) for v in values]
        if any(v is None or v < 0 or v.denominator != 1 for v in read):
            return {"BERTH-102"}
        if mends or asked is None:
            return set()
        return {"BERTH-101"} if limit is None or read[0] != read[1] else set()

    def counts(self) -> set[str]:
        out = set()
        count = self.count(("gpu", "dra"))
        for limit in (p.require.gpus_per_pod for p in self.policies):
            if limit is not None and count:
                out |= {"BERTH-111"} if limit.max is not None and count > limit.max else set()
                out |= {"BERTH-112"} if limit.one_of and count not in limit.one_of else set()
        if "BERTH-111" in out:
            out.discard("BERTH-112")  # one of the two says what to type
        for container in pods.containers(self.pod):
            kinds = {r.kind for n, r in self.asked.items() if container.asks(n)}
            if {"gpu", "mig"} <= kinds:
                out.add("BERTH-113")
        return out

    def names(self) -> set[str]:
        out = set()
        if any(n in self.catalog.misspellings and c.asks(n) for c in pods.containers(self.pod) for n in c.names()):
            out.add("BERTH-114")
        profiles = {p.name.replace("+", ".") for gpu in self.catalog.gpus for p in gpu.mig}
        if any(r.profile is not None and r.profile not in profiles for r in self.asked.values()):
            out.add("BERTH-115")
        return out

    def forbidden(self) -> set[str]:
        standing = self.pod["spec"].get("tolerations") or ()
        for pattern in (t for p in self.policies for t in p.require.forbid_tolerations):
            if any(tolerates(t, pattern) for t in standing):
                return {"BERTH-131"}
        return set()

    def too_long(self) -> set[str]:
        out = set()
        grace, most = self.pod["spec"].get("terminationGracePeriodSeconds", 30), self.least(lambda p: p.require.grace_max)
        if most is not None and grace > most:
            out.add("BERTH-141")
        most = self.least(lambda p: p.require.protection_max)
        for protection in self.catalog.protections if most is not None else ():
            value = pods.metadata(self.pod, protection.where).get(protection.key)
            if value is None:
                continue
            seconds = FOREVER if value == protection.value else duration_seconds(value) if protection.durations else None
            if seconds is not None and most is not None and seconds > most:
                out.add("BERTH-142")
        return out

    def least(self, take: Callable[[Policy], int | None]) -> int | None:
        return min((v for p in self.policies if (v := take(p)) is not None), default=None)

    # -- placement -------------------------------------------------------------------------------------------------------

    def seconds(self) -> int | None:
        said = duration_seconds(self.annotations.get("berth.dev/expected-duration"))
        return said if said is not None else self.pod["spec"].get("activeDeadlineSeconds")

    def is_long(self, runs: LongRuns | None) -> bool:
        seconds = self.seconds()
        return runs is not None and (runs.unknown_is_long if seconds is None else seconds > runs.over)

    def required(self, node: Node, axis: str) -> bool:
        """Whether a node is inside what policies require on one axis."""
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
        every = (n for table in self.atlas.tables.values() for n in table.nodes if n.resource == name)
        return [n for n in every if n.devices is None or count is None or n.devices >= count]

    def wanted(self) -> dict[str, int | None]:
        """The resource names that are placed, with their counts: those that some listed platform offers."""
        found = {}
        for name in self.asked:
            if any(n.resource == name for t in self.atlas.tables.values() for n in t.nodes):
                found[name] = pods.devices(self.pod, name)
        return found

    def platforms_left(self, inside: Callable[[Node], bool], names: dict[str, int | None], terms: list[list[Raw]]) -> set[str]:
        """Platforms where every name has a node that the terms select and ``inside`` keeps."""
        left = []
        for name, count in names.items():
            nodes = [n for n in self.offers(name, count) if inside(n)]
            left.append({n.platform for n in nodes if any(self.atlas.lands(n, t) for t in terms)})
        return set.intersection(*left) if left else set()

    def in_require(self, node: Node) -> bool:
        return all(self.required(node, axis) for axis in AXES)

    def placement(self) -> set[str]:
        names = self.now = self.wanted()
        if self.row.affinity == "no":
            return self.known_node() | (self.annotated(set()) if self.request.phase == "mutate" else set())
        if not names:
            return self.annotated(set()) if self.request.phase == "mutate" else set()
        out = set()
        possible = self.platforms_left(lambda n: True, names, self.terms)
        left = self.platforms_left(self.in_require, names, self.terms)
        if possible and not left:
            out.add(PLACEMENT)
        elif self.request.phase == "validate" and self.row.affinity == "write" and self.reference.placed and possible:
            out |= self.outside(names)
        if self.request.phase == "mutate":
            out |= self.annotated(out)
        return out

    def known_node(self) -> set[str]:
        """A known node whose labels fit only offers outside what is required."""
        name = self.pod["spec"].get("nodeName") or pods.pinned(self.pod)
        labels = self.cluster.nodes.get(name or "")
        if labels is None:
            return set()
        carried = []
        for table in self.atlas.tables.values():
            if not set(labels) & set(table.platform.labels):
                continue
            said = [{"key": key, "operator": "In", "values": [value]} for key, value in labels.items() if key in table.keys]
            demanded = self.atlas.demanded([{"key": k, "operator": "In", "values": [v]} for k, v in labels.items()])
            for node in table.nodes:
                there = node.only_in is None or node.only_in & demanded
                if node.resource in self.asked and there and all(fits(node, e, self.atlas) for e in said):
                    carried.append(node)
        return {"BERTH-124"} if carried and not any(self.in_require(n) for n in carried) else set()

    def outside(self, names: dict[str, int | None]) -> set[str]:
        """What the stored terms still select outside what is required, on an axis that could be written there."""
        alive = self.platforms_left(lambda n: True, names, self.terms)
        for axis in AXES:
            for platform in alive:
                if self.say(platform, axis, lambda n, a=axis: self.required(n, a), names) == "no":
                    continue
                for name, count in names.items():
                    for node in self.offers(name, count):
                        if node.platform == platform and not self.required(node, axis) and any(self.atlas.lands(node, t) for t in self.terms):
                            return {"BERTH-123"}
        return set()

    def say(self, platform: str, axis: str, inside: Callable[[Node], bool], names: Iterable[str]) -> str:
        """Whether an axis can be said on a platform: ``all``, ``part`` or ``no``."""
        nodes = [n for n in self.atlas.tables[platform].nodes if n.resource in names]
        return can_say(self.atlas, platform, axis, nodes, [n for n in nodes if inside(n)])

    # -- what authors and defaults choose --------------------------------------------------------------------------------

    def keys(self, axis: str) -> set[str]:
        """Label keys that speak of an axis, on the platforms in use."""
        out: set[str] = set()
        for table in self.atlas.tables.values():
            platform = table.platform
            scheme = self.catalog.schemes[platform.sharing]
            if axis == "machine":
                out |= {*platform.labels, *platform.after_boot}
            elif axis == "capacity":
                out |= {*platform.capacity_keys, *(k for labels in platform.capacity.values() for k in labels)}
            elif axis == "sharing":
                out |= {k for v in scheme.variants for k in v.labels} | ({scheme.slice_key} if scheme.slice_key else set())
        return out | ({k for t in self.atlas.templates.values() for k, _ in t.labels} if axis == "template" else set())

    def silent(self, axis: str) -> bool:
        return not any(e["key"] in self.keys(axis) for term in self.terms for e in term)

    def speaker(self, take: Callable[[Policy], Any]) -> Any:
        """What the narrowest scope that speaks says, None where it is silent or does not agree with itself."""
        for scope in ([p for p in self.policies if p.namespace is not None], [p for p in self.policies if p.namespace is None]):
            said = [w for p in scope if (w := take(p)) is not None]
            if said:
                return said[0] if all(w == said[0] for w in said) else None
        return None

    def annotated(self, before: set[str]) -> set[str]:
        """Templates and slices, defaults last; refusals of what the author names and cannot have."""
        codes = self.choose_template(bool(before))
        if not before:
            codes |= self.choose_slice()
            self.choose_rest()
        return codes

    def left(self, more: Callable[[Node], bool] = lambda n: True, terms: list[list[Raw]] | None = None, names: dict[str, int | None] | None = None) -> set[str]:
        def inside(node: Node) -> bool:
            return self.in_require(node) and all(chosen(node) for chosen in self.chosen) and more(node)

        return self.platforms_left(inside, self.now if names is None else names, self.terms if terms is None else terms)

    def choose_template(self, refused: bool) -> set[str]:
        allowed = {n for p in self.policies if p.namespace is None for n in p.allow.node_templates}
        said = self.annotations.get("berth.dev/node-template")
        if said is not None:
            if said not in self.atlas.templates or said not in allowed:
                return {"BERTH-152"}
            if self.row.affinity != "write" or refused or not self.left():
                return {"BERTH-152"} if self.row.affinity == "write" and refused else set()
            return set() if self.take_template(said) else {"BERTH-152"}
        if refused or self.row.affinity != "write" or not self.silent("template"):
            return set()
        wish = self.speaker(lambda p: p.default.node_template)
        own = any(p.namespace is not None and p.default.node_template for p in self.policies)
        if wish is not None and not (own and wish not in allowed) and self.left():
            self.take_template(wish)
        return set()

    def take_template(self, name: str) -> bool:
        labels = [{"key": k, "operator": "In", "values": [v]} for k, v in self.atlas.templates[name].labels]
        terms = [[*t, *labels] for t in self.terms]
        if self.now and not self.left(terms=terms):
            return False
        self.terms, self.out.template = terms, name
        return True

    def choose_slice(self) -> set[str]:
        said = self.annotations.get("berth.dev/mig-slice")
        gb = int(said[:-2]) if said is not None and said.endswith("gb") and said[:-2].isdigit() else None
        usable = None
        if gb is None:
            wish = self.speaker(lambda p: p.default.mig)
            if said is not None or wish is None or not self.silent("sharing"):
                return set()
            gb, usable = wish.slice_gb, wish.usable_mib
        failed = {"BERTH-153"} if said is not None and self.row.affinity == "write" else set()
        whole = [c for c in pods.containers(self.pod) if c.asks("nvidia.com/gpu")]
        if not self.row.rename or self.row.affinity != "write" or not whole or any(pods.number(c.amount("nvidia.com/gpu")) != 1 for c in whole):
            return set()
        if not self.left():
            return failed if self.now else set()
        profiles = [(gpu, p) for gpu in self.catalog.gpus for p in gpu.mig if p.attribute is None]
        fitting = [(gpu, p) for gpu, p in profiles if p.memory_gb == gb or (usable is not None and p.usable_mib is not None and p.usable_mib >= usable)]
        order = sorted({(p.compute, p.memory_gb, p.name) for _, p in fitting} if usable is None else {(p.memory_gb, p.compute, p.name) for _, p in fitting})
        for _, _, profile in order:
            models = {gpu.model for gpu, p in fitting if p.name == profile} if usable is not None else None
            if self.take_slice(profile, models):
                return set()
        return failed

    def take_slice(self, profile: str, models: set[str] | None) -> bool:
        spoken = profile.replace("+", ".")
        resource = next((n.resource for t in self.atlas.tables.values() for n in t.nodes if n.profile == profile and n.sharing == "MIG"), None)
        if resource is None:
            return False
        names = {k: v for k, v in self.now.items() if k != "nvidia.com/gpu"} | {resource: self.now.get("nvidia.com/gpu")}

        def inside(node: Node) -> bool:
            if node.resource != resource:
                return True
            return node.profile == profile and (models is None or (node.gpu is not None and node.gpu.model in models))

        if not self.left(more=inside, names=names):
            return False
        self.now, self.out.slice, self.slice_resource = names, spoken, resource
        self.chosen.append(inside)
        return True

    def choose_rest(self) -> None:
        if self.row.affinity != "write" or not self.now:
            return
        machine = self.speaker(lambda p: None if p.default.machine == Machine() else p.default.machine)
        if machine is not None and self.silent("machine"):
            self.keep("machine", lambda n: in_machine(n, machine, self.catalog))
        wish = self.speaker(lambda p: (p.default.capacity, p.default.long_runs) if p.default.capacity or p.default.long_runs else None)
        if wish is not None and self.silent("capacity"):
            wanted = wish[1].capacity if self.is_long(wish[1]) else wish[0]
            if wanted and self.keep("capacity", lambda n: in_capacity(n, wanted)):
                self.named_capacity = True

    def keep(self, axis: str, inside: Callable[[Node], bool]) -> bool:
        if not self.left() or not self.left(more=inside):
            return False
        self.chosen.append(inside)
        self.axes.append((axis, inside))
        return True

    # -- edits -----------------------------------------------------------------------------------------------------------

    def edit(self) -> None:
        self.add_tolerations()
        self.raise_grace()
        self.mark()
        self.set_resources()
        if self.row.affinity == "write" and self.reference.placed:
            self.place()

    def place(self) -> None:
        """Where the pod may land in the end: never outside, and everywhere inside that can be said."""
        alive = self.left()
        self.out.counts = dict(self.now)
        everywhere = {p for p in self.atlas.tables}
        for name, count in self.now.items():
            here = [n for n in self.offers(name, count) if any(self.atlas.lands(n, t) for t in self.terms)]
            most, least = set(here), set(here)
            for axis in AXES:
                for platform in everywhere:
                    how = self.say(platform, axis, lambda n, a=axis: self.on_axis(n, a), self.now)
                    out = {n for n in here if n.platform == platform and not self.on_axis(n, axis)}
                    least -= out if how == "all" or alive else set()
                    most -= out if how != "no" else set()
                    if how == "part":
                        least -= {n for n in here if n.platform == platform}
            if alive:
                most = {n for n in most if n.platform in alive}
            self.out.at_most[name] = most
            self.out.inside[name] = least & most

    def on_axis(self, node: Node, axis: str) -> bool:
        return self.required(node, axis) and all(inside(node) for a, inside in self.axes if a == axis)

    def vendors(self) -> set[str]:
        out = {r.vendor for r in self.asked.values() if r.kind != "dra"}
        classes = [n.partition("/")[2] for n, r in self.asked.items() if r.kind == "dra"]
        for claim in self.pod["spec"].get("resourceClaims") or ():
            one = {**self.pod, "spec": {"resourceClaims": [claim]}}
            kind = "ResourceClaimTemplate" if claim.get("resourceClaimTemplateName") else "ResourceClaim"
            name = claim.get("resourceClaimTemplateName") or claim.get("resourceClaimName")
            classes += [c for c, _ in self.cluster.claims.get((kind, self.request.namespace, name), ())]
            assert one
        out |= {v for c in classes if (v := pods.vendor_of_class(c, self.catalog, self.cluster))}
        fraction = "gpu-fraction" in self.annotations or "gpu-memory" in self.annotations
        return out | ({"nvidia"} if fraction and not self.asked else set())

    def add_tolerations(self) -> None:
        vendors = self.vendors()
        if not self.row.tolerations or (self.row.driver_only and not vendors):
            return
        platforms = set(self.atlas.tables) if self.reference.placed else None
        wanted: list[Raw] = []
        if any(p.default.accelerator_taints for p in self.policies):
            for entry in self.catalog.taints:
                if entry.vendor in vendors and (not entry.platforms or platforms is None or platforms & set(entry.platforms)):
                    wanted.append(toleration(entry.taint.key, entry.taint.value or None, entry.taint.effect))
        if self.out.template is not None:
            for taint in self.atlas.templates[self.out.template].taints:
                wanted.append(toleration(taint.key, taint.value, taint.effect))
        granted = [t for p in self.policies if p.namespace is None for t in p.allow.tolerations]
        for policy in self.policies:
            for pattern in policy.default.tolerate:
                if policy.namespace is None or any(grants(g, pattern) for g in granted):
                    wanted.append(toleration(pattern.key, pattern.value, pattern.effect))
        if self.capacity_named() and self.spot_platforms():
            for entry in self.catalog.spot_taints:
                if not entry.platforms or self.spot_platforms() & set(entry.platforms):
                    wanted.append(toleration(entry.taint.key, entry.taint.value or None, entry.taint.effect))
        standing = list(self.pod["spec"].get("tolerations") or ())
        forbidden = [t for p in self.policies for t in p.require.forbid_tolerations]
        for one in wanted:
            never = any(fnmatchcase(one["key"], glob) for glob in self.catalog.never_tolerate)
            if not never and not any(tolerates(one, f) for f in forbidden) and not any(covers(t, one) for t in standing):
                standing.append(one)
                self.out.tolerations.add((one["key"], one["operator"], one.get("value"), one.get("effect")))

    def capacity_named(self) -> bool:
        if self.named_capacity or not self.silent("capacity"):
            return True
        if self.out.template is not None and self.atlas.templates[self.out.template].capacity:
            return True
        return any(p.require.capacity or self.is_long(p.require.long_runs) for p in self.policies)

    def spot_platforms(self) -> set[str]:
        """Platforms where what is left holds spot."""
        if not self.now:
            return set()
        return {p for p in self.left() if self.left(more=lambda n, p=p: n.platform == p and n.capacity == "spot")}

    def raise_grace(self) -> None:
        wishes = [p.default.grace for p in self.acting(self.row.grace) if p.default.grace is not None]
        opted = "grace" in [o.strip() for o in self.annotations.get("berth.dev/opt-out", "").split(",")]
        if not wishes or opted:
            return
        limits = [p.require.grace_max for p in self.policies if p.require.grace_max is not None]
        pools = [self.cluster.nodepool_grace.get(n) for n in self.nodepools()]
        seconds = min([max(wishes), *limits, *(p for p in pools if p is not None)])
        former = self.pod["spec"].get("terminationGracePeriodSeconds", 30)
        if seconds <= former:
            return
        self.out.grace = seconds
        probes = [c.raw[p] for c in pods.containers(self.pod) for p in ("livenessProbe", "startupProbe") if p in c.raw]
        self.out.probes = sum("terminationGracePeriodSeconds" not in p for p in probes)

    def nodepools(self) -> set[str]:
        """NodePools that the pod may land on, where its terms name them; any otherwise."""
        named = []
        for term in self.terms:
            values = [set(e["values"]) for e in term if e["key"] == "karpenter.sh/nodepool" and e["operator"] == "In"]
            named.append(set.intersection(*values) if values else set(self.cluster.nodepool_grace))
        return set().union(*named)

    def acting(self, calm: str) -> list[Policy]:
        if calm == "named":
            return [p for p in self.policies if p.match.workloads]
        return self.policies if calm == "yes" else []

    def mark(self) -> None:
        wishes = [FOREVER if p.default.protect_for == "Always" else p.default.protect_for for p in self.acting(self.row.annotations)]
        wanted = [w for w in wishes if w is not None]
        if not wanted:
            return
        limit = self.least(lambda p: p.require.protection_max)
        for protection in self.catalog.protections:
            here = [t.platform for t in self.atlas.tables.values() if not protection.platforms or t.platform.name in protection.platforms]
            if not here or protection.key in pods.metadata(self.pod, protection.where) or limit is not None:
                continue
            self.out.marks[protection.key] = protection.value

    def set_resources(self) -> None:
        repairs = self.row.repair and any(p.default.repair for p in self.policies)
        for field_name in ("initContainers", "containers"):
            for index, raw in enumerate(self.pod["spec"].get(field_name) or ()):
                sides = self.sides(pods.Container(raw=raw, init=False, sidecar=False), repairs)
                for side in pods.SIDES:
                    self.out.resources[field_name, index, side] = sides[side]

    def sides(self, container: pods.Container, repairs: bool) -> dict[str, Raw]:
        out = {side: dict(container.side(side)) for side in pods.SIDES}
        renamed = self.slice_resource not in ("", "nvidia.com/gpu")
        for name in container.names():
            if name not in self.asked or not container.asks(name):
                continue
            if renamed and name == "nvidia.com/gpu":
                for side in pods.SIDES:
                    out[side].pop(name, None)
                    out[side][self.slice_resource] = "1"
            elif repairs and not ("limits" in (s for s in pods.SIDES if name in out[s]) and name not in out["requests"] and False):
                if name not in out["limits"]:
                    out["limits"][name] = out["requests"][name]
                elif name not in out["requests"] or pods.number(out["requests"][name]) != pods.number(out["limits"][name]):
                    out["requests"][name] = out["limits"][name]
        return out


def toleration(key: str, value: str | None, effect: str | None) -> Raw:
    out: Raw = {"key": key, "operator": "Exists" if value is None else "Equal"}
    if value is not None:
        out["value"] = value
    return out | ({"effect": effect} if effect else {})


def covers(standing: Raw, wanted: Raw) -> bool:
    """Whether a standing toleration does all that the wanted one would, for ever."""
    if standing.get("tolerationSeconds") is not None or standing.get("effect") not in (None, "", wanted.get("effect")):
        return False
    if standing.get("operator") == "Exists":
        return standing.get("key") in (None, "", wanted["key"])
    same = standing.get("key") == wanted["key"]
    return same and wanted["operator"] == "Equal" and (standing.get("value") or "") == wanted["value"]


def grants(grant: TolerationPattern, pattern: TolerationPattern) -> bool:
    return grant.key == pattern.key and grant.value in (None, pattern.value) and grant.effect in (None, pattern.effect)


def fits(node: Node, expression: Raw, atlas: Atlas) -> bool:
    value = expression["values"][0]
    return any(v in (value, "*") or (v == "?" and value not in atlas.known(expression["key"])) for v in node.labels.get(expression["key"], (None,)))


def tolerates(toleration: Raw, taint: TolerationPattern) -> bool:
    """Whether a toleration tolerates some taint of the pattern, None being any."""
    if toleration.get("effect") and taint.effect and toleration["effect"] != taint.effect:
        return False
    key = toleration.get("key") or ""
    if toleration.get("operator") == "Exists":
        return key in ("", taint.key)
    return key == taint.key and taint.value in (None, toleration.get("value") or "")
