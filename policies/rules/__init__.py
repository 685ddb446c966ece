"""The rules, in the order in which they edit and are read. A new rule is one file and one line here.

Each is two pure functions in one file: ``mutate(request, plan)`` yields edits, ``check(request, plan)`` yields
violations. The plan is made once; a rule writes it down or judges the pod against it, and never decides again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from policies.plan import Plan
from policies.request import Request
from policies.rules import (
    checkpoint_grace,
    device_counts,
    disruption,
    mig_resources,
    node_affinity,
    requests_match_limits,
    tolerations,
)
from policies.verdict import Edit, Violation


@dataclass(frozen=True, slots=True)
class Rule:
    name: str
    mutate: Callable[[Request, Plan], Iterator[Edit]]
    check: Callable[[Request, Plan], Iterator[Violation]]


RULES = (
    Rule("tolerations", tolerations.mutate, tolerations.check),
    Rule("node_affinity", node_affinity.mutate, node_affinity.check),
    Rule("mig_resources", mig_resources.mutate, mig_resources.check),
    Rule("checkpoint_grace", checkpoint_grace.mutate, checkpoint_grace.check),
    Rule("disruption", disruption.mutate, disruption.check),
    Rule("requests_match_limits", requests_match_limits.mutate, requests_match_limits.check),
    Rule("device_counts", device_counts.mutate, device_counts.check),
)
