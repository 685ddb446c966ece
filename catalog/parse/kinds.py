"""Parse catalog data on kinds of workloads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from catalog.parse.reader import Fields, Notes, show_yaml
from catalog.workload import FIELDS, BaseObject, Between, DescribedPods, DeviceFields, TemplatePatch, Workload, join_path

_RESOURCE = re.compile(r"[a-z][a-z0-9]*")
_VERSION = re.compile(r"(?:[a-z0-9.-]+/)?v[a-z0-9]+")
_STEPS = r"[A-Za-z]\w*(?:\.[A-Za-z]\w*)*"
_PATH = re.compile(rf"{_STEPS}(?:(?:\[\*\]|\.\*)(?:\.{_STEPS}|$)){{0,2}}", re.ASCII)
"""Names joined by dots, with two stars at most: a webhook's condition can express no more, and no kind is
known to need as many."""
_END = re.compile(rf"{_STEPS}(?:=.+)?", re.ASCII)
_SIDES = ("limits", "requests")
_KUEUE: tuple[Literal["suspends", "gates"], ...] = ("suspends", "gates")

_SLURM: tuple[Literal["workload", "controller"], ...] = ("workload", "controller")


def parse_workload(entry: Fields) -> Workload:
    """Return one line of the section ``workloads``."""
    return Workload(
        name=entry.text("name"),
        kind=entry.maybe_text("kind") or entry.text("name"),
        owners=_kinds(entry, "owners"),
        labels=entry.texts("labels"),
        service=entry.flag("service"),
        api_version=entry.texts("apiVersions"),
        resource=entry.maybe_text("resource") or "",
        cluster=entry.flag("cluster"),
        through=next(iter(_kinds(entry, "through")), None),
        scheduler=entry.maybe_text("scheduler") or "",
        templates=entry.texts("templates"),
        places=entry.records("pods", _place),
        refers=entry.records("refers", _base),
        finished=entry.texts("finished"),
        kueue=entry.maybe_choice("kueue", _KUEUE),
        slurm=entry.maybe_choice("slurm", _SLURM),
    )


def between(entry: Fields) -> Between:
    """Return one line of the section ``between``."""
    plural = entry.text("resource")
    if plural and not _RESOURCE.fullmatch(plural):
        entry.notes.append(
            f"{entry.at('resource')}: expected the kind as the API's paths have it, such as revisions, got {show_yaml(plural)}"
        )
    return Between(group=entry.text("group"), kind=entry.text("kind"), resource=plural)


def _kinds(entry: Fields, key: str) -> tuple[tuple[str, str], ...]:
    return tuple(_kind(item, path, entry.notes) for item, path in entry.listed(key))


def _kind(item: object, path: str, notes: Notes) -> tuple[str, str]:
    """Return ``batch/Job`` as (group, kind); the core group is empty: ``/Node``."""
    if isinstance(item, str) and item.count("/") == 1:
        group, kind = item.split("/")
        return group, kind
    notes.wanted(path, "an API group and kind such as batch/Job", item)
    return "", ""


def _place(entry: Fields) -> DescribedPods:
    base = entry.records("base", _base)
    return DescribedPods(
        root=entry.maybe_text("root") or "",
        at=_several(entry, "at"),
        spec=_several(entry, "spec"),
        labels=_several(entry, "labels"),
        annotations=_several(entry, "annotations"),
        containers=_several(entry, "containers"),
        init_containers=_several(entry, "initContainers"),
        resources_as=entry.maybe_text("resourcesAs") or "resources",
        resources=_several(entry, "resources"),
        devices=entry.records("devices", _devices),
        fields={name: paths for name in FIELDS if (paths := _several(entry, name))},
        patches=entry.records("patches", _patch),
        base=base[0] if base else None,
    )


def _several(entry: Fields, key: str) -> tuple[str, ...]:
    """Return a field that is one text or a list of them."""
    value = entry.raw(key)
    return (value,) if isinstance(value, str) else entry.texts(key)


def _devices(entry: Fields) -> DeviceFields:
    return DeviceFields(
        container=entry.text("container"),
        side=entry.maybe_choice("side", _SIDES) or _SIDES[0],
        amount=entry.maybe_text("amount") or "",
        name=entry.maybe_text("name") or "",
        default=entry.maybe_text("default") or "",
        amounts=entry.maybe_text("amounts") or "",
    )


def _patch(entry: Fields) -> TemplatePatch:
    return TemplatePatch(
        at=entry.maybe_text("at") or ".",
        path=entry.text("path"),
        of=entry.maybe_text("of") or "",
        only=entry.maybe_text("only") or "",
    )


def _base(entry: Fields) -> BaseObject:
    return BaseObject(
        kinds=_kinds(entry, "kinds"), name=entry.text("name"), kind=entry.maybe_text("kind") or "", place=entry.whole("place")
    )


def unreachable(workload: Workload) -> Iterator[str]:
    """Yield what keeps a webhook configuration from naming a workload that describes pods, or its
    condition from reading them."""
    if not workload.describes_pods:
        return
    where = f"workloads: {workload.name}"
    what = "templates" if workload.templates else "pods"
    if not _RESOURCE.fullmatch(workload.resource):
        yield f"{where}: {what} need a resource, the kind as the API's paths have it (deployments), got {show_yaml(workload.resource)}"
    if not workload.api_version:
        yield f"{where}: {what} need apiVersions"
    for version in workload.api_version:
        if not _VERSION.fullmatch(version):
            yield f"{where}: expected an apiVersion such as apps/v1, got {show_yaml(version)}"
    for path in (*workload.templates, *(path for place in workload.places for path in paths_of(place))):
        if not _PATH.fullmatch(path):
            yield f"{where}: expected a path of names such as spec.template, with two * or [*] at most, got {show_yaml(path)}"
    for text in workload.finished:
        if not _END.fullmatch(text):
            wanted = "a path of names, and a value if only that one counts, such as status.phase=Failed"
            yield f"{where}: expected {wanted}, got {show_yaml(text)}"
    yield from (f"{where}: pods[{number}] has no containers" for number, one in enumerate(workload.places) if not _holds(one))


def _holds(place: DescribedPods) -> bool:
    return bool(place.spec or place.containers or place.init_containers or place.resources or place.devices or place.patches)


def paths_of(place: DescribedPods) -> Iterator[str]:
    """Yield every path that a place names, from the object's root, those of ``at`` first."""
    starts = [join_path(place.root, at) for at in place.at]
    yield from starts
    named = (*place.containers, *place.init_containers, *place.resources)
    fields = (path for paths in place.fields.values() for path in paths)
    devices = (path for one in place.devices for path in (one.amount, one.name, one.amounts) if path)
    base = (place.base.name,) if place.base else ()
    patches = (_under(patch.at, patch.path) for patch in place.patches)
    plain = (*place.spec, *place.labels, *place.annotations, *patches, *fields, *devices, *base)
    for path in (*(one.rpartition("=")[2] for one in named), *plain):
        if path.startswith("/"):
            yield join_path(place.root, path[1:])
        else:
            yield from (join_path(start, path) for start in starts)


def _under(at: str, path: str) -> str:
    """Return ``path`` within the value at ``at``; a path may also start at the root."""
    return f"/{join_path(at[1:], path)}" if at.startswith("/") else join_path(at, path)
