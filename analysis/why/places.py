"""The places of a pod as data: groups of nodes that are alike and NodePools, each with what is in the way there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from analysis.admission.manifest_results import PodResult
from analysis.admission_preview import AdmittedPod
from analysis.fixes.smallest import Admit
from analysis.why.explanation import PlaceKind
from catalog import Catalog
from catalog.prices import MODEL_KEYS
from kube.labels import INSTANCE_TYPE
from kube.namespace_limits.refusal import Refusal
from kube.node import NodeGroup
from kube.pod import ANNOTATIONS
from kube.scheduling import Blocker, Wants
from kube.templates import is_pinned, pinned, unpinned
from kube.tree import Path, Raw, ReadOnly, map_at
from policies.facts.scheduler_queues import GPU
from policies.placement.fleet import OUTLOOKS, Fleet, Outlook, blockers, outlook
from policies.placement.pools import Pool
from policies.pods.fractions import fraction_keys


def requested_fraction(pod: Raw) -> Path:
    """Return the path of the annotation by which a pod asks the scheduler of KAI or Run:ai for a part of a GPU; () if it asks for none."""
    keys = fraction_keys(map_at(pod, "metadata", "annotations"))
    return (*ANNOTATIONS, keys[0]) if keys else ()


def describe_group(wanted: Wants, group: NodeGroup, fleet: Fleet, fraction: Path = ()) -> PlaceKind:
    """Return a group of nodes with each blocker once, and the number of nodes that it is on. ``fraction``: the annotation that asks for a
    part of a GPU, which a node without GPUs has not."""
    lacking = (Blocker("resource", GPU, need=1, path=fraction),) if fraction and not group.allocatable.get(GPU) else ()
    each = [(*blockers(wanted, node, fleet), *lacking) for node in group.nodes]
    merged: dict[tuple[object, ...], tuple[Any, int]] = {}
    for found in each:
        for one in found:
            key = (one.kind, one.key, one.operator, one.values, one.need, one.path)
            before, count = merged.get(key, (one, 0))
            merged[key] = (one if one.have > before.have else before, count + 1)
    names = tuple(node.name for node in group.nodes)
    best = min(map(outlook, each), key=OUTLOOKS.index)
    return PlaceKind(title=_title(group, wanted), names=names, pool=False, blockers=tuple(merged.values()), outlook=best)


def _title(group: NodeGroup, wanted: Wants) -> str:
    """Return what nodes of a group are, as their labels say, and what they have of the devices that the pod asks for."""
    words = [group.labels[key] for key in (INSTANCE_TYPE, *MODEL_KEYS) if key in group.labels][:2]
    devices = [f"{count} {name}" for name, count in sorted(group.allocatable.items()) if "/" in name and count]
    asked = [one for one in devices if one.partition(" ")[2] in wanted.requests]
    return ", ".join((*words, *(asked or devices)[:3]))


def describe_pool(wanted: Wants, pool: Pool, fleet: Fleet) -> PlaceKind:
    """Return a NodePool with its blockers."""
    found = blockers(wanted, pool, fleet)
    return PlaceKind(title=pool.name, names=(pool.name,), pool=True, blockers=tuple((one, 1) for one in found), outlook=outlook(found))


def absent_resources(where: Sequence[PlaceKind], catalog: Catalog) -> tuple[str, tuple[str, ...]] | None:
    """Return the first node that lacks nothing but resources that it does not offer and that are no accelerators, and their names."""
    for place in where:
        lasting = [blocker for blocker, _ in place.blockers if not blocker.passing]
        if not place.pool and lasting and all(_is_absent(blocker, catalog) for blocker in lasting):
            return place.names[0], tuple(blocker.key for blocker in lasting)
    return None


def _is_absent(blocker: Blocker, catalog: Catalog) -> bool:
    return blocker.kind == "resource" and "/" in blocker.key and not blocker.have and catalog.resource(blocker.key) is None


def count_alike(pods: Iterable[Wants]) -> list[tuple[Wants, int]]:
    """Return each kind of pod with the number of such pods; a workload has a few kinds."""
    kinds: list[Wants] = []
    counts: Counter[int] = Counter()
    for wanted in pods:
        if wanted not in kinds:
            kinds.append(wanted)
        counts[kinds.index(wanted)] += 1
    return [(wanted, counts[number]) for number, wanted in enumerate(kinds)]


def refused_outlook(refusals: Iterable[Refusal]) -> Outlook:
    """Return what ResourceQuotas and LimitRanges make of a pod: room for some pods of the workload is room for this one."""
    every = [refusal for refusal in refusals if refusal.kind != "some"]
    return "now" if not every else "later" if all(refusal.passing for refusal in every) else "never"


def placed_result(result: PodResult) -> PodResult:
    """Return a pod of a DaemonSet with the node affinity of its template, by which the controller picks its nodes; others as they are.
    In the pod itself the controller writes the name of one node, which no author can change."""
    review = result.subject.review
    if not is_pinned(review.pod):
        return result
    template = result.subject.written
    subject = replace(result.subject, review=replace(review, pod=unpinned(review.pod, template)))
    return replace(result, subject=subject, pod=unpinned(result.pod, template))


def admit_pinned(admit: Admit) -> Admit:
    """Return ``admit`` for pods of a DaemonSet with the affinity of their template: policies see the pods that the controller creates."""

    def admit_placed(pod: ReadOnly) -> AdmittedPod:
        admitted = admit(pinned(pod))
        return replace(admitted, pod=unpinned(admitted.pod, pod))

    return admit_placed
