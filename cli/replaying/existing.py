"""The pods that exist in a cluster, judged as they came by the policies of then and of now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from analysis.audit.assessment import Assessment, Owners, workload_of
from analysis.audit.judged import as_it_came
from analysis.audit.stored_pod import StoredPod
from analysis.replay import reported
from analysis.replay.creations import Creation
from analysis.replay.tally import ReplayOutcome
from cli.replaying.comparison import Comparer, Comparison, Example
from cli.replaying.counting import Counted
from cli.replaying.total import Total
from documents.recordings.pieces import Piece
from kube.pod import PodError
from policies.patch.applied import APPLIED
from policies.state.snapshot import Snapshot

CLUSTER = Piece("cluster", "documents")
"""What pods of a cluster are a piece of."""


def count_existing(pods: Sequence[StoredPod], owners: Owners, chosen: Comparison) -> Total:
    """Judge all pods of a cluster. What policies of then in Enforce wrote into a pod is taken away before it is judged; what others wrote
    counts as the author's."""
    counts, comparer, total = Counted(), Comparer(chosen), Total()
    for pod in pods:
        _count_pod(pod, owners, comparer, counts)
    total.add(CLUSTER, counts)
    return total


def _count_pod(pod: StoredPod, owners: Owners, comparer: Comparer, counts: Counted) -> None:
    chosen = comparer.chosen
    try:
        creation = _creation(pod, chosen.then or chosen.now)
    except PodError:
        counts.pass_over("unshaped", 0)
        return
    judged = comparer.of(creation)
    if isinstance(judged, str):
        counts.pass_over(judged, 0)
        return
    outcome, result = judged
    outcome = _of_its_own(outcome, pod, owners, chosen)
    counts.add(outcome, 0, lambda: comparer.example(creation, outcome, result)._replace(pod=pod.name))


def add_reported(total: Total, pods: Sequence[StoredPod], assessment: Assessment) -> None:
    """Add the pods of a cluster, of which the reports of ``total`` say what was found then."""
    counts = Counted()
    audited = [one for pod in pods if (one := assessment.of(pod)) is not None]
    for pod, outcome in reported.compare_reports(audited, reported.read_reports(total.reports)):
        reasons = tuple(text for finding in pod.outcomes for text in finding.texts)
        counts.add(outcome, 0, partial(Example, pod.stored.name, reasons, ()))
    total.add(CLUSTER, counts)


def _creation(pod: StoredPod, then: Snapshot) -> Creation:
    request, facts = pod.request(), then.facts_for(pod.namespace)
    if APPLIED in (request.pod["metadata"].get("annotations") or ()):
        request = replace(request, pod=as_it_came(pod, request, facts))
    return Creation(request=request, then=None)


def _of_its_own(outcome: ReplayOutcome, pod: StoredPod, owners: Owners, chosen: Comparison) -> ReplayOutcome:
    """Return the outcome with the pod's workload, and what its devices cost on its node."""
    workload = workload_of(pod, owners)
    own = ("Pod", "") if workload.kind == "Namespace" else (workload.kind, workload.name)
    if not pod.node or outcome.difference is None:
        return outcome._replace(workload=own)
    price = chosen.prices.of_device(chosen.now.cluster.nodes.get(pod.node, {}))
    return outcome._replace(workload=own, stake=outcome.stake.on(price))
