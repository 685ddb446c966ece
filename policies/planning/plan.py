"""The plan for a pod: its actor, the policies' requirements, the defaults that apply, and where it may be
placed.

MIG slice, model, memory, sharing, capacity and template are decided together, as sets of offers. The rules
then only write the plan down or judge the pod against it.

The end of the file has the precedence of defaults on an axis: the pod, then the namespace's own policies, then the cluster's. The first
that specifies something decides. A pod with any requirement on nodes that is not understood counts as specifying every axis: nodes that a
default would choose may be ones that its author's requirement rules out, and such a pod would stay Pending for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from kube.labels import ARCH, HOSTNAME, OS, POSITIVE, REGION, ZONE
from kube.pod import NONE, Pod
from kube.tree import Path
from policies.messages import Phrase, phrase
from policies.offers.constraints import Compiled, CompiledTemplate, Constraint
from policies.offers.merging import NamedValue
from policies.offers.table import Axis
from policies.planning import devices
from policies.planning.devices import RequestedDevice, RequestedDevices
from policies.planning.feasibility import AuthorExpression, Cell, RequiredTerm, Space, Wanted, read_cells, selects_template, terms_of
from policies.planning.queues import DefaultQueue, joining
from policies.planning.requirements import Demands, MergedSettings, deadline, demands
from policies.pods import actors
from policies.pods import annotations as author
from policies.pods.actors import Actor, actor_of, workloads_of
from policies.pods.annotations import Author, is_long
from policies.policy import Policy
from policies.request import Request
from policies.state.snapshot import NamespaceFacts, Snapshot
from policies.verdict import Field, Remark, Violation

T = TypeVar("T")
PLAIN = frozenset({ZONE, REGION, OS, ARCH, HOSTNAME})
"""Labels that are unrelated to a node's purpose (older keys are read as these): an author who names a zone has not chosen a machine."""


class ReviewedPod(NamedTuple):
    """One pod under review: its devices, its actor, where it may be placed, and the policies that may
    match it. Read once, whatever policies are then tried."""

    request: Request
    pod: Pod
    devices: RequestedDevices
    actor: Actor
    author: Author
    terms: tuple[RequiredTerm, ...]
    space: Space
    """The space without regard to policies."""
    may_match: tuple[Compiled, ...]
    """The policies of the namespace whose ``match`` may hold for the pod: ``require`` is judged by these."""
    matches: frozenset[Compiled]
    """The policies whose ``match`` certainly holds: their defaults apply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenSlice:
    """The MIG profile that was chosen."""

    profile: str
    old: str
    """The resource name of the whole GPU."""
    resource: str
    """The name to ask for instead; equal to ``old`` if the slice is chosen by label."""
    policies: tuple[str, ...]


_NOTHING: Mapping[Axis, tuple[Constraint, ...]] = MappingProxyType({})


class Plan(NamedTuple):
    """Everything the rules need, made once per pod and policy set. A default is tried on a copy, which is
    then used or dropped. It is a tuple because ``dataclasses.replace`` takes six times as long, and this
    runs in every review."""

    pod: Pod
    facts: NamespaceFacts
    snapshot: Snapshot
    actor: Actor
    policies: tuple[Compiled, ...]
    """The policies that apply to this pod, sorted by id."""
    devices: RequestedDevices
    asked: tuple[RequestedDevice, ...]
    """``devices.asked``: the devices asked for by resource name."""
    vendors: frozenset[str]
    """``devices.vendors``: by resource name, or by a readable claim's driver."""
    author: Author
    settings: MergedSettings
    demands: Demands
    constraints: tuple[Constraint, ...]
    """``demands.constraints``: those of every ``require``."""
    required: int
    """``demands.required``: the rows of ``require`` alone."""
    terms: tuple[RequiredTerm, ...]
    """The required terms that select something; one without index if the pod has none."""
    keys: frozenset[str]
    """The node labels that these terms constrain."""
    placeable: bool
    """True if the nodes of all that is asked for by resource name are known, so that a default may choose
    among them."""
    writes: bool
    """True if required node affinity is written into the pod."""
    space: Space
    inside: int
    """R: the rows of ``require`` and of the defaults that were chosen."""
    chosen: tuple[Constraint, ...] = ()
    """The defaults that narrowed R."""
    chosen_on: Mapping[Axis, tuple[Constraint, ...]] = _NOTHING
    """By axis, if any: the constraints of ``chosen``, then those of the chosen template."""
    chosen_key: tuple[tuple[Axis, int, tuple[str, ...]], ...] = ()
    """The axis, rows and policies of each: a part of the key of what is rendered once per set of policies."""
    unread: AuthorExpression | None = None
    """A requirement of the author's on nodes that is not understood: no default chooses among nodes then."""
    template: CompiledTemplate | None = None
    template_by: tuple[str, ...] = ()
    slice: ChosenSlice | None = None
    spot: tuple[str, ...] = ()
    """The policies that account for a named capacity, if what is left includes spot."""
    remarks: tuple[Remark, ...] = ()
    """Remarks about defaults, in order."""
    violations: tuple[Violation, ...] = ()
    """Violations about the author's annotations, found while choosing."""
    joined: DefaultQueue | None = None
    """What ``default.queue`` does, on mutate."""

    def on_axis(self, axis: Axis) -> list[Constraint]:
        """Return every constraint of R on one axis: the required ones, then the chosen ones."""
        return [*self.demands.cluster[axis], *self.demands.own[axis], *self.chosen_on.get(axis, ())]

    def narrowed(self, constraints: Sequence[Constraint], inside: int) -> Plan:
        """Return the plan with these defaults, of which ``inside`` is left."""
        chosen = (*self.chosen, *constraints)
        by_axis, key = _grouped(chosen, self.template, self.template_by)
        return self._replace(inside=inside, chosen=chosen, chosen_on=by_axis, chosen_key=key)

    def on_template(self, template: CompiledTemplate, names: tuple[str, ...]) -> Plan:
        """Return the plan with this node template, which the policies of these names asked for or granted."""
        by_axis, key = _grouped(self.chosen, template, names)
        return self._replace(template=template, template_by=names, chosen_on=by_axis, chosen_key=key)

    def saying(self, code: str, found: Phrase, rule: str, policies: Sequence[str] = (), path: Path = (), on: Sequence[Field] = ()) -> Plan:
        """Return the plan with one more remark, about a default. ``path``: the field of the pod; ``on``:
        those of policies."""
        remark = Remark(code=code, found=found, rule=rule, policies=tuple(policies), path=path, fields=tuple(on))
        return self._replace(remarks=(*self.remarks, remark))

    def denying(self, violation: Violation) -> Plan:
        """Return the plan with one more violation, about an annotation of the author's."""
        return self._replace(violations=(*self.violations, violation))


def _grouped(
    chosen: Sequence[Constraint], template: CompiledTemplate | None, names: tuple[str, ...]
) -> tuple[dict[Axis, tuple[Constraint, ...]], tuple[tuple[Axis, int, tuple[str, ...]], ...]]:
    """Return ``Plan.chosen_on`` and ``Plan.chosen_key``."""
    of_template = () if template is None else [replace(c, by=names) for c in template.constraints]
    by_axis: dict[Axis, tuple[Constraint, ...]] = {}
    for constraint in (*chosen, *of_template):
        by_axis[constraint.axis] = (*by_axis.get(constraint.axis, ()), constraint)
    return by_axis, tuple([(axis, c.rows, c.by) for axis, found in by_axis.items() for c in found])


def review_pod(request: Request, facts: NamespaceFacts, pod: Pod) -> ReviewedPod:
    """Return the pod as read, with the policies whose ``match`` may hold for it and whose ``exclude`` does
    not."""
    snapshot = facts.snapshot
    found, workloads = devices.read_devices(pod, facts, final=request.phase == "validate"), workloads_of(pod, snapshot.catalog)
    units, names = found.units, {w.name for w in workloads}
    may_match, matches = [], []
    for compiled in facts.policies:
        gpus = compiled.policy.match.gpus
        if request.user in compiled.policy.exclude_users or not _chooses(compiled.policy, pod, names):
            continue
        if gpus is None or units.possibly(gpus.min, gpus.max):
            may_match.append(compiled)
            if gpus is None or units.certainly(gpus.min, gpus.max):
                matches.append(compiled)
    terms = terms_of(pod, snapshot.catalog.label_aliases)
    return ReviewedPod(
        request=request,
        pod=pod,
        devices=found,
        actor=actor_of(request, pod, snapshot.catalog, snapshot.queues, asked=bool(found.asked), workloads=workloads),
        author=author.read_author_settings(pod, snapshot.catalog),
        terms=terms,
        space=read_cells(snapshot, terms, _placed(found, snapshot)),
        may_match=tuple(may_match),
        matches=frozenset(matches),
    )


def _placed(found: RequestedDevices, snapshot: Snapshot) -> Wanted:
    """Return the resource names whose nodes the pod may run on, with the least number of devices of each: what it asks for by name, or
    the whole GPUs of which it gets a part by annotation alone (KAI and Run:ai share NVIDIA's)."""
    if not found.asked and found.fraction != NONE:
        whole = snapshot.resource(snapshot.catalog.whole.get("nvidia", ""))
        return {whole.name: found.fraction.least} if whole is not None and snapshot.places(whole) else {}
    return {a.resource.name: a.count.least for a in found.asked if snapshot.places(a.resource)}


def _chooses(policy: Policy, pod: Pod, workloads: set[str]) -> bool:
    """Return whether ``match`` holds, leaving the number of GPUs aside."""
    match = policy.match
    if match.pod_selector is not None and not match.pod_selector.matches(pod.labels):
        return False
    return not match.workloads or not workloads.isdisjoint(match.workloads)


def make_plan(facts: NamespaceFacts, subject: ReviewedPod, policies: tuple[Compiled, ...]) -> Plan:
    """Return the plan for this pod under these policies. Pure; the same for the same input in any order of
    policies."""
    matches = tuple(c for c in policies if c in subject.matches)
    together, wanted = demands(facts.snapshot, policies, matches, subject.author.longest, subject.actor)
    own, is_mutated = subject.author, subject.request.phase == "mutate"
    if is_mutated and subject.pod.deadline is None and (limit := deadline(wanted, own.expected, subject.actor)):
        own = author.ended(own, limit.value)  # as it reads on the next call
        together, wanted = demands(facts.snapshot, policies, matches, own.longest, subject.actor)
    joined = joining(subject.pod, subject.actor, wanted.queues) if is_mutated and wanted.queues.default is not None else None
    actor = subject.actor
    if joined is not None and joined.moves:  # as it reads on the next call
        actor = actors.joined_actor(actor, joined.system.scheduler, facts.snapshot.queues)
    asked_for = subject.space.wanted
    return Plan(
        pod=subject.pod,
        facts=facts,
        snapshot=facts.snapshot,
        actor=actor,
        policies=policies,
        devices=subject.devices,
        asked=subject.devices.asked,
        vendors=subject.devices.vendors,
        author=own,
        settings=wanted,
        demands=together,
        constraints=together.constraints,
        required=together.required,
        terms=subject.terms,
        keys=frozenset([authored.key for term in subject.terms for authored in term.expressions]),
        placeable=bool(asked_for) and all(facts.snapshot.lists(name) for name in asked_for),
        writes=facts.snapshot.placed and actor.affinity == "write",
        space=subject.space,
        inside=together.required,
        violations=subject.author.violations,
        joined=joined,
    )


# --- the precedence of defaults on an axis ------------------------------------------------------------------------------


def unread(plan: Plan) -> AuthorExpression | None:
    """Return the first requirement on nodes that is not understood: a key that no table in force has and
    that is not a label of a node template all of whose labels are required, or a value that no table
    knows. None: everything is understood."""
    snapshot = plan.snapshot
    for term in plan.terms:
        for authored in term.expressions:
            known = authored.key in PLAIN or any(authored.key in table.values for table in snapshot.tables.values())
            if not known and not _of_a_template(snapshot, term, authored):
                return authored
    return next((authored for cell in plan.space.cells for authored in cell.undecided if authored.key not in PLAIN), None)


def _of_a_template(snapshot: Snapshot, term: RequiredTerm, authored: AuthorExpression) -> bool:
    """Return whether the key is a label of a node template all of whose labels the term requires."""
    return any(
        selects_template(term, template) and any(key in (authored.key, authored.alias) for key, _ in template.template.labels)
        for template in snapshot.templates.values()
    )


def speaks(plan: Plan, keys: frozenset[str]) -> bool:
    """Return whether the pod has a nodeSelector key or required expression on one of these keys."""
    return not keys.isdisjoint(plan.keys)


def speaks_of_sharing(plan: Plan) -> bool:
    """Return whether the pod specifies sharing: by a sharing key, or by a product label that only shared
    or sliced GPUs carry (``...-MIG-1g.10gb``)."""
    if speaks(plan, plan.snapshot.vocabulary.sharing) or any(cell.cut is not None for cell in plan.space.cells if cell.renamed):
        return True
    return any(_shared_alone(cell, name) for cell in plan.space.cells for name in plan.space.wanted if cell.table.platform.cloud is None)


def _shared_alone(cell: Cell, name: str) -> bool:
    """Return whether the labels that the term names leave devices of this name, and none that is
    exclusive."""
    table = cell.table
    rows = table.by_resource.get(name, 0)
    for authored in cell.term.expressions:
        if authored.key in table.platform.labels and authored.operator in POSITIVE:
            rows &= table.select(authored.key, authored.operator, authored.values)[0]
    return bool(rows) and not rows & table.by_sharing.get("Exclusive", 0)


def spoken(
    plan: Plan,
    axis: str,
    value: Callable[[Compiled], T | None],
    alike: Callable[[T], object] | None = None,
    named: Callable[[T, tuple[str, ...]], T] | None = None,
) -> NamedValue[T] | None:
    """Return the default of the first scope that has one; None if no policy has a default on this axis.
    ``alike``: the value to compare by; ``named``: the value with the policies that specify it. Computed
    once per set of policies: of the pod it depends only on how long it runs."""
    demands = plan.demands
    key = (axis, *[is_long(plan.author.seconds, runs) for runs in demands.default_runs])
    if key not in demands.spoken:
        by_scope = ([(c.id, found) for c in scope if (found := value(c)) is not None] for scope in demands.scopes)
        given = next(filter(None, by_scope), None)
        demands.spoken[key] = None if given is None else _together(given, alike, named)
    known: NamedValue[T] | None = demands.spoken[key]
    return known


def _together(
    given: Sequence[tuple[str, T]], alike: Callable[[T], object] | None, named: Callable[[T, tuple[str, ...]], T] | None
) -> NamedValue[T]:
    names, first = tuple(name for name, _ in given), given[0][1]
    if len({value if alike is None else alike(value) for _, value in given}) > 1:
        return NamedValue(None, names)
    return NamedValue(first if named is None else named(first, names), names)


def left_out(plan: Plan, axis: str, value: Callable[[Compiled], object | None]) -> Plan:
    """Return the plan of an actor for whom no default chooses nodes, with a remark if one would have."""
    names = [c.id for scope in plan.demands.scopes for c in scope if value(c) is not None]
    if not names:
        return plan
    found = phrase("actor", axis=axis, actor=plan.actor.names)
    return plan.saying("BERTH-204", found, "node_affinity", names, on=[(name, f"spec.default.{axis}") for name in names])


def neither_acts(plan: Plan, axis: str, names: Sequence[str]) -> Plan:
    """Return the plan with a remark that policies of one scope differ on an axis, so that none of them is
    applied."""
    differing: NamedValue[object] = NamedValue(None, tuple(names))
    return plan._replace(remarks=(*plan.remarks, differing.differs(axis, "node_affinity")))
