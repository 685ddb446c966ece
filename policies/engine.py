"""``evaluate``: one request against one namespace's facts. The plan is made once, then the rules run in
order.

Edits come only from policies in Enforce. Each Audit or Warn policy is evaluated alone on top of the enforced
set, on the pod as it arrived: the difference is what it would have done.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import chain

from kube.pod import Pod
from kube.tree import Raw
from policies import messages, work_budget
from policies.messages import OF_EDITS, phrase
from policies.offers.device_costs import ANY
from policies.patch import applied, valid_entries
from policies.patch.valid_entries import ValidEntries
from policies.planning import defaults, plan
from policies.planning.devices import RequestedDevice, share
from policies.planning.outcome import Policies, PolicyOutcome, enforced_of, evaluate_under
from policies.planning.plan import Plan, ReviewedPod
from policies.pods.permissions import annotated_fraction, as_asked, asks_anew
from policies.pods.projection import extract
from policies.request import Request
from policies.rules import RULES, Rule, acting_rules
from policies.rules.device_counts import UNCOUNTED, UNKNOWN
from policies.state.snapshot import Facts, Snapshot
from policies.verdict import MOST_FOUND, Edit, Holding, Remark, Verdict, Violation

__all__ = ["Request", "arrived", "evaluate"]

_ADMITTED_CHECKS = tuple(rule.check_admitted for rule in RULES if rule.check_admitted is not None)
_MOST_DEVICES = 10**6
"""Of one pod: more than are in any machine. A quantity of Kubernetes may be 1e400, and one such pod must not spoil a counter for good."""


def evaluate(request: Request, facts: Facts, read: Raw | None = None) -> Verdict:
    """Return the verdict on one pod. ``read``: its projection (``projection.extract``), if that was made
    before. Raises PodError if the pod is not shaped like one."""
    pod = as_asked(Pod(extract(request.pod, facts.reads) if read is None else read), request.old_pod)
    subject = plan.review_pod(request, facts, pod)
    if not (subject.devices.asked or pod.claims or annotated_fraction(pod) or _misspelt(pod, facts)):
        return Verdict(judged=False)
    matched = subject.may_match
    enforced = enforced_of(matched)
    entries = _valid_entries(facts, subject, enforced)

    def evaluate_set(policies: Policies) -> PolicyOutcome:
        result = _outcome(facts, subject, policies)
        if result.violations or request.operation == "UPDATE":
            return result
        return result._replace(patch=applied.finish(pod.raw, result.edits, entries))

    # No mutating webhook is called for an update: what would be denied of it is told where it is judged.
    is_audited = (request.operation == "UPDATE" or request.phase == "mutate") and len(enforced) < len(matched)
    verdict = evaluate_under(matched, enforced, evaluate_set, work_budget.items(pod.raw) if is_audited else None)
    if any(violation.code in (UNCOUNTED, UNKNOWN) for violation in verdict.violations):
        return replace(verdict, missing=subject.devices.missing)
    if verdict.violations or request.phase != "validate" or request.operation != "CREATE":
        return verdict
    remarks = (remark for check in _ADMITTED_CHECKS for remark in check(subject, facts.snapshot))
    return replace(verdict, remarks=(*verdict.remarks, *remarks), holding=_holding(subject, facts.snapshot))


def _misspelt(pod: Pod, facts: Facts) -> bool:
    return any(name in facts.snapshot.catalog.misspellings for container in pod.containers for name in container.resource_names)


def _valid_entries(facts: Facts, subject: ReviewedPod, enforced: Policies) -> list[applied.Entry]:
    """Return the entries of ``berth.dev/applied`` that the pod arrives with and that the policies in force
    write themselves."""
    request = subject.request
    if applied.APPLIED not in subject.pod.annotations or request.phase != "mutate" or request.operation == "UPDATE":
        return []
    return _true(facts, subject, enforced).entries


def _true(facts: Facts, subject: ReviewedPod, enforced: Policies) -> ValidEntries:
    def write(raw: Raw) -> tuple[Edit, ...]:
        before = plan.review_pod(subject.request, facts, Pod(raw))
        return _outcome(facts, before._replace(may_match=subject.may_match, matches=subject.matches), enforced).edits

    return valid_entries.find_valid_entries(subject.pod.raw, facts.snapshot.whole, write)


def arrived(request: Request, facts: Facts) -> Raw:
    """Return a stored pod as it arrived: without what the policies in force wrote into it, and without the
    record of that. The pod may be a projection.

    What the record does not say (it is cut past 1 KiB), and what policies wrote that are no longer in force,
    stays: it counts as the author's. Raises PodError if the pod is not shaped like one.
    """
    subject = plan.review_pod(request, facts, Pod(extract(request.pod, facts.reads)))
    enforced = enforced_of(subject.may_match)
    return valid_entries.before(request.pod, _true(facts, subject, enforced), facts.snapshot.whole)


def _outcome(facts: Facts, subject: ReviewedPod, policies: Policies) -> PolicyOutcome:
    """Return edits, violations and remarks under one set of policies."""
    if not policies or subject.actor.mirror:
        return PolicyOutcome()
    if subject.request.operation == "UPDATE" and not asks_anew(subject.pod, subject.request.old_pod, facts.snapshot.queues):
        # whoever the pod is: most that are updated have a node by now, and no controller adds such a toleration later
        plan_of_update = plan.make_plan(facts, subject, policies)
        checks = (rule.check_update for rule in plan_of_update.demands.merged(acting_rules) if rule.check_update is not None)
        return PolicyOutcome(violations=tuple(violation for check in checks for violation in check(subject.request, plan_of_update)))
    _, result = evaluate_policies(facts, subject, policies)
    remarks = result.remarks if subject.request.phase == "mutate" else ()
    if result.violations:  # nothing is edited then
        return PolicyOutcome((), result.violations, tuple(remark for remark in remarks if remark.code not in OF_EDITS))
    return PolicyOutcome(result.edits, (), remarks)


def evaluate_policies(facts: Facts, subject: ReviewedPod, policies: Policies) -> tuple[Plan, PolicyOutcome]:
    """Make the plan, with the defaults that are chosen on /mutate, and let every rule write and judge by it. None of the edits is made if
    there are violations."""
    request, made = subject.request, plan.make_plan(facts, subject, policies)
    edits: list[Edit] = []
    if request.phase == "mutate":
        made = defaults.choose(made)
    remarks = dict.fromkeys(made.remarks)  # in order, each once
    rules = made.demands.merged(acting_rules)
    for rule in rules if request.phase == "mutate" else ():
        for written in rule.mutate(request, made) if rule.mutate is not None else ():
            if isinstance(written, Edit):
                edits.append(written)
            else:
                remarks.setdefault(written)
    violations: dict[object, Violation] = {}
    for found in _check(request, made, RULES if made.violations else rules):
        if isinstance(found, Remark):
            remarks.setdefault(found)
        elif not (known := violations.get((found.key, found.advice))) or (found.fixes and not known.fixes):
            violations[found.key, found.advice] = found  # two rules may find the same; one of them may know its fix
            if len(violations) == MOST_FOUND:
                break
    return made, PolicyOutcome(tuple(edits), tuple(violations.values()), tuple(remarks))


def _check(request: Request, made: Plan, rules: Iterable[Rule]) -> Iterator[Violation | Remark]:
    """Yield every violation that this actor may be denied for: of each rule first those that planning found. The others, about its
    placement, become remarks."""
    spared = messages.SPARED[made.actor.placement]
    for rule in rules:
        planned = [violation for violation in made.violations if violation.rule == rule.name] if made.violations else ()
        for found in chain(planned, rule.check(request, made) if rule.check is not None else ()):
            yield _spared(found, made) if isinstance(found, Violation) and found.code in spared else found


def _spared(violation: Violation, made: Plan) -> Remark:
    return Remark(
        code=violation.code,
        found=phrase("spared", fact=violation.found, fix=violation.advice, actor=made.actor.names),
        rule=violation.rule,
        policies=violation.policies,
        path=violation.path,
        fields=violation.fields,
    )


def _holding(subject: ReviewedPod, snapshot: Snapshot) -> Holding:
    """Return what a pod will hold, with its node affinity written. A model is one of the catalog where the placement leaves only that,
    else the family, else ``ANY``; a slice counts as the part of a device that it is at least."""
    names, devices, usd = list(subject.space.wanted), dict[str, float](), 0.0
    for device in subject.devices.asked:
        number, model, each = _whole_devices(device, snapshot), ANY, None
        if device.resource.name in names:
            at = names.index(device.resource.name)
            model, each = snapshot.costs.of((cell.table, cell.offered[at]) for cell in subject.space.cells if cell.possible)
        devices[model] = devices.get(model, 0.0) + number
        usd += number * (each or 0.0)
    for claim in subject.devices.claimed:
        devices[ANY] = devices.get(ANY, 0.0) + float(min(claim.count.least, _MOST_DEVICES))
    return Holding(tuple([(model, devices[model]) for model in sorted(devices) if devices[model]]), usd)


def _whole_devices(device: RequestedDevice, snapshot: Snapshot) -> float:
    least = min(device.count.least, _MOST_DEVICES)
    if device.resource.parts is None and device.resource.kind != "mig":
        return float(least)
    return float(Fraction(least) * share(device.resource, snapshot.catalog)[0])
