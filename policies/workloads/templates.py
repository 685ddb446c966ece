"""The pod templates of a workload, at the paths that the catalog has, and how its pods are made of them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from catalog import Catalog, Workload
from kube.templates import CONTROLLERS, PodMaker, group_of
from kube.tree import Path, kind_of, value_at
from policies.document import Document
from policies.workloads.pod_schema import list_at, map_at


def workload_of(catalog: Catalog, api_version: str, kind: str) -> Workload | None:
    """Return the catalog's workload for a manifest of this kind, whatever the version of its API group.

    Policies may name a workload otherwise than its manifest does (Volcano's ``Job`` is ``VolcanoJob``): then
    its entry is found by the entry's kind, or its owners.
    """
    group = group_of(api_version)
    grouped = [w for w in catalog.workloads if any(group_of(version) == group for version in w.api_version)]
    named = [w for w in grouped if w.kind == kind] or [w for w in grouped if (group, kind) in w.owners]
    return named[0] if named else None


def find_pod_maker(api_version: str, kind: str, workload: Workload) -> PodMaker:
    """Return how the pods of a manifest are made: by Kubernetes itself, or as the catalog describes its
    operator."""
    group = group_of(api_version)
    if (group, kind) in CONTROLLERS:
        return CONTROLLERS[group, kind]
    owner_group, owner_kind = owner = _owner((group, kind), workload)
    built_in = CONTROLLERS.get(owner)
    labels = dict(built_in.labels) if built_in else {}
    for label in workload.labels[:1]:
        key, _, value = label.partition("=")
        labels[key] = value or "{name}"
    version = api_version if owner_group == group else f"{owner_group}/v1"
    return PodMaker(
        owner=built_in.owner if built_in else (version, owner_kind),
        labels=labels,
        user=built_in.user if built_in else "",
        scheduler=workload.scheduler,
    )


def _owner(own: tuple[str, str], workload: Workload) -> tuple[str, str]:
    """Return (API group, kind) of the pods' controller."""
    if own in workload.owners:
        return own
    return workload.through or next(iter(workload.owners), own)


def templates(document: Document, workload: Workload, *, required: bool) -> list[tuple[Path, Any]]:
    """Return (path, template) of each template that is there.

    ``required``: a kind of Kubernetes' own, which must have its template. Raises InputError if a path leads
    through what is no map or list.
    """
    value = document.value
    if "spec" in value:
        map_at(document, value["spec"], ("spec",), null=False)
    found = [pair for text in workload.templates for pair in expand(document, value, steps(text), ()) if pair[1] is not None]
    if not found and required:
        path = steps(workload.templates[0])
        raise document.error(path, f"must be a pod template, a map with metadata and spec; found {kind_of(value_at(value, path))}")
    return found


@lru_cache(maxsize=256)
def steps(text: str) -> Path:
    """Return ``spec.workerGroupSpecs[*].template`` as steps; ``[*]`` is every item of a list, ``*`` every
    value of a map."""
    return tuple(text.replace("[*]", ".[*]").split(".")) if text else ()


def expand(document: Document, value: Any, path: Path, at: Path) -> Iterator[tuple[Path, Any]]:
    """Yield (path, value) of each place at which ``path`` ends, from ``value``, which stands at ``at``.

    There is none if something on the way is absent or null. Raises InputError if the way leads through what
    is no map or list.
    """
    if not path:
        yield at, value
        return
    for key, inner in _children(document, value, path[0], at):
        yield from expand(document, inner, path[1:], (*at, key))


def _children(document: Document, value: Any, step: str | int, at: Path) -> list[tuple[str | int, Any]]:
    if step == "[*]":
        return list(enumerate(list_at(document, value, at)))
    here = map_at(document, value, at)
    if step == "*":
        return list(here.items())
    inner = here.get(str(step))
    return [] if inner is None else [(step, inner)]
