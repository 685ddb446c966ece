"""The label keys that concern placement: a pod's author who uses one has chosen nodes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from catalog import Catalog
from policies.policy import NodeTemplate


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """Label keys of every platform, listed or not, by axis: an author who uses one has made a choice on that
    axis."""

    machine: frozenset[str]
    capacity: frozenset[str]
    sharing: frozenset[str]
    template: frozenset[str]
    """labels of the node templates"""


def vocabulary(catalog: Catalog, templates: Iterable[NodeTemplate]) -> Vocabulary:
    """Of everything that the catalog and these templates name."""
    platforms = catalog.platforms.values()
    capacity = frozenset(key for p in platforms for key in p.capacity_keys)
    return Vocabulary(
        machine=frozenset(key for p in platforms for key in (*p.labels, *p.after_boot)) - capacity,
        capacity=capacity,
        sharing=frozenset(key for scheme in catalog.schemes.values() for v in scheme.variants for key in v.labels),
        template=frozenset(catalog.label_aliases.get(key, key) for t in templates for key, _ in t.labels),
    )
