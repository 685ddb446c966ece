"""The verdict on a workload for its queue: what defaults write, what is required, and what policies in Audit and Warn would do.

As for pods, policies that are not in Enforce are judged when the workload is first reviewed: on mutate where it is
called for the kind, else on validate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from kube import tree as json_tree
from kube.tree import TreePatch
from policies.messages import Phrase
from policies.offers.constraints import Compiled
from policies.patch.build import build_patch
from policies.patch.record import Entry, digest, intact_entries
from policies.planning.outcome import Policies, PolicyOutcome, enforced_of, evaluate_under
from policies.planning.queues import Past, Required
from policies.request import Phase
from policies.rules.queues import queue
from policies.state.snapshot import NamespaceFacts
from policies.verdict import Edit, Remark, Verdict
from policies.workloads.queues import queue_edits
from policies.workloads.queues.queued import NONE, QueuedPods, QueuedWorkload, change, leaving, past, read_pods

_EACH = 2
"""The items (``policies.work_budget``) that each pod that asks for GPUs counts for: only its queue is evaluated."""


def speaks(facts: NamespaceFacts, phase: Phase) -> bool:
    """Return whether any policy of the namespace is about queues, as far as this phase judges it."""
    return any(_speaks(compiled) if phase == "mutate" else compiled.policy.require.queue is not None for compiled in facts.policies)


def requires(facts: NamespaceFacts) -> bool:
    """Return whether a policy in Enforce requires a queue of any of the pods in this namespace."""
    return any(c.mode == "Enforce" and c.policy.require.queue is not None for c in facts.policies)


def _speaks(compiled: Compiled) -> bool:
    return compiled.policy.require.queue is not None or compiled.policy.default.queue is not None


def evaluate_queue(
    made: QueuedWorkload, facts: NamespaceFacts, phase: Phase, *, update: bool = False, before: QueuedWorkload | None = None
) -> Verdict:
    """Return the verdict; not judged if no policy matches any pod of it that asks for GPUs.

    ``update``: it is changed and not made. ``before``: as it was then; what was wrong of that passes. Raises InputError,
    PodError and TooLarge.
    """
    pods = read_pods(made, facts)
    one = _QueueResult(made, pods, facts, phase, before, None if before is None else read_pods(before, facts))
    matched = [
        c for c in facts.policies if _speaks(c) and (any(c in asking.subject.may_match for asking in pods.asking) or one.leaves([c]))
    ]
    enforced, mutates = enforced_of(matched), phase == "mutate"
    valid_entries = one.valid_entries(enforced) if mutates else []

    def evaluate(policies: Policies) -> PolicyOutcome:
        result = one.under(policies)
        return result._replace(patch=build_patch(made.value, result.edits, valid_entries)) if mutates else result

    # a new workload of a kind that Kueue does not hold back is first reviewed by /validate (``registration.entries``)
    is_first = update or phase == ("validate" if made.known.kueue is None else "mutate")
    verdict = evaluate_under(matched, enforced, evaluate, _EACH * len(pods.asking) if is_first else None)
    return replace(verdict, is_evaluated=bool(matched), violations=() if mutates else verdict.violations)


@dataclass(frozen=True, slots=True)
class _QueueResult:
    made: QueuedWorkload
    pods: QueuedPods
    facts: NamespaceFacts
    phase: Phase
    before: QueuedWorkload | None
    pods_before: QueuedPods | None

    def leaves(self, policies: Sequence[Compiled]) -> list[tuple[Past, Required]]:
        """Return how an update takes the workload out of a queue that one of these policies requires."""
        return list(leaving(self.made, self.before, policies)) if self.before is not None else []

    def under(self, policies: Sequence[Compiled]) -> PolicyOutcome:
        """Return what comes of it under these policies together."""
        edits, remarks = _written(self.made, self.pods, policies, self.facts) if self.phase == "mutate" else ((), ())
        after = self.made.of(_edited(self.made, edits)) if edits else self.made
        known, changed = set[tuple[str, Phrase]](), NONE
        if self.before is not None and self.pods_before is not None:
            changed = change(after, self.before, self.pods, self.pods_before)
            known = {queue.violation(*found).key for found in past(self.before, self.pods_before.asking, policies)}
        ways = list(past(after, self.pods.asking, policies, changed)) or self.leaves(policies)
        violations = (queue.violation(*way) for way in ways)
        return PolicyOutcome(edits, tuple(violation for violation in violations if violation.key not in known), remarks)

    def valid_entries(self, policies: Sequence[Compiled]) -> list[Entry]:
        """Return the entries of ``berth.dev/applied`` that are true: these policies write the same into the workload without it."""
        without: Any = self.made.value
        intact = ((json_tree.path_of(without, entry["path"]), entry) for entry in intact_entries(without))
        claimed = [(path, entry) for path, entry in intact if queue_edits.is_written(path)]
        for path, _ in claimed:
            without = json_tree.remove_at(without, path)
        if not claimed:
            return []
        made = self.made.of(without)
        edits, _ = _written(made, read_pods(made, self.facts), policies, self.facts)
        theirs = {(edit.path, edit.rule, edit.policies, digest(edit.value)) for edit in edits}
        return [entry for path, entry in claimed if (path, entry["rule"], tuple(entry["by"]), entry["is"]) in theirs]


def _written(
    made: QueuedWorkload, pods: QueuedPods, policies: Sequence[Compiled], facts: NamespaceFacts
) -> tuple[tuple[Edit, ...], tuple[Remark, ...]]:
    found = tuple(queue_edits.write_queue(made, pods, policies, facts))
    return tuple(one for one in found if isinstance(one, Edit)), tuple(one for one in found if isinstance(one, Remark))


def _edited(made: QueuedWorkload, edits: Sequence[Edit]) -> dict[str, Any]:
    patch = TreePatch(made.value)
    for edit in edits:
        patch.apply(edit)
    return dict(patch.tree)
