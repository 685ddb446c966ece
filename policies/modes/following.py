"""The modes of a cluster's nodes from one set of facts to the next: looked for only where what they rest on has changed, as 10,000
nodes take milliseconds."""

from __future__ import annotations

from catalog import Catalog
from policies.facts.cluster_facts import ClusterFacts
from policies.modes.advertised import NOT_KNOWN, Advertised, advertised
from policies.modes.maintained import unmaintained


class Following:
    """What was found of the last facts."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._facts = ClusterFacts()
        self._advertised: Advertised = NOT_KNOWN
        self._unmaintained: frozenset[str] = frozenset()

    def update(self, facts: ClusterFacts) -> tuple[Advertised, frozenset[str]]:
        """Return how devices are offered, the same object while nothing of that changes, and the label keys that nobody maintains."""
        before = self._facts
        nodes = facts.offerings is not before.offerings
        if nodes or facts.slices is not before.slices:
            found = advertised(facts, self._catalog)
            self._advertised = self._advertised if found == self._advertised else found
        if nodes or facts.stacks is not before.stacks:
            self._unmaintained = unmaintained(facts, self._catalog)
        self._facts = facts
        return self._advertised, self._unmaintained
