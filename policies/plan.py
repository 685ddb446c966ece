"""The one decision about a pod: who it is, what policies demand of it, which defaults act, where it may go.

MIG slice, model, memory, sharing, capacity and template are decided together, as sets of offers; the rules then only
write the plan down or judge the pod against it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from policies import author, devices
from policies.actor import Actor, actor_of, workloads_of
from policies.author import Author
from policies.compiled import Compiled, CompiledTemplate, Constraint
from policies.demands import Demands, demands
from policies.devices import Asked, Devices
from policies.offers import Axis
from policies.placement import Said, Space, Term, read, terms_of
from policies.pod import Pod
from policies.policy import Policy
from policies.request import Request
from policies.snapshot import Facts, Snapshot
from policies.verdict import Remark, Violation
from policies.wishes import Wishes


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One pod under review: what it asks for, and which policies it may be under. Read once, whatever policies are then tried."""

    request: Request
    pod: Pod
    devices: Devices
    possible: tuple[Compiled, ...]
    """the policies of the namespace whose ``match`` may hold for it: ``require`` is judged by these"""
    certain: frozenset[Compiled]
    """those of which it certainly holds: their defaults act"""


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
    devices: Devices
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
    unread: Said | None = None
    """what the author says of nodes that is not understood: no default chooses among them then"""
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
    def asked(self) -> tuple[Asked, ...]:
        """By resource name."""
        return self.devices.asked

    @property
    def vendors(self) -> frozenset[str]:
        """Of the devices asked for, by resource name or by a readable claim's driver."""
        return self.devices.vendors

    @property
    def placeable(self) -> bool:
        """Whether the nodes of all that is asked for by resource name are known, so that a default may choose among them."""
        return bool(self.space.wanted) and all(self.snapshot.lists(name) for name in self.space.wanted)

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


def subject(request: Request, facts: Facts, pod: Pod) -> Subject:
    """The policies whose ``match`` may hold for this pod and whose ``exclude`` does not."""
    found = devices.read(pod, facts, final=request.phase == "validate")
    units, names = found.units, {w.name for w in workloads_of(pod, facts.snapshot.catalog)}
    chosen = [c for c in facts.policies if request.user not in c.policy.exclude_users and _chooses(c.policy, pod, names)]
    possible = tuple(c for c in chosen if (gpus := c.policy.match.gpus) is None or units.possibly(gpus.min, gpus.max))
    certain = frozenset(c for c in possible if (gpus := c.policy.match.gpus) is None or units.certainly(gpus.min, gpus.max))
    return Subject(request=request, pod=pod, devices=found, possible=possible, certain=certain)


def _chooses(policy: Policy, pod: Pod, workloads: set[str]) -> bool:
    """Everything of ``match`` but the number of GPUs."""
    match = policy.match
    if match.pod_selector is not None and not match.pod_selector.matches(pod.labels):
        return False
    return not match.workloads or not workloads.isdisjoint(match.workloads)


def make(facts: Facts, about: Subject, policies: tuple[Compiled, ...]) -> Plan:
    """The plan for this pod under these policies. Pure; the same for the same input in any order of policies."""
    snapshot, pod, asked = facts.snapshot, about.pod, about.devices.asked
    actor = actor_of(about.request, pod, snapshot.catalog, snapshot.queues, bool(asked))
    names = {a.resource.name: a for a in asked if snapshot.places(a.resource)}
    by_author = author.read(pod, snapshot.catalog)
    certain = tuple(c for c in policies if c in about.certain)
    together, wanted = demands(snapshot, policies, certain, by_author.longest, actor)
    terms = terms_of(pod, snapshot.catalog.label_aliases)
    return Plan(
        pod=pod,
        facts=facts,
        actor=actor,
        policies=policies,
        devices=about.devices,
        author=by_author,
        wishes=wanted,
        demands=together,
        terms=terms,
        space=Space(read(snapshot, terms), {name: a.count.least for name, a in names.items()}),
        inside=together.required,
        violations=list(by_author.violations),
    )
