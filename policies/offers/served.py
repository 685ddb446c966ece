"""Offers by the names under which DeviceClasses give out devices: rows that the tables have already, under one more name."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from policies.facts.served_resources import Served
from policies.lru import LruCache
from policies.offers.table import MOST_MEMO, Table


def with_served(tables: Mapping[str, Table], served: Mapping[str, Served]) -> dict[str, Table]:
    """Return the tables with offers by these names too, where any of them has such devices: every machine of the vendor may have a
    driver, as it may have a device plugin. Rows keep their bits, so what is compiled against the tables holds."""
    offered = {name: {platform: _rows(table, one) for platform, table in tables.items()} for name, one in served.items()}
    listed = {name for name, rows in offered.items() if any(rows.values())}
    for name in served.keys() - listed:
        offered[name] = {platform: _cut_by_hand(table, served[name]) for platform, table in tables.items()}
    return {platform: _with(table, {name: rows[platform] for name, rows in offered.items()}, listed) for platform, table in tables.items()}


def _rows(table: Table, one: Served) -> int:
    return table.by_vendor.get(one.vendor, 0) & table.by_sharing.get(one.sharing, 0)


def _cut_by_hand(table: Table, one: Served) -> int:
    """Return, for slices of which no table has any, the rows of machines whose GPUs can be cut: how many there are is not known."""
    if one.sharing != "MIG":
        return 0
    return table.by_vendor.get(one.vendor, 0) & table.where(offer.host.gpu is None or bool(offer.host.gpu.mig) for offer in table.offers)


def _with(table: Table, rows: Mapping[str, int], listed: Collection[str]) -> Table:
    """Return the table with the names that it offers. What it remembers by name is found anew."""
    return replace(
        table,
        served={name: found for name, found in rows.items() if found},
        listed=table.listed.union(listed),
        stand_ins=LruCache(MOST_MEMO),
        vendors=LruCache(MOST_MEMO),
        fitting={},
    )
