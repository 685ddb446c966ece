"""Tables of offers made once a process: those of all platforms take a fifth of a second, and nearly every test of a decision needs them.

A table is immutable but for what it remembers, which a replica too keeps from one set of policies to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from catalog import Catalog
from policies.offers.table import Table
from policies.policy import NodeTemplate
from policies.state import compilation

_MOST = 256
"""sets of tables that are remembered"""


class _Same:
    """A catalog as a key: equal to another reading of the same file, which takes a millisecond to see."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and (self.catalog is other.catalog or self.catalog == other.catalog)

    def __hash__(self) -> int:
        return hash((self.catalog.gpus[:1], len(self.catalog.gpus), len(self.catalog.machines), *self.catalog.platforms))


def share() -> None:
    """From now on the updater makes the same tables once. ``policies.offers.build`` itself is as it was."""
    make = compilation.tables_of

    @lru_cache(_MOST)
    def made(
        catalog: _Same,
        platforms: tuple[str, ...],
        mig_strategy: str,
        families: frozenset[str],
        templates: tuple[NodeTemplate, ...],
        unmaintained: frozenset[str],
    ) -> dict[str, Table]:
        return make(catalog.catalog, platforms, mig_strategy, families, templates, unmaintained)

    def tables_of(
        catalog: Catalog,
        platforms: Sequence[str],
        mig_strategy: str,
        families: frozenset[str],
        templates: Sequence[NodeTemplate],
        unmaintained: frozenset[str],
    ) -> dict[str, Table]:
        return dict(made(_Same(catalog), tuple(platforms), mig_strategy, families, tuple(templates), unmaintained))

    compilation.tables_of = tables_of
