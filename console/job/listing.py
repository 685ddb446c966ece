"""The pods and workloads to choose from: those that are denied or wait come first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from analysis.audit.ledger import AuditedPod
from analysis.world.counts import LABELS
from analysis.world.happenings import NOT_CREATED
from analysis.world.world import World
from console.server.page import Visit
from console.server.query import Paged, paged
from console.world.derived import Derived
from console.world.view import View

State = Literal["denied", "waits", "runs", "ended"]
STATES: tuple[State, ...] = ("denied", "waits", "runs", "ended")
ROWS = 25


class JobRow(NamedTuple):
    """One pod, or one workload whose pods are not created."""

    state: State
    namespace: str
    name: str
    """``train-0``; of a workload ``Job/train``."""
    of: str
    """The workload that a pod is of: ``Job/train``."""
    gpus: int
    usd: float | None
    found: tuple[str, ...]
    """What policies find of it."""
    workload: bool


class _SearchedPod(NamedTuple):
    """One pod, as it is searched and sorted."""

    order: int
    words: str
    namespace: str
    pod: AuditedPod


def _known(world: World) -> Sequence[_SearchedPod]:
    """Return all pods in the order of the list."""
    found = []
    for pod in world.ledger.pods.values():
        stored = pod.stored
        if not stored.template:
            order = STATES.index("ended" if stored.finished else "runs" if stored.node else "waits")
            words = f"{stored.namespace}/{stored.name} {pod.workload.kind}/{pod.workload.name}".lower()
            found.append(_SearchedPod(order, words, stored.namespace, pod))
    return sorted(found, key=lambda one: (one.order, one.namespace, one.pod.stored.name))


KNOWN: Derived[World, Sequence[_SearchedPod]] = Derived(_known)


def listing(visit: Visit) -> Paged[JobRow]:
    """Return one page of those that the search names, or of all."""
    view, query = visit.view, visit.query
    words = query.text("q")[:253].lower().split()
    denied = [row for row in dict.fromkeys(_denied(view)) if all(word in f"{row.namespace}/{row.name}".lower() for word in words)]
    pods = view.scope.pods
    every = [one for one in KNOWN.of(view.world) if (pods.every or one.namespace in pods) and all(word in one.words for word in words)]
    both: list[JobRow | _SearchedPod] = [*sorted(denied, key=lambda row: (row.namespace, row.name)), *every]
    page: Paged[Any] = paged(both, query, "/job", size=ROWS)
    rows = [one if isinstance(one, JobRow) else _row(one, view) for one in page.rows]
    return replace(page, rows=rows)


def _row(one: _SearchedPod, view: View) -> JobRow:
    pod, stored = one.pod, one.pod.stored
    labels = tuple(dict.fromkeys(LABELS[outcome.finding] for outcome in pod.outcomes if all(map(view.shows_policy, outcome.policies))))
    workload = "none" if pod.workload.kind == "Namespace" else f"{pod.workload.kind}/{pod.workload.name}"
    return JobRow(STATES[one.order], stored.namespace, stored.name, workload, pod.gpus, pod.usd, labels, workload=False)


def _denied(view: View) -> Iterator[JobRow]:
    """Yield the workloads of which an Event says that a pod was not created."""
    for one in view.happenings():
        if one.reason == NOT_CREATED and one.namespace in view.scope.pods and not one.subject.startswith("Pod/"):
            yield JobRow("denied", one.namespace, one.subject, "", 0, None, (), workload=True)


def namespaces(view: View) -> Sequence[str]:
    """Return the namespaces that are offered for a manifest that names none."""
    return [one for one in view.world.snapshot.cluster.namespaces if one in view.scope.pods] or view.namespaces()
