"""The catalog's names that policies may use."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Literal

from catalog import Catalog, MigProfile

Known = Literal["families", "vendors", "models", "instanceFamilies", "workloads", "migProfiles"]
"""The catalog's lists of names."""


class CatalogNames:
    """The catalog's lists of names, each collected once per parse: they are long, and looked up often."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._lists: dict[Known, frozenset[str]] = {}

    def codes(self, known: Known) -> frozenset[str]:
        """Return the words that a hint among the names of one list must preserve."""
        return self._catalog.codes if known in ("models", "instanceFamilies") else frozenset()

    def of(self, known: Known) -> frozenset[str]:
        """Return every name of one list; ``models`` includes the groups."""
        if known not in self._lists:
            self._lists[known] = frozenset(self._collect(known))
        return self._lists[known]

    def _collect(self, known: Known) -> Iterator[str]:
        catalog = self._catalog
        match known:
            case "families":
                yield from catalog.families
            case "vendors":
                yield from catalog.vendors
            case "models":
                yield from (name for gpu in catalog.gpus for name in (gpu.model, *gpu.groups))
            case "instanceFamilies":
                yield from catalog.machine_families()
                yield from catalog.retired_families
            case "workloads":
                yield from (workload.name for workload in catalog.workloads if workload.owners or workload.labels)
            case _:
                yield from (profile.name for gpu in catalog.gpus for profile in gpu.mig)

    def explain(self, known: Known, name: str) -> str:
        """Return what to write in place of a kind whose pods are those of another one; "" where nothing is known of the name."""
        if known != "workloads":
            return ""
        folded = name.lower().removesuffix("s")
        if folded == "pod":
            return "; pods without a workload have no name here: remove workloads to match every pod"
        kind, owner = next(((kind, owner) for kind, owner in self._makers() if kind.lower().removesuffix("s") == folded), ("", None))
        meant = [workload.name for workload in self._catalog.workloads if owner in workload.owners]
        return f"; the pods of a {kind} are those of a {meant[0]}: write {meant[0]}" if meant else ""

    def _makers(self) -> Iterator[tuple[str, tuple[str, str]]]:
        """Yield the kinds that no pod shows, and the owners that their pods show in place of them."""
        shown = self.of("workloads")
        for workload in self._catalog.workloads:
            if workload.name not in shown and workload.through is not None:
                yield workload.name, workload.through
            yield from ((kind, (group, kind)) for group, kind in workload.owners if kind not in shown)

    @cached_property
    def slice_sizes(self) -> list[int]:
        """The nominal GB of the profiles that can be selected by size."""
        return sorted({profile.memory_gb for profile in self._by_size()})

    @cached_property
    def usable_mib(self) -> list[int]:
        """The verified usable MiB of the profiles that can be selected by size."""
        return sorted({profile.usable_mib for profile in self._by_size() if profile.usable_mib is not None})

    def _by_size(self) -> Iterator[MigProfile]:
        """Return the profiles that can be selected by size; one with an attribute (``+me``) is selected by
        name only."""
        return (profile for gpu in self._catalog.gpus for profile in gpu.mig if profile.attribute is None)

    def never_tolerated(self, key: str) -> bool:
        """Return whether a taint key is one that no pod may be made to tolerate."""
        return any(fnmatchcase(key, pattern) for pattern in self._catalog.never_tolerate)
