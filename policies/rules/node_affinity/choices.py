"""Remarks on what a default chose for a pod whose author specified nothing about it, with what to type for
another choice.

A remark is made only if something is written and changes the pod (``docs/laws.md``, law 11: "defaults never harm"):
then the pod specifies it itself, so a second call makes no remark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kube.pod import is_requested
from policies.messages import At, Phrase, phrase
from policies.objects.wording import cut_text
from policies.offers.constraints import Constraint, meet
from policies.offers.selectors import value_among
from policies.offers.table import Offer
from policies.planning.expressible import sayable
from policies.planning.feasibility import Cell
from policies.planning.plan import Plan
from policies.planning.requirement_words import NODE_SELECTOR
from policies.pods import annotations as author
from policies.verdict import Remark

SLICE, PLACE, FLOOR = "BERTH-220", "BERTH-221", "BERTH-222"
MOST_TEXT = 48
"""characters of what a policy wants, so that what to type stands within the first 200"""
_MOST_MODELS = 2


def of_slice(plan: Plan) -> Iterator[Remark]:
    """Yield a remark that a whole GPU became a slice; nothing if the author asked for it by annotation."""
    chosen = plan.slice
    if chosen is None or plan.author.slice_gb is not None:
        return
    paths = [At(c.path) for c in plan.pod.containers if is_requested(c, chosen.old)]
    renamed = chosen.resource != chosen.old
    found = phrase(
        "text",
        where=phrase("containers", path=paths[0], more=len(paths) - 1) if len(paths) > 1 else paths[0],
        old=chosen.old,
        became=phrase("renamed", resource=chosen.resource) if renamed else phrase("labelled", profile=chosen.profile),
        size=_size(plan),
        annotation=author.SLICE,
        policies=chosen.policies,
    )
    yield Remark(code=SLICE, found=found, rule="mig_resources", policies=chosen.policies)


def _size(plan: Plan) -> Phrase:
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
    if len(models) > _MOST_MODELS:
        return phrase("more models", gigabytes=gigabytes, model=next(iter(models)))
    return phrase("models", gigabytes=gigabytes, models=tuple(models))


def _left(plan: Plan) -> Iterator[Offer]:
    """Yield the offers of the slice that are left, in the order of the tables."""
    assert plan.slice is not None
    name = plan.slice.resource
    for cell in plan.space.cells:
        yield from cell.table.offers_in(cell.rows & cell.table.enough(name, plan.space.wanted[name]) & plan.inside)


def of_place(plan: Plan, *, all_written: bool) -> Iterator[Remark]:
    """Yield remarks that a default chose nodes: a template's, or those of some models. Called where
    affinity is written; ``all_written``: no requirement was left out because a platform cannot express it."""
    if plan.template is not None and plan.author.template is None:
        name, key = plan.template.template.name, plan.template.template.labels[0][0]
        found = phrase("template", template=name, selector=At(NODE_SELECTOR), key=key, policies=plan.template_by)
        yield Remark(code=PLACE, found=found, rule="node_affinity", policies=plan.template_by)
    narrowing = [c for c in plan.chosen if c.axis == "machine" and c.narrows]
    lost = next(_lost(plan, narrowing, all_written=all_written), None) if narrowing else None
    if lost is not None:
        by = narrowing[0].by
        yield Remark(code=PLACE, found=_machine(narrowing, *_label(*lost), by), rule="node_affinity", policies=by)


def _machine(narrowing: Sequence[Constraint], key: str, value: str | None, policies: tuple[str, ...]) -> Phrase:
    what, selector = tuple(cut_text(c.text, MOST_TEXT) for c in narrowing), At(NODE_SELECTOR)
    if value is None:
        return phrase("machine", constraints=what, selector=selector, key=key, policies=policies)
    return phrase("machine by value", constraints=what, selector=selector, key=key, value=value, policies=policies)


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


def _label(cell: Cell, lost: int, wanted: int) -> tuple[str, str | None]:
    """Return the key and value to write for one that is excluded: ``karpenter.k8s.aws/instance-gpu-name``,
    ``a100``; None if no value identifies it."""
    key = cell.table.platform.machine_keys[0][0]
    return key, value_among(cell.table, key, lost, wanted)
