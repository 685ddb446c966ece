"""The devices that pods were admitted with, by model and namespace, and what they cost an hour: ``berth_admitted_gpus_total`` and
``berth_admitted_usd_per_hour_total``.

The label is ``resource_namespace``: a target of a PodMonitor has a label ``namespace`` of its own, Berth's, and Prometheus renames what a
metric has of that name. It holds only names of the snapshot, of the cluster's namespaces or of those of files, and only so many of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily

from policies.state.snapshot import NamespaceFacts, Snapshot
from policies.verdict import Holding
from telemetry.exposition import family

MOST_NAMESPACES = 300
"""The most namespaces with series of their own. With ``MOST_SERIES`` at most 900 series, which a scrape writes in 9 ms (10 us each, as
``policy_metrics.MOST_POLICY_SERIES`` says)."""
MOST_SERIES = 600
"""The most series that name a namespace and a model."""
MOST_OF_ONE = 12
"""The most of them of one namespace: whoever asks for every model there leaves room for the others."""
OTHER = "(other)"
"""Stands for a namespace past these, or one that the snapshot does not have; no namespace has parentheses in its name."""


class AdmittedDevices:
    """Plain sums, of which a scrape makes series: a review adds to two of them."""

    def __init__(self) -> None:
        self._usd: dict[str, float] = {}
        self._gpus: dict[tuple[str, str], float] = {}
        self._models: Counter[str] = Counter()
        """The number of models by namespace."""

    def count(self, holding: Holding, facts: NamespaceFacts) -> None:
        """Count the devices of a pod that was admitted in the namespace of these facts."""
        namespace = facts.namespace
        if namespace not in self._usd:
            namespace = self._new(facts)
        self._usd[namespace] += holding.usd
        for model, devices in holding.devices:
            key = namespace, model
            if key not in self._gpus:
                key = self._new_model(namespace, model)
            self._gpus[key] += devices

    def _new(self, facts: NamespaceFacts) -> str:
        """Make room for a namespace; return its name, or ``OTHER``."""
        is_known = len(self._usd) < MOST_NAMESPACES and _has(facts.snapshot, facts.namespace)
        name = facts.namespace if is_known else OTHER
        self._usd.setdefault(name, 0.0)
        return name

    def _new_model(self, namespace: str, model: str) -> tuple[str, str]:
        has_room = len(self._gpus) < MOST_SERIES and self._models[namespace] < MOST_OF_ONE
        key = (namespace if has_room else OTHER), model
        if key not in self._gpus:
            self._gpus[key] = 0.0
            self._models[key[0]] += 1
        return key

    def keep(self, snapshot: Snapshot) -> None:
        """Remove the series of namespaces that are gone. Called at each swap of snapshots: mostly there are none."""
        gone = {name for name in self._usd if name != OTHER and not _has(snapshot, name)}
        if not gone:
            return
        self._usd = {name: usd for name, usd in self._usd.items() if name not in gone}
        self._gpus = {key: devices for key, devices in self._gpus.items() if key[0] not in gone}
        self._models = Counter(namespace for namespace, _ in self._gpus)

    def collect(self) -> Iterator[Metric]:
        """Yield both families."""
        yield family(
            CounterMetricFamily,
            "berth_admitted_usd_per_hour",
            "USD an hour of the devices that pods were admitted with, at the catalog's indicative prices, on the cheapest machines that "
            "they may run on.",
            ["resource_namespace"],
            (([namespace], usd) for namespace, usd in self._usd.items()),
        )
        yield family(
            CounterMetricFamily,
            "berth_admitted_gpus",
            "Devices that pods were admitted with, by the model, else the family, that their placement leaves; slices by their part.",
            ["resource_namespace", "model"],
            self._gpus.items(),
        )


def _has(snapshot: Snapshot, namespace: str) -> bool:
    return namespace in snapshot.cluster.namespaces or namespace in snapshot.own
