"""MIG resources: a container that requests a whole GPU gets the slice that a policy or its author names.

Reads   resources of containers that request exactly one whole GPU, the slice that the plan chose
Writes  the slice's resource name in requests and limits in place of the whole GPU's (--mig-strategy mixed).
        Where a slice is chosen by label (single, GKE), ``node_affinity`` writes it into the terms under this
        rule's name
Judges  the annotation berth.dev/mig-slice
Never   renames for a queue system, more than one GPU per container, or where no such node can exist
"""

from __future__ import annotations

from collections.abc import Iterator

from kube.pod import is_requested
from policies.planning.plan import Plan
from policies.request import Request
from policies.rules.node_affinity import choices
from policies.verdict import Edit, Remark, Violation

NAME = "mig_resources"


def mutate(request: Request, plan: Plan) -> Iterator[Edit | Remark]:
    """Replace the old name by the new one in requests and limits of each container that requests it.

    A remark tells the author of the slice, also of one that is chosen by label.
    """
    slice_ = plan.slice
    if slice_ is None or (slice_.resource == slice_.old and not plan.snapshot.placed):
        return
    yield from choices.of_slice(plan)
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


def check(request: Request, plan: Plan) -> Iterator[Violation]:
    """Yield the violations for what the author's annotation asks for and can't have."""
    yield from (v for v in plan.violations if v.rule == NAME)
