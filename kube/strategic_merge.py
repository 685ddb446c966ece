"""Lay one pod spec over another, as Kubernetes merges them: strategic merge patch without its directives.

Source: k8s.io/api/core/v1 types.go, the tags ``patchStrategy`` and ``patchMergeKey`` (a list without them is replaced),
k8s.io/apimachinery pkg/util/strategicpatch (null removes a field).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kube.tree import Path, Raw

_BY_NAME = ("containers", "initContainers", "ephemeralContainers", "volumes", "resourceClaims", "imagePullSecrets", "schedulingGates")
_OF_SPEC = {**dict.fromkeys(_BY_NAME, "name"), "hostAliases": "ip", "topologySpreadConstraints": "topologyKey"}
_OF_CONTAINER = {"env": "name", "ports": "containerPort", "volumeMounts": "mountPath", "volumeDevices": "devicePath"}
"""Lists that are merged -> the key by which their items are equal"""


def merge_strategic(spec: Raw, over: Raw) -> Raw:
    """Return ``spec`` with ``over`` laid over it; neither is changed.

    Patches are as deep as their text, which is bounded where it is read. Raises ValueError if a list that is merged has
    an item without its key.
    """
    return _merge_maps(spec, over, _OF_SPEC)


def _merge_maps(under: Raw, over: Raw, keys: Mapping[str, str]) -> Raw:
    """Merge two maps; null removes a key. ``keys``: those of the lists in these maps that are merged."""
    out = dict(under)
    for field, value in over.items():
        before = under.get(field)
        if value is None:
            out.pop(field, None)
        elif field in keys:
            out[field] = _merge_lists(field, before if isinstance(before, list) else [], value, keys[field])
        else:
            out[field] = _merge_maps(before, value, {}) if isinstance(before, dict) and isinstance(value, dict) else value
    return out


def _merge_lists(field: str, under: list[Any], over: Any, key: str) -> list[Any]:
    """Merge two lists in the order of ``over``. The other items come before the first one that they were before
    (``normalizeElementOrder``)."""
    kind = int if key == "containerPort" else str
    if not (isinstance(over, list) and all(isinstance(item, dict) and isinstance(item.get(key), kind) for item in over)):
        raise ValueError(f"{field} must be a list of maps, each with its {key}")
    places = {item.get(key): place for place, item in enumerate(under) if isinstance(item, dict)}
    merged = {places.get(item[key]) for item in over}
    others = [place for place in range(len(under)) if place not in merged]
    out: list[Any] = []
    for item in over:
        place = places.get(item[key])
        while others and place is not None and others[0] < place:
            out.append(under[others.pop(0)])
        out.append(item if place is None else _merge_maps(under[place], item, _OF_CONTAINER if "ontainers" in field else {}))
    return [*out, *(under[place] for place in others)]


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
