"""Whether the quota of a ClusterQueue is ever large enough for a workload, and whether it is now.

Kueue gives all pods of a template one flavor for each resource. A queue in a cohort may borrow what others lend, up to its borrowing limit
(kueue 0.19 pkg/cache/scheduler/resource_node.go, ``potentialAvailable``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kube.requests import requests, write_units
from kube.templates import pods_at_once
from kube.tree import Raw, dotted, map_at, text_of
from policies.facts.admission_queues import KINDS, ClusterQueue, FlavorQuota
from policies.facts.cluster_facts import ClusterFacts
from policies.messages import Phrase, phrase
from policies.workloads.pods import Owner, Templated

_LEAST_PARALLELISM = "kueue.x-k8s.io/job-min-parallelism"
"""Annotation of a Job that may run with fewer pods (pkg/controller/jobs/job/job_controller.go)."""


class Ceiling(NamedTuple):
    """The most of one resource that a queue can have in one flavor."""

    most: int
    shared: bool = False
    """True if a Cohort object may add to it."""
    free: int | None = None
    """What is left now; None if that is not known."""


def ceiling(quota: FlavorQuota, queue: ClusterQueue, known: ClusterFacts) -> Ceiling | None:
    """Return what a queue can have of one flavor; None if that has no bound that is known."""
    if not queue.cohort:
        reserved = None if queue.reserved is None else dict(queue.reserved).get((quota.flavor, quota.resource), 0)
        return Ceiling(quota.nominal, free=None if reserved is None else max(0, quota.nominal - reserved))
    bound = None if quota.borrowing is None else quota.nominal + quota.borrowing
    lent = _lent(quota, queue, known)
    if lent is not None and (bound is None or quota.nominal + lent < bound):
        return Ceiling(quota.nominal + lent, shared=True)
    return None if bound is None else Ceiling(bound)


def _lent(quota: FlavorQuota, queue: ClusterQueue, known: ClusterFacts) -> int | None:
    """Return the most that the other queues of the cohort lend; None if not all queues are known."""
    if not known.followed.get(KINDS[1]):
        return None
    others = (other for other in known.cluster_queues.values() if other.cohort == queue.cohort and other is not queue)
    same = (lender for other in others for lender in other.quotas if lender[:2] == quota[:2])
    return sum(lender.nominal if lender.lending is None else min(lender.nominal, lender.lending) for lender in same)


def least_pods(value: Raw, template: Templated, owner: Owner) -> int:
    """Return the fewest pods of a template that Kueue admits at once: all of a workload that it suspends, unless a Job says that fewer are
    enough; one of those that it holds back by gates, which may each be admitted alone."""
    if owner.workload.kueue != "suspends":
        return 1
    count = pods_at_once(value, template.template)
    least = text_of(map_at(value, "metadata", "annotations").get(_LEAST_PARALLELISM))
    return min(count, int(least)) if least.isdecimal() and int(least) else count


def quota_phrases(
    value: Raw, template: Templated, owner: Owner, names: Mapping[str, str], queue: ClusterQueue, known: ClusterFacts
) -> Iterator[Phrase]:
    """Yield the resources of which the quota is too small for a template, ever or now. ``names``: of the queue and its ClusterQueue."""
    pods = least_pods(value, template, owner)
    for resource, amount in requests(map_at(template.pod, "spec")).amounts.items():
        ceilings = [ceiling(quota, queue, known) for quota in queue.quotas if quota.resource == resource]
        bounds = [bound for bound in ceilings if bound is not None]
        need = amount * pods
        if not bounds or len(bounds) < len(ceilings) or need <= 0:
            continue
        largest, free = max(bounds, key=lambda bound: bound[:2]), [bound.free for bound in bounds if bound.free is not None]
        shown = {
            **names,
            "resource": resource,
            "template": dotted(template.template),
            "need": write_units(resource, need),
            "most": write_units(resource, largest.most),
            "namespace": owner.namespace,
        }
        if need > largest.most and largest.shared:
            yield phrase("too much shared", cohort=queue.cohort, **shown)
        elif need > largest.most:
            yield phrase("too much", **shown)
        elif len(free) == len(bounds) and max(free) < need:
            yield phrase("queue full", free=write_units(resource, max(free)), **shown)
