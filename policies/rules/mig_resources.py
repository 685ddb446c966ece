"""MIG resources: a container that asks for a whole GPU gets the slice that a policy or its author names.

Reads   resources of containers that ask for exactly one whole GPU, the slice that the plan chose
Writes  the slice's resource name in requests and limits in place of the whole GPU's (--mig-strategy mixed). Where a
        slice is chosen by label (single, GKE), ``node_affinity`` writes it into the terms under this rule's name
Judges  the annotation berth.dev/mig-slice
Never   renames for a queue system, more than one GPU per container, or where no such node can be
"""

from __future__ import annotations

from collections.abc import Iterator

from policies import chosen
from policies.plan import Plan
from policies.pod import asks
from policies.request import Request
from policies.verdict import Edit, Violation

NAME = "mig_resources"


def mutate(request: Request, plan: Plan) -> Iterator[Edit]:
    """Per container: the new name in both, the old one out. The author is told, of a slice by label too."""
    slice_ = plan.slice
    if slice_ is None or (slice_.resource == slice_.old and not plan.snapshot.placed):
        return
    chosen.say_slice(plan)
    if slice_.resource == slice_.old:
        return
    for container in plan.pod.containers:
        if not asks(container, slice_.old):
            continue
        for side, amounts in (("limits", container.limits), ("requests", container.requests)):
            base = (*container.path, "resources", side)
            if slice_.old in amounts:
                yield Edit(op="remove", path=(*base, slice_.old), rule=NAME, policies=slice_.policies)
            yield Edit(op="add", path=(*base, slice_.resource), value="1", rule=NAME, policies=slice_.policies)


def check(request: Request, plan: Plan) -> Iterator[Violation]:
    """What the author's annotation asks for and can't have."""
    yield from (v for v in plan.violations if v.rule == NAME)
