"""One code, as sentences of Berth begin with it: what it means, and which of the viewer's pods it is about."""

from __future__ import annotations

from dataclasses import dataclass

from analysis.audit.ledger import AuditedPod
from catalog.nearest import hint
from console.server.page import NotShown
from console.world.view import View
from policies.messages import TABLE

MOST_PODS = 20
KINDS = {
    "denial": "A denial: the pod is not created.",
    "warning": "A warning: it denies nothing.",
    "notice": "A notice about a response of Berth itself.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """What there is to tell of it."""

    code: str
    title: str
    kind: str
    page: str
    """Its section in the documentation: ``docs/codes.md#berth-101-...``."""
    pods: list[AuditedPod]
    """The first some that it is found on now."""
    more: int


def code(name: str, view: View) -> Code:
    """Return a code of the table. Raises NotShown, with the nearest, for one that is not there."""
    row = TABLE.get(name)
    if row is None:
        raise NotShown(f"This code does not exist{hint(name[:40], TABLE)}. Codes range from BERTH-001 to BERTH-299.")
    found = [pod for pod in view.pods() if any(name in one.codes and all(map(view.shows_policy, one.policies)) for one in pod.outcomes)]
    found.sort(key=lambda pod: (pod.stored.namespace, pod.stored.name))
    return Code(
        code=name,
        title=row.title[:1].upper() + row.title[1:],
        kind=KINDS[row.kind],
        page=row.page,
        pods=found[:MOST_PODS],
        more=max(0, len(found) - MOST_PODS),
    )
