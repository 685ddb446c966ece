"""The outcomes of each policy in one review, one word per rule, and ``berth_policy_outcomes_total``, which
counts them."""

from __future__ import annotations

import collections
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from prometheus_client import CollectorRegistry, Counter

from policies.messages import TABLE
from policies.state.snapshot import Snapshot
from policies.verdict import AuditOutcome, Holding, Mode, Remark, Verdict

Word = Literal["edited", "denied", "would_edit", "would_deny", "skipped", "inexpressible"]
"""``skipped``: a default or a requirement was left out, in whole or in part. ``inexpressible``: the platform
has no means to express it."""

NO_POLICY = "(none)"
"""Stands for the policy where the author's own annotation was denied; no object's name has parentheses."""

REMARKS: Mapping[str, Word | None] = {code: row.word for code, row in TABLE.items() if row.kind == "warning"}
"""The outcome that a remark means for the policies that it names; None: no outcome."""

MOST_POLICY_SERIES = 1000
"""The most series that name a policy: 250 policies with four outcomes each.

Writing one out takes about 10 us on the loop that also answers reviews, so a scrape delays them by 10 ms
more: as long as the swap of a snapshot may. Beyond it: ``policy="(other)"``.
"""
MOST_OF_TENANTS = MOST_POLICY_SERIES // 2
"""The most of them that name a namespace's own policy: the rest is for the cluster's policies, however many
tenants write."""
MOST_OF_ONE = 40
"""The most of them that name a policy of one namespace: ten policies with four outcomes each."""
OTHER = "(other)"


class OutcomeLabels(NamedTuple):
    """The values of the labels, in their order: a tuple, since each review looks some up."""

    policy: str
    rule: str
    mode: Mode
    word: Word


@functools.lru_cache(maxsize=4096)
def _outcome(policy: str, rule: str, mode: Mode, word: Word) -> OutcomeLabels:
    """Return one shared object for all decisions that have it in their tally."""
    return OutcomeLabels(policy, rule, mode, word)


class OutcomeTally(NamedTuple):
    """The counts of one decision, computed once for all pods that share it."""

    is_evaluated: bool
    denied: bool
    """True if the pod was to be created and was denied."""
    admitted: bool
    """True if /validate admitted it: /mutate may be called twice, and another webhook may still deny."""
    unmatched: bool
    uncounted: int
    codes: tuple[str, ...]
    """The codes of remarks, each once."""
    outcomes: tuple[OutcomeLabels, ...]
    holding: Holding
    """The devices of a pod that /validate admitted."""


def tally(phase: str, operation: str, verdict: Verdict) -> OutcomeTally:
    """Return the tally of a verdict given in this phase for this operation (CREATE or UPDATE)."""
    created = operation == "CREATE"
    admitted = created and phase == "validate" and not verdict.violations
    return OutcomeTally(
        is_evaluated=verdict.is_evaluated,
        denied=created and bool(verdict.violations),
        admitted=admitted,
        unmatched=admitted and not verdict.matched,
        uncounted=verdict.uncounted,
        codes=tuple(sorted({remark.code for remark in verdict.remarks})),
        outcomes=tuple(sorted(outcome_words(verdict))),
        holding=verdict.holding,
    )


def of_claim(verdict: Verdict) -> OutcomeTally:
    """Return the tally of a claim: the outcomes of its policies. It is not counted as a pod."""
    return tally("validate", "UPDATE", verdict)


def outcome_words(verdict: Verdict) -> set[OutcomeLabels]:
    """Return the outcomes of a verdict, each once, however many edits or sentences it took."""
    found = {_outcome(policy, edit.rule, "Enforce", "edited") for edit in verdict.edits for policy in edit.policies or (NO_POLICY,)}
    for violation in verdict.violations:
        found.update(_outcome(policy, violation.rule, "Enforce", "denied") for policy in violation.policies or (NO_POLICY,))
    for remark, word in _telling(verdict.remarks):
        found.update(_outcome(policy, remark.rule, "Enforce", word) for policy in remark.policies)
    for outcome in verdict.audit_outcomes:
        found.update(_audit_outcomes(outcome))
    return found


def _audit_outcomes(outcome: AuditOutcome) -> Iterator[OutcomeLabels]:
    """Yield the outcomes of the one policy that was tried."""
    policy, mode = outcome.policy, outcome.mode
    for edit in outcome.edits:
        yield _outcome(policy, edit.rule, mode, "would_edit")
    for violation in outcome.violations:
        yield _outcome(policy, violation.rule, mode, "would_deny")
    for remark, word in _telling(outcome.remarks):
        yield _outcome(policy, remark.rule, mode, word)


def _telling(remarks: Sequence[Remark]) -> Iterator[tuple[Remark, Word]]:
    """Yield the remarks that mean an outcome, with its word.

    A denial's code in a remark means that the pod is spared, because it cannot be denied for that.
    """
    for remark in remarks:
        word = TABLE[remark.code].word
        if word is not None:
            yield remark, word


def _namespace(policy: str) -> str | None:
    """Return the namespace of a policy's id: ml-team of ``GPUPolicy/ml-team/own``; None for a policy of the
    cluster."""
    kind, _, rest = policy.partition("/")
    return rest.partition("/")[0] if kind == "GPUPolicy" else None


class OutcomeCounter:
    """One metric family whose labels name policies: bounded, and with series removed together with their
    policy."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._family = Counter(
            "berth_policy_outcomes_total",
            "Reviews in which a policy had this outcome by this rule: edited or denied (Enforce), would_edit or would_deny (Audit, Warn), "
            "skipped (a default or requirement did not apply, in whole or in part), inexpressible (the platform can't express it).",
            ("policy", "rule", "mode", "outcome"),
            registry=registry,
        )
        self._bound: dict[OutcomeLabels, Counter] = {}
        self._of_tenants: collections.Counter[str] = collections.Counter()
        """The number of series by namespace that name a policy of its own."""
        self._snapshot: Snapshot | None = None

    def count(self, outcome: OutcomeLabels) -> None:
        (self._bound.get(outcome) or self._bind(outcome)).inc()

    def _bind(self, outcome: OutcomeLabels) -> Counter:
        policy, rule, mode, word = outcome
        namespace = _namespace(policy)
        if self._acts(policy, mode) and self._has_room(namespace):
            bound = self._bound[outcome] = self._family.labels(*outcome)
            if namespace is not None:
                self._of_tenants[namespace] += 1
            return bound
        return self._family.labels(policy if policy == NO_POLICY else OTHER, rule, mode, word)

    def _has_room(self, namespace: str | None) -> bool:
        """Return whether a policy of this namespace may have a further series; None: one of the cluster."""
        if namespace is not None and (self._of_tenants[namespace] >= MOST_OF_ONE or self._of_tenants.total() >= MOST_OF_TENANTS):
            return False
        return len(self._bound) < MOST_POLICY_SERIES

    def keep(self, snapshot: Snapshot) -> None:
        """Remove the series of policies that are gone, or have another mode now."""
        self._snapshot = snapshot
        for outcome in [o for o in self._bound if not self._acts(o.policy, o.mode)]:
            del self._bound[outcome]
            self._family.remove(*outcome)
        self._of_tenants = collections.Counter(n for o in self._bound if (n := _namespace(o.policy)) is not None)

    def _acts(self, policy: str, mode: Mode) -> bool:
        found = self._snapshot.policy(policy) if self._snapshot is not None else None
        return found is not None and found.mode == mode
