"""Which fields of policies the cases exercise: those without which some case would come out otherwise."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from catalog import Catalog
from catalog.names import CatalogNames
from cli.policy_cases.decisions import CaseRequest
from cli.policy_cases.outcome import CaseDecision
from cli.policy_cases.policy_fields import GivenField, given_fields
from cli.policy_cases.worlds import WrittenObject

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
    _given: dict[tuple[int, str, str, str], tuple[GivenField, ...]] = field(default_factory=dict)
    _names: dict[int, tuple[Catalog, CatalogNames]] = field(default_factory=dict)

    def add(self, asked: CaseRequest, decision: CaseDecision) -> None:
        """Try the case without each field that no case before it has exercised."""
        for source in asked.world.sources:
            key = (source.file, source.id, json.dumps(source.value, sort_keys=True, default=str))
            given = self._given_by(source, key, asked.world.catalog)
            fields = self._fields.setdefault(
                key, {one.path: CoveredField(policy=source.id, file=source.file, path=one.path) for one in given}
            )
            for one in given:
                if not fields[one.path].exercised and _may_matter(one, source, decision):
                    snapshot = asked.world.with_object((source.id, one.path), one.without)
                    fields[one.path].exercised = asked.decide(snapshot).outcome != decision.outcome

    def _given_by(self, source: WrittenObject, key: tuple[str, str, str], catalog: Catalog) -> tuple[GivenField, ...]:
        _, names = self._names.setdefault(id(catalog), (catalog, CatalogNames(catalog)))
        found = self._given.get((id(catalog), *key))
        if found is None:
            found = self._given[id(catalog), *key] = tuple(given_fields(source.kind, source.value, names))
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


def _may_matter(given: GivenField, source: WrittenObject, decision: CaseDecision) -> bool:
    """Return False where the outcome can't depend on a field: nothing is decided, or the policy does not apply."""
    return decision.judged and (given.section not in _APPLIED or source.id in decision.matched)
