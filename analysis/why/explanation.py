"""What there is to say of one pod, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from analysis.fixes.smallest import PodChange, SearchResult
from analysis.kueue.waiting import QueuePosition
from kube.scheduling import Blocker
from kube.tree import Path
from policies.patch.record import Entry
from policies.placement.fleet import Outlook
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
    beside: tuple[tuple[Path, PodChange], ...] = ()
    """The changes of other templates of the object, with their paths in it."""
    kind: str = ""
    """The object that the edits are of: ``Job``; its pods are made anew."""
    name: str = ""
    runs_on: tuple[str, ...] = ()
    """The places that take the pod then."""
    buys: Mapping[str, tuple[tuple[str, float | None], ...]] = field(default_factory=dict)
    """NodePool -> machines that Karpenter may then make, the cheapest known first, with USD an hour."""
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
        return () if self.found.fix is None else self.found.fix.edits


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
    gates: tuple[str, ...] = ()
    suspended: bool = False
    """``spec.suspend`` of the workload: it makes no pods until a queue, or somebody, resumes it."""
    queue: Queued | None = None
    """None if it waits in no queue of Kueue's."""
    told: tuple[Told, ...] = ()
    where: tuple[PlaceKind, ...] = ()
    outlook: Outlook | None = None
    """Of all places; None if places are not known."""
    pods: int = 1
    """Pods like this one that wait, or that a workload has at once."""
    room: int | None = None
    """How many of them have a place now; None if that is not known, or without a bound."""
    most: int | None = None
    """How many have one when nothing else runs."""
    unjudged: tuple[str, ...] = ()
    remedy: Remedy | None = None
    denials: tuple[Violation, ...] = ()
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
    unread: Sequence[str] = ()
    value: Any = None
    """The object with the fix; None without one."""
