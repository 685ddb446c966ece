"""The reference: what the design says should happen to a pod, worked out the slow way, to hold the engine against.

It shares with the engine only the typed inputs (policies, catalog, cluster facts, the request) and quantities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from policies.catalog import Catalog
from policies.cluster_facts import ClusterFacts, duration_seconds
from policies.policy import InNotIn, LongRuns, Machine, Policy, PolicySet, TolerationPattern
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
    undecided: bool = False
    """whether every term that is left names a value that nobody knows: then BERTH-125 may be the answer"""
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

        self.by_resource: dict[str, list[Node]] = {}
        for node in (n for table in self.atlas.tables.values() for n in table.nodes):
            self.by_resource.setdefault(node.resource, []).append(node)

    def evaluate(self, request: Request) -> Expected:
        """What should happen. The request's pod is well formed."""
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
        self.named_capacity: list[Policy] = []
        self.template_by: list[Policy] = []
        self.slice_resource = ""
        self.remembered: dict[tuple[Node, str], bool] = {}

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
        every = self.reference.by_resource.get(name, [])
        return [n for n in every if n.devices is None or count is None or n.devices >= count]

    def wanted(self) -> dict[str, int | None]:
        """The resource names that are placed, with their counts: those that some listed platform offers."""
        found = {}
        for name in self.asked:
            if name in self.reference.by_resource:
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

    def placement(self) -> set[str]:
        names = self.now = self.wanted()
        mutating = self.request.phase == "mutate"
        codes = self.chosen_by_all() if mutating else set()
        if self.row.affinity == "no":
            return codes | self.known_node()
        if not names:
            return codes
        possible = self.platforms_left(lambda n: True, names, terms_of(self.pod))
        left = self.platforms_left(self.in_require, self.now, terms_of(self.pod) if self.out.template is None else self.terms)
        if possible and not left:
            codes.add(PLACEMENT)
        else:
            self.out.undecided = self.all_undecided()
        if PLACEMENT not in codes and not mutating and self.row.affinity == "write" and self.reference.placed and possible:
            codes |= self.outside(names)
        return codes

    def all_undecided(self) -> bool:
        live = [t for t in self.terms if self.platforms_left(lambda n: True, self.now, [t])]
        return all(any(self.atlas.undecided(table, e) for table in self.atlas.tables.values() for e in t) for t in live)

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
            for node in table.nodes:
                if node.resource in self.asked and all(fits(node, e, self.atlas) for e in said):
                    carried.append(node)
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

    # -- what authors and defaults choose --------------------------------------------------------------------------------

    def keys(self, axis: str) -> set[str]:
        """Label keys that speak of an axis, on any platform."""
        if axis == "template":
            return {k for t in self.atlas.templates.values() for k, _ in t.labels}
        if axis == "sharing":
            return {k for s in self.catalog.schemes.values() for v in s.variants for k in v.labels}
        platforms = self.catalog.platforms.values()
        if axis == "capacity":
            return {k for p in platforms for k in p.capacity_keys}
        return {k for p in platforms for k in (*p.labels, *p.after_boot)} - self.keys("capacity")

    def silent(self, axis: str) -> bool:
        return not any(e["key"] in self.keys(axis) for term in self.terms for e in term)

    def speaker(self, take: Callable[[Policy], Any]) -> Any:
        """What the narrowest scope that speaks says, None where it is silent or does not agree with itself."""
        for scope in ([p for p in self.policies if p.namespace is not None], [p for p in self.policies if p.namespace is None]):
            said = [w for p in scope if (w := take(p)) is not None]
            if said:
                return said[0] if all(w == said[0] for w in said) else None
        return None

    def chosen_by_all(self) -> set[str]:
        """Templates and slices, then the other defaults; refusals of what the author names and cannot have."""
        codes = self.choose_template() | self.choose_slice()
        self.choose_rest()
        return codes

    def left(self, more: Callable[[Node], bool] = lambda n: True, terms: list[list[Raw]] | None = None, names: dict[str, int | None] | None = None) -> set[str]:
        def inside(node: Node) -> bool:
            return self.in_require(node) and all(chosen(node) for chosen in self.chosen) and more(node)

        return self.platforms_left(inside, self.now if names is None else names, self.terms if terms is None else terms)

    def choose_template(self) -> set[str]:
        allowed = {n for p in self.policies if p.namespace is None for n in p.allow.node_templates}
        said = self.annotations.get("berth.dev/node-template")
        if said is not None:
            if said not in self.atlas.templates or said not in allowed:
                return {"BERTH-152"}
            impossible = not self.platforms_left(lambda n: True, self.now, self.terms)
            self.template_by = [p for p in self.policies if said in p.allow.node_templates]
            return set() if self.take_template(said) or impossible else {"BERTH-152"}
        wish = self.speaker(lambda p: p.default.node_template) if self.silent("template") else None
        own = any(p.namespace is not None and p.default.node_template for p in self.policies)
        self.template_by = [p for p in self.policies if p.default.node_template and (p.namespace is not None or not own)]
        if wish is not None and not (own and wish not in allowed):
            self.take_template(wish)
        return set()

    def take_template(self, name: str) -> bool:
        """Nothing left, but a slice would be: taken. Nothing there at all, policies aside: taken, to no effect."""
        if not self.now:
            return False
        before = self.terms
        possible = self.platforms_left(lambda n: True, self.now, before)
        self.terms = [[*t, *({"key": k, "operator": "In", "values": [v]} for k, v in self.atlas.templates[name].labels)] for t in before]
        possible |= self.platforms_left(lambda n: True, self.now, self.terms)
        if possible and not self.left() and not self.slices():
            self.terms = before
            return False
        self.out.template = name
        return True

    def slice_wish(self) -> tuple[int | None, int | None] | None:
        """(nominal GB, usable MiB) of the slice wished for; None: no wish, or not for this pod."""
        said = self.annotations.get("berth.dev/mig-slice")
        kinds = {(r.vendor, r.kind) for r in self.asked.values()}
        if ("nvidia", "gpu") not in kinds or kinds & {("nvidia", "mig"), ("nvidia", "shared")} or not self.silent("sharing") or self.names_shared():
            return None
        if said is not None and said.endswith("gb") and said[:-2].isdigit():
            return int(said[:-2]), None
        wish = self.speaker(lambda p: p.default.mig)
        return None if wish is None else (wish.slice_gb, wish.usable_mib)

    def names_shared(self) -> bool:
        """A product label of sliced or shared GPUs alone also speaks of sharing."""
        for table in self.atlas.tables.values():
            for term in self.terms if table.platform.cloud is None else ():
                products = [e for e in term if e["key"].endswith("gpu.product") and e["operator"] == "In"]
                mine = [n for n in table.nodes if n.sharing == "Exclusive" and self.atlas.lands(n, term)]
                if products and not mine:
                    return True
        return False

    def slices(self, judged: bool = True) -> list[tuple[str, str]]:
        """(profile, resource) of the slices that fit the wish and leave something, best first."""
        wish = self.slice_wish()
        whole = [c for c in pods.containers(self.pod) if c.asks("nvidia.com/gpu")]
        if wish is None or not self.row.rename or any(pods.number(c.amount("nvidia.com/gpu")) != 1 for c in whole):
            return []
        gb, usable = wish
        found = {}
        for table in self.atlas.tables.values():
            for node in table.nodes:
                if node.gpu is None or node.sharing != "MIG" or node.profile is None:
                    continue
                profile = next(p for p in node.gpu.mig if p.name == node.profile)
                enough = usable is not None and profile.usable_mib is not None and profile.usable_mib >= usable
                if profile.attribute is None and (profile.memory_gb == gb or enough):
                    found.setdefault((profile.name, node.resource), profile)
        order = sorted(found.items(), key=lambda f: (f[1].usable_mib or 0 if usable else 0, f[1].compute, f[1].name, f[0][1]))
        return [key for key, _ in order if self.slice_left(*key, judged=judged)]

    def slice_left(self, profile: str, resource: str, judged: bool) -> bool:
        names = {resource if n == "nvidia.com/gpu" else n: c for n, c in self.now.items()}
        inside = self.in_slice(profile, resource)
        return bool(self.left(more=inside, names=names) if judged else self.platforms_left(inside, names, self.terms))

    def in_slice(self, profile: str, resource: str) -> Callable[[Node], bool]:
        return lambda n: (n.resource, n.profile, n.sharing) == (resource, profile, "MIG") and (resource != "nvidia.com/gpu" or self.by_label(n))

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
        said = self.annotations.get("berth.dev/mig-slice")
        return {"BERTH-153"} if said is not None and said[:-2].isdigit() and self.slices(judged=False) else set()

    def choose_rest(self) -> None:
        machine = self.speaker(lambda p: None if p.default.machine == Machine() else as_sets(p.default.machine))
        if machine is not None and self.silent("machine"):
            self.keep("machine", lambda n: in_machine(n, machine, self.catalog))
        wanted = self.speaker(self.capacity_wish)
        if wanted is not None and self.silent("capacity") and self.keep("capacity", lambda n: in_capacity(n, wanted)):
            own = [p for p in self.policies if p.namespace is not None and self.capacity_wish(p)]
            self.named_capacity = own or self.policies

    def capacity_wish(self, policy: Policy) -> frozenset[str] | None:
        """longRuns beats capacity where the run is long."""
        default = policy.default
        return frozenset(default.long_runs.capacity) if default.long_runs and self.is_long(default.long_runs) else frozenset(default.capacity) or None

    def keep(self, axis: str, inside: Callable[[Node], bool]) -> bool:
        if not self.now or (self.left() and not self.left(more=inside)):
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
        possible = self.platforms_left(lambda n: True, self.now, self.terms)
        self.out.counts = dict(self.now)
        selected = self.atlas.selected(self.terms)
        everywhere = {p for p in self.atlas.tables}
        for name, count in self.now.items():
            here = [n for n in self.offers(name, count) if n in selected]
            if self.out.slice is not None:
                here = [n for n in here if self.in_slice(self.out.slice, self.slice_resource)(n)]
            most, least = set(here), set(here)
            for axis in AXES:
                for platform in everywhere:
                    on_axis, how = self.sayable(platform, axis)
                    out = {n for n in here if n.platform == platform and not on_axis(n)}
                    most -= out if how != "no" else set()
                    least -= {n for n in here if n.platform == platform} if how == "part" else out
            if alive:
                dead = possible - alive
                free = {n for n in here if n.platform in dead and self.undecided_there(n)}  # nobody knows what these terms select
                most = {n for n in most if n.platform not in dead} | free
                least = {n for n in least if n.platform in alive and not self.undecided_there(n)}
            if self.slice_resource == "nvidia.com/gpu":
                least = {n for n in least if n.gpu is not None}  # a product that nobody knows can't be named
            self.out.at_most[name] = most
            self.out.inside[name] = least & most

    def sayable(self, platform: str, axis: str) -> tuple[Callable[[Node], bool], str]:
        """All that was chosen on an axis, or what is required alone where no more can be said."""
        how = self.say(platform, axis, lambda n: self.on_axis(n, axis), self.now)
        if how != "no":
            return lambda n: self.on_axis(n, axis), how
        return lambda n: self.required(n, axis), self.say(platform, axis, lambda n: self.required(n, axis), self.now)

    def undecided_there(self, node: Node) -> bool:
        table = self.atlas.tables[node.platform]
        return any(any(self.atlas.undecided(table, e) for e in t) for t in self.terms if self.atlas.lands(node, t))

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
        granted = [t for p in self.policies if p.namespace is None for t in p.allow.tolerations]
        platforms = set(self.atlas.tables) if self.reference.placed else None
        wanted: list[Raw] = []
        if any(p.default.accelerator_taints for p in self.policies):
            for entry in self.catalog.taints:
                if entry.vendor in vendors and (not entry.platforms or platforms is None or platforms & set(entry.platforms)):
                    pattern = TolerationPattern(key=entry.taint.key, value=entry.taint.value or None, effect=entry.taint.effect)
                    asked_by = [p for p in self.policies if p.default.accelerator_taints]
                    if any(p.namespace is None for p in asked_by) or any(grants(g, pattern) for g in granted):
                        wanted.append(toleration(pattern.key, pattern.value, pattern.effect))
        if self.out.template is not None:
            for taint in self.atlas.templates[self.out.template].taints:
                wanted.append(toleration(taint.key, taint.value, taint.effect))
        tolerate = [(pattern, policy) for policy in self.policies for pattern in policy.default.tolerate]
        for pattern, policy in sorted(tolerate, key=lambda t: (t[0].key, t[0].value or "", t[0].effect or "")):
            if policy.namespace is None or any(grants(g, pattern) for g in granted):
                wanted.append(toleration(pattern.key, pattern.value, pattern.effect))
        if self.capacity_named() and self.spot_left():
            for entry in self.catalog.spot_taints:
                pattern = TolerationPattern(key=entry.taint.key, value=entry.taint.value or None, effect=entry.taint.effect)
                if (not entry.platforms or platforms is None or platforms & set(entry.platforms)) and (
                    self.capacity_named(cluster=True) or any(grants(g, pattern) for g in granted)
                ):
                    wanted.append(toleration(pattern.key, pattern.value, pattern.effect))
        standing = list(self.pod["spec"].get("tolerations") or ())
        forbidden = [t for p in self.policies for t in p.require.forbid_tolerations]
        for one in wanted:
            never = any(fnmatchcase(one["key"], glob) for glob in self.catalog.never_tolerate)
            if not never and not any(tolerates(one, f) for f in forbidden) and not any(covers(t, one) for t in standing):
                standing.append(one)
                self.out.tolerations.add((one["key"], one["operator"], one.get("value"), one.get("effect")))

    def capacity_named(self, *, cluster: bool = False) -> bool:
        """By a policy, or by the pod where a policy asks for accelerators' taints. ``cluster``: by one of the cluster's."""
        policies = [p for p in self.policies if p.namespace is None or not cluster]
        if not self.silent("capacity") and any(p.default.accelerator_taints for p in policies):
            return True
        if self.named_capacity and any(self.capacity_wish(p) for p in self.named_capacity if p in policies):
            return True
        if self.out.template is not None and self.atlas.templates[self.out.template].capacity and any(p in policies for p in self.template_by):
            return True
        return any(p.require.capacity or self.is_long(p.require.long_runs) for p in policies)

    def spot_left(self) -> bool:
        """For some name: each is judged by itself."""
        return any(self.left(more=lambda n: n.capacity == "spot", names={name: count}) for name, count in self.now.items())

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
        probes = [c.raw[p] for c in pods.containers(self.pod) for p in ("livenessProbe", "startupProbe") if p in c.raw and former]
        self.out.probes = sum("terminationGracePeriodSeconds" not in p for p in probes)

    def nodepools(self) -> set[str]:
        """The known NodePools that the terms name; all of them where they name none."""
        named = {v for term in self.terms for e in term if e["key"] == "karpenter.sh/nodepool" for v in e.get("values") or ()}
        return named & set(self.cluster.nodepool_grace) or set(self.cluster.nodepool_grace)

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
            here = {t.platform.name for t in self.atlas.tables.values()} & set(protection.platforms)
            if not (here or not protection.platforms or not self.reference.placed) or protection.key in pods.metadata(self.pod, protection.where) or limit is not None:
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
            elif repairs and all(pods.is_count(out[side][name]) for side in pods.SIDES if name in out[side]):
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


def as_sets(machine: Machine) -> Machine:
    """The same fields with sorted lists, so that the order they are written in makes no conflict."""

    def ordered(wanted: InNotIn | None) -> InNotIn | None:
        return None if wanted is None else InNotIn(in_=tuple(sorted(wanted.in_)), not_in=tuple(sorted(wanted.not_in)))

    return replace(
        machine, families=ordered(machine.families), models=ordered(machine.models), instance_families=ordered(machine.instance_families)
    )


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
