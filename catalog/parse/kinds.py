"""The shapes of kinds of workloads, and whether a webhook can reach the pods that one describes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from catalog.parse.fields import KIND, each, first, struct_of
from catalog.shapes.scalars import TEXT, PatternText
from catalog.shapes.structs import field_of, listed
from catalog.workload import FIELDS, BaseObject, Between, DescribedPods, Workload, join_path
from kube.tree import kind_of

_RESOURCE = re.compile(r"[a-z][a-z0-9]*")
_VERSION = re.compile(r"(?:[a-z0-9.-]+/)?v[a-z0-9]+")
_STEPS = r"[A-Za-z]\w*(?:\.[A-Za-z]\w*)*"
_PATH = re.compile(rf"{_STEPS}(?:(?:\[\*\]|\.\*)(?:\.{_STEPS}|$)){{0,2}}", re.ASCII)
"""Names joined by dots, with two stars at most: a webhook's condition can express no more, and no kind is
known to need as many."""
_END = re.compile(rf"{_STEPS}(?:=.+)?", re.ASCII)
_PATHS = listed(TEXT, alone=True)


def _place(**given: Any) -> DescribedPods:
    fields = {name: given.pop(name) for name in FIELDS if name in given}
    return DescribedPods(fields={name: paths for name, paths in fields.items() if paths}, **given)


_PLACE = struct_of(
    DescribedPods,
    *(field_of(name, _PATHS) for name in FIELDS),
    build=_place,
    **each("at spec labels annotations containers init_containers resources", _PATHS),
    fields=None,
    base=listed(struct_of(BaseObject), first),
)


def _workload(*, name: str, kind: str = "", **given: Any) -> Workload:
    return Workload(name=name, kind=kind or name, **given)


WORKLOAD = struct_of(Workload, build=_workload, through=listed(KIND, first), api_version="apiVersions", places=("pods", listed(_PLACE)))
BETWEEN = struct_of(
    Between, resource=PatternText(wanted="the kind as the API's paths have it, such as revisions", pattern=_RESOURCE.pattern)
)


def unreachable(workload: Workload) -> Iterator[str]:
    """Yield what keeps a webhook configuration from naming a workload that describes pods, or its
    condition from reading them."""
    if not workload.describes_pods:
        return
    where = f"workloads: {workload.name}"
    what = "templates" if workload.templates else "pods"
    if not _RESOURCE.fullmatch(workload.resource):
        yield f"{where}: {what} need a resource, the kind as the API's paths have it (deployments), got {kind_of(workload.resource)}"
    if not workload.api_version:
        yield f"{where}: {what} need apiVersions"
    for version in workload.api_version:
        if not _VERSION.fullmatch(version):
            yield f"{where}: expected an apiVersion such as apps/v1, got {kind_of(version)}"
    for path in (*workload.templates, *(path for place in workload.places for path in paths_of(place))):
        if not _PATH.fullmatch(path):
            yield f"{where}: expected a path of names such as spec.template, with two * or [*] at most, got {kind_of(path)}"
    for text in workload.finished:
        if not _END.fullmatch(text):
            wanted = "a path of names, and a value if only that one counts, such as status.phase=Failed"
            yield f"{where}: expected {wanted}, got {kind_of(text)}"
    yield from (f"{where}: pods[{number}] has no containers" for number, place in enumerate(workload.places) if not _holds(place))


def _holds(place: DescribedPods) -> bool:
    return bool(place.spec or place.containers or place.init_containers or place.resources or place.devices or place.patches)


def paths_of(place: DescribedPods) -> Iterator[str]:
    """Yield every path that a place names, from the object's root, those of ``at`` first."""
    starts = [join_path(place.root, at) for at in place.at]
    yield from starts
    named = (*place.containers, *place.init_containers, *place.resources)
    fields = (path for paths in place.fields.values() for path in paths)
    devices = (
        path for device in place.devices for path in (device.amount, device.name, device.amounts, device.each, device.claims) if path
    )
    base = (place.base.name,) if place.base else ()
    patches = (_under(patch.at, patch.path) for patch in place.patches)
    plain = (*place.spec, *place.labels, *place.annotations, *patches, *fields, *devices, *base)
    for path in (*(text.rpartition("=")[2] for text in named), *plain):
        if path.startswith("/"):
            yield join_path(place.root, path[1:])
        else:
            yield from (join_path(start, path) for start in starts)


def _under(at: str, path: str) -> str:
    """Return ``path`` within the value at ``at``; a path may also start at the root."""
    return f"/{join_path(at[1:], path)}" if at.startswith("/") else join_path(at, path)
