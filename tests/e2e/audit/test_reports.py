"""`berth audit --serve` on a real API server, with the rights that it is installed with: what is in its reports, when they change, and what
becomes of them when it, the API server or the kind of report is gone."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

from cluster.survey.workloads import PLURALS
from policies.audit.assessment import Assessment, workload_of
from policies.audit.ledger import Ledger
from policies.audit.prices import prices
from policies.audit.stored_pod import Controller, controller_of, stored, widest
from policies.audit.templates import STAND_IN, template_pods
from policies.state.objects import Change, Key
from policies.state.updater import AUTO, Options, Updater
from tests.e2e.differential.pods import generated
from tests.support.counts import PROVE, count
from tests.support.generators.random_worlds import catalog
from tests.support.patience import PATIENCE
from tests.testcluster.addons import installed, nodes
from tests.testcluster.addons.audit import REPORTS, Audit, audit, install_reports
from tests.testcluster.addons.berth import create_namespace
from tests.testcluster.controlplane import restarting
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.fixtures import control_plane

PODS, NAMESPACES = count(120, 10_000), count(6, 500)
SECONDS = PATIENCE * count(1, 10)
WIDE = widest(catalog())
GROUP = "berth.dev/v1alpha1"
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
    random: Random = field(default_factory=lambda: Random(18))
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
        """Random pods, several at once. Those that the API server refuses are none."""

        def one(number: int) -> None:
            random = Random(self.random.random() + number)
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
        owned = [*api.list("apps/v1", "ReplicaSet"), *api.list("batch/v1", "Job")]
        owners = {one["metadata"]["uid"]: above for one in owned if (above := controller_of(one["metadata"])) is not None}
        ledger, assessment = Ledger(), Assessment(snapshot, prices(catalog()), owners)
        for one in api.list("v1", "Pod"):
            if (pod := assessment.of(stored(one, WIDE))) is not None and not pod.stored.finished:
                ledger.put(pod)
                assert pod.workload == workload_of(pod.stored, owners)
        for group, kind in PLURALS:
            for one in api.list(f"{group}/v1", kind):
                metadata = one["metadata"]
                owners[STAND_IN + metadata["uid"]] = Controller(f"{group}/v1", kind, metadata["name"], metadata["uid"])
                for made in template_pods(one, f"{group}/v1", kind, catalog(), WIDE):
                    if (pod := assessment.of(made)) is not None:
                        ledger.put(pod)
        found = {}
        for workload in ledger.workloads():
            if (report := ledger.report(workload, REPORTS)) is not None:
                content = {name: report[name] for name in ("source", "scope", "summary", "results")}
                key = workload.namespace, workload.report_name
                found[key] = content | {"ownerReferences": report["metadata"].get("ownerReferences")}
        return found

    def up_to_date(self) -> dict[tuple[str, str], Raw]:
        """Waits until what is stored is what is expected, and returns it."""
        self.until(lambda: self.reports() == self.expected(), "reports to be what is found")
        return self.reports()

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


@pytest.fixture(scope="module")
def audited(request: pytest.FixtureRequest) -> Iterator[Audited]:
    with control_plane(request.session) as cluster:
        install_reports(cluster)
        installed.install(cluster)
        file = cluster.folder / "audit.kubeconfig"
        installed.write_kubeconfig(file, cluster, installed.token(cluster, account=installed.AUDITOR))
        nodes.add(cluster, *nodes.bare_metal(catalog()))
        teams = [{"team": ("research", "vision")[number % 2]} for number in range(NAMESPACES)]
        names = [create_namespace(cluster, f"team-{number}", labels) for number, labels in enumerate(teams)]
        found = Audited(cluster=cluster, kubeconfig=file, namespaces=names)
        for name in SPECS:
            found.policy(name)
        yield found


def test_reports_are_what_is_found(audited: Audited) -> None:
    """Of every pod that exists, those included that were created before; after pods, policies, labels and owners have changed too. All
    that a Berth that was away would have written is named."""
    audited.create(PODS)
    running = audited.start()
    begun = time.monotonic()
    reports = audited.up_to_date()
    if PROVE:
        print(f"first full report of {PODS} pods: {time.monotonic() - begun:.0f} s, {len(reports)} reports")
    assert {one["result"] for report in reports.values() for one in report["results"]} == {"warn", "fail"}
    findings = {one["properties"]["finding"] for report in reports.values() for one in report["results"]}
    assert {"would-change", "would-refuse", "not-as-enforced"} <= findings
    audited.policy("few", require={"gpusPerPod": {"max": 4}})
    begun = time.monotonic()
    assert audited.up_to_date() != reports
    if PROVE:
        print(f"a policy in all reports: {time.monotonic() - begun:.0f} s")
        print(f"bytes of all reports: {sum(len(json.dumps(one)) for one in audited.cluster.api.list(REPORTS, 'Report'))}")
        print(f"memory: {running.metric('process_resident_memory_bytes') / 2**20:.0f} MiB")
    deployment = {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": _template({"a": "b"})}
    namespace = audited.namespaces[0]
    audited.cluster.api.create(
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "serving"}, "spec": deployment}, namespace
    )
    audited.until(lambda: any(name.startswith("berth-deployment-serving") for _, name in audited.reports()), "the Deployment's report")
    audited.cluster.api.patch(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}, {"metadata": {"labels": {"team": "x"}}}
    )
    audited.up_to_date()
    assert running.process.popen.poll() is None


def _template(labels: Raw) -> Raw:
    containers = [{"name": "c", "image": "c:1", "resources": {"limits": {"nvidia.com/gpu": "8"}}}]
    return {"metadata": {"labels": labels}, "spec": {"containers": containers}}


def test_policies_count(audited: Audited) -> None:
    """In their statuses, as `kubectl get gpu -A` shows them."""
    reports = audited.up_to_date()
    results = [one for report in reports.values() for one in report["results"]]
    refused = sum(int(one["properties"]["pods"]) for one in results if one["policy"] == "ClusterGPUPolicy/few")
    audited.until(lambda: audited.counts("few").get("wouldRefuse") == refused, "the count of the policy")
    assert refused
    command = [*audited.cluster.kubectl("get", "gpu", "--all-namespaces")]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    heads, line = shown.splitlines()[0], next(line for line in shown.splitlines() if "/few " in line)
    assert line[heads.index("WOULD REFUSE") :].split()[0] == str(refused)


def test_a_workload_without_pods_is_judged_by_its_template(audited: Audited) -> None:
    """Scaled to nothing, suspended, waiting for its schedule, or refused: until it has pods, which then count in its stead."""
    api, namespace = audited.cluster.api, create_namespace(audited.cluster, "without-pods", {})
    job = {"template": {**_template({}), "spec": {**_template({})["spec"], "restartPolicy": "Never"}}}
    specs: dict[tuple[str, str], Raw] = {
        ("apps/v1", "Deployment"): {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": _template({"a": "b"})},
        ("batch/v1", "Job"): {**job, "suspend": True},
        ("batch/v1", "CronJob"): {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": job}},
    }
    made = [
        api.create({"apiVersion": version, "kind": kind, "metadata": {"name": "idle"}, "spec": spec}, namespace)
        for (version, kind), spec in specs.items()
    ]
    audited.until(lambda: len([name for where, name in audited.reports() if where == namespace]) == len(specs), "their reports")
    reports = {key: one for key, one in audited.up_to_date().items() if key[0] == namespace}
    assert {one["scope"]["kind"] for one in reports.values()} == {kind for _, kind in specs}
    for report in reports.values():
        (result,) = [one for one in report["results"] if one["policy"] == "ClusterGPUPolicy/few"]
        assert (result["result"], result["properties"]["pods"], result["properties"]["templates"]) == ("fail", "0", "1")
        assert "not-as-enforced" not in {one["properties"]["finding"] for one in report["results"]}
    name = next(name for where, name in reports if where == namespace and name.startswith("berth-deployment"))
    api.patch(made[0], {"spec": {"replicas": 1}})

    def counted() -> bool:
        report = audited.reports().get((namespace, name))
        return report is not None and {one["properties"]["pods"] for one in report["results"]} == {"1"}

    audited.until(counted, "the Deployment's pod to count")
    api.delete(made[2])
    audited.until(lambda: not any(name.startswith("berth-cronjob-idle") for _, name in audited.reports()), "its report to go")


def test_at_rest_nothing_is_written(audited: Audited) -> None:
    """Neither by the process that wrote, nor by the next one, which finds everything as it should be: a report that says the same has the
    resourceVersion that it had."""
    before = audited.versions()
    running = audited.restart()
    audited.until(lambda: running.page("/readyz").status == 200 and b" 0 due" in running.page("/readyz").body, "all to be compared")
    after = audited.versions()
    same = [key for key, (content, _) in before.items() if after.get(key, ({}, ""))[0] == content]
    assert len(same) > len(before) / 2
    assert [after[key][1] for key in same] == [before[key][1] for key in same]


def test_what_changed_while_it_was_away(audited: Audited) -> None:
    """A workload that is gone has no report any more, and pods that came have one."""
    assert audited.running is not None
    audited.running.kill(audited.cluster)  # its Lease expires
    (namespace, _) = next(iter(audited.reports()))
    audited.cluster.api.delete_all("v1", "Pod", namespace)
    audited.create(5)
    audited.start()
    audited.up_to_date()


def test_a_report_that_somebody_changes(audited: Audited) -> None:
    """Is as it was soon after, and one that somebody deletes is there again."""
    reports = audited.up_to_date()
    (namespace, first), (other, second) = list(reports)[:2]
    one = audited.cluster.api.get(REPORTS, "Report", first, namespace)
    assert one is not None
    audited.cluster.api.delete({"apiVersion": REPORTS, "kind": "Report", "metadata": {"name": second, "namespace": other}})
    audited.cluster.api.patch(one, {"summary": {"fail": 99}})
    audited.until(lambda: audited.reports() == reports, "the reports to be as they were")


def test_a_cause_is_told_once(audited: Audited) -> None:
    """By an Event on the workload; a restart repeats nothing."""
    assert audited.running is not None
    namespace = create_namespace(audited.cluster, "told", {})
    job = {"template": {**_template({}), "spec": {**_template({})["spec"], "restartPolicy": "Never"}}}
    audited.cluster.api.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"}, "spec": job}, namespace)
    wanted = {("WouldBeRefused", "Job", "train"), ("NotAsEnforced", "Job", "train")}
    audited.until(lambda: wanted <= set(audited.events()), "the Events")
    running = audited.restart()
    audited.until(lambda: b" 0 due" in running.page("/readyz").body, "the next one to have compared all")
    audited.up_to_date()
    assert [audited.events().count(one) for one in sorted(wanted)] == [1, 1]


def test_the_api_server_away(audited: Audited) -> None:
    """Nothing is forgotten: pods that came and went around its end are in the reports afterwards."""
    audited.create(5)
    restarting.kill(audited.cluster, "kube-apiserver")
    restarting.start(audited.cluster, "kube-apiserver")
    audited.create(5)
    audited.up_to_date()


def test_no_kind_of_report(audited: Audited) -> None:
    """One line says so, and counts go on; once the kind is there, reports are."""
    assert audited.running is not None
    audited.running.end(audited.cluster)
    version, kind, name = "apiextensions.k8s.io/v1", "CustomResourceDefinition", "reports.openreports.io"
    audited.cluster.api.delete({"apiVersion": version, "kind": kind, "metadata": {"name": name}})
    audited.until(lambda: audited.cluster.api.get(version, kind, name) is None, "the kind to go")
    running = audited.start()
    audited.until(lambda: bool(running.events("reports")), "the line")
    assert "install the definitions of OpenReports" in running.events("reports")[0]["text"]
    audited.policy("few", require={"gpusPerPod": {"max": 1}})
    before = audited.counts("few")
    audited.until(lambda: audited.counts("few") != before, "the counts to change")
    assert len(running.events("reports")) == 1
    install_reports(audited.cluster)
    audited.until(lambda: audited.cluster.api.call("GET", f"/apis/{REPORTS}/reports").ok, "the kind to be served")
    audited.up_to_date()
