"""A cluster with an audit beside it: what is done to it, what is in its reports, and what should be."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from analysis.audit.assessment import Assessment, workload_of
from analysis.audit.ledger import Ledger
from analysis.audit.stored_pod import Controller, controller_of, stored, widest
from analysis.audit.templates import STAND_IN, template_pods
from catalog.prices import prices
from cluster.watch.kinds import WORKLOADS
from cluster.watch.workload_kinds import base_kinds, custom_workloads
from policies.document import Document
from policies.state.objects import Change, Key
from policies.state.updater import AUTO, Options, Updater
from policies.workloads.pods import ALONE, Around
from tests.e2e.differential.pods import generated
from tests.support.counts import count
from tests.support.generators.random_worlds import catalog
from tests.testcluster.addons.audit import REPORTS, Audit, audit
from tests.testcluster.calls import PATIENCE
from tests.testcluster.controlplane.api import ApiError, Raw
from tests.testcluster.controlplane.cluster import Cluster

SECONDS = PATIENCE * count(1, 10)
WIDE = widest(catalog())
GROUP = "berth.dev/v1alpha1"
CUSTOM = custom_workloads(catalog(), WIDE, ALONE, lambda kind, error: None)
SPECS: dict[str, Raw] = {
    "taints": {"mode": "Enforce", "default": {"acceleratorTaints": "Tolerate"}},
    "grace": {"mode": "Audit", "default": {"gracePeriod": "10m", "protectFor": "12h"}},
    "few": {"mode": "Audit", "require": {"gpusPerPod": {"max": 2}}},
    "research": {
        "mode": "Warn",
        "match": {"namespaceSelector": {"matchLabels": {"team": "research"}}},
        "require": {"requestsEqualLimits": ["accelerators", "cpuAndMemory"]},
    },
}


@dataclass(slots=True, kw_only=True)
class Audited:
    """A cluster with an audit beside it."""

    cluster: Cluster
    kubeconfig: Path
    namespaces: list[str]
    random: Random = field(default_factory=lambda: Random(23))
    running: Audit | None = None
    started: int = 0
    made: int = 0

    def start(self) -> Audit:
        """One more process."""
        self.started += 1
        self.running = audit(self.cluster, str(self.started), self.kubeconfig)
        return self.running

    def policy(self, name: str, **spec: Any) -> None:
        value = {"apiVersion": GROUP, "kind": "ClusterGPUPolicy", "metadata": {"name": name}, "spec": {**SPECS[name], **spec}}
        assert self.cluster.api.apply(value).ok

    def create(self, most: int) -> None:
        """Random pods, several at once, the same for the same seed. Those that the API server denies are none."""
        seeds = [self.random.random() for _ in range(most)]

        def one(number: int) -> None:
            random = Random(seeds[number])
            self.cluster.api.try_create(generated(random, f"pod-{self.made + number}"), random.choice(self.namespaces))

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(one, range(most)))
        self.made += most

    def reports(self) -> dict[tuple[str, str], Raw]:
        """What is stored, by (namespace, name), as far as Berth writes it."""
        found = {}
        for one in self.cluster.api.list(REPORTS, "Report"):
            metadata = one["metadata"]
            content = {name: one[name] for name in ("source", "scope", "summary", "results")}
            found[metadata["namespace"], metadata["name"]] = content | {"ownerReferences": metadata.get("ownerReferences")}
        return found

    def versions(self) -> dict[tuple[str, str], tuple[Raw, str]]:
        """The same with their resourceVersions, once they are up to date."""
        found = {}
        reports = self.up_to_date()
        for one in self.cluster.api.list(REPORTS, "Report"):
            key = one["metadata"]["namespace"], one["metadata"]["name"]
            found[key] = reports.get(key, {}), one["metadata"]["resourceVersion"]
        return found

    def restart(self, *, kill: bool = False) -> Audit:
        """Another process, once it writes."""
        assert self.running is not None
        (self.running.kill if kill else self.running.end)(self.cluster)
        running = self.start()
        self.until(lambda: running.metric("berth_lease_held") == 1.0, "the Lease")
        return running

    def expected(self) -> dict[tuple[str, str], Raw]:
        """The same, judged anew from all that the API server has."""
        api, changes = self.cluster.api, dict[Key, Change]()
        for version, kind in ((GROUP, "ClusterGPUPolicy"), (GROUP, "GPUPolicy"), ("v1", "Namespace"), ("v1", "Node")):
            for one in api.list(version, kind):
                changes[kind, one["metadata"].get("namespace", ""), one["metadata"]["name"]] = one
        snapshot = Updater(catalog(), Options(platforms=(AUTO,), mig_strategy=AUTO)).apply(changes, all_nodes=True).snapshot
        kinds = [*((f"{row.group}/v1", row.kind) for row in WORKLOADS), *self.custom()]
        owning = [("apps/v1", "ReplicaSet"), *kinds, ("v1", "Pod")]
        owned = [one for version, kind in owning for one in api.list(version, kind)]
        owners = {one["metadata"]["uid"]: above for one in owned if (above := controller_of(one["metadata"])) is not None}
        ledger, assessment = Ledger(), Assessment(snapshot, prices(catalog()), owners)
        for one in api.list("v1", "Pod"):
            if (pod := assessment.of(stored(one, WIDE))) is not None and not pod.stored.finished:
                ledger.put(pod)
                assert pod.workload == workload_of(pod.stored, owners)
        for version, kind in kinds:
            for one in api.list(version, kind):
                metadata = one["metadata"]
                owners[STAND_IN + metadata["uid"]] = Controller(version, kind, metadata["name"], metadata["uid"])
                for made in template_pods(one, version, kind, catalog(), WIDE, Around(find=self.find)):
                    if (pod := assessment.of(made)) is not None:
                        ledger.put(pod)
        found = {}
        for workload in ledger.workloads():
            if (report := ledger.report(workload, REPORTS)) is not None:
                content = {name: report[name] for name in ("source", "scope", "summary", "results")}
                key = workload.namespace, workload.report_name
                found[key] = content | {"ownerReferences": report["metadata"].get("ownerReferences")}
        return found

    def custom(self) -> Iterator[tuple[str, str]]:
        """(apiVersion, kind) of each custom workload that is served now."""
        groups = {one["name"] for one in self.cluster.api.call("GET", "/apis").body["groups"]}
        for kind in (one for one in CUSTOM if one.group in groups):
            for version in kind.versions:
                if self.cluster.api.call("GET", kind.path(version)).ok:
                    yield kind.api_version(version), kind.kind
                    break

    def find(self, kinds: Sequence[tuple[str, str]], namespace: str, name: str) -> Document | None:
        """A runtime."""
        for base in base_kinds(catalog()):
            if (base.group, base.kind) in kinds:
                path = base.path(base.versions[0], namespace if base.namespaced else "", name)
                if (reply := self.cluster.api.call("GET", path)).ok:
                    return Document(file="", value=reply.body)
        return None

    def up_to_date(self) -> dict[tuple[str, str], Raw]:
        """Waits until what is stored is what is expected, and returns it."""
        self.until(self._as_expected, "reports to be what is found")
        return self.reports()

    def _as_expected(self) -> bool:
        """Judging anew takes half a second of a core: a second is left to whoever writes the reports."""
        try:
            if self.reports() == self.expected():
                return True
        except ApiError as error:
            if error.reply.status != 404:
                raise
            # the API server stopped serving a kind between discovery and list
        time.sleep(1)
        return False

    def until(self, holds: Callable[[], bool], what: str) -> None:
        self.cluster.wait_for(lambda: holds() or None, what, SECONDS)

    def counts(self, name: str) -> Raw:
        """In the status of a policy."""
        found = self.cluster.api.get(GROUP, "ClusterGPUPolicy", name)
        assert found is not None
        counts: Raw = found["status"].get("audit", {})
        return counts

    def events(self) -> list[tuple[str, str, str]]:
        """(reason, kind, name) of each Event of the audit's."""
        found = self.cluster.api.list("events.k8s.io/v1", "Event")
        ours = [one for one in found if one.get("action") == "Audit"]
        return [(one["reason"], one["regarding"]["kind"], one["regarding"]["name"]) for one in ours]
