"""Whether a workload that names a queue of Kueue's can ever leave it: whether the queue is there and open, covers the
devices that are asked for, and has a flavor that the workload matches and whose pods policies admit.

Kueue matches a workload by the templates as they are written, before Berth has edited a pod, and its pods are then
confined to nodes of the flavor. So a flavor that Kueue may give is tried: the pod is judged as it will be made there.
Kinds that are held back by gates are matched by their pods, as Berth leaves them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from analysis.kueue.flavor_trial import CODE, NAMED, FlavorTrial, OpenQueue
from catalog.nearest import nearest
from kube.pod import Pod, PodError
from kube.tree import map_at
from policies import work_budget
from policies.document import Document, InputError
from policies.facts.admission_queues import KINDS, ClusterQueue, LocalQueue
from policies.facts.cluster_facts import ClusterFacts
from policies.messages import At, Phrase, phrase
from policies.placement.fleet import OUTLOOKS, Outlook
from policies.planning import plan
from policies.pods.actors import QUEUE_NAME
from policies.pods.projection import extract
from policies.pods.queue_systems import KUEUE
from policies.request import Request
from policies.state.snapshot import NamespaceFacts
from policies.verdict import Remark
from policies.workloads.pods import ALONE, Around, Owner, Templated, pods_of
from policies.workloads.queues.queued import has_parent

NAME = "queue_places"
MOST_TEMPLATES = 16
"""The most templates that are looked at."""


def waits_in_queue(value: Any, owner: Owner, facts: NamespaceFacts) -> bool:
    """Return whether a workload waits in a queue by its own label, and anything is known of queues."""
    known = facts.snapshot.cluster
    labels = map_at(value, "metadata", "labels")
    return (
        bool(known.local_queues or known.followed)
        and owner.workload.kueue is not None
        and isinstance(labels.get(QUEUE_NAME), str)
        and bool(labels[QUEUE_NAME])
        and not has_parent(value, facts.snapshot.catalog, KUEUE)
    )


def remarks(value: Any, owner: Owner, facts: NamespaceFacts, around: Around = ALONE) -> tuple[Remark, ...]:
    """Return why the workload waits for ever, or may; nothing where it asks for no device, or what it rests on is not known."""
    if not waits_in_queue(value, owner, facts):
        return ()
    try:
        found = dict.fromkeys(_found(value, owner, facts, around))
    except PodError:  # a template that is no pod's is told of by itself
        return ()
    return tuple(Remark(code=CODE, found=one, rule=NAME, path=KUEUE.path) for one in found)


_NEVER = frozenset(
    (
        "no queue near",
        "no queue others",
        "no queue",
        "no cluster queue",
        "another namespace",
        "no flavor",
        "no flavor others",
        "pods denied",
        "pods denied others",
        "too much",
        "over limit",
    )
)
_LATER = frozenset(("stopped", "queue full", "limit full"))
"""The warnings by what becomes of the workload; others are not certain."""


def queue_outlook(warnings: Iterable[Remark]) -> Outlook:
    """Return what its queue makes of a workload with these warnings: ``now`` without any."""
    worst: Outlook = "now"
    for remark in warnings:
        if remark.code == CODE:
            name = remark.found.name
            outlook: Outlook = "never" if name in _NEVER else "later" if name in _LATER else "unknown"
            worst = max(worst, outlook, key=OUTLOOKS.index)
    return worst


def knows_queue(value: Any, namespace: str, known: ClusterFacts) -> bool:
    """Return whether all is known that decides in the queue that a workload names, what others have reserved included."""
    local = known.local_queues.get((namespace, str(map_at(value, "metadata", "labels").get(QUEUE_NAME))))
    queue = None if local is None else known.cluster_queues.get(local.cluster_queue)
    return queue is not None and not queue.cohort and queue.reserved is not None


def _found(value: Any, owner: Owner, facts: NamespaceFacts, around: Around) -> Iterator[Phrase]:
    pods = islice(pods_of(Document(file="", value=value), owner, facts.snapshot.catalog, around), MOST_TEMPLATES)
    small = [one for one in pods if not isinstance(one, InputError) and work_budget.items(one.pod) <= work_budget.MOST]
    every = [(one, wanted) for one in small if (wanted := _wanted(one, owner, facts))]
    if not every:
        return
    queue = _queue(map_at(value, "metadata", "labels")[QUEUE_NAME], owner.namespace, facts)
    if isinstance(queue, Phrase):
        yield queue
    elif queue is not None:
        trial = FlavorTrial(owner, facts, queue)
        for template, wanted in every:
            yield from trial.of(value, template, wanted)


def _wanted(one: Templated, owner: Owner, facts: NamespaceFacts) -> list[str]:
    """Return the devices that the pods of a template ask for by resource name."""
    request = Request(namespace=owner.namespace, user=one.user, pod=one.pod)
    return [asked.resource.name for asked in plan.review_pod(request, facts, Pod(extract(one.pod, facts.reads))).devices.asked]


def _queue(name: str, namespace: str, facts: NamespaceFacts) -> OpenQueue | Phrase | None:
    """Return the queue, or why it admits nothing; None if that is not known."""
    known = facts.snapshot.cluster
    local = known.local_queues.get((namespace, name))
    if local is None:
        there = sorted(one for space, one in known.local_queues if space == namespace)
        return _no_queue(name, namespace, there) if known.followed.get(KINDS[0]) else None
    shown = {"queue": name, "cluster": local.cluster_queue, "namespace": namespace}
    found = known.cluster_queues.get(local.cluster_queue)
    if stopped := _stopped(name, local, found):
        return phrase("stopped", namespace=namespace, **stopped)
    if found is None:
        return phrase("no cluster queue", **shown) if known.followed.get(KINDS[1]) else None
    if namespace in known.namespaces and (found.takes is None or not found.takes.matches(facts.labels)):
        return phrase("another namespace", **shown)
    return OpenQueue(name=name, cluster_queue=local.cluster_queue, found=found)


def _no_queue(name: str, namespace: str, there: Sequence[str]) -> Phrase:
    shown = {"path": At(KUEUE.path), "queue": name, "namespace": namespace}
    if near := nearest(name, there):
        return phrase("no queue near", near=near, **shown)
    return phrase("no queue others", there=tuple(there[:NAMED]), **shown) if there else phrase("no queue", **shown)


def _stopped(name: str, local: LocalQueue, found: ClusterQueue | None) -> dict[str, str]:
    if local.stopped:
        return {"which": f"LocalQueue {name}", "policy": local.stopped}
    return {"which": f"ClusterQueue {local.cluster_queue}", "policy": found.stopped} if found is not None and found.stopped else {}
