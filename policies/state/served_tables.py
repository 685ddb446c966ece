"""The tables of offers as the cluster's DeviceClasses complete them, from one set of facts to the next."""

from __future__ import annotations

from collections.abc import Mapping

from catalog import Catalog
from policies.facts.cluster_facts import ClusterFacts
from policies.facts.device_requests import DeviceClass
from policies.facts.served_resources import Served, served
from policies.offers.served import with_served
from policies.offers.table import Table


class ServedTables:
    """What was made of the last tables and classes."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._plain: Mapping[str, Table] = {}
        self._tables: Mapping[str, Table] = {}
        self._served: Mapping[str, Served] | None = None
        self._classes: Mapping[str, DeviceClass] = {}

    def update(self, plain: Mapping[str, Table], facts: ClusterFacts) -> tuple[Mapping[str, Table], Mapping[str, Served]]:
        """Return the tables with what DeviceClasses serve, and what that is; the same objects while neither changes."""
        found = self._served
        if found is None or facts.device_classes is not self._classes:
            found = served(facts, self._catalog)
        if plain is not self._plain or found != self._served:
            self._plain, self._served, self._tables = plain, found, with_served(plain, found)
        self._classes = facts.device_classes
        return self._tables, found
