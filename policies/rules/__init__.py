"""The rules, in the order in which they write edits and report violations. A new rule is one file and one
line here.

Each rule is two pure functions in one file: ``mutate(request, plan)`` yields edits, ``check(request,
plan)`` yields violations, and both yield remarks. The plan is made once; a rule turns it into edits or
checks the pod against it, and makes no decision of its own.

A rule that checks something which an update may change has a third function, ``check_update(request,
plan)``: what may not be created may not be added by an update either; what the old pod had, and whatever
is removed or shortened, passes. An update may change these fields of a pod (ValidatePodUpdate and
ValidatePodResize in k8s.io/kubernetes pkg/apis/core/validation/validation.go, 1.36):

annotations, labels         ``disruption`` checks protections, ``queues`` what queue systems read, ``device_counts`` that what runs on a
                            part of a GPU says so. One that asks for another part is judged as a new pod
                            (``policies.pods.updates``). The others decide where and
                            how a pod is placed, which has happened by then; a label that takes the pod out of
                            a policy's podSelector could have been left out at creation too.
tolerations                 can only be added, or changed in tolerationSeconds: checked by ``tolerations``.
activeDeadlineSeconds       can only be set or shortened, and when the pod was created the longer of the two
                            stated durations counted.
terminationGracePeriodSeconds  can only change from a negative value to 1.
nodeSelector, nodeAffinity  can only be narrowed, on a gated pod: it selects fewer of the nodes that were
                            checked.
schedulingGates             can only be removed; a gated pod was checked when it was created, and its claims
                            and its node are checked by themselves.
image                       is read by nothing.
cpu and memory              change through ``/resize``: checked by ``requests_match_limits``. Accelerators
                            can't be resized.
ephemeral containers        have no resources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from policies.planning.plan import Plan, ReviewedPod
from policies.request import Request
from policies.rules import (
    checkpoint_grace,
    device_counts,
    disruption,
    mig_resources,
    no_place,
    node_affinity,
    requests_match_limits,
    scale_from_zero,
    tolerations,
)
from policies.rules.queues import default_queue, keys, required_queue, words
from policies.rules.running import max_runtime, network_devices, priority_class, runtime_class, scheduler, shared_memory, topology
from policies.state.snapshot import Snapshot
from policies.verdict import Edit, Remark, Violation


@dataclass(frozen=True, slots=True)
class Rule:
    name: str
    mutate: Callable[[Request, Plan], Iterator[Edit | Remark]] | None = None
    """None if the rule only checks"""
    check: Callable[[Request, Plan], Iterator[Violation | Remark]] | None = None
    """None if the rule only fills in defaults"""
    check_update: Callable[[Request, Plan], Iterator[Violation]] | None = None
    """None if an update can't change anything that the rule checks"""
    check_admitted: Callable[[ReviewedPod, Snapshot], Iterator[Remark]] | None = None
    """Runs once per pod, whatever policies apply, after all other checks: on /validate of a creation that no policy in Enforce denies"""


RULES = (
    Rule("tolerations", tolerations.mutate, tolerations.check, tolerations.check_update),
    Rule("node_affinity", node_affinity.mutate, node_affinity.check),
    Rule("mig_resources", mig_resources.mutate, mig_resources.check),
    Rule("checkpoint_grace", checkpoint_grace.mutate, checkpoint_grace.check),
    Rule("disruption", disruption.mutate, disruption.check, disruption.check_update),
    Rule("requests_match_limits", requests_match_limits.mutate, requests_match_limits.check, requests_match_limits.check_update),
    Rule("device_counts", check=device_counts.check, check_update=device_counts.check_update),
    Rule("max_runtime", max_runtime.mutate, max_runtime.check),
    Rule("shared_memory", shared_memory.mutate),
    Rule("runtime_class", runtime_class.mutate),
    Rule("priority_class", priority_class.mutate),
    Rule("queue", default_queue.mutate, required_queue.check, required_queue.check_update),
    Rule("queue_words", words.mutate),
    Rule("queue_keys", keys.mutate),
    Rule("scheduler", scheduler.mutate),
    Rule("topology", topology.mutate),
    Rule("network_devices", network_devices.mutate),
    Rule("node_affinity", check_admitted=no_place.check_admitted),
    Rule("node_affinity", check_admitted=scale_from_zero.check_admitted),
)
