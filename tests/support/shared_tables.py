"""The shipped catalog is parsed once a process, and tables of offers are made once: those of all platforms take a fifth of a second, and
nearly every test of a decision needs them.

A table is immutable but for what it remembers, which a replica too keeps from one set of policies to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from catalog import Catalog
from documents import files
from policies.document import Document, InputError
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
    """From now on the updater makes the same tables once, and the shipped catalog is parsed once (40 ms of every command). Its file is
    still read each time, and ``policies.offers.build`` itself is as it was."""
    _share_tables()
    _share_catalog()


def _share_catalog() -> None:
    parse: Callable[..., tuple[list[Document], list[InputError]]] = vars(files)["documents"]
    build: Callable[..., Catalog] = vars(files)["from_mappings"]
    parsed = lru_cache(1)(lambda text: parse(text, str(files.SHIPPED_CATALOG)))
    built = lru_cache(1)(lambda text: build(parsed(text)[0][0].value))
    texts: dict[int, str] = {}

    def documents(text: str, file: str, **more: Any) -> tuple[list[Document], list[InputError]]:
        if file != str(files.SHIPPED_CATALOG):
            return parse(text, file, **more)
        found, errors = parsed(text)
        texts.clear()
        texts.update({id(document.value): text for document in found})
        return list(found), list(errors)

    def from_mappings(base: Any, *overlays: Any, names: Sequence[str] = ()) -> Catalog:
        return build(base, *overlays, names=names) if overlays or id(base) not in texts else built(texts[id(base)])

    vars(files).update(documents=documents, from_mappings=from_mappings)


def _share_tables() -> None:
    make: Callable[..., dict[str, Table]] = vars(compilation)["tables_of"]

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

    vars(compilation).update(tables_of=tables_of)
