"""Makes the explanation of what was read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

from analysis.admission.manifest_results import AuthorWarning, ManifestResult, PodResult, admit_manifest, author_warnings
from analysis.admission.manifests import Manifest, ManifestPod
from analysis.admission.namespace_limits import find_unchecked, pod_refusals
from analysis.admission_preview import Admission
from analysis.audit.audited_decision import AuditedDecision, audit_pod
from analysis.audit.stored_pod import StoredPod, stored, widest
from analysis.conditions.server_options import UsedPlatforms
from analysis.fixes.edits import changed
from analysis.fixes.smallest import MOST_TRIED, Admit, PodChange, SearchResult, runs, smallest
from analysis.fixes.steps import edits_of, steps_of
from analysis.kueue import places, scheduler_limits
from analysis.reviews import audience
from analysis.why import denied, fixes, queued, rollouts
from analysis.why.explanation import Explanation, Remedy, State
from analysis.why.gates import read_gates
from analysis.why.places import (
    absent_resources,
    admit_pinned,
    count_alike,
    describe_group,
    describe_pool,
    placed_result,
    refused_outlook,
    requested_fraction,
)
from analysis.why.surroundings import Surroundings
from analysis.why.told import collect_messages, is_unanswered
from catalog.prices import Prices
from kube.pod import DEFAULT_SCHEDULER, FINISHED, Pod, PodError
from kube.requests import COMPUTE
from kube.scheduling import Wants, wants
from kube.templates import DAEMONS, group_of, pods_at_once
from kube.tree import Raw, ReadOnly, map_at, maps_in, text_of
from policies.engine import arrived
from policies.patch.record import APPLIED, read_summary, recorded
from policies.placement import pool_blockers
from policies.placement.fleet import OUTLOOKS, Fleet, Outlook, best
from policies.placement.pools import Pool
from policies.placement.together import room_for
from policies.placement.unchecked import Unchecked, in_order
from policies.pods.actors import QUEUE_NAME
from policies.request import Request
from policies.rules.requests_match_limits import denied_amounts
from policies.state.snapshot import NamespaceFacts
from policies.verdict import Violation
from policies.workloads.parts import placed


class Explainer:
    """Explains against one snapshot and the places of one cluster. ``fleet``: None if no place is known."""

    def __init__(
        self,
        admission: Admission,
        fleet: Fleet | None,
        prices: Prices,
        *,
        tries: int = MOST_TRIED,
        searched: Admission | None = None,
        advised: Admission | None = None,
        platforms: UsedPlatforms | None = None,
    ) -> None:
        """``tries``: changes that policies evaluate in the search of the smallest. ``searched``: the admission by the policies in
        Enforce alone, by which they do; None where it is not made yet. ``advised``: the admission that gives the warnings that are of no
        policy, where the cluster's policies or platforms are not known."""
        self._snapshot = admission.snapshot
        self._admission = admission
        self._fleet = fleet
        self._prices = prices
        self._tries = tries
        self._searched = searched or admission
        self._advised = advised
        self._platforms = platforms

    def of_object(self, title: str, asked: Surroundings, made_of: Manifest | None) -> Explanation:
        """Return the explanation of an object of the cluster. ``made_of``: what its pods are made of, where that is known."""
        pods = sorted(asked.pods, key=lambda pod: str(map_at(pod, "metadata").get("creationTimestamp")))
        pod = next((one for one in pods if _waits(one)), pods[0] if pods else None)
        facts = self._snapshot.facts_for(asked.namespace)
        base = Explanation(
            title=title,
            namespace=asked.namespace,
            state=_state(pod, asked),
            queue=queued.find_position(asked, made_of, facts),
            phases=Counter(text_of(map_at(one, "status").get("phase")) or "Unknown" for one in pods),
            told=tuple(collect_messages(asked, pod)),
            suspended=map_at(asked.value, "spec").get("suspend") is True,
            unread=tuple(asked.unread.values()),
            platforms=self._platforms,
            unread_policies="ClusterGPUPolicy" in asked.unread,
        )
        if base.state == "denied":
            base = replace(base, unanswered=is_unanswered(base.told))
        outcome = None if made_of is None or not made_of.subjects else admit_manifest(made_of, self._admission)
        if outcome is not None and base.state != "admitted":
            base = replace(base, warnings=self._warnings(outcome))
        if pod is None:
            return base if outcome is None else self._of_outcome(base, outcome)
        waiting = count_alike(wants(one) for one in pods if _waits(one))
        alike = next((count for wanted, count in waiting if wanted == wants(pod)), 1)
        base = replace(base, **_of_pod(pod), pods=alike, gates=read_gates(pod, self._snapshot.catalog))
        as_stored = stored(pod, widest(self._snapshot.catalog))
        one = audit_pod(as_stored, facts)
        if base.state == "admitted":
            return _admitted(base, pod, one)
        if outcome is not None:
            base = replace(base, edits=_made_from(pod, outcome).edits)
        placed = self._placed(replace(base, missing=one.missing if one is not None else ()), pod)
        if placed.outlook != "now":
            placed = replace(placed, rollout=rollouts.find_rollout(asked, pod, placed.where))
        if outcome is not None:
            return _gated(
                self._together(self._remedied(placed, outcome.manifest, placed_result(_made_from(pod, outcome)).subject), waiting)
            )
        written = as_written(pod, as_stored, facts)
        if written is not None:
            admitted = (self._advised or self._admission).of(written)
            warned = audience.warned(admitted.remarks, admitted.violations, written.pod)
            warnings = tuple(AuthorWarning((), remark) for remark in warned)
            placed = replace(placed, warnings=warnings, edits=admitted.edits if self._advised is None else ())
        return _gated(self._together(self._remedied(placed, None, written), waiting))

    def of_manifest(self, title: str, manifest: Manifest, unread: Sequence[str], now: Surroundings | None = None) -> Explanation:
        """Return the explanation of an object of a file, by the pod of the template that decides (``denied.decisive``). ``now``: the
        Deployment that it replaces, as it was read."""
        base = Explanation(
            title=title,
            namespace=manifest.namespace,
            state="proposed",
            file=manifest.document.file,
            unread=tuple(unread),
            platforms=self._platforms,
        )
        outcome = admit_manifest(manifest, self._admission)
        explanation = self._of_outcome(replace(base, warnings=self._warnings(outcome)), outcome)
        if now is None or explanation.outlook == "now" or not rollouts.starts_update(now.value, manifest.value):
            return explanation
        return replace(explanation, rollout=rollouts.find_rollout(replace(now, value=manifest.value), {}, explanation.where))

    def _warnings(self, outcome: ManifestResult) -> tuple[AuthorWarning, ...]:
        own = [*author_warnings(outcome)]
        if self._advised is not None:
            known = {warning.text for warning in own}
            further = author_warnings(admit_manifest(outcome.manifest, self._advised))
            own += [warning for warning in further if not warning.remark.policies and warning.text not in known]
        return tuple(own)

    def _of_outcome(self, base: Explanation, outcome: ManifestResult) -> Explanation:
        pod, others = denied.decisive(outcome, self._fleet)
        if pod.violations:
            return self._admissible(replace(base, state="denied", denials=pod.violations, policies=pod.matched), outcome)
        pod = placed_result(pod)
        said = () if outcome.queue is None else outcome.queue.remarks
        base = replace(
            base,
            policies=pod.matched,
            audit_outcomes=pod.audit_outcomes,
            edits=pod.edits,
            refusals=pod.refusals,
            gates=read_gates(pod.pod, self._snapshot.catalog),
            unchecked=tuple(self._unchecked_before(outcome.manifest, pod)),
            pods=pods_at_once(outcome.manifest.value, pod.subject.template),
            template=pod.subject.template if len(outcome.pods) > 1 else (),
            other_templates=others,
        )
        if base.state == "denied":
            return base
        if base.state == "proposed" and (invalid := [*_invalid(outcome)]):
            return self._corrected(base, outcome.manifest, invalid)
        placed = self._placed(base, pod.pod)
        before = max(refused_outlook(pod.refusals), places.queue_outlook(said), key=OUTLOOKS.index)
        if before == "never":
            return replace(placed, outlook="never")
        if before != "now":
            return _at_best(placed, before)
        each = [(wants(placed_result(one).pod), pods_at_once(outcome.manifest.value, one.subject.template)) for one in outcome.pods]
        return _gated(self._together(self._remedied(placed, outcome.manifest, pod.subject), each))

    def _unchecked_before(self, manifest: Manifest, result: PodResult) -> Iterator[Unchecked]:
        """Yield what decides about pods of a manifest before places do, and is not known."""
        known, pod = self._snapshot.cluster, result.pod
        if not result.subject.is_template and not wants(pod).requests.keys() & set(COMPUTE):
            yield "addedAmounts"
        yield from find_unchecked(manifest.namespace, known)
        in_kueue = QUEUE_NAME in map_at(manifest.value, "metadata", "labels")
        is_known = places.knows_queue(manifest.value, manifest.namespace, known) if in_kueue else True
        if not (is_known and scheduler_limits.knows_limits(manifest.value, pod, known)):
            yield "queues"

    def _placed(self, base: Explanation, pod: Raw) -> Explanation:
        wanted = wants(pod)
        fraction = () if wanted.scheduler == DEFAULT_SCHEDULER else requested_fraction(pod)
        unchecked = {*base.unchecked, *wanted.unjudged, *(() if wanted.scheduler == DEFAULT_SCHEDULER else ("scheduler",))}
        if self._fleet is None:
            return replace(base, unchecked=in_order({*unchecked, "nodes"}))
        unchecked.update(self._fleet.unchecked(wanted))
        where = [describe_group(wanted, group, self._fleet, fraction) for group in self._fleet.groups]
        where += [describe_pool(wanted, pool, self._fleet) for pool in self._fleet.pools]
        where.sort(key=lambda one: (sum(not blocker.passing for blocker, _ in one.blockers), len(one.blockers)))
        outlook = best(wanted, self._fleet)
        if fraction and where and all(place.outlook == "never" for place in where):
            outlook = "unknown"  # another scheduler decides
        return replace(base, where=tuple(where), outlook=outlook, unchecked=in_order(unchecked))

    def _together(self, base: Explanation, pods: Sequence[tuple[Wants, int]]) -> Explanation:
        """Return the explanation with the room for all these pods, if there is more than one."""
        if self._fleet is None or sum(count for _, count in pods) < 2:
            return base
        room = room_for(pods, self._fleet)
        return replace(_at_best(base, room.outlook) if base.outlook == "now" else base, room=room)

    def _remedied(self, base: Explanation, manifest: Manifest | None, subject: ManifestPod | Request | None) -> Explanation:
        """Search the smallest change, of the manifest that makes the pods, or of the pod."""
        if self._fleet is None or subject is None or base.outlook == "now":
            return base
        request = subject if isinstance(subject, Request) else subject.review
        admit = self._admits(request)
        creatable = self._creatable(base, manifest, subject)
        result = smallest(request.pod, self._fleet, self._snapshot.catalog, admit, self._tries, creatable)
        anew = result.fix is not None and not result.fix.steps and bool(base.missing)
        if anew:
            admit = self._admits(request, edited=False)
            result = smallest(request.pod, self._fleet, self._snapshot.catalog, admit, self._tries, creatable)
        if result.fix is None or not result.fix.steps:
            absent = absent_resources(base.where, self._snapshot.catalog) if result.fix is None else None
            return replace(base, remedy=Remedy(found=result, anew=anew, absent=absent))
        then = admit(changed(request.pod, result.fix.edits)).pod
        if manifest is None or isinstance(subject, Request):
            return self._with(replace(base, remedy=Remedy(found=result, anew=anew)), fixes.pod(request.pod, result.fix.edits), then)
        value = fixes.fix_workload(manifest, subject, result.fix.edits)
        remedy = Remedy(found=result, anew=anew, shown=fixes.edits_of_author(subject, result.fix.edits), **_position(subject))
        return self._with(replace(base, remedy=remedy), value, then)

    def _admits(self, request: Request, *, edited: bool = True) -> Admit:
        """Return what becomes of a changed pod; of a DaemonSet's as its controller creates it."""
        admit = self._searched.changes_of(request, edited=edited)
        return admit_pinned(admit) if request.user == DAEMONS else admit

    def _creatable(self, base: Explanation, manifest: Manifest | None, subject: ManifestPod | Request) -> Callable[[ReadOnly], bool]:
        """Return whether LimitRanges and ResourceQuotas let a changed pod be created. Quotas count the pods of the cluster already: of
        those only what no quota ever lets in is refused."""
        worst: Outlook = "now" if base.state == "proposed" else "later"
        template = () if isinstance(subject, Request) else subject.template
        pods = 1 if manifest is None else pods_at_once(manifest.value, template)

        def creatable(pod: ReadOnly) -> bool:
            refusals = pod_refusals(dict(pod), base.namespace, self._snapshot.cluster, pods=pods)
            return OUTLOOKS.index(refused_outlook(refusals)) <= OUTLOOKS.index(worst)

        return creatable

    def _admissible(self, base: Explanation, outcome: ManifestResult) -> Explanation:
        """Search the smallest change of a manifest by which policies admit its pods."""
        every = denied.fix_templates(outcome, self._searched, self._fleet, self._tries)
        denials = {violation.key: violation for one in every for violation in one.denials}
        base = replace(base, denials=tuple(denials.values()) or base.denials)
        refused = any(not self._creatable(base, outcome.manifest, one.subject)(one.then) for one in every)
        if not every or refused or any(one.found.fix is None for one in every):
            return replace(base, remedy=Remedy(found=SearchResult(fix=None)))
        return self._with_all(base, outcome.manifest, every)

    def _corrected(self, base: Explanation, manifest: Manifest, invalid: Sequence[tuple[PodResult, tuple[Violation, ...]]]) -> Explanation:
        """Return the explanation of an object that Kubernetes itself denies, with the change of its templates by which it does not."""
        every = [self._without_denials(pod.subject, denials) for pod, denials in invalid]
        denials = {violation.key: violation for template in every for violation in template.denials}
        base = replace(base, state="denied", invalid=True, denials=tuple(denials.values()), remedy=Remedy(found=SearchResult(fix=None)))
        return base if any(template.found.fix is None for template in every) else self._with_all(base, manifest, every)

    def _without_denials(self, subject: ManifestPod, denials: tuple[Violation, ...]) -> denied.DeniedTemplate:
        """Return a template that Kubernetes denies, with the first fix of each denial; without a change if one of them has none."""
        request = subject.review
        each = [steps_of(fix, request.pod) for denial in denials for fix in denial.fixes[:1]]
        steps = tuple(chain.from_iterable(each)) if all(each) and all(denial.fixes for denial in denials) else ()
        edits = edits_of(steps, request.pod)
        then = self._admission.of(replace(request, pod=changed(request.pod, edits))).pod
        return denied.DeniedTemplate(
            subject, denials, SearchResult(fix=PodChange(steps=steps, edits=edits, place=None) if steps else None), then
        )

    def _with_all(self, base: Explanation, manifest: Manifest, every: Sequence[denied.DeniedTemplate]) -> Explanation:
        """Return the explanation with the change of all templates."""
        first, *others = every
        beside = tuple((template.subject.template, template.found.fix) for template in others if template.found.fix is not None)
        edits = () if first.found.fix is None else fixes.edits_of_author(first.subject, first.found.fix.edits)
        base = replace(base, remedy=Remedy(found=first.found, shown=edits, beside=beside, **_position(first.subject)))
        return self._with(base, denied.apply_fixes(manifest, every), first.then)

    def _with(self, base: Explanation, value: dict[str, Any], then: Mapping[str, Any]) -> Explanation:
        """Return the explanation with the object that has the change, and with what takes its pod ``then``."""
        assert base.remedy is not None
        taken = [] if self._fleet is None else runs(then, self._fleet)
        remedy = replace(
            base.remedy,
            kind=text_of(value.get("kind")) or "Pod",
            name=text_of(map_at(value, "metadata").get("name")),
            runs_on=tuple(place.name for place in taken if not isinstance(place, Pool)),
            buys={pool.name: self._machines(then, pool) for pool in taken if isinstance(pool, Pool)},
        )
        return replace(base, remedy=remedy, value=value)

    def _machines(self, pod: Mapping[str, Any], pool: Pool) -> tuple[tuple[str, float | None], ...]:
        prices = {
            name: found[0] if (found := self._prices.machines.get(name)) else None for name in pool_blockers.machines(wants(pod), pool)
        }
        return tuple(sorted(prices.items(), key=lambda one: (one[1] is None, one[1] or 0.0, one[0])))


def _position(subject: ManifestPod) -> dict[str, Any]:
    """Return where the pod stands in its object: its template, or the path of each of its parts."""
    return {"template": subject.template} if subject.is_template else {"place": partial(placed, parts=subject.parts)}


def _admitted(base: Explanation, pod: Raw, one: AuditedDecision | None) -> Explanation:
    record = map_at(pod, "metadata", "annotations").get(APPLIED)
    base = replace(base, wrote=tuple(recorded(record)), summary=(read_summary(record) or {"edits": 0})["edits"])
    if one is None:
        return base
    return replace(base, policies=one.matched, audit_outcomes=one.audit_outcomes, missing=one.missing, outgrown=one.violations)


def _at_best(explanation: Explanation, outlook: Outlook) -> Explanation:
    """Return the explanation with an outlook that is no better than this; one that is not known stays so."""
    return replace(explanation, outlook=explanation.outlook and max(outlook, explanation.outlook, key=OUTLOOKS.index))


def _gated(explanation: Explanation) -> Explanation:
    """Return the explanation of a pod with its gates, if it has any, among what is checked."""
    if not explanation.gates:
        return explanation
    return _at_best(replace(explanation, unchecked=tuple(n for n in explanation.unchecked if n != "schedulingGates")), "later")


def _invalid(outcome: ManifestResult) -> Iterator[tuple[PodResult, tuple[Violation, ...]]]:
    """Yield each pod of an object with amounts that Kubernetes itself denies.

    Templates of its own kinds count as they are written, other pods as policies repair them.
    """
    of_template = group_of(text_of(outcome.manifest.value.get("apiVersion"))) in ("apps", "batch")
    for pod in outcome.pods:
        denials = tuple(denied_amounts(Pod(pod.subject.review.pod if of_template else pod.pod)))
        if denials and pod.subject.review.operation == "CREATE":
            yield pod, denials


def _waits(pod: Raw) -> bool:
    return not map_at(pod, "spec").get("nodeName") and map_at(pod, "status").get("phase") not in FINISHED


def _state(pod: Raw | None, asked: Surroundings) -> State:
    if pod is not None:
        return "pending" if _waits(pod) else "admitted"
    return "denied" if any(one.get("reason") == "FailedCreate" for one in asked.events) else "waiting"


def _of_pod(pod: Raw) -> dict[str, Any]:
    spec, status, metadata = map_at(pod, "spec"), map_at(pod, "status"), map_at(pod, "metadata")
    return {
        "pod": text_of(metadata.get("name")),
        "since": text_of(metadata.get("creationTimestamp")),
        "node": text_of(spec.get("nodeName")),
        "nominated": text_of(status.get("nominatedNodeName")),
    }


def _made_from(pod: Raw, outcome: ManifestResult) -> PodResult:
    """Return the template that a pod is made of: the one with the same containers."""
    names = _container_names(pod)
    return next((one for one in outcome.pods if _container_names(one.request.pod) == names), outcome.pods[0])


def _container_names(pod: Raw) -> list[Any]:
    return [one.get("name") for one in maps_in(map_at(pod, "spec").get("containers"))]


def as_written(pod: Raw, as_stored: StoredPod, facts: NamespaceFacts) -> Request | None:
    """Return the request of a pod of the cluster as its author wrote it; None for what is no pod."""
    request = replace(as_stored.request(), pod=fixes.cleaned(pod))
    try:
        return replace(request, pod=arrived(request, facts))
    except PodError:
        return None
