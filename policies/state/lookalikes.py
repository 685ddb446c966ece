"""Resource names that no list has but that look like accelerators."""

from __future__ import annotations

from catalog import LONGEST_NAME, Catalog, Resource
from policies.pods import unlisted_accelerators

_MOST_NAMES = 4096
"""names whose answer is cached: a cluster has tens, but authors can choose any"""


class Lookalikes:
    """Classifies unlisted resource names under one catalog. The answers are cached, up to a bound."""

    __slots__ = ("_catalog", "_found")

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._found: dict[str, Resource | None] = {}

    def resource(self, name: str) -> Resource | None:
        """Return an accelerator of an unknown vendor if the resource name looks like one, else None."""
        if "/" not in name or len(name) > LONGEST_NAME:
            return None
        if name not in self._found:
            if len(self._found) >= _MOST_NAMES:
                self._found.clear()
            self._found[name] = self._read(name)
        return self._found[name]

    def _read(self, name: str) -> Resource | None:
        catalog = self._catalog
        if name in catalog.misspellings or not unlisted_accelerators.is_extended(name):
            return None
        if not unlisted_accelerators.looks_like_one(name, catalog):
            return None
        measure = catalog.measure(name)
        if measure is None:
            return Resource(name=name, vendor="", kind="other")
        return Resource(name=name, vendor="", kind="part", unit=measure.unit)
