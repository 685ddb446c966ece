"""The fields that a policy or a template gives, each with the object as it would be without it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from catalog.names import CatalogNames
from catalog.shapes.structs import Field, Struct
from kube.tree import Path, remove_at, value_at
from policies.objects import definition
from policies.objects.field_types import Kind
from policies.objects.parse import understand
from policies.policy import NodeTemplate, Policy

_SECTION = 2
"""Steps of the shortest path that is taken away, ``spec.match``: without its spec nothing is left of an object."""
_UNCOUNTED = ("mode",)
"""Without its mode a policy is in Audit: every case would tell the difference, or none could."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenField:
    """A field that an object gives."""

    path: str
    """``spec.require.gpusPerPod.max``"""
    without: Policy | NodeTemplate
    """The object without it."""

    @property
    def section(self) -> str:
        """``match``, ``require``, ``default``, ``allow``; of a template ``gpus``, ``labels`` ..."""
        return self.path.split(".")[1]


def given_fields(kind: Kind, value: Mapping[str, Any], names: CatalogNames) -> Iterator[GivenField]:
    """Yield each field that an object gives; as one where the object is not valid without all of them, as ``longRuns``
    without ``over``. A field that no such object can do without is left out."""
    seen: set[Path] = set()
    fields = [field for field in definition.SPECS[kind].fields if field.name not in _UNCOUNTED]
    for leaf in _leaves(fields, value.get("spec"), ("spec",)):
        path = leaf
        while len(path) >= _SECTION and path not in seen:
            seen.add(path)
            found = understand(_without(value, path), kind, names)
            changed = found.policy or found.template
            if changed is not None:
                yield GivenField(path=".".join(map(str, path)), without=changed)
                break
            path = path[:-1]


def _leaves(fields: Iterator[Field] | list[Field] | tuple[Field, ...], value: Any, at: Path) -> Iterator[Path]:
    for field in fields:
        if not isinstance(value, Mapping) or value.get(field.name) is None:
            continue
        path = (*at, field.name)
        inner = list(_leaves(field.shape.fields, value[field.name], path)) if isinstance(field.shape, Struct) else []
        yield from inner or [path]


def _without(value: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    """Return the object without a field, and without the maps that are empty then."""
    left: Mapping[str, Any] = remove_at(dict(value), path)
    while len(path := path[:-1]) >= _SECTION and value_at(left, path) == {}:
        left = remove_at(left, path)
    return left
