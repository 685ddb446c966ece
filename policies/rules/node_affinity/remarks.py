"""Remarks on where a pod may run: labels that its author wrote, nodes that a default chose, and slices that no machine has.

A default is remarked on only if something is written and changes the pod (``docs/laws.md``, law 11: "defaults never harm"):
then the pod specifies it itself, so a second call makes no remark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from catalog import Catalog, Resource
from catalog.nearest import nearest, nearest_slice, of_model
from kube.tree import Path, dotted
from policies.fixes import respell_label
from policies.messages import At, Phrase, cut_text, phrase
from policies.offers.constraints import Constraint, fields, meet, who
from policies.offers.selectors import rank_example, values_among
from policies.offers.table import AXES, Host, Table
from policies.planning.affinity_terms import sayable
from policies.planning.feasibility import AuthorExpression, Cell, list_bracketed
from policies.planning.plan import Plan
from policies.planning.requirement_words import NODE_SELECTOR, author_path, list_constraints, place_of_label
from policies.pods import unlisted_accelerators
from policies.pods.annotations import TEMPLATE
from policies.request import Request
from policies.rules.node_affinity import NAME
from policies.verdict import Remark

PLACE, ENDS = "BERTH-221", "BERTH-247"
_MOST_TEXT = 48
"""characters of what a policy wants, so that what to type stands within the first 200"""
_MOST_SLICES = 5
"""The most slices of one pod for which suggestions are made: finding the nearest takes a millisecond each."""
_MOST_UNKNOWN = 20
"""The most unknown values of one pod that are reported, each with the nearest known one: an answer holds
some twenty warnings."""
_MOST_KNOWN = 20
"""The most values of a key of which some are shown if none is near: names of GPUs, and not the hundreds of
types and products."""


def remark_placement(plan: Plan) -> Iterator[Remark]:
    """Yield all remarks on where the pod may run, but those on edits (``chosen_nodes``)."""
    yield from _unknown_values(plan)
    for found in _missing_slices(plan):
        yield Remark(code="BERTH-217", found=found, rule=NAME)
    for asked in plan.asked:
        name = asked.resource.name
        if unlisted_accelerators.is_unknown(asked.resource):
            yield unlisted_accelerators.unknown(name, NAME, tuple(c.id for c in plan.policies))
        elif plan.constraints and not on_no_machine(plan, asked.resource) and not plan.snapshot.lists(name):
            yield _without_nodes(plan, phrase("unknown model" if plan.snapshot.places(asked.resource) else "not evaluated", name=name))
    if plan.constraints and any("" in claim.vendors for claim in plan.devices.claimed):
        yield _without_nodes(plan, phrase("claim"))
    if plan.space.wanted and plan.space.cells and not plan.space.possible_anywhere():
        yield Remark(code="BERTH-217", found=phrase("nothing"), rule=NAME)
    yield from _unwritten(plan)
    yield from _after_boot(plan)
    if plan.pod.preferred and plan.constraints:
        yield from _preferred(plan)


def _without_nodes(plan: Plan, found: Phrase) -> Remark:
    return Remark(code="BERTH-208", found=found, rule=NAME, policies=who(plan.constraints))


_TEMPLATE: Path = ("metadata", "annotations", TEMPLATE)
"""the annotation by which an author requests nodes; the queue's flavors must then have their labels"""


def _unwritten(plan: Plan) -> Iterator[Remark]:
    """Yield a remark with the constraints that are not written, because a queue's flavors place the pod.

    It is given only once something was chosen, on mutate.
    """
    if plan.actor.affinity != "check" or not plan.space.wanted:
        return
    if constraints := [c for axis in AXES for c in plan.on_axis(axis)]:
        found = phrase("text", actor=plan.actor.names, constraints=tuple(c.text for c in constraints))
        yield Remark(
            code="BERTH-215",
            found=found,
            rule=NAME,
            policies=who(constraints),
            path=_TEMPLATE,
            fields=fields(c for c in constraints if c in plan.constraints),
        )


def _unknown_values(plan: Plan) -> Iterator[Remark]:
    """Yield a remark for every value that no table knows, as far as an answer holds them."""
    undecided = ((cell, authored) for cell in plan.space.cells for authored in cell.undecided)
    for cell, authored in islice(undecided, _MOST_UNKNOWN):
        unknown = _unknown_value(plan, cell, authored)
        value, near = unknown.value("value"), unknown.value("near")
        fixes = respell_label(authored.written, value, near) if isinstance(value, str) and isinstance(near, str) else ()
        fact = _with_machine(plan, cell, authored, unknown)
        yield Remark(code="BERTH-201", found=fact, rule=NAME, path=place_of_label(authored), fixes=fixes)


def _with_machine(plan: Plan, cell: Cell, authored: AuthorExpression, unknown: Phrase) -> Phrase:
    """Return the phrase with, where a machine is new to everybody, by what its nodes will be known to be what is required."""
    platform = cell.table.platform
    if platform.labels.get(authored.key) != "type" or not plan.writes:
        return unknown
    key = next((e.key for e in sayable(plan, cell, "machine").rendering.expressions if e.key in platform.after_boot), None)
    if key is None:
        return unknown
    asked = list_constraints([c for c in plan.constraints if c.axis == "machine"])
    return phrase("held", unknown=unknown, demands=asked, label=key)


def _unknown_value(plan: Plan, cell: Cell, authored: AuthorExpression) -> Phrase:
    """Return the value that no table knows, with the nearest known one: of the vendors asked for, and of
    no other model."""
    value = next(v for v in authored.values if not cell.table.knows(authored.key, v))
    author: dict[str, object] = {"where": author_path(authored), "key": authored.written, "value": value}
    cloud = next((m.cloud for m in plan.snapshot.catalog.machines if m.type is not None and m.type == value), None)
    if cloud is not None and cloud not in {table.platform.cloud for table in plan.snapshot.tables.values()}:
        return phrase("cloud", **author, cloud=cloud, platforms=tuple(plan.snapshot.tables))
    known, codes = _offered_values(plan, authored.key), plan.snapshot.catalog.codes
    near = nearest(value, known, codes)
    if near:
        return phrase("near", **author, near=near)
    shown = of_model(value, known, codes) or sorted(known if len(known) <= _MOST_KNOWN else ())
    return phrase("known", **author, known=list_bracketed(shown, 8)) if shown else phrase("new", **author)


def _offered_values(plan: Plan, key: str) -> frozenset[str]:
    """Return the label values that nodes with devices of the pod's vendors may have, whole and unshared."""
    schemes = plan.snapshot.catalog.schemes.values()
    suffixes = {v.suffix.partition("{profile}")[0] for scheme in schemes for v in scheme.variants} - {""}
    found: set[str] = set()
    for table in plan.snapshot.tables.values():
        rows = table.of_vendors(tuple(plan.space.wanted)) or table.all
        found.update(v for possible, of_value in table.values.get(key, {}).items() if of_value & rows for v in possible if v)
    return frozenset(v for v in found if v != "?" and not v.endswith("*") and not any(suffix in v for suffix in suffixes))


def _preferred(plan: Plan) -> Iterator[Remark]:
    """Yield a warning if no preferred term is inside what is required. Preferred terms are never edited."""
    for table in plan.snapshot.tables.values():
        for term in plan.pod.preferred:
            rows = table.all
            for e in (term.get("preference") or {}).get("matchExpressions") or ():
                key = str(e.get("key", ""))
                key = plan.snapshot.catalog.label_aliases.get(key, key)
                rows &= table.select(key, str(e.get("operator", "")), tuple(str(v) for v in e.get("values") or ()))[0]
            if rows & plan.required:
                return
    yield Remark(code="BERTH-214", found=phrase("text"), rule=NAME)


def _after_boot(plan: Plan) -> Iterator[Remark]:
    """Yield a remark for a label that a platform's nodes get only once they run, so that no node is
    created for it."""
    for cell in plan.space.cells:
        platform = cell.table.platform
        new = any(
            platform.labels.get(authored.key) == "type" for authored in cell.undecided
        )  # of a machine that nobody knows it is the only word
        for authored in cell.term.expressions:
            if (
                not new
                and authored.key in platform.after_boot
                and authored.operator in ("In", "Exists", "Gt", "Lt")
                and platform.creates_nodes
                and plan.snapshot.placed
            ):
                other = platform.machine_keys[0][0]
                found = phrase("text", where=author_path(authored), key=authored.key, platform=platform.name, other=other)
                yield Remark(code="BERTH-206", found=found, rule=NAME)


def chosen_nodes(plan: Plan, *, all_written: bool) -> Iterator[Remark]:
    """Yield remarks that a default chose nodes: a template's, or those of some models. Called where
    affinity is written; ``all_written``: no requirement was left out because a platform cannot express it."""
    if plan.template is not None and plan.author.template is None:
        name, key = plan.template.template.name, plan.template.template.labels[0][0]
        found = phrase("template", template=name, selector=At(NODE_SELECTOR), key=key, policies=plan.template_by)
        yield Remark(code=PLACE, found=found, rule=NAME, policies=plan.template_by)
    narrowing = [c for c in plan.chosen if c.axis == "machine" and c.narrows]
    lost = next(_lost(plan, narrowing, all_written=all_written), None) if narrowing else None
    if lost is not None:
        by = narrowing[0].by
        yield Remark(code=PLACE, found=_machine(narrowing, *_label(plan, *lost), by), rule=NAME, policies=by)


def ended_runs(request: Request, plan: Plan) -> Iterator[Remark]:
    """Yield the remark that policies send a pod to spot whose workload ends with the first interruption."""
    run = request.single_run
    by = who(plan.on_axis("capacity")) if run is not None and plan.spot else ()
    if run is None or not by:
        return
    label = next(_labels_that_stay(plan), None)
    stays = phrase("stay") if label is None else phrase("stays", selector=At(NODE_SELECTOR), key=label[0], value=label[1])
    found = phrase(run.cause, field=dotted(run.path), stays=stays, policies=by)
    yield Remark(code=ENDS, found=found, rule=NAME, policies=by)


def _labels_that_stay(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield the labels by which nodes show that they are on demand."""
    for cell in plan.space.cells:
        yield from cell.table.platform.capacity.get("on-demand", {}).items()


def _machine(narrowing: Sequence[Constraint], key: str, value: str, policies: tuple[str, ...]) -> Phrase:
    what, selector = tuple(cut_text(c.text, _MOST_TEXT) for c in narrowing), At(NODE_SELECTOR)
    return phrase("machine", constraints=what, selector=selector, key=key, value=value, policies=policies)


def _lost(plan: Plan, narrowing: Sequence[Constraint], *, all_written: bool) -> Iterator[tuple[Cell, int, int]]:
    """Yield the cells where known models are excluded only by what was chosen, and that is expressed
    there, with the excluded and the chosen rows."""
    for cell in plan.space.cells:
        kept = plan.required & ~cell.table.unknown
        if plan.template is not None:
            kept &= plan.template.rows
        wanted = meet(cell.table.all, narrowing)
        lost = [rows & kept & ~wanted for rows in cell.offered] if cell.possible else []
        if any(lost) and (all_written or not any(c in sayable(plan, cell, "machine").unexpressed for c in narrowing)):
            yield cell, next(rows for rows in lost if rows), wanted


def _label(plan: Plan, cell: Cell, lost: int, wanted: int) -> tuple[str, str]:
    """Return the key and value to write for one that is excluded: ``karpenter.k8s.aws/instance-gpu-name``, ``l40s``. Values that nodes
    have come first; a word for the value if none identifies it."""
    platform, places = cell.table.platform, plan.snapshot.known_places
    key = platform.machine_keys[0][0]
    values = values_among(cell.table, key, lost, wanted)
    there = places.values(key) if places is not None else frozenset()
    word = "TYPE" if platform.labels.get(key) == "type" else "MODEL"
    return key, next((value for value in values if value in there), next(iter(values), word))


def on_no_machine(plan: Plan, resource: Resource) -> bool:
    """Return whether some GPU supports the slice, but no known machine of a platform in force has one."""
    if resource.profile is None or not resource.name.startswith("nvidia.com/mig-") or not _models(plan.snapshot.catalog, resource):
        return False
    return not any(resource.profile in table.mig_profiles for table in plan.snapshot.tables.values())


def _missing_slices(plan: Plan) -> Iterator[Phrase]:
    """Yield, for each slice that no machine has, that it does not exist, its models, and the nearest
    slices with a machine that has them."""
    if not plan.snapshot.placed:
        return
    missing = [asked.resource for asked in plan.asked if on_no_machine(plan, asked.resource)]
    for resource in missing[:_MOST_SLICES]:
        there = tuple(_nearest_on(plan.snapshot.catalog, table, resource) for table in plan.snapshot.tables.values())
        models = tuple(_models(plan.snapshot.catalog, resource)[:3])
        yield phrase("slice", platforms=tuple(plan.snapshot.tables), name=resource.name, models=models, there=there)


def _models(catalog: Catalog, resource: Resource) -> list[str]:
    return [gpu.model for gpu in catalog.gpus if resource.profile in gpu.slices]


def _nearest_on(catalog: Catalog, table: Table, resource: Resource) -> Phrase:
    hosts = {o.host.name: o.host for o in table.offers if o.host.gpu is not None and o.host.gpu.mig}
    names = {p.resource: p.name for host in hosts.values() if host.gpu is not None for p in host.gpu.mig}
    near = nearest_slice(resource.name.removesuffix(".shared"), names)
    if near is None:
        return phrase("none like it" if hosts else "no slices", platform=table.platform.name)
    machine = min((host for host in hosts.values() if _has(host, near)), key=rank_example).name
    key = catalog.schemes[table.platform.sharing].slice_key
    if key is None:
        return phrase("nearest", name=near, machine=machine)
    return phrase("nearest by label", key=key, profile=names[near], machine=machine)


def _has(host: Host, name: str) -> bool:
    return host.gpu is not None and any(p.resource == name for p in host.gpu.mig)
