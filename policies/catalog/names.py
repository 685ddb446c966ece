"""What the catalog says that policies may name."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cached_property

from policies.catalog import Catalog, MigProfile
from policies.objects.shape import Known


class Names:
    """The catalog's lists of names. One per parse: they are long, and asked for often."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._lists: dict[Known, frozenset[str]] = {}

    def codes(self, known: Known) -> frozenset[str]:
        """Words that a hint among the names of one list must keep."""
        return self._catalog.codes if known in ("models", "instanceFamilies") else frozenset()

    def of(self, known: Known) -> frozenset[str]:
        """Every name of one list; of ``models`` the groups too."""
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

    @cached_property
    def slice_sizes(self) -> list[int]:
        """Nominal GB of the profiles that a size may choose."""
        return sorted({profile.memory_gb for profile in self._by_size()})

    @cached_property
    def usable_mib(self) -> list[int]:
        """The verified figures of the profiles that a size may choose."""
        return sorted({profile.usable_mib for profile in self._by_size() if profile.usable_mib is not None})

    def _by_size(self) -> Iterator[MigProfile]:
        """Profiles with an attribute (``+me``) are chosen by name only."""
        return (profile for gpu in self._catalog.gpus for profile in gpu.mig if profile.attribute is None)

    def never_tolerated(self, key: str) -> bool:
        """Whether a taint key is one that no pod may be made to tolerate."""
        return any(fnmatchcase(key, pattern) for pattern in self._catalog.never_tolerate)
