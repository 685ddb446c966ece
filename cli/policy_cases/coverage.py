"""Which fields of policies the cases exercise: those without which some case would come out otherwise."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from catalog import Catalog
from catalog.names import CatalogNames
from catalog.shapes.structs import Field, Struct
from cli.policy_cases.decisions import CaseRequest
from cli.policy_cases.outcome import CaseDecision
from cli.policy_cases.worlds import WrittenObject
from kube.tree import Path, remove_at, value_at
from policies.objects import definition
from policies.objects.field_types import Kind
from policies.objects.parse import understand
from policies.policy import NodeTemplate, Policy

_Given = Mapping[str, Policy | NodeTemplate]
"""Path of a field -> the object without it."""
_APPLIED = ("require", "default")
"""What a policy says here matters only to what it applies to."""


@dataclass(slots=True, kw_only=True)
class CoveredField:
    """One field of one object."""

    policy: str
    """``ClusterGPUPolicy/training``"""
    file: str
    """"" for an object that stands in a case, or that Berth ships."""
    path: str
    exercised: bool = False


@dataclass(slots=True)
class Coverage:
    """Grows with each case. Objects that are written alike in several cases are one."""

    _fields: dict[tuple[str, str, str], dict[str, CoveredField]] = field(default_factory=dict)
    _given: dict[tuple[int, str, str, str], _Given] = field(default_factory=dict)
    _names: dict[int, tuple[Catalog, CatalogNames]] = field(default_factory=dict)

    def add(self, asked: CaseRequest, decision: CaseDecision) -> None:
        """Try the case without each field that no case before it has exercised."""
        for source in asked.world.sources:
            key = (source.file, source.id, json.dumps(source.value, sort_keys=True, default=str))
            given = self._given_by(source, key, asked.world.catalog)
            fields = self._fields.setdefault(key, {path: CoveredField(policy=source.id, file=source.file, path=path) for path in given})
            for path, without in given.items():
                if not fields[path].exercised and _may_matter(path, source, decision):
                    snapshot = asked.world.with_object((source.id, path), without)
                    fields[path].exercised = asked.decide(snapshot).outcome != decision.outcome

    def _given_by(self, source: WrittenObject, key: tuple[str, str, str], catalog: Catalog) -> _Given:
        _, names = self._names.setdefault(id(catalog), (catalog, CatalogNames(catalog)))
        found = self._given.get((id(catalog), *key))
        if found is None:
            found = self._given[id(catalog), *key] = dict(given_fields(source.kind, source.value, names))
        return found

    @property
    def fields(self) -> list[CoveredField]:
        """Every field, by file, policy and path."""
        found = (one for fields in self._fields.values() for one in fields.values())
        return sorted(found, key=lambda one: (one.file, one.policy, one.path))

    @property
    def missed(self) -> Iterator[CoveredField]:
        """The fields that no case exercises."""
        return (one for one in self.fields if not one.exercised)

    @property
    def exercised(self) -> int:
        return sum(one.exercised for one in self.fields)

    @property
    def percent(self) -> float:
        """Of all fields; 100 where there is none."""
        return 100 * self.exercised / len(self.fields) if self.fields else 100.0


def _may_matter(path: str, source: WrittenObject, decision: CaseDecision) -> bool:
    """Return False where the outcome can't depend on a field: nothing is decided, or the policy does not apply."""
    return decision.judged and (path.split(".")[1] not in _APPLIED or source.id in decision.matched)


_SECTION = 2
"""Steps of the shortest path that is taken away, ``spec.match``: without its spec nothing is left of an object."""
_UNCOUNTED = ("mode",)
"""Without its mode a policy is in Audit: every case would tell the difference, or none could."""


def given_fields(kind: Kind, value: Mapping[str, Any], names: CatalogNames) -> Iterator[tuple[str, Policy | NodeTemplate]]:
    """Yield each field that an object gives (``spec.require.gpusPerPod.max``) with the object without it.

    Fields are one where the object is not valid without all of them, as ``longRuns`` without ``over``. A field that no such object can do
    without is left out.
    """
    seen: set[Path] = set()
    fields = [field for field in definition.SPECS[kind].fields if field.name not in _UNCOUNTED]
    for leaf in _leaves(fields, value.get("spec"), ("spec",)):
        path = leaf
        while len(path) >= _SECTION and path not in seen:
            seen.add(path)
            changed = understand(_without(value, path), kind, names).acting
            if changed is not None:
                yield ".".join(map(str, path)), changed
                break
            path = path[:-1]


def _leaves(fields: Iterator[Field] | list[Field] | tuple[Field, ...], value: Any, at: Path) -> Iterator[Path]:
    for leaf in fields:
        if not isinstance(value, Mapping) or value.get(leaf.name) is None:
            continue
        path = (*at, leaf.name)
        inner = list(_leaves(leaf.shape.fields, value[leaf.name], path)) if isinstance(leaf.shape, Struct) else []
        yield from inner or [path]


def _without(value: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    """Return the object without a leaf, and without the maps that are empty then."""
    left: Mapping[str, Any] = remove_at(dict(value), path)
    while len(path := path[:-1]) >= _SECTION and value_at(left, path) == {}:
        left = remove_at(left, path)
    return left
