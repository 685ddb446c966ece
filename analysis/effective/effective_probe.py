"""Build the pod with which ``effective`` queries the engine: a pod of a given kind without settings of its
own.

What the kind leaves open (the workload, the labels, the number of GPUs) is removed from a policy's ``match``
before the engine matches it: such a policy acts on some of these pods only, and ``wording.condition``
describes which.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from catalog import Catalog, Workload
from kube import duration
from kube.labels import LabelSelector
from kube.pod import Pod
from kube.templates import bare_pod, pod_of
from policies.objects import wording
from policies.offers.constraints import Compiled
from policies.planning import plan
from policies.pods.actors import workloads_of
from policies.pods.annotations import DURATION
from policies.pods.projection import extract
from policies.policy import Bounds, Match
from policies.request import Request
from policies.state.snapshot import NamespaceFacts
from policies.workloads.templates import find_pod_maker

RESOURCE = "nvidia.com/gpu"
POD = "Pod"
"""The catalog's name for a pod that no workload made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodKind:
    """A kind of pod, by the fields on which ``match`` depends. None: any value."""

    workload: str | None = None
    """As in ``match.workloads``; ``Pod`` for a bare pod."""
    labels: tuple[tuple[str, str], ...] | None = None
    gpus: int | None = None
    seconds: int | None = None
    """The expected duration in seconds; None if none is given."""

    def __str__(self) -> str:
        """Return a description: ``a Job's pod of 8 GPUs, labelled tier=batch, for 6h``."""
        whose = {None: "any pod", POD: "a bare pod"}.get(self.workload, f"a {self.workload}'s pod")
        count = "" if self.gpus is None else f" of {wording.describe_value('spec.match.gpus', Bounds(min=self.gpus, max=self.gpus))}"
        labels = ", ".join(f"{key}={value}" for key, value in self.labels or ())
        labelled = "" if self.labels is None else f", labelled {labels}" if labels else ", without labels"
        return f"{whose}{count}{labelled}" + ("" if self.seconds is None else f", for {duration.format_duration(self.seconds)}")


def request_for(kind: PodKind, namespace: str, catalog: Catalog) -> Request:
    """Return the request that creates such a pod: with one GPU if the number is open, and bare if the
    workload is."""
    manifest: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": POD,
        "metadata": {"labels": dict(kind.labels or ())} | _annotated(kind),
        "spec": {"containers": [{"name": "main", "resources": {"limits": {RESOURCE: 1 if kind.gpus is None else kind.gpus}}}]},
    }
    workload = workload_named(kind.workload, catalog)
    if workload is None or workload.name == POD:
        return Request(namespace=namespace, pod=bare_pod(manifest, namespace))
    api_version = workload.api_version[0] if workload.api_version else "v1"
    maker = find_pod_maker(api_version, workload.name, workload)
    return Request(namespace=namespace, user=maker.user, pod=pod_of(manifest, name="effective", namespace=namespace, maker=maker))


def _annotated(kind: PodKind) -> dict[str, Any]:
    return {} if kind.seconds is None else {"annotations": {DURATION: f"{kind.seconds}s"}}


def workload_named(name: str | None, catalog: Catalog) -> Workload | None:
    """Return the catalog's workload of this name, or None."""
    return next((w for w in catalog.workloads if w.name == name), None)


def known_as(name: str, catalog: Catalog) -> tuple[str, ...]:
    """Return the workloads whose signature the pods of this one carry: those of a CronJob carry a Job's. For
    a bare pod this is ``Pod``."""
    if name == POD:
        return (POD,)
    made = Pod(request_for(PodKind(workload=name), "default", catalog).pod)
    return tuple(workload.name for workload in workloads_of(made, catalog))


# --- which policies act -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """The policies of a namespace, by whether they act on a kind of pod; each of the three is sorted by
    id."""

    always: tuple[Compiled, ...]
    sometimes: tuple[Compiled, ...]
    """Policies that act on some of these pods, as the kind leaves open what they match by."""
    never: tuple[Compiled, ...]


def match(facts: NamespaceFacts, kind: PodKind) -> Matched:
    """Return the policies by whether they act, matched by the engine itself on the part of ``match`` that the
    kind decides."""
    request = request_for(kind, facts.namespace, facts.snapshot.catalog)
    pod = Pod(extract(request.pod, facts.reads))
    known = {c.id: replace(c, policy=replace(c.policy, match=_known(c.policy.match, kind))) for c in facts.policies}
    hold = {c.id for c in plan.review_pod(request, replace(facts, policies=tuple(known.values())), pod).may_match}
    open_ = {name for name in hold for c in facts.policies if c.id == name and known[name].policy.match != c.policy.match}
    return Matched(
        always=tuple(c for c in facts.policies if c.id in hold - open_),
        sometimes=tuple(c for c in facts.policies if c.id in open_),
        never=tuple(c for c in facts.policies if c.id not in hold),
    )


def _known(chosen: Match, kind: PodKind) -> Match:
    """Return the part of ``match`` that this kind decides."""
    return replace(
        chosen,
        pod_selector=None if kind.labels is None else chosen.pod_selector,
        workloads=() if kind.workload is None else chosen.workloads,
        gpus=None if kind.gpus is None else chosen.gpus,
    )


def example(facts: NamespaceFacts, compiled: Compiled, kind: PodKind) -> PodKind | None:
    """Return a kind within this one on which the policy acts; None if there is none that asks for a GPU."""
    chosen = compiled.policy.match
    for workload in chosen.workloads if kind.workload is None and chosen.workloads else (kind.workload,):
        one = replace(
            kind,
            workload=workload,
            labels=kind.labels if kind.labels is not None or chosen.pod_selector is None else _labels_for(chosen.pod_selector),
            gpus=kind.gpus if kind.gpus is not None or chosen.gpus is None else _count_for(chosen.gpus),
        )
        if one.gpus != 0 and compiled in match(facts, one).always:
            return one
    return None


def _labels_for(selector: LabelSelector) -> tuple[tuple[str, str], ...]:
    wanted = dict(selector.match_labels)
    for expression in selector.match_expressions:
        if expression.operator == "In":
            wanted.setdefault(expression.key, expression.values[0])
        elif expression.operator == "Exists":
            wanted.setdefault(expression.key, "")
    return tuple(sorted(wanted.items()))


def _count_for(bounds: Bounds) -> int:
    """Return the smallest number within the bounds, above zero if possible: zero asks for nothing."""
    least = max(bounds.min or 1, 1)
    return least if bounds.max is None or least <= bounds.max else bounds.max
