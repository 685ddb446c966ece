"""The MIG slices that are known to exist: those that nodes have, and those that the platform team declares.

A default puts no slice in place of a whole GPU where none is known: the catalog tells what a GPU may be cut into, not that it is.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Iterable, Mapping

from catalog import Catalog
from policies.facts.places import NodePlace
from policies.offers.constraints import CompiledTemplate
from policies.offers.selectors import slice_key
from policies.offers.table import Table


def rows_of_node(table: Table, place: NodePlace) -> int:
    """Return the offers of one table that a node of this kind may have."""
    rows = functools.reduce(operator.or_, (table.of_resource(name) for name, _ in place.devices), 0)
    for key, value in place.labels:
        rows &= table.select(key, "In", (value,))[0]
    return rows


def slices_of_nodes(catalog: Catalog, tables: Mapping[str, Table], places: Iterable[NodePlace]) -> int:
    """Return the rows of MIG slices that some of these nodes have: under a resource name of their own, or by the label of the profile.
    A node without that label may have whole GPUs, so it does not count."""
    rows_found = 0
    for place, table in itertools.product(places, tables.values()):
        key, labels = slice_key(catalog, table), dict(place.labels)
        is_labelled = key in labels and not table.select(key, "In", (labels[key],))[1]
        exclusive = table.by_sharing.get("Exclusive", 0)
        slices = (rows for (_, name), (_, rows) in table.slices.items() if is_labelled or not table.of_resource(name) & exclusive)
        rows_found |= functools.reduce(operator.or_, slices, 0) & rows_of_node(table, place)
    return rows_found


def declared_slices(tables: Mapping[str, Table], templates: Iterable[CompiledTemplate]) -> int:
    """Return the rows of MIG slices that node templates or ``--catalog`` declare."""
    rows_found = 0
    for table, compiled in itertools.product(tables.values(), (None, *templates)):
        for (profile, resource), (_, rows) in table.slices.items():
            if compiled is None:
                rows_found |= rows if resource in table.platform.slices else 0
            elif profile in compiled.template.mig_profiles:
                rows_found |= rows & compiled.rows
    return rows_found
