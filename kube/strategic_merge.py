"""Lay one pod spec over another, as Kubernetes merges them: strategic merge patch, as far as rules read a
pod.

Source: k8s.io/api/core/v1 types.go, the tags ``patchStrategy`` and ``patchMergeKey`` (lists of containers and
of resource claims are merged by name; tolerations, like all other lists, are replaced), k8s.io/apimachinery
pkg/util/strategicpatch (null removes a field).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kube.tree import Path, Raw

_BY_NAME = ("containers", "initContainers", "resourceClaims")


def merge_strategic(spec: Raw, over: Raw) -> Raw:
    """Return ``spec`` with ``over`` laid over it; neither is changed.

    Raises ValueError if a list that is merged by name has an item without one.
    """
    lists = {key: _by_name(key, spec.get(key), over[key]) for key in _BY_NAME if over.get(key) is not None}
    return _maps(spec, {**over, **lists})


def _by_name(key: str, under: Any, over: Any) -> list[Any]:
    if not _is_named(over):
        raise ValueError(f"{key} must be a list of maps, each with its name")
    out: list[Any] = [*under] if isinstance(under, list) else []
    for item in over:
        place = next((number for number, named in enumerate(out) if isinstance(named, dict) and named.get("name") == item["name"]), None)
        if place is None:
            out.append(item)
        else:
            out[place] = _deep(out[place], item)
    return out


def _is_named(items: object) -> bool:
    return isinstance(items, list) and all(isinstance(item, dict) and isinstance(item.get("name"), str) for item in items)


def _deep(under: Any, over: Any) -> Any:
    """Merge maps key by key and replace all else. Patches are as deep as their text, which is bounded
    where it is read."""
    return _maps(under, over) if isinstance(under, dict) and isinstance(over, dict) else over


def _maps(under: Raw, over: Raw) -> Raw:
    """Merge two maps; null removes a key."""
    out = dict(under)
    for key, value in over.items():
        if value is None:
            out.pop(key, None)
        else:
            out[key] = _deep(under.get(key), value)
    return out


def leaves(spec: Raw, patch: Raw) -> Iterator[Path]:
    """Yield the paths in the patched spec of the amounts and fields of a patch."""
    for key, value in patch.items():
        if key not in ("containers", "initContainers") or value is None:
            yield (key,)
            continue
        names = [container.get("name") for container in spec[key]]
        for container in value:
            number = names.index(container.get("name"))
            resources = container.get("resources")
            for side, amounts in resources.items() if isinstance(resources, dict) else ():
                yield from ((key, number, "resources", side, name) for name in (amounts if isinstance(amounts, dict) else ()))
