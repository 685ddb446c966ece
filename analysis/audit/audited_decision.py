"""What policies say of one stored pod: what those in Audit and Warn would do to it, what those in Enforce
would have made of it, and why they would deny it now."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

from analysis.audit.stored_pod import StoredPod
from kube.pod import CountInterval, Pod, PodError
from kube.tree import Raw, remove_at, value_at
from policies.engine import arrived, evaluate
from policies.patch.record import APPLIED
from policies.planning import devices
from policies.pods.projection import extract
from policies.request import Request
from policies.state.snapshot import NamespaceFacts
from policies.verdict import AuditOutcome, Edit, Violation


class AuditedDecision(NamedTuple):
    """The result for one pod. A pod that asks for no accelerator has none."""

    gpus: CountInterval
    """The devices that it holds at once; a slice counts as one."""
    devices: Fraction
    """Whole devices that it takes at least: a slice counts as its part."""
    matched: tuple[str, ...]
    """The policies that apply to it, sorted."""
    audit_outcomes: tuple[AuditOutcome, ...]
    """What each policy in Audit or Warn alone would have done to the pod as it came: policies that would do
    nothing are not among them."""
    uncounted: int
    """Policies in Audit or Warn past the sixteenth, which were not evaluated."""
    missing: tuple[Edit, ...]
    """The edits that policies in Enforce would make and that the pod lacks: it was admitted while Berth was
    away, or under other policies."""
    violations: tuple[Violation, ...]
    """Why policies in Enforce would deny the pod as it is, where it is."""
    came: Raw
    """The pod as it came, of which ``audit_outcomes`` are: a projection."""
    patch: tuple[dict[str, Any], ...]
    """The patch that policies in Enforce gave it, or would have given."""


def audit_pod(pod: StoredPod, facts: NamespaceFacts) -> AuditedDecision | None:
    """Return what the policies of the pod's namespace say of it; None if it asks for no accelerator, or is
    nothing that the API server would store.

    Three verdicts: on the pod as it came, of which ``audit_outcomes`` are a part; on the pod as it is, were it created
    now; and, once it has a node, on the pod where it is.
    """
    request = pod.request()
    try:
        now = evaluate(request, facts)
        if not now.is_evaluated:
            return None
        recorded = APPLIED in (request.pod["metadata"].get("annotations") or ())
        first = replace(request, pod=as_it_came(pod, request, facts)) if recorded else request
        came = evaluate(first, facts) if recorded else now
        where = evaluate(pod.on_its_node(request), facts) if pod.node and not now.violations else now
        held = devices.read_devices(Pod(extract(request.pod, facts.reads)), facts, final=True)
    except PodError:
        return None
    return AuditedDecision(
        gpus=held.units,
        devices=held.at_least(facts.snapshot.catalog),
        matched=now.matched,
        audit_outcomes=tuple(outcome for outcome in came.audit_outcomes if outcome.edits or outcome.dropped or outcome.violations),
        uncounted=came.uncounted,
        missing=now.edits,
        violations=where.violations,
        came=first.pod,
        patch=came.patch,
    )


def as_it_came(pod: StoredPod, request: Request, facts: NamespaceFacts) -> Raw:
    """Return the pod as it came: without what policies in Enforce wrote. Maps that only Berth filled were not there."""
    came = arrived(request, facts)
    for path in pod.whole:
        if value_at(came, path) == {}:
            came = dict(remove_at(came, path))
    return came
