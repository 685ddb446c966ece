"""Filled fields: where the author of a GPU pod leaves a field of its spec empty, the pod gets the value of its platform.

Reads   these fields, spec.priority, spec.preemptionPolicy, the annotation berth.dev/expected-duration
Writes  runtimeClassName, priorityClassName and schedulerName, the latter also in place of Kubernetes' own default.
        activeDeadlineSeconds: ``default.maxRuntime``, else ``require.maxRuntime``, so that a run that hangs does not hold its GPUs
        for ever. With a priority class it removes what the API server wrote of a pod without one: that admission runs again after a
        webhook, and denies another number than the class's (k8s.io/kubernetes plugin/pkg/admission/priority/admission.go, admitPod).
        RuntimeClass admission, too, runs after it (k8s.io/apiserver pkg/admission/plugin/webhook/mutating/reinvocationcontext.go)
Checks  ``require.maxRuntime``, except for DaemonSets. On validate also that a deadline is there
Never   changes a field that is written; fills in names for a DaemonSet's or a mirror pod, or the runtime class of nodes with Linux for a
        pod on Windows; gives by default less time than the author
        expects; names a scheduler for a pod of a queue or on a node, or beside a ``default.queue`` whose system has its own; gives by
        a GPUPolicy a priority class that no ClusterGPUPolicy allows
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kube import duration
from kube.pod import DEADLINE, DEFAULT_SCHEDULER, OF_NO_CLASS
from kube.tree import Path
from policies.fixes import write
from policies.messages import At, Phrase, cut_text, phrase
from policies.offers.merging import NamedValue, TightestLimit
from policies.planning.plan import Plan
from policies.planning.requirement_words import explain_missing
from policies.planning.requirements import Demands, deadline
from policies.pods.annotations import DURATION
from policies.request import Request
from policies.verdict import Edit, Remark, Violation, at_field

_Given = NamedValue[str] | TightestLimit
_DEADLINE: Path = ("spec", DEADLINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledField:
    """A field of a pod's spec, and the default that fills it in."""

    rule: str
    name: str
    default: str
    """The field of ``spec.default``."""
    values: Callable[[Plan], Iterator[_Given | Remark]]
    """Yields the value to write, if any, and remarks on it."""
    is_open: Callable[[Plan], bool]
    """Returns whether the field is empty and this pod's may be filled in."""
    replaces: tuple[str, ...] = ()
    """Fields of the spec that are removed with it."""

    def mutate(self, request: Request, plan: Plan) -> Iterator[Edit | Remark]:
        """Write the field, or tell the platform team that its policies differ."""
        for given in self.values(plan) if self.is_open(plan) else ():
            if isinstance(given, Remark):
                yield given
            elif given.value is None:
                yield given.differs(self.default, self.rule)
            else:
                for field in self.replaces:
                    if field in plan.pod.spec:
                        yield Edit(op="remove", path=("spec", field), rule=self.rule, policies=given.policies)
                yield Edit(op="add", path=("spec", self.name), value=given.value, rule=self.rule, policies=given.policies)


def _named(attribute: str, implied: str = "") -> Callable[[Plan], Iterator[NamedValue[str]]]:
    """Return the function that yields the name that policies give, unless that is ``implied`` by an empty field."""

    def values(plan: Plan) -> Iterator[NamedValue[str]]:
        default = plan.demands.named(attribute)
        if default is not None and default.value != implied:
            yield default

    return values


def _is_movable(plan: Plan) -> bool:
    """Return whether policies may name the pod's scheduler."""
    is_joined = plan.joined is not None and plan.joined.moves
    return plan.actor.moves and plan.pod.scheduler in ("", DEFAULT_SCHEDULER) and not is_joined


_priority_names = _named("priority_class")


def _allowed_priorities(demands: Demands) -> frozenset[str]:
    return frozenset(name for compiled in demands.scopes[1] for name in compiled.policy.allow.priority_classes)


def _priorities(plan: Plan) -> Iterator[_Given | Remark]:
    """Yield the priority class, or a remark if only policies of the namespace give it and no ClusterGPUPolicy allows it."""
    for default in _priority_names(plan):
        name, own = default.value, all(policy.startswith("GPUPolicy/") for policy in default.policies)
        if name is None or not own or name in plan.demands.merged(_allowed_priorities):
            yield default
        else:
            found, fields = phrase("class not allowed", name=cut_text(name, 40)), at_field("spec.default.priorityClass", default.policies)
            yield Remark(code="BERTH-225", found=found, rule="priority_class", fields=fields)


def _deadlines(plan: Plan) -> Iterator[_Given | Remark]:
    """Yield the deadline, a remark on it for the author, and one for the platform team on a default that does not act as given."""
    default, expected = plan.settings.max_runtime, plan.author.expected
    limit = deadline(plan.settings, expected, plan.actor)
    if default is not None:
        given, fields = duration.format_duration(default.value), at_field("spec.default.maxRuntime", default.policies)
        found = None
        if expected is not None and expected > default.value:
            found = phrase("runtime expected", given=given, annotation=DURATION)
        elif limit is not None and limit.value < default.value:
            found = phrase("runtime clipped", given=given, most=duration.format_duration(limit.value))
        if found is not None:
            yield Remark(code="BERTH-225", found=found, rule=MAX_RUNTIME.rule, fields=fields)
    if limit is not None:
        variant = "shorter" if expected is not None and expected > limit.value else "text"
        shown, policies = duration.format_duration(limit.value), limit.policies
        found = phrase(variant, most=shown, path=At(_DEADLINE), annotation=DURATION, policies=policies)
        yield Remark(code="BERTH-226", found=found, rule=MAX_RUNTIME.rule, policies=policies, path=_DEADLINE)
        yield limit


MAX_RUNTIME = FilledField(
    rule="max_runtime",
    name=DEADLINE,
    default="maxRuntime",
    values=_deadlines,
    is_open=lambda plan: plan.pod.deadline is None,
)
RUNTIME_CLASS = FilledField(
    rule="runtime_class",
    name="runtimeClassName",
    default="runtimeClass",
    values=_named("runtime_class"),
    is_open=lambda plan: plan.actor.fills and not plan.pod.spec.get("runtimeClassName") and not plan.pod.is_windows,
)
PRIORITY_CLASS = FilledField(
    rule="priority_class",
    name="priorityClassName",
    default="priorityClass",
    values=_priorities,
    is_open=lambda plan: plan.actor.fills and not plan.pod.spec.get("priorityClassName"),
    replaces=OF_NO_CLASS,
)
SCHEDULER = FilledField(
    rule="scheduler",
    name="schedulerName",
    default="schedulerName",
    values=_named("scheduler_name", implied=DEFAULT_SCHEDULER),
    is_open=_is_movable,
)


def check(request: Request, plan: Plan) -> Iterator[Violation]:
    """Yield a violation for a deadline past the longest time, or, once all mutators have run, for none."""
    longest, seconds = plan.settings.longest_run, plan.pod.deadline
    if longest is None or plan.actor.floor == "no":
        return
    most = duration.format_duration(longest.value)
    if seconds is not None and seconds > longest.value:
        yield _violation(longest, phrase("fact", path=At(_DEADLINE), seconds=seconds, most=most), phrase("go on"))
    elif seconds is None and request.phase == "validate":
        reason = explain_missing(plan, MAX_RUNTIME.rule)
        yield _violation(longest, phrase("none there", path=At(_DEADLINE), most=most), reason)


def _violation(longest: TightestLimit, found: Phrase, more: Phrase) -> Violation:
    return Violation(
        code="BERTH-143",
        found=found,
        advice=phrase("fix", path=At(_DEADLINE), most=longest.value),
        more=(more,),
        rule=MAX_RUNTIME.rule,
        path=_DEADLINE,
        fields=at_field("spec.require.maxRuntime", longest.policies),
        fixes=write(_DEADLINE, longest.value),
    )
