"""The rules: each turns what policies say on one subject into edits of a pod, violations and remarks.

A rule is one file, or a package of few files if it has more than 400 lines. Its docstring says what the rule reads, writes, judges and
never does. The file has the rule's functions, and what only they need: paths, settings, the values in its messages. ``RULES`` is the only
registry. The engine calls the functions in its order:

mutate          on /mutate of a creation       yields edits, and remarks on what it writes or leaves out
check           on both calls of a creation    yields violations, and remarks on what it cannot judge
check_update    on an update                   yields violations: what may not be created may not be added either. What the old pod
                                               had, and what is removed or shortened, passes
check_admitted  on /validate of a creation     yields remarks on the pod as it is created, if no policy in Enforce denies it

Each function is pure and sees the pod as it arrived, without the edits of other rules. The plan (``policies.planning.plan``) has the
policies that apply, what they set together, and the nodes that are left; on /mutate also the defaults that were chosen. A rule chooses no
nodes itself. ``Rule.check_admitted`` has no plan: it runs once for a pod, whatever policies apply to it.

A rule keeps what the author wrote (``docs/laws.md``, law 3: "edits are minimal"). On the edited pod it yields no edit, and no remark on
edits (law 4: "repetition and order change nothing"). Each edit, violation and remark names its rule and policies. Each violation
carries its fixes (``policies.fixes``): what the author may change in the pod so that the rule does not yield it. If any rule yields a
violation, the engine drops all edits. It makes remarks of violations about placement if others place the pod.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import attrgetter

from policies.planning.plan import Plan, ReviewedPod
from policies.planning.requirements import Demands
from policies.request import Request
from policies.rules import (
    checkpoint_grace,
    device_counts,
    disruption,
    filled_fields,
    mig_resources,
    network_devices,
    no_place,
    requests_match_limits,
    shared_memory,
    tolerations,
    topology,
)
from policies.rules.node_affinity import rule as node_affinity
from policies.rules.queues import queue, words
from policies.state.snapshot import Snapshot
from policies.verdict import Edit, Remark, Violation


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of ``RULES``; a function is None if the rule has nothing to do there."""

    name: str
    """The name in messages, metrics and ``berth.dev/applied``; two rules about one subject may share it."""
    mutate: Callable[[Request, Plan], Iterator[Edit | Remark]] | None = None
    check: Callable[[Request, Plan], Iterator[Violation | Remark]] | None = None
    check_update: Callable[[Request, Plan], Iterator[Violation]] | None = None
    check_admitted: Callable[[ReviewedPod, Snapshot], Iterator[Remark]] | None = None
    fields: tuple[str, ...] = ()
    """The attributes of ``policies.policy.Policy`` without any of which the rule has nothing to do; (): it does not depend on policies."""


RULES = (
    Rule("tolerations", tolerations.mutate),
    Rule("tolerations", check=tolerations.check, check_update=tolerations.check_update, fields=("require.forbid_tolerations",)),
    Rule("node_affinity", node_affinity.mutate, node_affinity.check, check_admitted=no_place.check_admitted),
    Rule("mig_resources", mig_resources.mutate),
    Rule(
        "checkpoint_grace",
        checkpoint_grace.mutate,
        checkpoint_grace.check,
        fields=("default.grace", "require.grace_min", "require.grace_max"),
    ),
    Rule(
        "disruption",
        disruption.mutate,
        disruption.check,
        disruption.check_update,
        fields=("default.protect_for", "require.protection_max"),
    ),
    Rule(
        "requests_match_limits",
        requests_match_limits.mutate,
        requests_match_limits.check,
        requests_match_limits.check_update,
        fields=("default.repair", "require.requests_equal_limits"),
    ),
    Rule("device_counts", check=device_counts.check, check_update=device_counts.check_update),
    Rule("max_runtime", filled_fields.MAX_RUNTIME.mutate, filled_fields.check, fields=("default.max_runtime", "require.max_runtime")),
    Rule("shared_memory", shared_memory.mutate, fields=("default.shared_memory",)),
    Rule("runtime_class", filled_fields.RUNTIME_CLASS.mutate, fields=("default.runtime_class",)),
    Rule("priority_class", filled_fields.PRIORITY_CLASS.mutate, fields=("default.priority_class",)),
    Rule("queue", queue.mutate, queue.check, queue.check_update, fields=("default.queue", "require.queue")),
    Rule("queue_words", words.mutate_words),
    Rule("queue_keys", words.mutate_keys),
    Rule("scheduler", filled_fields.SCHEDULER.mutate, fields=("default.scheduler_name",)),
    Rule("topology", topology.mutate, fields=("default.topology",)),
    Rule("network_devices", network_devices.mutate, fields=("default.network_devices",)),
)
"""In the order of their edits and messages. An update may change these fields of a pod (ValidatePodUpdate and ValidatePodResize in
k8s.io/kubernetes pkg/apis/core/validation/validation.go, 1.36):

annotations, labels           ``disruption`` checks protections, ``queue`` what queue systems read, ``device_counts`` that a pod on a part
                              of a GPU still says so. A pod that requests another part is checked as a new one (``pods.actors``).
                              Other keys decide where a pod is placed, which has happened. A label that takes the pod out of a policy's
                              podSelector could have been left out at creation.
tolerations                   can only be added, or changed in tolerationSeconds: ``tolerations`` checks them.
activeDeadlineSeconds         can only be set or shortened. At creation the longer of the two stated durations counted.
terminationGracePeriodSeconds can only change from a negative value to 1.
nodeSelector, nodeAffinity    can only be narrowed, on a gated pod: it selects fewer of the nodes that were checked.
schedulingGates               can only be removed. A gated pod was checked at creation; its claims and its node are checked themselves.
image                         is read by no rule.
cpu and memory                change through ``/resize``: ``requests_match_limits`` checks them. Accelerators cannot be resized.
ephemeral containers          have no resources.
"""


def acting_rules(demands: Demands) -> tuple[Rule, ...]:
    """Return the rules that have something to do under these policies, in order."""
    policies = [compiled.policy for compiled in demands.policies]
    return tuple(
        rule for rule in RULES if not rule.fields or any(attrgetter(field)(policy) for field in rule.fields for policy in policies)
    )
