"""MIG resources: a container that requests a whole GPU gets the slice that a policy or its author names.

Reads   resources of containers that request exactly one whole GPU, the slice that the plan chose
Writes  the slice's resource name in requests and limits in place of the whole GPU's (--mig-strategy mixed).
        Where a slice is chosen by label (single, GKE), ``node_affinity`` writes it into the terms under this
        rule's name
Checks  the annotation berth.dev/mig-slice
Never   renames for a queue system, more than one GPU per container, or where no such node can exist
"""

from __future__ import annotations

from collections.abc import Iterator

from kube.pod import is_requested
from policies.messages import At, Phrase, phrase
from policies.offers.table import Offer
from policies.planning.plan import ChosenSlice, Plan
from policies.pods import annotations as author
from policies.request import Request
from policies.verdict import Edit, Remark

NAME = "mig_resources"
SLICE = "BERTH-220"
_MOST_MODELS = 2


def mutate(request: Request, plan: Plan) -> Iterator[Edit | Remark]:
    """Replace the old name by the new one in requests and limits of each container that requests it.

    A remark tells the author of the slice, also of one that is chosen by label.
    """
    slice_ = plan.slice
    if slice_ is None or (slice_.resource == slice_.old and not plan.snapshot.placed):
        return
    yield from _remark_slice(plan, slice_)
    if slice_.resource == slice_.old:
        return
    for container in plan.pod.containers:
        if not is_requested(container, slice_.old):
            continue
        for side, amounts in (("limits", container.limits), ("requests", container.requests)):
            base = (*container.path, "resources", side)
            if slice_.old in amounts:
                yield Edit(op="remove", path=(*base, slice_.old), rule=NAME, policies=slice_.policies)
            yield Edit(op="add", path=(*base, slice_.resource), value="1", rule=NAME, policies=slice_.policies)


def _remark_slice(plan: Plan, chosen: ChosenSlice) -> Iterator[Remark]:
    """Yield a remark that a whole GPU became a slice; nothing if the author asked for it by annotation."""
    if plan.author.slice_gb is not None:
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
    yield Remark(code=SLICE, found=found, rule=NAME, policies=chosen.policies)


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
