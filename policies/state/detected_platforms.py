"""Counts what the nodes and NodePools show of a cluster's platforms, one by one: of up to 10,000, a few
change at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from catalog import Catalog
from policies.facts import platform_detection
from policies.facts.cluster_facts import ClusterFacts
from policies.facts.platform_detection import DetectedPlatform, Detector
from policies.state.objects import Key


class DetectedPlatforms:
    """The platforms and MIG strategy that ``auto`` stands for. Platforms that were certain once stay so."""

    def __init__(self, catalog: Catalog) -> None:
        self._detector = Detector(catalog)
        self._of: dict[Key, DetectedPlatform] = {}
        self._counts: Counter[DetectedPlatform] = Counter()
        self._certain: tuple[str, ...] = ()
        self._strategy: str | None = None
        self._before: tuple[tuple[str, ...], str | None] = (), None

    def update(self, keys: Iterable[Key], facts: ClusterFacts) -> tuple[tuple[str, ...], str]:
        """Return the platforms and the MIG strategy, after the objects under ``keys`` changed to what
        ``facts`` have."""
        self._before = self._certain, self._strategy
        for key in keys:
            self._count(key, facts)
        seen = [one for one, count in self._counts.items() if count > 0]
        self._certain = self._detector.certain(seen, self._certain)
        self._strategy = platform_detection.mig_strategy(seen, self._strategy)
        return self._detector.platforms(seen, self._certain), self._strategy

    def take_back(self, keys: Iterable[Key], facts: ClusterFacts) -> None:
        """Undo the last ``update``. ``facts``: those before it."""
        for key in keys:
            self._count(key, facts)
        self._certain, self._strategy = self._before

    def _count(self, key: Key, facts: ClusterFacts) -> None:
        """Count what a node or NodePool shows now in place of what it showed before."""
        kind, _, name = key
        if (before := self._of.pop(key, None)) is not None:
            self._counts[before] -= 1
        if kind == "Node" and name in facts.nodes:
            self._of[key] = self._detector.of_node(facts.nodes[name])
        elif kind == "NodePool" and name in facts.nodepools:
            self._of[key] = self._detector.of_pool(facts.nodepools[name])
        if key in self._of:
            self._counts[self._of[key]] += 1
