"""The queue of a workload, as its queue system reads it: whether it is past the queues that are required.

Kueue reads the queue of a workload's own label, KAI that of the topmost owner before the pod's, and Slurm bridge that
of the topmost owner alone, of those it knows. So it is judged when the workload is made or changed, for the pods that
it asks GPUs for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from catalog import Catalog, Workload
from kube.pod import DEFAULT_SCHEDULER, OWNERS, Pod, controlling_owner
from kube.tree import Path, map_at, text_of
from policies import work_budget
from policies.document import Document, InputError
from policies.offers.constraints import Compiled
from policies.planning import plan
from policies.planning.devices import needs_evaluation
from policies.planning.plan import ReviewedPod
from policies.planning.queues import MergedQueues, Past, Required, joining, merge_queues, scheduler_of
from policies.pods.fractions import annotated_fraction
from policies.pods.projection import extract
from policies.pods.queue_systems import ANY, KAI, KAI_SKIPS, KUEUE, KUEUE_PARENT, READ_OF_OWNERS, SLURM, System, owners_of
from policies.request import Request
from policies.state.snapshot import NamespaceFacts
from policies.workloads import parts
from policies.workloads.pods import Around, Owner, Templated, pods_of
from policies.workloads.templates import workload_of

MOST_TEMPLATES = 256
"""The most templates whose pods are read: one with more is not judged, and denied where a queue is required."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedWorkload:
    """A workload that somebody makes or changes."""

    user: str
    value: Mapping[str, Any]
    catalog: Catalog
    owner: Owner
    around: Around

    @property
    def known(self) -> Workload:
        """The catalog's entry for its kind."""
        return self.owner.workload

    def of(self, value: Mapping[str, Any]) -> QueuedWorkload:
        """Return the same workload with other fields."""
        return replace(self, value=value)


@dataclass(frozen=True, slots=True)
class Asking:
    """A pod of a workload that asks for GPUs."""

    subject: ReviewedPod
    template: Path | None
    """The path of its template; None if other fields describe it."""

    def under(self, policies: Sequence[Compiled]) -> MergedQueues:
        """Return what these policies say of its queue."""
        matched = [c for c in policies if c in self.subject.may_match]
        return merge_queues(matched, [c for c in matched if c in self.subject.matches])


@dataclass(frozen=True, slots=True)
class QueuedPods:
    """The pods of a workload."""

    asking: tuple[Asking, ...]
    """Those that ask for GPUs."""
    annotations: frozenset[str]
    """The keys of the annotations of all."""


class WorkloadTooLarge(Exception):
    """A workload has more than ``MOST_TEMPLATES``, or a larger one than is judged."""


def read_pods(made: QueuedWorkload, facts: NamespaceFacts) -> QueuedPods:
    """Return the pods of its templates, as its controller makes them. Raises InputError, PodError and TooLarge."""
    found, keys = [], set[str]()
    for number, one in enumerate(pods_of(Document(file="", value=dict(made.value)), made.owner, made.catalog, made.around)):
        if number == MOST_TEMPLATES:
            raise WorkloadTooLarge
        if isinstance(one, InputError):
            raise one
        if work_budget.items(one.pod) > work_budget.MOST:
            if needs_evaluation(one.pod, facts.snapshot):
                raise WorkloadTooLarge
            continue
        request = Request(namespace=made.owner.namespace, user=made.user, pod=one.pod)
        subject = plan.review_pod(request, facts, Pod(extract(one.pod, facts.reads)))
        keys.update(Pod(one.pod).annotations)
        if subject.devices.asked or subject.pod.claims or annotated_fraction(subject.pod):
            found.append(Asking(subject, _template(one)))
    return QueuedPods(tuple(found), frozenset(keys))


def _template(one: Templated) -> Path | None:
    return one.template if one.parts == parts.template(one.template) else None


def has_parent(value: Mapping[str, Any], catalog: Catalog, system: System) -> bool:
    """Return whether a workload's controlling owner is of a kind that this system knows: then it reads the owner's words."""
    owner = controlling_owner(map_at(value, "metadata"))
    known = workload_of(catalog, text_of(owner.get("apiVersion")), text_of(owner.get("kind")))
    return known is not None and takes(known, system)


def takes(known: Workload, system: System) -> bool:
    """Return whether this system reads its words of workloads of the kind."""
    return (known.kueue if system is KUEUE else known.slurm if system is SLURM else None) is not None


def said(made: QueuedWorkload, system: System) -> object:
    """Return what the workload itself says its queue of this system is; None if it says nothing."""
    return map_at(map_at(made.value, "metadata"), system.where).get(system.key)


@dataclass(frozen=True, slots=True)
class QueueChange:
    """What an update does to a workload by which its pods come into another queue than it says."""

    adopted: bool = False
    """It has an owner that it had not before."""
    grown: bool = False
    """Its pods come to ask for GPUs."""


NONE = QueueChange()
_GROUPED_ANEW = ("Deployment", "CronJob")
"""Kinds of which KAI makes another group for each pod, or Job; it leaves the pods of all others in the group that they have."""


def change(made: QueuedWorkload, before: QueuedWorkload, pods: QueuedPods, pods_before: QueuedPods) -> QueueChange:
    """Return what an update from ``before`` does."""
    grown = bool(pods.asking) and not pods_before.asking and made.known.name not in _GROUPED_ANEW
    return QueueChange(adopted=not _owners(made).issubset(_owners(before)), grown=grown)


def past(
    made: QueuedWorkload, asking: Sequence[Asking], policies: Sequence[Compiled], changed: QueueChange = NONE
) -> Iterator[tuple[Past, Required]]:
    """Yield how the workload is past the queues that these policies require of its pods, each once."""
    found: dict[tuple[Past, Required], None] = {}
    for one in asking:
        merged = one.under(policies)
        if (
            merged.required is not None
            and merged.required.admitted
            and (past := _past(made, one.subject, merged, merged.required, changed))
        ):
            found[past, merged.required] = None
    yield from found


def leaving(made: QueuedWorkload, before: QueuedWorkload, policies: Sequence[Compiled]) -> Iterator[tuple[Past, Required]]:
    """Yield how an update takes a workload out of a queue that one of these policies requires, whatever its pods ask for by now: those
    that there are, and those that another controller makes of an older template, are in the queue that it says."""
    for required in filter(None, (merge_queues([compiled], ()).required for compiled in policies)):
        for system in (system for system in READ_OF_OWNERS if required.of(system) and not required.admits(system, ANY)):
            was, now = said(before, system), said(made, system)
            if isinstance(was, str) and required.admits(system, was) and now is not None and not required.admits(system, str(now)):
                yield Past(how="queue", system=system, path=system.path, value=str(now)), required


def _owners(made: QueuedWorkload) -> set[tuple[str, ...]]:
    return owners_of(map_at(made.value, "metadata"))


def _past(made: QueuedWorkload, subject: ReviewedPod, merged: MergedQueues, required: Required, changed: QueueChange) -> Past | None:
    pod, catalog = subject.pod, made.catalog
    by_controller = made.user in catalog.pod_makers
    joined = joining(pod, subject.actor, merged)
    system = joined.system if joined is not None and joined.why is None else scheduler_of(pod.scheduler)
    if system is None and required.of(SLURM) and not required.of(KUEUE) and pod.scheduler in ("", DEFAULT_SCHEDULER):
        system = SLURM  # whose own webhook gives pods to its scheduler
    if system is not None and required.of(system):
        return _of_system(made, system, required, by_controller=by_controller, changed=changed)
    if not required.of(KUEUE) or made.known.kueue is None:
        return None  # its pods, or the workloads that it makes, are judged themselves
    if has_parent(made.value, made.catalog, KUEUE):  # Kueue holds back the owner and not this, whoever wrote it
        return None if by_controller else Past(how="owner", system=KUEUE, path=OWNERS)
    if made.known.kueue == "gates" and pod.annotations.get(KUEUE_PARENT) not in (None, made.known.name.lower()):
        return Past(how="kueue parent", system=KUEUE, path=("metadata", "annotations", KUEUE_PARENT))
    value = said(made, KUEUE)
    if isinstance(value, str) and value:
        return None if required.admits(KUEUE, value) else Past(how="kueue queue", system=KUEUE, path=KUEUE.path, value=value)
    return Past(how="no queue", system=KUEUE, path=KUEUE.path)


def _of_system(made: QueuedWorkload, system: System, required: Required, *, by_controller: bool, changed: QueueChange) -> Past | None:
    """Return how a workload whose pods name the scheduler of a system is past its queues."""
    if system not in READ_OF_OWNERS or required.admits(system, ANY):
        return None
    if system is SLURM and _of_its_makings(made):
        return None
    if system is KAI and changed.grown:
        return Past(how="grown", system=KAI)
    if system is KAI and KAI_SKIPS[2] in map_at(map_at(made.value, "metadata"), "annotations"):
        return Past(how="group", system=KAI, path=KAI_SKIPS)
    if map_at(made.value, "metadata").get("ownerReferences"):
        if not by_controller:
            return Past(how="owner", system=system, path=OWNERS)
        if changed.adopted:
            return Past(how="adopted", system=system, path=OWNERS)
        if system is not SLURM or not _is_root(made):
            return None
    value = said(made, system)
    if value is None:
        return Past(how="no queue", system=SLURM, path=SLURM.path) if system is SLURM else None
    if isinstance(value, str) and required.admits(system, value):
        return None
    return Past(how="queue", system=system, path=system.path, value=str(value))


def _is_root(made: QueuedWorkload) -> bool:
    """Return whether Slurm bridge reads this workload whatever owns it: it follows owners no further than to the highest
    kind that it knows (slurm-bridge docs/workload.md, Pod grouping)."""
    return made.known.slurm == "workload" and not has_parent(made.value, made.catalog, SLURM)


def _of_its_makings(made: QueuedWorkload) -> bool:
    """Return whether Slurm bridge reads what the workload makes, in its place: a CronJob's Jobs, judged themselves."""
    through = made.known.through
    known = [one for one in made.catalog.workloads if through in one.owners and one.slurm == "workload"]
    return made.known.slurm is None and bool(known)
