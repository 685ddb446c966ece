"""One finding as data: what is found, where, with which values, and what hangs on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from analysis.scan.seen import GpuPod
from kube.scheduling import Blocker

Kind = Literal[
    "pending",
    "never-fits",
    "rollout-waits",
    "misspelt-name",
    "run-on-spot",
    "run-unprotected",
    "notebook-on-large-gpu",
    "nodes-untainted",
    "pool-consolidates",
    "pool-expires",
    "pool-no-grace",
    "pool-short-grace",
    "pool-no-gpu-limit",
    "pool-untainted",
    "pool-family-without-gpu",
    "pool-unknown-machine",
    "node-class-latest-image",
    "gpus-missing",
    "gpus-unhealthy",
    "slices-missing",
    "advertised-twice",
    "labels-unmaintained",
    "labels-without-devices",
    "labels-disagree",
    "mig-not-configured",
    "unlisted-name",
    "quota-counts-nothing",
]
"""The code of a finding, stable: programs compare it."""


class Obstacle(NamedTuple):
    """One thing that keeps a pod off a place (``policies.placement``), without the path in the pod."""

    kind: str
    key: str
    operator: str
    values: tuple[str, ...]
    found: str | None
    need: int
    have: int


def obstacle_of(blocker: Blocker) -> Obstacle:
    """Return a blocker without its path."""
    return Obstacle(blocker.kind, blocker.key, blocker.operator, blocker.values, blocker.found, blocker.need, blocker.have)


class PlaceReason(NamedTuple):
    """Why a pod is not on some places that have what it asks for."""

    places: tuple[str, ...]
    nodes: int
    """Nodes that are there; 0 of a NodePool alone."""
    obstacles: tuple[Obstacle, ...]
    """None: nothing that is judged is in the way."""


Value = str | int | tuple[str, ...] | tuple[PlaceReason, ...]
FindingValues = tuple[tuple[str, Value], ...]
"""The values of one finding, by which alike ones are grouped."""
MOST_NAMED = 5
"""Pods or nodes that a finding names: one is enough to look at."""


class FindingSubject(NamedTuple):
    """The object that a finding is about: a workload, a group of nodes, a NodePool, a node class, a name."""

    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding. Pods of a workload, or nodes of a group, that are alike are one."""

    kind: Kind
    where: FindingSubject
    values: Mapping[str, Value] = field(default_factory=dict)
    """What the sentence needs; the keys depend on the kind (``analysis.scan.wording``)."""
    pods: int = 0
    nodes: int = 0
    names: tuple[str, ...] = ()
    """The first few of these pods or nodes."""
    gpus: int = 0
    """Devices that the pods hold or ask for."""
    usd: float | None = None
    """What those cost an hour; None if that is not known."""
    fixed: int | None = None
    """Pods of which the shipped library would have written what they lack; None where it writes nothing of the kind."""
    rests_on: tuple[str, ...] = ()
    """Kinds of object without which the finding could not have been made, or would be another one."""


def without_pods(finding: Finding) -> Finding:
    """Return a finding on nodes or NodePools without the names of pods and of their owners: the numbers stay."""
    values = {key: value for key, value in finding.values.items() if key != "owners"}
    return replace(finding, values=values, names=() if finding.kind == "unlisted-name" else finding.names)


class Hit(NamedTuple):
    """One pod of which something is found."""

    kind: Kind
    pod: GpuPod
    values: tuple[tuple[str, Value], ...]
    fixed: bool | None
    rests_on: tuple[str, ...] = ()


@dataclass(slots=True)
class _FindingGroup:
    pods: int = 0
    gpus: int = 0
    usd: float | None = None
    fixed: int | None = None
    names: list[str] = field(default_factory=list)
    rests_on: tuple[str, ...] = ()

    def add(self, hit: Hit) -> None:
        self.pods += 1
        self.gpus += hit.pod.gpus
        self.rests_on = hit.rests_on
        if hit.pod.usd is not None:
            self.usd = (self.usd or 0.0) + hit.pod.usd
        if hit.fixed is not None:
            self.fixed = (self.fixed or 0) + hit.fixed
        if len(self.names) < MOST_NAMED:
            self.names.append(hit.pod.stored.name)


def group_findings(hits: Iterable[Hit]) -> Iterable[Finding]:
    """Return a finding for each kind, workload and set of values, with the pods counted."""
    groups: dict[tuple[Kind, FindingSubject, tuple[tuple[str, Value], ...]], _FindingGroup] = {}
    for hit in hits:
        workload = hit.pod.workload
        # Pods that nobody owns stand for themselves as long as they differ; those that are alike are one group.
        where = FindingSubject(workload.kind, workload.namespace, workload.name)
        groups.setdefault((hit.kind, where, hit.values), _FindingGroup()).add(hit)
    for (kind, where, values), group in groups.items():
        if where.kind == "Namespace":
            where = FindingSubject("Pod", where.namespace, group.names[0] if group.pods == 1 else "")
        yield Finding(
            kind=kind,
            where=where,
            values=dict(values),
            pods=group.pods,
            names=tuple(group.names),
            gpus=group.gpus,
            usd=group.usd,
            fixed=group.fixed,
            rests_on=group.rests_on,
        )
