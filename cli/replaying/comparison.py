"""Judges creations by the policies, and compares the decisions with those of then. Pods that are alike are judged once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from analysis.admission_preview import AdmittedPod, preview_admission
from analysis.replay.creations import Creation, Passed
from analysis.replay.decision import RecordedDecision, of_admitted
from analysis.replay.difference import Difference, difference
from analysis.replay.stakes import NOTHING, Stake, Stakes
from analysis.replay.tally import ReplayOutcome
from analysis.reviews.decoding import Unreadable, encoded
from catalog.prices import Prices
from documents.diff import HEADER, unified
from kube.pod import PodError
from kube.tree import Raw, apply_patch, remove_at
from policies import work_budget
from policies.lru import LruCache
from policies.patch.applied import APPLIED
from policies.pods.projection import extract
from policies.request import Request
from policies.state.snapshot import Facts, Snapshot
from policies.work_budget import MOST_READ
from webhook.admission import decision_cache

_MOST_CACHED = 64 * 2**20
"""Bytes of decisions, in each process: some eight thousand pods that differ."""
_OVERHEAD = 12 * 2**10
"""Bytes of a decision with its patches, beside what was read of the pod."""
MOST_DIFF = 400
"""Lines of one diff: a pod of thirty containers that all change."""


class Example(NamedTuple):
    """One pod with an outcome."""

    pod: str
    reasons: tuple[str, ...]
    """Why it is denied now."""
    diff: tuple[str, ...]


@dataclass(slots=True)
class _ComparedDecision:
    admitted: AdmittedPod
    _decision: RecordedDecision | None = None

    @property
    def decision(self) -> RecordedDecision:
        """In the form that can be compared: made when it is needed, since it takes an eighth of the time of judging."""
        if self._decision is None:
            self._decision = of_admitted(self.admitted)
        return self._decision

    @property
    def word(self) -> str:
        return "denied" if self.admitted.violations else "edited" if self.admitted.mutate.edits else "admitted"


class _Result(NamedTuple):
    difference: Difference | None
    stake: Stake
    judged: _ComparedDecision
    then: RecordedDecision | None
    """None if it is not known, or was not needed."""
    compared: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What is judged by which policies. It can be sent to another process."""

    now: Snapshot
    then: Snapshot | None
    """The policies of then, for pods of which no record says what was decided."""
    prices: Prices
    diffs: bool
    anew: bool = False
    """True if the policies of then decide of every pod, whatever a record says was decided."""
    namespace: str | None = None
    """Pods of others are passed over."""


class Comparer:
    """Judges, with what it remembers of the pods before."""

    def __init__(self, chosen: Comparison) -> None:
        self.chosen = chosen
        self._stakes = Stakes(chosen.prices)
        self._judged: LruCache[_ComparedDecision] = LruCache(_MOST_CACHED)
        self._results: LruCache[_Result] = LruCache(_MOST_CACHED)

    def of(self, one: Creation) -> tuple[ReplayOutcome, _Result] | Passed:
        """Return what becomes of a pod, or why it is passed over."""
        request = one.request
        if self.chosen.namespace is not None and request.namespace != self.chosen.namespace:
            return "namespace"
        if self.chosen.anew:
            one = replace(one, then=None)
        try:
            key, size = _key(request, self.chosen.now.facts_for(request.namespace))
            other: Hashable = one.then
            if other is None and self.chosen.then is not None:
                other, _ = _key(request, self.chosen.then.facts_for(request.namespace))
            both = None if key is None else (key, other)
            found = None if both is None else self._results.get(both)
            if found is None:
                found = self._result(one, key, other, size)
                if both is not None:
                    self._results.keep(both, found, size + _OVERHEAD + (one.then.size if one.then is not None else size))
        except (Unreadable, PodError):
            return "unshaped"
        except _TooCostly:
            return "large"
        if not found.judged.admitted.judged and found.difference is None:
            return "accelerator"
        outcome = ReplayOutcome(
            namespace=request.namespace,
            workload=one.workload,
            word=found.judged.word,
            matched=found.judged.admitted.mutate.matched,
            compared=found.compared,
            away=one.then is not None and one.then.away,
            difference=found.difference,
            stake=found.stake,
        )
        return outcome, found

    def example(self, one: Creation, outcome: ReplayOutcome, found: _Result) -> Example:
        """Return a pod with its outcome, as far as it is to be shown: the reasons of one that is denied, the edits of another."""
        reasons = tuple(map(str, found.judged.admitted.violations))
        if not self.chosen.diffs or outcome.difference is None or found.then is None or found.judged.admitted.violations:
            return Example(one.name, reasons, ())
        pod = one.request.pod
        return Example(one.name, reasons, tuple(_diff(pod, found.then, found.judged.decision)))

    def _result(self, one: Creation, key: Hashable, other: Hashable, size: int) -> _Result:
        request = one.request
        facts = self.chosen.now.facts_for(request.namespace)
        judged = self._judge(request, facts, key, size)
        then: RecordedDecision | None = None
        if one.then is not None and one.then.same_as(judged.admitted):
            return _Result(None, NOTHING, judged, None, compared=True)
        if one.then is not None:
            then = one.then.decision()
        elif self.chosen.then is not None:
            then = self._judge(request, self.chosen.then.facts_for(request.namespace), other, size).decision
        differs = None if then is None else difference(then, judged.decision)
        stake = NOTHING
        if differs is not None:
            stake = self._stakes.of(replace(request, pod=_after(request.pod, judged.decision)), facts)
        return _Result(differs, stake, judged, then, compared=then is not None)

    def _judge(self, request: Request, facts: Facts, key: Hashable, size: int) -> _ComparedDecision:
        found = None if key is None else self._judged.get(key)
        if found is None:
            if any(work_budget.items(pod) > work_budget.MOST for pod in (request.pod, request.old_pod or {})):
                raise _TooCostly
            admitted = preview_admission(request, facts)
            found = _ComparedDecision(replace(admitted, request=replace(request, pod={}, old_pod=None), pod={}))  # pods are not held
            if key is not None:
                self._judged.keep(key, found, size + _OVERHEAD)
        return found


class _TooCostly(Exception):
    """Of such a pod more would have to be judged than a server has time for."""


def _key(request: Request, facts: Facts) -> tuple[Hashable, int]:
    """Return what a decision depends on, None for one that is not remembered; and its bytes."""
    text = encoded(extract(request.pod, facts.reads))
    if len(text) > MOST_READ:
        raise _TooCostly
    found = decision_cache.decision_key("mutate", request, facts, text)
    return None if found is None else (*found[:-1], decision_cache.tight(text)), len(text)


def _after(pod: Raw, decision: RecordedDecision) -> Raw:
    """Return the pod as admitted, as far as the patch fits."""
    try:
        after: Raw = apply_patch(pod, decision.patch)
    except (LookupError, TypeError, ValueError, AttributeError):
        return pod
    return after


def _diff(pod: Raw, then: RecordedDecision, now: RecordedDecision) -> Sequence[str]:
    """Return the lines that differ between the pods as they were admitted; a denied pod is shown as it came."""
    before, after = (remove_at(_after(pod, one), ("metadata", "annotations", APPLIED)) for one in (then, now))
    return unified(before, after, "")[HEADER:][:MOST_DIFF]
