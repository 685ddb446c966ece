"""What a default chose for a pod whose author said nothing about it, told to that author with what to type for another choice.

Only what is written and changes something is told (design law 11): then the pod speaks for itself, so a second call says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from policies.compiled import Constraint
from policies.offers import Offer, Table
from policies.placement import Cell
from policies.plan import Plan
from policies.pod import asks, dotted
from policies.render import value_among
from policies.sayable import sayable
from policies.wording import cut

SLICE, PLACE, FLOOR = "BERTH-220", "BERTH-221", "BERTH-222"
OF_EDITS = frozenset({SLICE, PLACE, FLOOR})
"""remarks about what was written: not said of a pod that is refused"""
MOST_TEXT = 48
"""characters of what a policy wants, so that what to type stands within the first 200"""
_MOST_MODELS = 2


def say_slice(plan: Plan) -> None:
    """That a whole GPU became a slice; nothing where the author asked for it by annotation."""
    chosen = plan.slice
    if chosen is None or plan.author.slice_gb is not None:
        return
    paths = [dotted(c.path) for c in plan.pod.containers if asks(c, chosen.old)]
    more = f" (and {len(paths) - 1} more)" if len(paths) > 1 else ""
    became = f"became {chosen.resource}: 1" if chosen.resource != chosen.old else f"is one MIG slice {chosen.profile} now"
    plan.remark(
        SLICE,
        f"{paths[0]}{more}: {chosen.old}: 1 {became}, {_size(plan)}; for a whole GPU annotate the pod berth.dev/mig-slice: none"
        f"{_by(chosen.policies)}",
        "mig_resources",
        chosen.policies,
    )


def _size(plan: Plan) -> str:
    """``10 GB of A100-80GB or H100-80GB``: the nominal size, and the models that are left."""
    models: dict[str, None] = {}
    gigabytes = 0
    for offer in _left(plan):
        gpu = offer.host.gpu
        if gpu is not None:
            gigabytes = next(profile.memory_gb for profile in gpu.mig if profile.name == offer.profile)
            models[gpu.model] = None
        if len(models) > _MOST_MODELS:
            break
    named = list(models)[:_MOST_MODELS]
    names = f"{named[0]} and others" if len(models) > _MOST_MODELS else " or ".join(named)
    return f"{gigabytes} GB of {names}"


def _left(plan: Plan) -> Iterator[Offer]:
    """The offers of the slice that are left, in the order of the tables."""
    assert plan.slice is not None
    name = plan.slice.resource
    for cell in plan.space.cells:
        rows = cell.rows & cell.table.enough(name, plan.space.wanted[name]) & plan.inside[cell.platform]
        yield from _offers(cell.table, rows)


def _offers(table: Table, rows: int) -> Iterator[Offer]:
    while rows:
        lowest = rows & -rows
        yield table.offers[lowest.bit_length() - 1]
        rows ^= lowest


def say_place(plan: Plan) -> None:
    """That a default chose nodes: a template's, or those of some models. Called where affinity is written, once what can't be is said."""
    if plan.template is not None and plan.author.template is None:
        name, key = plan.template.template.name, plan.template.template.labels[0][0]
        text = f"the pod names no nodes, so it goes to those of GPUNodeTemplate {name} alone; name others by spec.nodeSelector {key}"
        plan.remark(PLACE, f"{text}{_by(plan.template_by)}", "node_affinity", plan.template_by)
    narrowing = [c for c in plan.chosen if c.axis == "machine" and c.narrows]
    lost = next(_lost(plan, narrowing), None) if narrowing else None
    if lost is not None:
        what = " and ".join(cut(c.text, MOST_TEXT) for c in narrowing)
        text = f"the pod names no GPU, so it goes to {what} alone; for another write {_label(*lost)}"
        plan.remark(PLACE, f"{text}{_by(narrowing[0].by)}", "node_affinity", narrowing[0].by)


def _lost(plan: Plan, narrowing: Sequence[Constraint]) -> Iterator[tuple[Cell, int, int]]:
    """Where known models are out by what was chosen and by nothing else, and that is said there: with their rows, and those chosen."""
    all_said = not any(remark.code == "BERTH-205" for remark in plan.remarks)
    for cell in plan.space.cells:
        kept = plan.required[cell.platform] & ~cell.table.unknown
        if plan.template is not None:
            kept &= plan.template.rows[cell.platform]
        wanted = cell.table.all
        for constraint in narrowing:
            wanted &= constraint.rows[cell.platform]
        lost = [rows & kept & ~wanted for rows in plan.space.offered(cell)] if plan.space.possible(cell) else []
        if any(lost) and (all_said or not any(c in sayable(plan, cell, "machine").unsaid for c in narrowing)):
            yield cell, next(rows for rows in lost if rows), wanted


def _label(cell: Cell, lost: int, wanted: int) -> str:
    """What to write for one that is lost: ``spec.nodeSelector karpenter.k8s.aws/instance-gpu-name: a100``."""
    key = cell.table.platform.machine_keys[0][0]
    value = value_among(cell.table, key, lost, wanted)
    return f"spec.nodeSelector {key}: {value}" if value is not None else f"spec.nodeSelector {key}"


def _by(policies: Sequence[str]) -> str:
    return f" (default of {' and '.join(policies)})"
