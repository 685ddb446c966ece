"""Offers by the names under which DeviceClasses give out devices: rows that the tables have already, under one more name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from policies.facts.served_resources import Served
from policies.lru import LruCache
from policies.offers.table import MOST_MEMO, Table


def with_served(tables: Mapping[str, Table], served: Mapping[str, Served]) -> dict[str, Table]:
    """Return the tables with offers by these names too, where one has such devices: every machine of the vendor may have a
    driver, as it may have a device plugin. Rows keep their bits, so what is compiled against the tables holds."""
    return {platform: _with(table, served) for platform, table in tables.items()}


def _rows(table: Table, one: Served) -> int:
    return table.by_vendor.get(one.vendor, 0) & table.by_sharing.get(one.sharing, 0)


def _cut_by_hand(table: Table, one: Served) -> int:
    """Return, for slices of which the table has none, the rows of machines whose GPUs can be cut: how many there are is not known."""
    if one.sharing != "MIG":
        return 0
    return table.by_vendor.get(one.vendor, 0) & table.where(offer.host.gpu is None or bool(offer.host.gpu.mig) for offer in table.offers)


def _with(table: Table, served: Mapping[str, Served]) -> Table:
    """Return the table with the names that it offers. What it remembers by name is found anew."""
    listed = {name: rows for name, one in served.items() if (rows := _rows(table, one))}
    by_hand = {name: rows for name, one in served.items() if name not in listed and (rows := _cut_by_hand(table, one))}
    return replace(
        table,
        served=listed | by_hand,
        listed=table.listed.union(listed),
        stand_ins=LruCache(MOST_MEMO),
        vendors=LruCache(MOST_MEMO),
        fitting={},
    )
