"""The queue of a workload: what a default labels it with, and whether it is past the queues that are required.

Kueue reads the queue of a workload's own label, KAI that of the topmost owner before the pod's, and Slurm bridge that
of the topmost owner alone. So it is judged when the workload is made or changed, for the pods that it asks GPUs for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from policies.catalog import Catalog, Workload
from policies.planning import plan
from policies.planning.plan import Subject
from policies.pods.permissions import QUEUE_NAME, annotated_fraction
from policies.pods.projection import extract
from policies.pods.queue_systems import ANY, KAI, KUEUE, SLURM, System, given
from policies.pods.view import DEFAULT_SCHEDULER, Pod, Raw
from policies.queues.joining import Idle, Joined, joining, scheduler_of, silent
from policies.queues.judging import Past
from policies.request import Request
from policies.settings import queues as settings
from policies.settings.queues import MergedQueues, Required
from policies.settings.running import Named
from policies.state.snapshot import Facts
from policies.values.untyped import map_at, maps_in, text_of
from policies.workloads.templates import workload_of

_OWNERS = ("metadata", "ownerReferences")


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A workload that somebody makes or changes."""

    namespace: str
    user: str
    value: Mapping[str, Any]
    catalog: Catalog
    known: Workload
    """The catalog's entry for its kind."""
    pods: Sequence[Raw]
    """Those of its templates, as its controller makes them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """The label of Kueue's queue that a default gives."""

    queue: str
    policies: tuple[str, ...]


def asks(facts: Facts) -> bool:
    """Return whether a policy in Enforce requires a queue of any of the pods in this namespace."""
    return any(c.mode == "Enforce" and c.policy.require.queue is not None for c in facts.policies)


def gives(facts: Facts) -> bool:
    """Return whether a policy in Enforce gives a queue by default in this namespace."""
    return any(c.mode == "Enforce" and c.policy.default.queue is not None for c in facts.policies)


def label(made: Made, facts: Facts) -> Label | Idle | Named[Any] | None:
    """Return what ``default.queue`` makes of a new workload: its label; why there is none, or the policies that differ;
    None if it is silent, the workload's author is not, or Kueue does not hold the workload back by itself."""
    if made.known.kueue is None or _labels(made.value).get(QUEUE_NAME) is not None or has_parent(made.value, made.catalog):
        return None
    found: list[Label | Idle] = []
    for about, merged in _asking(made, facts):
        default = merged.default
        if default is None or not silent(about.pod, about.actor) or about.pod.scheduler not in ("", DEFAULT_SCHEDULER):
            return None
        if default.value is None:
            return default
        system, queue = given(default.value)
        if system is not KUEUE:
            return None
        if merged.required is not None and not merged.required.admits(KUEUE, queue):
            return Idle(system=KUEUE, queue=queue, policies=default.policies, why="queue not required")
        found.append(Label(queue=queue, policies=default.policies))
    return found[0] if found and all(one == found[0] for one in found) else None


def has_parent(value: Mapping[str, Any], catalog: Catalog) -> bool:
    """Return whether the controlling owner is of a kind that Kueue holds back: then Kueue reads the owner's label."""
    owners = maps_in(map_at(value, "metadata").get("ownerReferences"))
    owner = next((one for one in owners if one.get("controller") is True), {})
    known = workload_of(catalog, text_of(owner.get("apiVersion")), text_of(owner.get("kind")))
    return known is not None and known.kueue is not None


def past(made: Made, facts: Facts) -> Iterator[tuple[Past, Required]]:
    """Yield how the workload is past the queues that are required of its pods, each once."""
    found: dict[tuple[Past, Required], None] = {}
    for about, merged in _asking(made, facts):
        if merged.required is not None and merged.required.admitted and (one := _past(made, about, merged, merged.required)):
            found[one, merged.required] = None
    yield from found


def _asking(made: Made, facts: Facts) -> Iterator[tuple[Subject, MergedQueues]]:
    """Yield the pods that ask for GPUs, each with what policies in Enforce say of its queue."""
    for raw in made.pods:
        request = Request(namespace=made.namespace, user=made.user, pod=raw)
        about = plan.subject(request, facts, Pod(extract(raw, facts.reads)))
        if about.devices.asked or about.pod.claims or annotated_fraction(about.pod):
            enforced = [c for c in about.possible if c.mode == "Enforce"]
            yield about, settings.read(enforced, [c for c in enforced if c in about.certain])


def _past(made: Made, about: Subject, merged: MergedQueues, required: Required) -> Past | None:
    pod, catalog = about.pod, made.catalog
    by_controller = made.user in catalog.pod_makers
    joined = joining(pod, about.actor, merged)
    system = joined.system if isinstance(joined, Joined) else scheduler_of(pod.scheduler)
    if system is None and required.of(SLURM) and not required.of(KUEUE) and pod.scheduler in ("", DEFAULT_SCHEDULER):
        system = SLURM  # whose own webhook gives pods to its scheduler
    if system is not None and required.of(system):
        return _of_system(made, system, required, by_controller=by_controller)
    if not required.of(KUEUE) or made.known.kueue is None or (by_controller and has_parent(made.value, catalog)):
        return None  # its pods, or the workloads that it makes, are judged themselves
    value = _labels(made.value).get(QUEUE_NAME)
    if isinstance(value, str) and value:
        return None if required.admits(KUEUE, value) else Past(how="kueue queue", system=KUEUE, about=KUEUE.path, value=value)
    return Past(how="no queue", system=KUEUE, about=KUEUE.path)


def _of_system(made: Made, system: System, required: Required, *, by_controller: bool) -> Past | None:
    """Return how a workload whose pods name the scheduler of a system is past its queues."""
    if system not in (KAI, SLURM) or required.admits(system, ANY):
        return None
    if map_at(made.value, "metadata").get("ownerReferences"):
        return None if by_controller else Past(how="owner", system=system, about=_OWNERS)
    value = map_at(map_at(made.value, "metadata"), system.where).get(system.key)
    if value is None:
        return Past(how="no queue", system=SLURM, about=SLURM.path) if system is SLURM else None
    if isinstance(value, str) and required.admits(system, value):
        return None
    return Past(how="queue", system=system, about=system.path, value=str(value))


def _labels(value: Mapping[str, Any]) -> Mapping[str, Any]:
    return map_at(map_at(value, "metadata"), "labels")
