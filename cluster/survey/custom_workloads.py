"""The custom workloads that the catalog knows, as ``workloads`` has Kubernetes' own, and what stands around them: the kinds
between them and their pods, and the objects on which they rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson

from analysis.audit.stored_pod import StoredPod
from analysis.audit.templates import template_pods
from catalog import Catalog, Workload
from cluster.survey.workloads import trimmed
from cluster.watch.kinds import Watched
from kube.templates import group_of
from kube.tree import Raw
from policies.pods.projection import Reads
from policies.workloads.pods import Around

OWN_GROUPS = frozenset({"", "apps", "batch"})
"""API groups of Kubernetes' own workloads."""
PAGE = 100
"""Custom workloads a page: one may have a dozen templates."""
LARGEST = 2**18
"""Bytes of an object, besides metadata and status, that are read: 16 pod templates have 100 KiB at most, and the pods of a
mebibyte take half a second to make."""
Failed = Callable[[str, Exception], None]
"""Called with a kind and what went wrong with the templates of one of its objects."""


def custom_workloads(catalog: Catalog, wide: Reads, around: Around, failed: Failed) -> tuple[Watched, ...]:
    """Return the kinds whose objects make pods, and those between them and their pods, which have no templates.

    What is in no namespace makes no pods of its own.
    """

    def templates(value: Raw, api_version: str, kind: str) -> tuple[StoredPod, ...]:
        if _text({name: part for name, part in value.items() if name not in ("metadata", "status")}) is None:
            return ()
        try:
            return template_pods(value, api_version, kind, catalog, wide, around)
        except Exception as error:  # noqa: BLE001 - one object that somebody's schema lets pass must not hide its kind
            failed(f"{kind}.{group_of(api_version)}", error)
            return ()

    trim, bases = trimmed(templates), _bases(catalog)
    makers = [
        _watched(one.kind, one.resource, group, versions, trim)
        for one, group, versions in _custom(catalog)
        if not one.cluster and (group, one.kind) not in bases
    ]
    between = [_watched(one.kind, one.resource, one.group, (), _plain) for one in catalog.between]
    return (*makers, *(replace(kind, metadata_only=True, page=2000) for kind in between))


def base_kinds(catalog: Catalog) -> tuple[Watched, ...]:
    """Return the kinds on whose objects others lay their fields, such as runtimes. An object has ``base``, its JSON; None
    where that is too large."""
    bases = _bases(catalog)
    return tuple(
        replace(_watched(one.kind, one.resource, group, versions, _base), namespaced=not one.cluster)
        for one, group, versions in _custom(catalog)
        if (group, one.kind) in bases
    )


def resting(catalog: Catalog) -> frozenset[tuple[str, str]]:
    """Return (API group, kind) of the workloads that rest on such objects."""
    return frozenset((group, one.kind) for one, group, _ in _custom(catalog) if any(place.base is not None for place in one.places))


def resources(catalog: Catalog) -> dict[str, list[str]]:
    """Return API group -> plurals of all these kinds."""
    bases = _bases(catalog)
    found = {(group, one.resource) for one, group, _ in _custom(catalog) if not one.cluster or (group, one.kind) in bases}
    found |= {(one.group, one.resource) for one in catalog.between}
    return {group: sorted(plural for where, plural in found if where == group) for group in sorted({group for group, _ in found})}


def as_served(kind: Watched, versions: tuple[str, ...]) -> Watched:
    """Return the kind in the versions that a server has: those that the catalog names first, for these are known."""
    known = {version: number for number, version in enumerate(kind.versions)}
    return replace(kind, versions=tuple(sorted(versions, key=lambda one: known.get(one, len(known)))))


def _custom(catalog: Catalog) -> list[tuple[Workload, str, tuple[str, ...]]]:
    """Return (workload, API group, versions) of each custom kind; of one that was moved once for each group."""
    return [
        (one, group, tuple(version.rpartition("/")[2] for version in one.api_version if group_of(version) == group))
        for one in catalog.workloads
        if one.resource
        for group in dict.fromkeys(map(group_of, one.api_version))
        if group not in OWN_GROUPS
    ]


def _watched(kind: str, plural: str, group: str, versions: tuple[str, ...], trim: Callable[[Raw, str, str], Raw]) -> Watched:
    return Watched(kind=kind, plural=plural, group=group, versions=versions, namespaced=True, custom=True, page=PAGE, trim=trim)


def _bases(catalog: Catalog) -> frozenset[tuple[str, str]]:
    return frozenset(kind for one in catalog.workloads for place in one.places if place.base is not None for kind in place.base.kinds)


_plain = trimmed(lambda value, api_version, kind: ())


def _base(value: Raw, api_version: str, kind: str) -> Raw:
    metadata = value["metadata"]
    names = {name: metadata[name] for name in ("name", "namespace", "resourceVersion") if name in metadata}
    return {"metadata": names, "base": _text({"apiVersion": api_version, "kind": kind, "metadata": names, "spec": value.get("spec")})}


def _text(value: Any) -> bytes | None:
    """Return JSON; None if it is too large, or deeper than orjson writes."""
    try:
        text = orjson.dumps(value)
    except TypeError:
        return None
    return text if len(text) <= LARGEST else None
