"""The model that a set of offers has, and what one device costs on the cheapest of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from catalog.prices import Prices
from policies.lru import LruCache
from policies.offers.table import Offer, Table

ANY = "any"
"""Stands for the model of offers of several families, or of one that the catalog does not know."""
_MOST_CACHED = 2**20
"""Bytes: some thousand sets of offers. The pods of a cluster leave few different ones."""
_OVERHEAD = 1024
"""Bytes of the rows of one platform, and of what is on them."""


class OfferedDevice(NamedTuple):
    """One device on any of these offers."""

    model: str
    """A model of the catalog, else a family, else ``ANY``."""
    usd: float | None
    """USD an hour on the cheapest machine; None where no price is known."""


class DeviceCosts:
    """Remembers sets of offers: good for one snapshot, and for those after it that have the same tables."""

    def __init__(self, prices: Prices) -> None:
        self.prices = prices
        self._known: LruCache[OfferedDevice] = LruCache(_MOST_CACHED)

    def of(self, offered: Iterable[tuple[Table, int]]) -> OfferedDevice:
        """Return what a device is on any of these (table, rows)."""
        tables: dict[str, Table] = {}
        rows: dict[str, int] = {}
        for table, part in offered:  # a pod may have hundreds of terms on one table
            tables[table.platform.name] = table
            rows[table.platform.name] = rows.get(table.platform.name, 0) | part
        key = tuple(rows.items())
        device = self._known.get(key)
        if device is None:
            offers = [offer for platform, union in rows.items() for offer in tables[platform].offers_in(union)]
            device = OfferedDevice(_model(offers), min(self._each(offers), default=None))
            self._known.keep(key, device, _OVERHEAD * (1 + len(key)))
        return device

    def _each(self, offers: Iterable[Offer]) -> Iterator[float]:
        for offer in (one for one in offers if not one.host.uncounted):
            usd = self.prices.of_machine(offer.host.name, offer.host.gpu.model if offer.host.gpu is not None else "")
            if usd is not None:
                yield usd


def _model(offers: Iterable[Offer]) -> str:
    families = {offer.host.gpu.model if offer.host.gpu else ANY: offer.host.gpu.family if offer.host.gpu else ANY for offer in offers}
    if len(families) == 1:
        return next(iter(families))
    found = set(families.values())
    return found.pop() if len(found) == 1 else ANY
