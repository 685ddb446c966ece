"""The rules, in the order in which they edit and are read. A new rule is one file and one line here.

Each is two pure functions in one file: ``mutate(request, plan)`` yields edits, ``check(request, plan)`` yields
violations. The plan is made once; a rule writes it down or judges the pod against it, and never decides again.

A rule that judges something which an update may change has a third, ``check_update(request, plan)``: what a creation may not have,
an update may not add; what the old pod had, or what is removed or shortened, passes. Of a pod an update may change
(ValidatePodUpdate and ValidatePodResize in k8s.io/kubernetes pkg/apis/core/validation/validation.go, 1.36):

annotations, labels         protections are judged by ``disruption``. What else Berth reads of them decides where and how a pod is
                            placed, which is done by then; a label that takes the pod out of a podSelector's policy could have been
                            left out of the creation too.
tolerations                 only added, or changed in tolerationSeconds: judged by ``tolerations``.
activeDeadlineSeconds       only set or shortened, and the longer of two words counted when the pod was made.
terminationGracePeriodSeconds  only from a negative value to 1.
nodeSelector, nodeAffinity  of a gated pod, only narrowed: it selects fewer of the nodes that were judged.
schedulingGates             only removed; a gated pod was judged when it was made, and its claims and its node are by themselves.
image                       nothing reads it.
cpu and memory              by ``/resize``: judged by ``requests_match_limits``. Accelerators can't be resized.
ephemeral containers        have no resources.
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
    check_update: Callable[[Request, Plan], Iterator[Violation]] | None = None
    """None: an update changes nothing that it judges"""


RULES = (
    Rule("tolerations", tolerations.mutate, tolerations.check, tolerations.check_update),
    Rule("node_affinity", node_affinity.mutate, node_affinity.check),
    Rule("mig_resources", mig_resources.mutate, mig_resources.check),
    Rule("checkpoint_grace", checkpoint_grace.mutate, checkpoint_grace.check),
    Rule("disruption", disruption.mutate, disruption.check, disruption.check_update),
    Rule("requests_match_limits", requests_match_limits.mutate, requests_match_limits.check, requests_match_limits.check_update),
    Rule("device_counts", device_counts.mutate, device_counts.check),
)
