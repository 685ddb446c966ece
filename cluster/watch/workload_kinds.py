"""The kinds whose objects make pods, with the trims that read their templates: Kubernetes' own workloads, the custom workloads that
the catalog knows, the kinds between those and their pods, and the objects on which they rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import orjson

from analysis.audit.stored_pod import Controller, StoredPod, may_hold_devices
from analysis.audit.templates import template_pods
from catalog import Catalog, Workload
from cluster.watch.kinds import WORKLOADS, Watched, owners_alone
from cluster.watch.trims import kept_metadata, owner_alone
from kube.templates import CONTROLLERS, group_of
from kube.tree import Raw, map_at
from policies.pods.projection import Reads
from policies.workloads.pods import Around

OWN_GROUPS = frozenset({"", "apps", "batch"})
"""API groups of Kubernetes' own workloads."""
PAGE = 100
"""Custom workloads a page: one may have a dozen templates."""
LARGEST = 2**18
"""Bytes of an object, besides metadata and status, that are read: 16 pod templates have 100 KiB at most, and the pods of a
mebibyte take half a second to make."""
Templates = Callable[[Raw, str, str], tuple[StoredPod, ...]]
"""Returns the pods that an object's templates would make, of (object, apiVersion, kind)."""
Failed = Callable[[str, Exception], None]
"""Called with a kind and what went wrong with the templates of one of its objects."""


def workloads(catalog: Catalog, wide: Reads) -> tuple[Watched, ...]:
    """Return Kubernetes' own workloads. An object has ``uid``; ``owner``, its controller or None; ``templates``, its pods as they
    would be; and ``above``, itself as the controller of what would own those."""

    def templates(value: Raw, api_version: str, kind: str) -> tuple[StoredPod, ...]:
        template = map_at(value, *CONTROLLERS[group_of(api_version), kind].template)
        return template_pods(value, api_version, kind, catalog, wide) if may_hold_devices(template) else ()

    return tuple(replace(kind, trim=_trim(templates)) for kind in WORKLOADS)


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

    makers = (replace(kind, trim=_trim(templates)) for kind, _ in _custom(catalog, bases=False) if kind.namespaced)
    return (*makers, *_between(catalog))


def base_kinds(catalog: Catalog) -> tuple[Watched, ...]:
    """Return the kinds on whose objects others lay their fields, such as runtimes. An object has ``base``, its JSON; None
    where that is too large."""
    return tuple(replace(kind, trim=_base) for kind, _ in _custom(catalog, bases=True))


def resting(catalog: Catalog) -> frozenset[tuple[str, str]]:
    """Return (API group, kind) of the workloads that rest on such objects."""
    kinds = (*_custom(catalog, bases=False), *_custom(catalog, bases=True))
    return frozenset((kind.group, kind.kind) for kind, workload in kinds if any(place.base is not None for place in workload.places))


def resources(catalog: Catalog) -> dict[str, list[str]]:
    """Return API group -> plurals of all these kinds."""
    makers = (kind for kind, _ in _custom(catalog, bases=False) if kind.namespaced)
    plurals: dict[str, set[str]] = {}
    for kind in (*makers, *base_kinds(catalog), *_between(catalog)):
        plurals.setdefault(kind.group, set()).add(kind.plural)
    return {group: sorted(plurals[group]) for group in sorted(plurals)}


def as_served(kind: Watched, versions: tuple[str, ...]) -> Watched:
    """Return the kind in the versions that a server has: those that the catalog names first, for these are known."""
    known = {version: number for number, version in enumerate(kind.versions)}
    return replace(kind, versions=tuple(sorted(versions, key=lambda version: known.get(version, len(known)))))


def _custom(catalog: Catalog, *, bases: bool) -> Iterator[tuple[Watched, Workload]]:
    """Yield the custom kinds that others rest on, or all others; of a kind that was moved one for each group."""
    rested_on = {kind for workload in catalog.workloads for place in workload.places if place.base for kind in place.base.kinds}
    for workload in catalog.workloads:
        for group in dict.fromkeys(map(group_of, workload.api_version)) if workload.resource else ():
            if group not in OWN_GROUPS and ((group, workload.kind) in rested_on) is bases:
                versions = (version.rpartition("/")[2] for version in workload.api_version if group_of(version) == group)
                yield _watched(workload.kind, workload.resource, group, tuple(versions), namespaced=not workload.cluster), workload


def _between(catalog: Catalog) -> Iterator[Watched]:
    return (owners_alone(_watched(between.kind, between.resource, between.group)) for between in catalog.between)


def _trim(templates: Templates) -> Callable[[Raw, str, str], Raw]:
    """Return what trims a workload whose pods are found this way."""

    def trim(value: Raw, api_version: str, kind: str) -> Raw:
        owner = owner_alone(value, api_version, kind)
        above = Controller(api_version, kind, value["metadata"]["name"], owner["uid"])
        return {"metadata": kept_metadata(value), **owner, "templates": templates(value, api_version, kind), "above": above}

    return trim


_without_templates = _trim(lambda value, api_version, kind: ())


def _watched(kind: str, plural: str, group: str, versions: tuple[str, ...] = (), *, namespaced: bool = True) -> Watched:
    return Watched(
        kind=kind,
        plural=plural,
        group=group,
        versions=versions,
        namespaced=namespaced,
        custom=True,
        page=PAGE,
        trim=_without_templates,
    )


def _base(value: Raw, api_version: str, kind: str) -> Raw:
    names = kept_metadata(value)
    return {"metadata": names, "base": _text({"apiVersion": api_version, "kind": kind, "metadata": names, "spec": value.get("spec")})}


def _text(value: Any) -> bytes | None:
    """Return JSON; None if it is too large, or deeper than orjson writes."""
    try:
        text = orjson.dumps(value)
    except TypeError:
        return None
    return text if len(text) <= LARGEST else None
