"""What there is to say of one pod, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from analysis.admission.manifest_results import AuthorWarning
from analysis.conditions.server_options import UsedPlatforms
from analysis.fixes.smallest import PodChange, SearchResult
from analysis.kueue.waiting import QueuePosition
from analysis.why.gates import SchedulingGate
from kube.namespace_limits.refusal import Refusal
from kube.scheduling import Blocker
from kube.tree import Path, dotted, map_at, maps_in
from policies.messages.row import Place
from policies.patch.record import Entry
from policies.placement.fleet import Outlook
from policies.placement.together import Room
from policies.verdict import AuditOutcome, Edit, Violation

State = Literal["pending", "denied", "admitted", "waiting", "proposed"]
"""``pending``: a pod without a node. ``denied``: its pods are not created. ``admitted``: a pod on a node, or done.
``waiting``: a workload without pods that nobody denied: suspended, or queued. ``proposed``: of a file."""


class Told(NamedTuple):
    """What somebody else tells, in their own words."""

    who: str
    """``kube-scheduler``, ``karpenter``, ``Kueue`` ..., as the object says it."""
    reason: str
    at: str
    """As the API server writes times."""
    text: str


class Queued(NamedTuple):
    """Where it stands in Kueue."""

    position: QueuePosition
    fact: str
    """What that means, in plain words."""
    next: str
    """What to type next, or to write."""


class RolloutWait(NamedTuple):
    """A rolling update whose new pod waits for devices that its old pods hold."""

    deployment: str
    resource: str
    surge: int
    """Pods that the Deployment starts before it ends one (``maxSurge``, resolved)."""
    holders: tuple[str, ...]
    """The old pods."""
    owner: str
    """``InferenceService llm`` where something else writes the Deployment; else ""."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceKind:
    """One kind of place: nodes that are alike, or a NodePool."""

    title: str
    names: tuple[str, ...]
    """Of the nodes, or of the NodePool."""
    pool: bool
    blockers: tuple[tuple[Blocker, int], ...]
    """Each with the number of nodes that it is on; of capacity the best of them."""
    outlook: Outlook


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """The smallest change, and what it comes to."""

    found: SearchResult
    shown: tuple[Edit, ...] = ()
    """The edits of the template as its author wrote it; () of a pod of the cluster."""
    template: Path = ()
    """The template that the edits are of, with its path in the object; () of a pod, and of one that is made of several parts."""
    place: Place = dotted
    """How to print paths of the edits."""
    beside: tuple[tuple[Path, PodChange], ...] = ()
    """The changes of other templates of the object, with their paths in it."""
    kind: str = ""
    """The object that the edits are of: ``Job``; its pods are made anew."""
    name: str = ""
    runs_on: tuple[str, ...] = ()
    """The places that take the pod then."""
    buys: Mapping[str, tuple[tuple[str, float | None], ...]] = field(default_factory=dict)
    """NodePool -> machines that Karpenter may then make, the cheapest known first, with USD an hour."""
    absent: tuple[str, tuple[str, ...]] | None = None
    """A node and the resources, no accelerators, that it does not offer and that alone keep the pod off; None if there is no such node."""
    anew: bool = False
    """True if a pod that is made anew needs no change: policies write what this one lacks. The change is for where Berth is
    not asked."""

    @property
    def admits(self) -> bool:
        """True if policies deny the pod without the change, and admit it with it."""
        return self.found.admits

    @property
    def steps(self) -> int:
        """The number of steps in all templates."""
        return sum(len(fix.steps) for fix in (self.found.fix, *(fix for _, fix in self.beside)) if fix is not None)

    @property
    def edits_beside(self) -> tuple[Edit, ...]:
        """Those of other templates, with their paths in the object."""
        return tuple(edit._replace(path=(*path, *edit.path)) for path, fix in self.beside for edit in fix.edits)

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits of the pod or template, with paths in it."""
        return self.shown or (() if self.found.fix is None else self.found.fix.edits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Of one pod, or of a workload by one of its pods."""

    title: str
    """``pod/train-0``"""
    namespace: str
    state: State
    pod: str = ""
    """The pod that is explained; "" if there is none."""
    phases: Mapping[str, int] = field(default_factory=dict)
    """Of all pods of a workload."""
    since: str = ""
    node: str = ""
    nominated: str = ""
    gates: tuple[SchedulingGate, ...] = ()
    suspended: bool = False
    """``spec.suspend`` of the workload: it makes no pods until a queue, or somebody, resumes it."""
    queue: Queued | None = None
    """None if it waits in no queue of Kueue's."""
    warnings: tuple[AuthorWarning, ...] = ()
    """What admission tells the author without denying the object; none of a pod that is on a node."""
    told: tuple[Told, ...] = ()
    template: Path = ()
    """The pod template that decides, of an object with several; else ()."""
    other_templates: tuple[Path, ...] = ()
    """Further templates of it that can never be scheduled as they are written."""
    edits: tuple[Edit, ...] = ()
    """What policies write into the pod as its author wrote it, by which it is placed."""
    where: tuple[PlaceKind, ...] = ()
    outlook: Outlook | None = None
    """Of all places; None if places are not known."""
    unchecked: tuple[str, ...] = ()
    """What decides about it and was not checked: values of ``Unchecked``, in the order of its words."""
    refusals: tuple[Refusal, ...] = ()
    """What ResourceQuotas and LimitRanges refuse of pods that are not created yet; ``warnings`` say it."""
    rollout: RolloutWait | None = None
    pods: int = 1
    """Pods like this one that wait, or that a workload has at once."""
    room: Room | None = None
    """For all pods that wait, or that a workload has at once; None for one pod, and where places are not known."""
    remedy: Remedy | None = None
    denials: tuple[Violation, ...] = ()
    unread_policies: bool = False
    """True if the policies of the cluster could not be read."""
    unanswered: bool = False
    """True if its pods were last denied because Berth did not answer the API server."""
    invalid: bool = False
    """True if Kubernetes itself denies the object, and no policy does."""
    policies: tuple[str, ...] = ()
    """Those that apply to the pod."""
    wrote: tuple[Entry, ...] = ()
    """What is recorded in the pod of what policies wrote."""
    summary: int = 0
    """The number of edits where the record is only a count."""
    audit_outcomes: tuple[AuditOutcome, ...] = ()
    missing: tuple[Edit, ...] = ()
    """What policies in Enforce would write, and the pod lacks."""
    outgrown: tuple[Violation, ...] = ()
    """Why policies in Enforce would deny it today."""
    file: str = ""
    """The file that it is of; "" for an object of the cluster."""
    beside: Mapping[str, Outlook | Literal["denied"] | None] = field(default_factory=dict)
    """The other workloads of the file, each as ``kind/name``, with what comes of its pods."""
    unread: Sequence[str] = ()
    platforms: UsedPlatforms | None = None
    """By which it was explained; None where the caller does not say."""
    value: Any = None
    """The object with the fix; None without one."""

    @property
    def is_pod(self) -> bool:
        """True if the object is a pod itself."""
        return self.title.startswith("pod/")

    def requiring(self, blocker: Blocker) -> tuple[str, ...]:
        """Return the policies that wrote the label expression of a blocker into the pod; () if its author did."""
        if blocker.kind not in ("label", "machines") or not blocker.operator:
            return ()
        return next((edit.policies for edit in self.edits if _wrote(edit, blocker)), ())


def _wrote(edit: Edit, blocker: Blocker) -> bool:
    """Return whether the expression of a blocker stands in what an edit wrote: a whole part of the pod, or an item of a list."""
    if edit.path[-1] == "-":
        value = map_at(edit.value)
        return edit.path[:-1] == blocker.path[: len(edit.path) - 1] and blocker.key in (value.get("key"), *_keys(value))
    return bool(edit.path) and edit.path == blocker.path[: len(edit.path)]


def _keys(term: Mapping[Any, Any]) -> list[object]:
    return [expression.get("key") for expression in maps_in(term.get("matchExpressions"))]
