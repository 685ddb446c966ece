"""Whether a queue of Kueue's has a flavor in which the pods of a template run: one that Kueue gives them, and in which policies
admit them.

Kueue holds required node affinity and nodeSelector against the labels of a flavor, of which it reads those on keys that
this flavor has, and its taints of effect NoSchedule and NoExecute against the tolerations of the pod and of the flavor
(kueue 0.19.2 pkg/scheduler/flavorassigner/flavorassigner.go, checkFlavorForPodSets and flavorSelector).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from analysis.admission_preview import preview_admission
from analysis.kueue.quota import quota_phrases
from kube.scheduling import required_terms
from kube.taints import HARD, Taint, is_tolerated
from kube.tree import Raw, dotted, map_at, maps_in, text_of
from policies import work_budget
from policies.facts.admission_queues import KINDS, ClusterQueue, Flavor, Quotas
from policies.messages import Phrase, phrase
from policies.request import Request
from policies.state.snapshot import NamespaceFacts
from policies.verdict import Remark, Violation
from policies.workloads.pods import Owner, Templated

CODE = "BERTH-244"
MOST_WORK, EACH = 3 * work_budget.MOST, 10
"""Items (``policies.work_budget``) of all pods that are judged in flavors, and what each costs besides: as many as three of the
largest pods have, or some thirty ordinary ones. A flavor that is not tried counts as fitting."""
LONGEST = 256
"""Characters of a warning that the API server shows (``analysis.reviews.review``)."""
NAMED = 5
"""The queues, resources and flavors that a sentence names."""


class _Out(NamedTuple):
    """A flavor that is no place for the pods."""

    flavor: str
    reason: Apart | None = None
    """Of Kueue's; None if policies keep the pods out."""
    denial: Violation | None = None
    missing: bool = False
    """True if there is no such flavor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenQueue:
    """A queue that is there and open."""

    name: str
    cluster_queue: str
    found: ClusterQueue


class FlavorTrial:
    """The flavors of one queue, for the templates of one workload."""

    def __init__(self, owner: Owner, facts: NamespaceFacts, queue: OpenQueue) -> None:
        self._owner, self._facts, self._queue = owner, facts, queue
        self._known = facts.snapshot.cluster
        self._spent = 0

    def of(self, value: Raw, one: Templated, wanted: Sequence[str]) -> Iterator[Phrase]:
        """Yield why the queue has no place for the pods of a template of this workload, or may give them a wrong one."""
        shown = {"queue": self._queue.name, "cluster": self._queue.cluster_queue}
        for resource in wanted:
            group = self._queue.found.covering(resource)
            if group is None:
                covered = tuple(name for one in self._queue.found.groups for name in one.resources)[:NAMED]
                yield phrase("not covered" if covered else "nothing covered", resource=resource, covered=covered, **shown)
            elif found := self._placed(one, group):
                yield found
        yield from quota_phrases(value, one, self._owner, shown, self._queue.found, self._known)

    def _placed(self, one: Templated, group: Quotas) -> Phrase | None:
        matched = self._matched(one)
        if matched is None or one.elsewhere or not group.flavors:
            return None
        out: list[_Out] = []
        for name in group.flavors:
            flavor = self._known.flavors.get(name)
            if flavor is None and not self._known.followed.get(KINDS[2]):
                return None
            if flavor is None:
                out.append(_Out(name, missing=True))
            elif reason := apart(matched, flavor):
                out.append(_Out(name, reason))
            elif (denial := self._denied(one, name)) is not None:
                out.append(denial)
        kept_out = [one for one in out if one.reason is None and not one.missing]
        if len(out) == len(group.flavors):
            return self._nowhere(one, kept_out or out, out)
        return self._somewhere(one, kept_out[0]) if kept_out else None

    def _matched(self, one: Templated) -> Any:
        """Return the spec by which Kueue finds flavors; None if that is not known: where it manages pods, Berth leaves it to
        flavors where those of a group run."""
        if self._owner.workload.kueue == "suspends":
            return map_at(one.written, "spec")
        if "kueue" in self._facts.snapshot.queues:
            return None
        admitted = preview_admission(self._request(one), self._facts)
        return None if admitted.violations else map_at(admitted.pod, "spec")

    def _denied(self, one: Templated, name: str) -> _Out | None:
        """Return the flavor if policies in Enforce keep its pods out, and would admit them elsewhere."""
        if self._owner.workload.kueue != "suspends" or not self._facts.enforces or not self._affords(one):
            return None
        flavor, request = self._known.flavors[name], self._request(one)
        there = preview_admission(replace(request, pod=placed(one.pod, flavor)), self._facts)
        if there.violations:
            anyway = {violation.code for violation in preview_admission(request, self._facts).violations}
            denial = there.violations[0]
            return None if anyway else _Out(name, denial=denial)
        beside = apart(map_at(there.pod, "spec"), flavor)
        return _Out(name) if beside is not None and beside.taint is None else None

    def _affords(self, one: Templated) -> bool:
        self._spent += work_budget.items(one.pod) + EACH
        return self._spent <= MOST_WORK

    def _request(self, one: Templated) -> Request:
        return Request(namespace=self._owner.namespace, user=one.user, pod=one.pod)

    def _nowhere(self, one: Templated, first: Sequence[_Out], every: Sequence[_Out]) -> Phrase:
        """Return that no flavor is left: by policies, if they keep the pods out of one that Kueue would give."""
        others = tuple(_why(other) for other in every if other is not first[0])
        by_policy = first[0].reason is None and not first[0].missing
        shown = {"template": dotted(one.template), "queue": self._queue.name, "cluster": self._queue.cluster_queue}
        fix = _fix(first[0], self._owner.namespace)
        plain, longer = ("pods denied", "pods denied others") if by_policy else ("no flavor", "no flavor others")
        some = (phrase(longer, why=_why(first[0]), fix=fix, others=others[:n], **shown) for n in range(len(others[:NAMED]), 0, -1))
        return next(filter(_fits, some), phrase(plain, why=_why(first[0]), fix=fix, **shown))

    def _somewhere(self, one: Templated, wrong: _Out) -> Phrase:
        shown = {"template": dotted(one.template), "queue": self._queue.name, "cluster": self._queue.cluster_queue}
        return phrase("wrong flavor", why=_why(wrong), **shown)


def _fits(one: Phrase) -> bool:
    """Return whether a warning shows the whole sentence."""
    return len(str(Remark(code=CODE, found=one))) <= LONGEST


def _why(out: _Out) -> Phrase:
    if out.missing:
        return phrase("gone", flavor=out.flavor)
    if out.reason is not None and out.reason.taint is not None:
        return phrase("taint", flavor=out.flavor, taint=str(out.reason.taint))
    if out.reason is not None:
        return phrase("label", flavor=out.flavor, key=out.reason.key, value=out.reason.value)
    if out.denial is not None and out.denial.policies:
        return phrase("policy", flavor=out.flavor, policies=out.denial.policies[:2], code=out.denial.code)
    return phrase("place", flavor=out.flavor)


def _fix(out: _Out, namespace: str) -> Phrase:
    if out.missing:
        return phrase("make flavor")
    if out.reason is not None and out.reason.taint is not None:
        return phrase("tolerate")
    if out.reason is not None:
        return phrase("ask for", namespace=namespace)
    return phrase("other queue", namespace=namespace)


_OPERATORS = frozenset(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))


class Apart(NamedTuple):
    """Why pods and a flavor do not match: by a taint of the flavor, or else by a label."""

    taint: Taint | None = None
    key: str = ""
    value: str = ""
    """Of the flavor's label."""


def apart(spec: Mapping[Any, Any], flavor: Flavor) -> Apart | None:
    """Return why pods of this spec do not get a flavor; None if they may, or if the spec is one that Kueue can't read."""
    labels = dict(flavor.labels)
    tolerations = [*maps_in(spec.get("tolerations")), *(toleration.written() for toleration in flavor.tolerations)]
    for taint in flavor.taints:
        if taint.effect in HARD and not is_tolerated(taint, tolerations):
            return Apart(taint=taint)
    for key, value in map_at(spec, "nodeSelector").items():
        if key in labels and labels[key] != value:
            return Apart(key=text_of(key), value=labels[key])
    terms = [[expression for expression in term.labels if expression.key in labels] for term in required_terms(spec) or ()]
    if not all(terms) or any(expression.operator not in _OPERATORS for term in terms for expression in term):
        return None  # a term that says nothing of the flavor's keys matches it
    missed = [next((expression for expression in term if not expression.holds(labels)), None) for term in terms]
    first = next((expression for expression in missed if expression is not None), None)
    return None if first is None or None in missed else Apart(key=first.key, value=labels[first.key])


def placed(pod: Mapping[str, Any], flavor: Flavor) -> dict[str, Any]:
    """Return a pod as it is made once Kueue has given its workload this flavor: with its labels as nodeSelector, and its
    tolerations (pkg/podset, Merge)."""
    spec = map_at(pod, "spec")
    tolerations = [*maps_in(spec.get("tolerations")), *(toleration.written() for toleration in flavor.tolerations)]
    given: dict[str, Any] = {"nodeSelector": {**map_at(spec, "nodeSelector"), **dict(flavor.labels)}} if flavor.labels else {}
    return {**pod, "spec": {**spec, **given, **({"tolerations": tolerations} if tolerations else {})}}
