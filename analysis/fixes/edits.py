"""The edits of a change to a pod: values written and removed, resources renamed, amounts lowered in as few places as will do, and by as
little."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Literal

from kube.pod import POD_LEVEL, containers_of
from kube.requests import requests, to_units, write_units
from kube.tree import Path, ReadOnly, TreePatch, map_at, remove_at, value_at
from policies.verdict import Edit

RULE = "fix"
MOST_TOGETHER = 3
"""Places that are lowered together at most."""


def put(path: Path, value: Any, op: Literal["add", "replace"] = "add") -> Edit:
    """Return the edit that writes a value."""
    return Edit(op=op, path=path, value=value, rule=RULE, policies=())


def remove(path: Path) -> Edit:
    """Return the edit that takes a value away."""
    return Edit(op="remove", path=path, rule=RULE, policies=())


def changed(pod: Mapping[str, Any], edits: Iterable[Edit]) -> dict[str, Any]:
    """Return the pod with the edits."""
    patch = TreePatch(pod)
    for edit in edits:
        patch.apply(edit)
    return dict(patch.tree)


def holders(name: str, pod: ReadOnly) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield the maps of limits and requests of containers that name a resource."""
    for path, container in containers_of(map_at(pod, "spec")):
        for side in ("limits", "requests"):
            amounts = map_at(container, "resources", side)
            if name in amounts:
                yield (*path, "resources", side), amounts


def rename_resource(pod: ReadOnly, old: str, new: str) -> Iterator[Edit]:
    """Yield the edits by which a pod asks for a resource under another name; none where the names are the same. A container that
    asks for both keeps what it asks for under the new name."""
    beside = {path[:-1] for path, _ in holders(new, pod)}
    for path, amounts in holders(old, pod) if old != new else ():
        yield remove((*path, old))
        if path[:-1] not in beside:
            yield put((*path, new), amounts[old])


def lower_amount(pod: ReadOnly, name: str, most: int) -> tuple[tuple[Edit, ...], ...] | None:
    """Return the edits, place by place, by which the pod asks for no more than ``most``: () if it does not now, None if there
    are none. A device is asked for once at least where it is asked for."""
    if _total(pod, name) <= max(0, most):  # what is not asked for may be overcommitted
        return ()
    if name in (value_at(pod, (*POD_LEVEL, "requests")) or ()):
        return _whole_pod(pod, name, most)
    places = list(dict.fromkeys(path[:-1] for path, _ in holders(name, pod)))
    least = 1 if "/" in name else 0
    for number in range(1, min(len(places), MOST_TOGETHER) + 1):
        for chosen in combinations(places, number):
            if _total(changed(pod, _flat(_capped(pod, name, chosen, least))), name) <= most:
                return _capped(pod, name, chosen, _largest(pod, name, chosen, least, most))
    return None


def _whole_pod(pod: ReadOnly, name: str, most: int) -> tuple[tuple[Edit, ...], ...] | None:
    """Return the edits where the whole pod asks: it may not ask for less than its containers together
    (pkg/apis/core/v1/validation ``validatePodResourceConsistency``)."""
    of_containers = lower_amount(remove_at(pod, POD_LEVEL), name, most)
    left = most - (to_units(name, value_at(pod, ("spec", "overhead", name))) or 0)
    return None if of_containers is None else (*of_containers, tuple(_written(pod, name, POD_LEVEL, left)))


def _largest(pod: ReadOnly, name: str, chosen: Sequence[Path], least: int, most: int) -> int:
    """Return the largest cap of all chosen places that will do."""
    low, high = least, max(_now(pod, name, place) for place in chosen)
    while low < high:
        middle = (low + high + 1) // 2
        if _total(changed(pod, _flat(_capped(pod, name, chosen, middle))), name) <= most:
            low = middle
        else:
            high = middle - 1
    return low


def _capped(pod: ReadOnly, name: str, chosen: Sequence[Path], cap: int) -> tuple[tuple[Edit, ...], ...]:
    return tuple(tuple(_written(pod, name, place, cap)) for place in chosen if _now(pod, name, place) > cap)


def _written(pod: ReadOnly, name: str, place: Path, value: int) -> Iterator[Edit]:
    """Yield the request; of what may not be overcommitted the limit too (pkg/apis/core/v1/validation ``ValidateResourceRequirements``)."""
    text = write_units(name, value)
    if to_units(name, text) != value:  # rounded
        text = str(value)
    if name in (value_at(pod, (*place, "limits")) or ()) and ("/" in name or name.startswith("hugepages-")):
        yield put((*place, "limits", name), text, "replace")
    yield put((*place, "requests", name), text, "replace" if name in (value_at(pod, (*place, "requests")) or ()) else "add")


def _now(pod: ReadOnly, name: str, place: Path) -> int:
    found = (to_units(name, value) for side in ("requests", "limits") if (value := value_at(pod, (*place, side, name))) is not None)
    return next((one for one in found if one is not None), 0)


def _total(pod: ReadOnly, name: str) -> int:
    return requests(pod["spec"]).amounts.get(name, 0)


def _flat(edits: Sequence[Sequence[Edit]]) -> Iterator[Edit]:
    return (edit for place in edits for edit in place)
