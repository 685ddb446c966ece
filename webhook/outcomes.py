"""What each policy did in one review, in one word per rule, and ``berth_policy_outcomes_total``, which counts that."""

from __future__ import annotations

import collections
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from prometheus_client import CollectorRegistry, Counter

from policies.snapshot import Snapshot
from policies.verdict import Mode, Remark, Verdict, Would

Word = Literal["edited", "refused", "would_edit", "would_refuse", "skipped", "inexpressible"]
"""``skipped``: a default or a requirement was left out, in whole or in part. ``inexpressible``: the platform has no words for it."""

NO_POLICY = "(none)"
"""stands for the policy where the author's own annotation was refused; no object's name has parentheses"""

_SAID: Mapping[int, Word | None] = {
    201: None,  # the author's value is unknown; what is required is written all the same
    202: "skipped",  # two defaults differ: neither acts
    203: "skipped",  # part of a default lies outside, or all of a toleration
    204: "skipped",  # nothing is left of a default
    205: "inexpressible",  # the platform's nodes do not tell it: neither written nor judged
    206: None,  # the author's label comes too late
    208: "skipped",  # nothing is known of the accelerator's nodes: a requirement of them is not judged as it is meant
    209: "inexpressible",  # too many terms to say it on more than one platform
    210: "skipped",  # no slice
    211: None,  # the grace period is set, and something else ends the pod sooner
    212: "skipped",  # no protection
    213: "skipped",  # an unknown node: a requirement is not judged
    214: None,  # the author's preferences
    215: "skipped",  # a queue places the pod: judged, not written
    217: None,  # the catalog knows no node for the pod
    218: "skipped",  # a toleration without a grant
    219: "skipped",  # a toleration that nobody may have
    220: None,  # a slice was chosen: the edit is counted
    221: None,  # nodes were chosen: the edit is counted
    222: None,  # the grace period was raised: the edit is counted
    230: "skipped",  # nothing is known of the accelerator: a requirement of it is not judged as it is meant
}
REMARKS: Mapping[str, Word | None] = {f"BERTH-{number}": word for number, word in _SAID.items()}
"""What a remark says of the policies that it names; None: nothing."""

MOST_POLICY_SERIES = 1000
"""Series that name a policy: 250 policies with four outcomes each. To write one out takes about 10 us on the loop that also
answers reviews, so a scrape holds them up by 10 ms more: as long as the swap of a snapshot may. Past it: ``policy="(other)"``."""
MOST_OF_TENANTS = MOST_POLICY_SERIES // 2
"""of them, series that name a namespace's own policy: the rest is the cluster's, however many policies tenants write"""
MOST_OF_ONE = 40
"""of them, series that name a policy of one namespace: ten policies with four outcomes each"""
OTHER = "(other)"


class Outcome(NamedTuple):
    """The values of the labels, in their order: a tuple, since each review looks some up."""

    policy: str
    rule: str
    mode: Mode
    word: Word


@functools.lru_cache(maxsize=4096)
def _outcome(policy: str, rule: str, mode: Mode, word: Word) -> Outcome:
    """One object for all decisions that have it in their tally."""
    return Outcome(policy, rule, mode, word)


class Tally(NamedTuple):
    """What the metrics count of one decision, worked out once for all pods that it is the decision for."""

    judged: bool
    refused: bool
    """created it is not"""
    admitted: bool
    """by /validate: /mutate may be called twice, and another webhook may still refuse"""
    unmatched: bool
    uncounted: int
    codes: tuple[str, ...]
    """of remarks, each once"""
    outcomes: tuple[Outcome, ...]


def tally(phase: str, operation: str, verdict: Verdict) -> Tally:
    """Of a verdict given in this phase for this operation (CREATE or UPDATE)."""
    created = operation == "CREATE"
    admitted = created and phase == "validate" and not verdict.violations
    return Tally(
        judged=verdict.judged,
        refused=created and bool(verdict.violations),
        admitted=admitted,
        unmatched=admitted and not verdict.matched,
        uncounted=verdict.uncounted,
        codes=tuple(sorted({remark.code for remark in verdict.remarks})),
        outcomes=tuple(sorted(outcomes(verdict))),
    )


def of_claim(verdict: Verdict) -> Tally:
    """Of a claim: what its policies did. It is no pod, and is counted as none."""
    return tally("validate", "UPDATE", verdict)


def outcomes(verdict: Verdict) -> set[Outcome]:
    """Each once, however many edits or sentences it took."""
    found = {_outcome(policy, edit.rule, "Enforce", "edited") for edit in verdict.edits for policy in edit.policies or (NO_POLICY,)}
    for violation in verdict.violations:
        found.update(_outcome(policy, violation.rule, "Enforce", "refused") for policy in violation.policies or (NO_POLICY,))
    for remark, word in _telling(verdict.remarks):
        found.update(_outcome(policy, remark.rule, "Enforce", word) for policy in remark.policies)
    for would in verdict.would:
        found.update(_would(would))
    return found


def _would(would: Would) -> Iterator[Outcome]:
    """All of it is the doing of the one policy that was tried."""
    policy, mode = would.policy, would.mode
    for edit in would.edits:
        yield _outcome(policy, edit.rule, mode, "would_edit")
    for violation in would.violations:
        yield _outcome(policy, violation.rule, mode, "would_refuse")
    for remark, word in _telling(would.remarks):
        yield _outcome(policy, remark.rule, mode, word)


def _telling(remarks: Sequence[Remark]) -> Iterator[tuple[Remark, Word]]:
    """A refusal's code in a remark: the pod is spared, because it can't be refused for that."""
    for remark in remarks:
        word = "skipped" if remark.code.startswith("BERTH-1") else REMARKS.get(remark.code)
        if word is not None:
            yield remark, word


def _namespace(policy: str) -> str | None:
    """Of ``GPUPolicy/ml-team/own`` ml-team; None of a policy of the cluster."""
    kind, _, rest = policy.partition("/")
    return rest.partition("/")[0] if kind == "GPUPolicy" else None


class OutcomeCounter:
    """One family whose labels name policies: bounded, and forgotten with its policy."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._family = Counter(
            "berth_policy_outcomes_total",
            "Reviews in which a policy did this by this rule: edited or refused (Enforce), would_edit or would_refuse (Audit, Warn), "
            "skipped (left out a default or requirement, in whole or in part), inexpressible (the platform has no words for it).",
            ("policy", "rule", "mode", "outcome"),
            registry=registry,
        )
        self._bound: dict[Outcome, Counter] = {}
        self._of_tenants: collections.Counter[str] = collections.Counter()
        """by namespace, how many of these name a policy of its own"""
        self._snapshot: Snapshot | None = None

    def count(self, outcome: Outcome) -> None:
        (self._bound.get(outcome) or self._bind(outcome)).inc()

    def _bind(self, outcome: Outcome) -> Counter:
        policy, rule, mode, word = outcome
        namespace = _namespace(policy)
        if self._acts(policy, mode) and self._has_room(namespace):
            bound = self._bound[outcome] = self._family.labels(*outcome)
            if namespace is not None:
                self._of_tenants[namespace] += 1
            return bound
        return self._family.labels(policy if policy == NO_POLICY else OTHER, rule, mode, word)

    def _has_room(self, namespace: str | None) -> bool:
        """For a policy of this namespace; None: the cluster's."""
        if namespace is not None and (self._of_tenants[namespace] >= MOST_OF_ONE or self._of_tenants.total() >= MOST_OF_TENANTS):
            return False
        return len(self._bound) < MOST_POLICY_SERIES

    def keep(self, snapshot: Snapshot) -> None:
        """Forgets what names a policy that is gone, or has another mode now."""
        self._snapshot = snapshot
        for outcome in [o for o in self._bound if not self._acts(o.policy, o.mode)]:
            del self._bound[outcome]
            self._family.remove(*outcome)
        self._of_tenants = collections.Counter(n for o in self._bound if (n := _namespace(o.policy)) is not None)

    def _acts(self, policy: str, mode: Mode) -> bool:
        found = self._snapshot.policy(policy) if self._snapshot is not None else None
        return found is not None and found.mode == mode
