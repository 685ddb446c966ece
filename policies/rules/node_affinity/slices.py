"""Suggestions of the slices nearest to one that does not exist, on any GPU or on a platform's machines, by
resource name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from catalog import Catalog, Resource
from catalog.nearest import nearest
from policies.messages import Phrase, phrase
from policies.offers.selectors import natural
from policies.offers.table import Host, Table
from policies.planning.plan import Plan

_SIZE = re.compile(r"nvidia\.com/mig-(\d+g)\.(\d+)gb")
MOST_SAID = 5
"""The most slices of one pod for which suggestions are made: finding the nearest takes a millisecond each."""


def nearest_slice(name: str, known: Iterable[str]) -> str | None:
    """Return the slice of as much compute whose memory is nearest (3g.70gb: 3g.71gb), else the nearest
    name."""
    known = list(known)
    asked = _SIZE.fullmatch(name)
    sizes = [m for one in known if asked is not None and (m := _SIZE.fullmatch(one)) and m[1] == asked[1]]
    if asked is None or not sizes:
        return nearest(name, known)
    return min(sizes, key=lambda m: (abs(int(m[2]) - int(asked[2])), m[0]))[0]


def on_no_machine(plan: Plan, resource: Resource) -> bool:
    """Return whether some GPU supports the slice, but no known machine of a platform in force has one."""
    if resource.profile is None or not resource.name.startswith("nvidia.com/mig-") or not _models(plan.snapshot.catalog, resource):
        return False
    return not any(resource.profile in table.mig_profiles for table in plan.snapshot.tables.values())


def lacking(plan: Plan) -> Iterator[Phrase]:
    """Yield, for each slice that no machine has, that it does not exist, its models, and the nearest
    slices with a machine that has them."""
    if not plan.snapshot.placed:
        return
    missing = [asked.resource for asked in plan.asked if on_no_machine(plan, asked.resource)]
    for resource in missing[:MOST_SAID]:
        there = tuple(_nearest_on(plan.snapshot.catalog, table, resource) for table in plan.snapshot.tables.values())
        models = tuple(_models(plan.snapshot.catalog, resource)[:3])
        yield phrase("slice", platforms=tuple(plan.snapshot.tables), name=resource.name, models=models, there=there)


def _models(catalog: Catalog, resource: Resource) -> list[str]:
    return [gpu.model for gpu in catalog.gpus if any(p.name.replace("+", ".") == resource.profile for p in gpu.mig)]


def _nearest_on(catalog: Catalog, table: Table, resource: Resource) -> Phrase:
    hosts = {o.host.name: o.host for o in table.offers if o.host.gpu is not None and o.host.gpu.mig}
    names = {p.resource: p.name for host in hosts.values() if host.gpu is not None for p in host.gpu.mig}
    near = nearest_slice(resource.name.removesuffix(".shared"), names)
    if near is None:
        return phrase("none like it" if hosts else "no slices", platform=table.platform.name)
    machine = min((name for name, host in hosts.items() if _has(host, near)), key=natural)
    key = catalog.schemes[table.platform.sharing].slice_key
    if key is None:
        return phrase("nearest", name=near, machine=machine)
    return phrase("nearest by label", key=key, profile=names[near], machine=machine)


def _has(host: Host, name: str) -> bool:
    return host.gpu is not None and any(p.resource == name for p in host.gpu.mig)
