"""The one decision about a pod: who it is, what policies demand of it, which defaults act, where it may go.

MIG slice, model, memory, sharing, capacity and template are decided together, as sets of offers; the rules then only
write the plan down or judge the pod against it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from policies import author
from policies.actor import FRACTIONS, Actor, actor_of, workloads_of
from policies.author import Author
from policies.catalog import Resource
from policies.compiled import Compiled, CompiledTemplate, Constraint
from policies.demands import Demands, demands
from policies.offers import Axis
from policies.placement import Space, Term, read, terms_of
from policies.pod import Container, Pod, asks
from policies.policy import Policy
from policies.request import Request
from policies.snapshot import Facts, Snapshot
from policies.verdict import Remark, Violation
from policies.wishes import Wishes


@dataclass(frozen=True, slots=True)
class Asked:
    """One accelerator resource name that the pod asks for."""

    resource: Resource
    count: int | None
    """devices at once; None: a container's amount can't be read"""
    containers: tuple[Container, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """The MIG profile that was chosen."""

    profile: str
    old: str
    """the resource name of the whole GPU"""
    resource: str
    """the name to ask for instead; equal to ``old`` where the slice is chosen by label"""
    policies: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class Plan:
    """Everything the rules need; made once per pod and policy set."""

    pod: Pod
    facts: Facts
    actor: Actor
    policies: tuple[Compiled, ...]
    """that act on this pod, sorted by id"""
    asked: tuple[Asked, ...]
    vendors: tuple[str, ...]
    """of the devices asked for, by resource name or by a readable claim's driver"""
    author: Author
    wishes: Wishes
    demands: Demands
    terms: tuple[Term, ...]
    """required terms that select something; one without index where the pod has none"""
    space: Space
    inside: Mapping[str, int]
    """R: platform -> rows, of ``require`` and the defaults that were chosen"""
    chosen: list[Constraint] = field(default_factory=list)
    """defaults that narrowed R"""
    template: CompiledTemplate | None = None
    template_by: tuple[str, ...] = ()
    slice: Slice | None = None
    spot: tuple[str, ...] = ()
    """who named a capacity, where what is left holds spot"""
    remarks: dict[Remark, None] = field(default_factory=dict)
    """in order, each once"""
    violations: list[Violation] = field(default_factory=list)
    """about the author's annotations, found while choosing"""

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """Of every ``require``."""
        return self.demands.constraints

    @property
    def required(self) -> Mapping[str, int]:
        """The rows of ``require`` alone."""
        return self.demands.required

    def on_axis(self, axis: Axis) -> list[Constraint]:
        """Every constraint of R on one axis: required, then what was chosen."""
        return [*self.demands.cluster[axis], *self.demands.own[axis], *self.chosen_on(axis)]

    def chosen_on(self, axis: Axis) -> list[Constraint]:
        """What was chosen by default, then what the chosen template means."""
        chosen = [c for c in self.chosen if c.axis == axis]
        if self.template is not None:
            chosen += [replace(c, by=self.template_by) for c in self.template.constraints if c.axis == axis]
        return chosen

    @property
    def snapshot(self) -> Snapshot:
        return self.facts.snapshot

    def remark(self, code: str, text: str, rule: str, policies: Sequence[str] = ()) -> None:
        """Say something once."""
        said = Remark(code=code, text=text, rule=rule, policies=tuple(policies))
        self.remarks.setdefault(said)


def accelerators(pod: Pod, snapshot: Snapshot) -> tuple[Asked, ...]:
    """The accelerator resource names that the pod asks for (more than zero of), sorted."""
    containers: dict[str, list[Container]] = {}
    for container in pod.containers:
        for name in container.resource_names:
            if snapshot.catalog.resource(name) is not None and asks(container, name):
                containers.setdefault(name, []).append(container)
    return tuple(Asked(_resource(snapshot, name), pod.devices(name), tuple(containers[name])) for name in sorted(containers))


def _resource(snapshot: Snapshot, name: str) -> Resource:
    resource = snapshot.catalog.resource(name)
    assert resource is not None
    return resource


def claimed(pod: Pod, facts: Facts) -> Iterator[tuple[str, int | None]]:
    """(vendor or "", devices) for each request of each claim; ("", None) where the claim can't be read."""
    cluster, catalog = facts.snapshot.cluster, facts.snapshot.catalog
    for kind, name in pod.claims:
        requests = cluster.claims.get((kind, facts.namespace, name))
        if requests is None:
            yield "", None
        for choices in requests or ():
            device_class, count = choices[0].device_class, choices[0].most
            yield catalog.dra_drivers.get(cluster.driver(device_class), ""), count


def devices(asked: Sequence[Asked], claims: Sequence[tuple[str, int | None]], kinds: Sequence[str]) -> int | None:
    """Devices of these resource kinds in all, claims of a known vendor included; None where one can't be read."""
    counts = [a.count for a in asked if a.resource.kind in kinds]
    counts += [count for vendor, count in claims if vendor or count is None]
    return None if any(c is None for c in counts) else sum(c for c in counts if c is not None)


WHOLE = ("gpu", "dra")
GPUS = ("gpu", "dra", "shared", "mig", "partition")
"""match.gpus counts a slice or replica as one device, so that a MIG rename changes no match (idempotence)"""


def matching(request: Request, facts: Facts, pod: Pod, asked: Sequence[Asked]) -> tuple[Compiled, ...]:
    """The policies of the namespace whose ``match`` holds for this pod and whose ``exclude`` does not."""
    claims = list(claimed(pod, facts))
    count = devices(asked, claims, GPUS)
    names = {w.name for w in workloads_of(pod, facts.snapshot.catalog)}
    return tuple(c for c in facts.policies if request.user not in c.policy.exclude_users and _matches(c.policy, pod, names, count))


def _matches(policy: Policy, pod: Pod, workloads: set[str], count: int | None) -> bool:
    match = policy.match
    if match.pod_selector is not None and not match.pod_selector.matches(pod.labels):
        return False
    if match.workloads and workloads.isdisjoint(match.workloads):
        return False
    return match.gpus is None or _within(count, match.gpus.min, match.gpus.max)


def _within(count: int | None, least: int | None, most: int | None) -> bool:
    return count is not None and (least is None or count >= least) and (most is None or count <= most)


def make(facts: Facts, pod: Pod, policies: tuple[Compiled, ...], asked: tuple[Asked, ...]) -> Plan:
    """The plan for this pod under these policies. Pure; the same for the same input in any order of policies."""
    snapshot = facts.snapshot
    actor = actor_of(pod, snapshot.catalog, snapshot.queues, bool(asked))
    placed = {a.resource.name: a.count for a in asked if any(a.resource.name in t.by_resource for t in snapshot.tables.values())}
    by_author = author.read(pod, snapshot.catalog)
    together, wanted = demands(snapshot, policies, by_author.longest, actor)
    terms = terms_of(pod)
    return Plan(
        pod=pod,
        facts=facts,
        actor=actor,
        policies=policies,
        asked=asked,
        vendors=_vendors(pod, facts, asked),
        author=by_author,
        wishes=wanted,
        demands=together,
        terms=terms,
        space=Space(read(snapshot, terms), placed),
        inside=together.required,
        violations=list(by_author.violations),
    )


def _vendors(pod: Pod, facts: Facts, asked: Sequence[Asked]) -> tuple[str, ...]:
    vendors = {a.resource.vendor for a in asked if a.resource.kind != "dra"}
    vendors |= {_class_vendor(a.resource.name, facts) for a in asked if a.resource.kind == "dra"}
    vendors |= {vendor for vendor, _ in claimed(pod, facts)}
    if not asked and any(name in pod.annotations for name in FRACTIONS):
        vendors.add("nvidia")  # KAI and Run:ai share NVIDIA GPUs alone
    return tuple(sorted(vendors - {""}))


def _class_vendor(name: str, facts: Facts) -> str:
    """The vendor of ``deviceclass.resource.kubernetes.io/<class>`` by the class's driver (KEP-5004)."""
    return facts.snapshot.catalog.dra_drivers.get(facts.snapshot.cluster.driver(name.partition("/")[2]), "")
