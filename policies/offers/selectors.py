"""Express a set of rows as node affinity, by the first key list in the catalog's order that selects exactly it.

``In`` is used if the row of unknown models is not in the set, and ``Exists`` with ``NotIn`` if it is (a product label has hundreds of
values, and each driver adds some). A key list is usable only if every row in the set has its keys, and only if somebody maintains them.
If no list is exact, the largest subset is written; if there is none, the axis is neither written nor judged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from catalog import Catalog
from catalog.platforms import Sharing
from kube.labels import ABSENT, ANY, NEW, Expression
from policies.offers.table import Axis, Host, Table

_OVERHEAD = 2048
"""Bytes of a cached result without its values, which belong to the table."""
_ANY_NUMBER = 10**6
"""Of a machine that may have any number of devices: its model is an example after those of machines with a known number."""
SHARINGS: tuple[Sharing, ...] = ("Exclusive", "MIG", "TimeSliced")


@dataclass(frozen=True, slots=True)
class Rendering:
    expressions: tuple[Expression, ...]
    rows: int
    """The rows that the expressions select, within the universe."""
    exact: bool


def render(catalog: Catalog, table: Table, axis: Axis, inside: int, universe: int) -> Rendering | None:
    """Return expressions on one axis that select ``inside`` among the rows ``universe``; None if the platform has no labels for it."""
    return next(iter(renderings(catalog, table, axis, inside, universe)), None)


def renderings(catalog: Catalog, table: Table, axis: Axis, inside: int, universe: int) -> tuple[Rendering, ...]:
    """Return the exact rendering alone, else all partial ones, the largest first. Cached per table."""
    key = (axis, inside & universe, universe)
    found: tuple[Rendering, ...] | None = table.rendered.get(key)
    if found is None:
        found = _render(catalog, table, axis, inside & universe, universe)
        table.rendered.keep(key, found, _OVERHEAD + sum(8 * len(e.values) for rendering in found for e in rendering.expressions))
    return found


def _render(catalog: Catalog, table: Table, axis: Axis, inside: int, universe: int) -> tuple[Rendering, ...]:
    if inside == universe:
        return (Rendering((), universe, exact=True),)
    if not inside:
        return (_nowhere(catalog, table, axis),)
    if axis == "capacity" and (written := inside & ~table.further):
        inside, universe = written, universe & ~table.further
    options = _sharing(catalog, table, inside, universe) if axis == "sharing" else _by_any_keys(table, axis, inside, universe)
    exact = next((option for option in options if option.exact), None)
    return (exact,) if exact is not None else tuple(sorted(options, key=lambda option: -option.rows.bit_count()))


def _by_any_keys(table: Table, axis: Axis, inside: int, universe: int) -> list[Rendering]:
    lists = _kept(table, table.platform.machine_keys if axis == "machine" else [(key,) for key in table.platform.capacity_keys])
    options = [_by_keys(table, keys, inside, universe) for keys in lists]
    if axis == "machine":
        options += [_by_key_without_types(table, keys[0], inside, universe) for keys in lists if len(keys) == 1]
    if axis == "capacity":
        options += [_by_absence(table, key, inside, universe) for key in table.platform.capacity_keys]
    return [option for option in options if option is not None]


def _kept(table: Table, lists: Iterable[Sequence[str]]) -> list[Sequence[str]]:
    """Return the key lists of which somebody maintains every label."""
    return [keys for keys in lists if table.unmaintained.isdisjoint(keys)]


def _nowhere(catalog: Catalog, table: Table, axis: Axis) -> Rendering:
    """Return what no node satisfies: a term of which nothing is allowed must not select other rows either."""
    keys = {
        "machine": table.platform.machine_keys[0],
        "capacity": table.platform.capacity_keys,
        "sharing": tuple(e.key for sentences in catalog.schemes[table.platform.sharing].exclude.values() for e in sentences),
    }[axis] or table.platform.machine_keys[0]
    key = keys[0] if keys[0] not in table.unmaintained else table.platform.anchor
    return Rendering((Expression(key=key, operator="Exists"), Expression(key=key, operator="DoesNotExist")), 0, exact=True)


# --- machine and capacity: by the values of keys ---------------------------------------------------------------------


def _by_keys(table: Table, keys: Sequence[str], inside: int, universe: int) -> Rendering | None:
    return _by_key(table, keys[0], inside, universe) if len(keys) == 1 else _by_product(table, keys, inside, universe)


def _classes(table: Table, key: str, universe: int) -> dict[str | None, int]:
    """Return value -> rows, within the universe. None: rows without the key; ``"?"``: rows of unknown value."""
    out: dict[str | None, int] = {}
    for possible, rows in table.values.get(key, {ABSENT: universe}).items():
        value = possible[0] if len(possible) == 1 and not str(possible[0]).endswith("*") else "*"
        if rows & universe:
            out[value] = out.get(value, 0) | rows & universe
    return out


def _by_key(table: Table, key: str, inside: int, universe: int) -> Rendering | None:
    classes = _classes(table, key, universe)
    if classes.get("*", 0):
        return None
    unknown = classes.get("?", 0)
    named = {value: rows for value, rows in classes.items() if value is not None and value != "?"}
    kept = sorted((v for v, rows in named.items() if rows & ~inside == 0), key=natural)
    if unknown & inside and not unknown & ~inside:
        out = sorted(table.under_every_name(key, {v for v in named if v not in kept}), key=natural)
        exists = Expression(key=key, operator="Exists")
        expressions = (exists, Expression(key=key, operator="NotIn", values=tuple(out))) if out else (exists,)
        rows = unknown | _union(named, kept)
    elif kept:
        expressions = (Expression(key=key, operator="In", values=tuple(kept)),)
        rows = _union(named, kept)
    else:
        return None
    return Rendering(expressions, rows, rows == inside)


def _by_key_without_types(table: Table, key: str, inside: int, universe: int) -> Rendering | None:
    """Return ``In`` of a key with ``NotIn`` of instance types, or None if that is not exact. A machine with a part of a GPU may have
    the label of a whole one."""
    for of_type in (name for name, attribute in table.platform.labels.items() if attribute == "type" and name != key):
        outside = {v: rows for v, rows in _classes(table, of_type, universe).items() if v not in (None, "*", "?") and not rows & inside}
        option = _by_key(table, key, inside, universe & ~_union(outside, list(outside)))
        if option is not None and option.exact and option.expressions[0].operator == "In":
            selected = _union(_classes(table, key, universe), option.expressions[0].values)
            types = tuple(sorted((value for value, rows in outside.items() if value and rows & selected), key=natural))
            return Rendering((*option.expressions, Expression(key=of_type, operator="NotIn", values=types)), inside, exact=True)
    return None


def values_among(table: Table, key: str, rows: int, without: int) -> tuple[str, ...]:
    """Return the values of a key that select some of ``rows`` and none of ``without``, the best examples first: machines with the fewest
    devices, and of these the newest model with the most memory.

    A machine without a price is none if the catalog has prices of its vendor's here: the cloud may sell it no longer.
    """
    memo = (key, rows, without)
    found: tuple[str, ...] | None = table.rendered.get(memo)
    if found is None:
        classes = table.values.get(key, {}).items()
        values = ((possible[0], of_value & rows) for possible, of_value in classes if not of_value & without and len(possible) == 1)
        named = ((v, own) for v, own in values if v and v != "?" and not v.endswith("*"))
        priced = {offer.host.vendor for offer in table.offers if offer.host.usd_per_hour is not None}
        ranked = [(rank, value) for value, own in named if (rank := _rank(table, own, priced)) is not None]
        found = tuple(value for _, value in sorted(ranked))
        table.rendered.keep(memo, found, _OVERHEAD + sum(len(value) for value in found))
    return found


def _rank(table: Table, rows: int, priced: Collection[str]) -> tuple[object, ...] | None:
    """Return the rank of the best example in these rows; None if they have none. ``priced``: vendors with prices."""
    hosts = {offer.host.name: offer.host for offer in table.offers_in(rows) if offer.host.gpu and not offer.host.gpu.withdrawn}.values()
    return min((rank_example(host) for host in hosts if host.usd_per_hour is not None or host.vendor not in priced), default=None)


def rank_example(host: Host) -> tuple[object, ...]:
    """Return the key by which the best example of a machine is the least: with a price, few devices, a new model, much memory, cheap."""
    usd, memory = host.usd_per_hour, 0
    generation: tuple[int, ...] = ()
    if host.gpu is not None:
        generation, memory = tuple(-number for number in host.gpu.generation), host.gpu.memory_gb or 0
    return usd is None, host.count or _ANY_NUMBER, generation, -memory, usd or 0, natural(host.name)


def by_other_labels(table: Table, keys: Sequence[str], inside: int, universe: int) -> Rendering | None:
    """Return the machine axis without these keys: the largest part by other labels, else the fewest values of one of a running node."""
    others = (names for names in _kept(table, table.platform.machine_keys) if not set(keys).intersection(names))
    before = [option for names in others if (option := _by_keys(table, names, inside, universe)) is not None]
    if before:
        return max(before, key=lambda option: option.rows.bit_count())
    booted = (_by_boot_label(table, key, inside, universe) for key in table.platform.after_boot if key not in table.unmaintained)
    return min((o for o in booted if o is not None), key=lambda option: len(option.expressions[0].values), default=None)


def by_types(table: Table, inside: int, universe: int) -> Rendering | None:
    """Return the machine axis by instance types, for machines without another label of the platform."""
    keys = (key for key, attribute in table.platform.labels.items() if attribute == "type")
    options = (_by_key(table, key, inside & universe, universe) for key in keys if inside & universe and inside & universe != universe)
    return next((option for option in options if option is not None and option.exact), None)


def _by_boot_label(table: Table, key: str, inside: int, universe: int) -> Rendering | None:
    """Return ``In`` with the values that only rows inside may carry: the label may be missing or have other names."""
    carriers: dict[str, int] = {}
    for possible, rows in table.values.get(key, {}).items():
        for value in possible:
            if value is not None and rows & universe:
                carriers[value] = carriers.get(value, 0) | rows & universe
    kept = sorted((value for value, rows in carriers.items() if value != "?" and rows & ~inside == 0), key=natural)
    if _union(carriers, kept) != inside:
        return None
    return Rendering((Expression(key=key, operator="In", values=tuple(kept)),), inside, exact=True)


def natural(value: str) -> tuple[int, str]:
    """Return the key of the natural order: numbers by size, words by letter; 81920 before 144384."""
    return (int(value), "") if value.isdecimal() and len(value) < 16 else (-1, value)


def _union(classes: Mapping[str, int] | Mapping[str | None, int], values: Sequence[str]) -> int:
    rows = 0
    for value in values:
        rows |= dict(classes)[value]
    return rows


def _by_product(table: Table, keys: Sequence[str], inside: int, universe: int) -> Rendering | None:
    """Return one ``In`` per key, if their product is exact."""
    selected, expressions = universe, []
    for key in keys:
        classes = _classes(table, key, universe)
        values = sorted((v for v, rows in classes.items() if v is not None and rows & inside), key=natural)
        if {"?", "*"} & set(values) or classes.get(None, 0) & inside:
            return None
        selected &= _union(classes, values)
        expressions.append(Expression(key=key, operator="In", values=tuple(values)))
    return Rendering(tuple(expressions), selected, exact=True) if selected == inside else None


def _by_absence(table: Table, key: str, inside: int, universe: int) -> Rendering | None:
    """Return DoesNotExist of the key: on-demand where only spot is labelled (AKS)."""
    absent = _classes(table, key, universe).get(None, 0)
    if not absent or absent & ~inside:
        return None
    return Rendering((Expression(key=key, operator="DoesNotExist"),), absent, absent == inside)


# --- sharing: by the catalog's sentences -----------------------------------------------------------------------------


def _sharing(catalog: Catalog, table: Table, inside: int, universe: int) -> list[Rendering]:
    scheme = catalog.schemes[table.platform.sharing].of([vendor for vendor, rows in table.by_vendor.items() if rows & universe])
    by_sharing = {s: rows & universe for s in SHARINGS if (rows := table.by_sharing.get(s, 0)) & universe}
    kept = {s for s, rows in by_sharing.items() if rows & ~inside == 0}
    if "Exclusive" in kept:
        out = [s for s in scheme.exclude if s not in kept]
        rows = sum(rows for s, rows in by_sharing.items() if s in kept)
        renderings = [Rendering(tuple(e for s in out for e in scheme.exclude[s]), rows, rows == inside)]
    else:
        # labels are written positively on gfd, and where the platform sets them before boot (GKE)
        is_known = table.platform.cloud is None or catalog.schemes[table.platform.sharing].slice_key is not None
        written = sorted(kept & scheme.only.keys()) if is_known else ()
        renderings = [Rendering(scheme.only[s], by_sharing[s], by_sharing[s] == inside) for s in written]
    return [option for option in renderings if table.unmaintained.isdisjoint(e.key for e in option.expressions)]


# --- one slice by its label ------------------------------------------------------------------------------------------


def slice_by_label(catalog: Catalog, table: Table, profile: str, machines: int) -> Rendering | None:
    """Return the label of one MIG profile: GKE's partition size, or on gfd (single strategy) the product label. ``machines``: the rows
    of the machines that are allowed. Returns None if the platform has no such label."""
    rows = table.where(o.sharing == "MIG" and o.profile == profile and o.resource == o.host.resource for o in table.offers) & machines
    key = slice_key(catalog, table)
    if not rows or key is None or key in table.unmaintained:
        return None
    values = sorted(set(_single_values(table, key, rows)))
    return Rendering((Expression(key=key, operator="In", values=tuple(values)),), rows, exact=True) if values else None


def slice_key(catalog: Catalog, table: Table) -> str | None:
    """Return the label by which MIG profiles are chosen where slices have the resource name of a whole GPU; None if there is none."""
    labels = table.platform.labels.items() if table.platform.cloud is None else ()
    product = next((key for key, attribute in labels if attribute.rpartition(":")[2] == "product"), None)
    return catalog.schemes[table.platform.sharing].slice_key or product


def _single_values(table: Table, key: str, rows: int) -> Iterator[str]:
    for possible, of_value in table.values.get(key, {}).items():
        if of_value & rows and possible not in (NEW, ANY, ABSENT):
            yield from (v for v in possible if v is not None)
