"""The pods that exist in a cluster, judged as they came by the policies of then and of now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from analysis.audit.assessment import Assessment, Owners, workload_of
from analysis.audit.audited_decision import as_it_came
from analysis.audit.stored_pod import StoredPod
from analysis.replay import reported
from analysis.replay.creations import Creation
from analysis.replay.tally import ReplayOutcome
from catalog.prices import Prices
from cli.replaying.comparison import Comparer, Example
from cli.replaying.counting import Counted
from kube.pod import PodError
from policies.patch.record import APPLIED
from policies.state.snapshot import Snapshot


def count_existing(pods: Sequence[StoredPod], owners: Owners, comparer: Comparer, nodes: Mapping[str, Mapping[str, str]]) -> Counted:
    """Judge all pods. What policies of then in Enforce wrote into a pod is taken away before it is judged; what others wrote
    counts as the author's."""
    found = Counted()
    for pod in pods:
        try:
            made = _creation(pod, comparer.chosen.then or comparer.chosen.now)
        except PodError:
            found.pass_over("unshaped", 0)
            continue
        judged = comparer.of(made)
        if isinstance(judged, str):
            found.pass_over(judged, 0)
            continue
        outcome, result = judged
        outcome = _of_its_own(outcome, pod, owners, comparer.chosen.prices, nodes)
        number = found.outcomes.setdefault(outcome, len(found.outcomes))
        if outcome.difference is not None and number not in found.examples:
            example = comparer.example(made, outcome, result)
            found.examples[number] = 0, example._replace(pod=pod.name)
        found.identities.append(0)
        found.numbers.append(number)
    return found


def counted_by_reports(reports: Iterable[Mapping[str, Any]], pods: Sequence[StoredPod], assessment: Assessment) -> Counted:
    """Hold what is found of all pods now against what reports say was found."""
    found = Counted()
    audited = [one for pod in pods if (one := assessment.of(pod)) is not None]
    for pod, outcome in reported.compare_reports(audited, reported.read_reports(reports)):
        number = found.outcomes.setdefault(outcome, len(found.outcomes))
        if outcome.difference is not None and number not in found.examples:
            reasons = tuple(text for one in pod.outcomes for text in one.texts)
            found.examples[number] = 0, Example(pod.stored.name, reasons, ())
        found.identities.append(0)
        found.numbers.append(number)
    return found


def _creation(pod: StoredPod, then: Snapshot) -> Creation:
    request, facts = pod.request(), then.facts_for(pod.namespace)
    if APPLIED in (request.pod["metadata"].get("annotations") or ()):
        request = replace(request, pod=as_it_came(pod, request, facts))
    return Creation(request=request, then=None)


def _of_its_own(
    outcome: ReplayOutcome, pod: StoredPod, owners: Owners, prices: Prices, nodes: Mapping[str, Mapping[str, str]]
) -> ReplayOutcome:
    """Return the outcome with the pod's workload, and what its devices cost on its node."""
    workload = workload_of(pod, owners)
    own = ("Pod", "") if workload.kind == "Namespace" else (workload.kind, workload.name)
    stake = outcome.stake.on(prices.of_device(nodes.get(pod.node, {}))) if pod.node and outcome.difference is not None else outcome.stake
    return outcome._replace(workload=own, stake=stake)
