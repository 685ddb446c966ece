"""Offers by the names under which DeviceClasses give out devices: rows that the tables have already, under one more name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from policies.facts.served_resources import Served
from policies.lru import LruCache
from policies.offers.table import MOST_MEMO, Table


def with_served(tables: Mapping[str, Table], served: Mapping[str, Served]) -> dict[str, Table]:
    """Return the tables with offers by these names too, where any of them has such devices: every machine of the vendor may have a
    driver, as it may have a device plugin. Rows keep their bits, so what is compiled against the tables holds."""
    rows = {name: {platform: _rows(table, one) for platform, table in tables.items()} for name, one in served.items()}
    offered = {name: by_platform for name, by_platform in rows.items() if any(by_platform.values())}
    return {platform: _with(table, platform, offered) for platform, table in tables.items()}


def _rows(table: Table, one: Served) -> int:
    return table.by_vendor.get(one.vendor, 0) & _any(table.by_sharing.get(way, 0) for way in one.sharing)


def _any(rows: Iterable[int]) -> int:
    found = 0
    for one in rows:
        found |= one
    return found


def _with(table: Table, platform: str, offered: Mapping[str, Mapping[str, int]]) -> Table:
    """Return the table with the names that it offers. What it remembers by name is found anew."""
    more = {name: rows for name, by_platform in offered.items() if (rows := by_platform[platform])}
    return replace(
        table,
        by_resource={**table.by_resource, **more},
        listed=table.listed | offered.keys(),
        stand_ins=LruCache(MOST_MEMO),
        vendors=LruCache(MOST_MEMO),
        fitting={},
    )
