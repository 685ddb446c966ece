"""Scheduling gates of a pod, which no scheduler looks at until whoever set them removes them all, and whose they are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from catalog import Catalog
from kube.templates import group_of
from kube.tree import Raw, map_at, maps_in, text_of


class SchedulingGate(NamedTuple):
    """One entry of ``spec.schedulingGates``."""

    name: str
    system: str = ""
    """The queue system to whose domain the name belongs: ``Kueue``; "" if none is known."""
    kind: str = ""
    """A workload of that domain, whose operator sets the gate: ``PodCliqueSet``; "" if none is known."""


def read_gates(pod: Raw, catalog: Catalog) -> tuple[SchedulingGate, ...]:
    """Return the gates of a pod, each with its owner by the domain of its name."""
    return tuple(_owned(text_of(gate.get("name")), catalog) for gate in maps_in(map_at(pod, "spec").get("schedulingGates")))


def _owned(name: str, catalog: Catalog) -> SchedulingGate:
    domain = name.rpartition("/")[0]
    systems = (keys.reader for keys in catalog.reserved_keys if keys.prefix == f"{domain}/")
    kinds = (workload.kind for workload in catalog.workloads if domain and domain in map(group_of, workload.api_version))
    system = next(systems, "")
    return SchedulingGate(name, system, "" if system else next(kinds, ""))


def describe_gates(gates: Iterable[SchedulingGate]) -> list[str]:
    """Return each gate with its owner, if known: ``kueue.x-k8s.io/admission (Kueue)``."""
    return [f"{gate.name} ({owner})" if (owner := _describe_owner(gate)) else gate.name for gate in gates]


def _describe_owner(gate: SchedulingGate) -> str:
    return gate.system or (f"operator of {gate.kind}" if gate.kind else "")
