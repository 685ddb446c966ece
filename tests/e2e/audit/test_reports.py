"""`berth audit --serve` on a real API server, with the rights that it is installed with: what is in its reports, when they change, and what
becomes of them when it, the API server or the kind of report is gone."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from analysis.audit.outcomes import FINDINGS
from cli.main import main
from tests.cli.inspect.test_effective import somebody
from tests.e2e.audit.audited import GROUP, SPECS, Audited
from tests.support.counts import PROVE, count, only_in_prove
from tests.support.generators.random_worlds import catalog
from tests.testcluster.addons import installed, nodes
from tests.testcluster.addons.audit import REPORTS, install_reports
from tests.testcluster.addons.berth import create_namespace
from tests.testcluster.controlplane import restarting
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.fixtures import control_plane

PODS, NAMESPACES = count(120, 10_000), count(6, 500)


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
    assert {"would-change", "would-deny", "not-as-enforced"} <= findings
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
    audited.until(lambda: len(audited.cluster.api.list("v1", "Pod", namespace, labelSelector="a=b")) == 2, "the Deployment's pods")
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
    denied = sum(int(one["properties"]["pods"]) for one in results if one["policy"] == "ClusterGPUPolicy/few")
    audited.until(lambda: audited.counts("few").get("wouldDeny") == denied, "the count of the policy")
    assert denied
    command = [*audited.cluster.kubectl("get", "gpu", "--all-namespaces")]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    heads, line = shown.splitlines()[0], next(line for line in shown.splitlines() if "/few " in line)
    assert line[heads.index("WOULD DENY") :].split()[0] == str(denied)


def typed(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """(exit code, standard output, standard error) of `berth audit`."""
    code = main(["audit", *words])
    out, err = capsys.readouterr()
    return code, out, err


def test_the_command_says_by_reports_what_it_says_of_the_pods(audited: Audited, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The same counts of each policy, and of all of them together the least that the pods can be; the same results. It takes the right to
    list reports alone, and judging the pods, which is denied, says so."""
    audited.up_to_date()
    api, verbs = audited.cluster.api, ["list"]
    create_namespace(audited.cluster, "research", {})
    rule = {"apiGroups": [REPORTS.partition("/")[0]], "resources": ["reports"], "verbs": verbs}
    api.apply({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "reads"}, "rules": [rule]})
    reader = somebody(audited.cluster, "reader", tmp_path, {"name": "reads", "everywhere": True})
    code, _, err = typed(capsys, "--kubeconfig", reader)
    assert (code, "you may not list pods" in err, "berth audit --reports" in err) == (2, True, True)
    code, text, err = typed(capsys, "--kubeconfig", reader, "--reports", "-o", "json")
    assert (code, err) == (0, "")
    reported = json.loads(text)
    live = json.loads(typed(capsys, "--kubeconfig", str(audited.cluster.kubeconfig), "-o", "json")[1])
    assert not reported["resultsLeftOut"]
    assert {"policies": _compared(reported, reported), "workloads": _results(reported)} == {
        "policies": _compared(live, reported),
        "workloads": _results(live),
    }
    file = tmp_path / "reports.yaml"
    command = audited.cluster.kubectl("get", "reports", "--all-namespaces", "-o", "yaml")
    file.write_text(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert typed(capsys, "--reports", str(file), "-o", "json") == (0, text, "")
    code, text, _ = typed(capsys, "--kubeconfig", reader, "--reports", "--enforce-preview", "few")
    denied = sum(line["would-deny"] for line in live["policies"] if line["policy"] == "ClusterGPUPolicy/few")
    assert text.startswith(f"With few in Enforce, {denied} pods would be denied and 0 changed (")


def _compared(answer: Raw, reported: Raw) -> list[Raw]:
    """The counts of the lines with findings; of those that are the least in ``reported`` nothing but that they are no more."""
    found = []
    lines = {(one["namespace"], one["policy"]): one for one in reported["policies"]}
    for one in answer["policies"]:
        counts = {finding: one[finding] for finding in FINDINGS}
        if any(counts.values()):
            line = lines[one["namespace"], one["policy"]]
            assert all(line[finding] <= count for finding, count in counts.items())
            exact = {finding: count for finding, count in counts.items() if finding not in line["atLeast"]}
            assert one["policy"] is None or exact == counts
            of: Raw = {name: one[name] for name in ("namespace", "policy", "mode")}
            found.append(of | {str(finding): count for finding, count in exact.items()})
    return found


def _results(answer: Raw) -> list[Raw]:
    """Of each workload with pods, in one order, also where two API groups have workloads of the same kind and name."""
    scopes = [
        {name: one["scope"][name] for name in ("kind", "name", "namespace")} | {"results": one["results"]} for one in answer["workloads"]
    ]
    with_pods = [one for one in scopes if any(result["properties"]["pods"] != "0" for result in one["results"])]
    return sorted(with_pods, key=lambda one: (one["namespace"], one["kind"], one["name"], json.dumps(one["results"], sort_keys=True)))


def test_a_workload_without_pods_is_judged_by_its_template(audited: Audited) -> None:
    """Scaled to nothing, suspended, waiting for its schedule, or denied: until it has pods, which then count in its stead."""
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
    wanted = {("WouldBeDenied", "Job", "train"), ("NotAsEnforced", "Job", "train")}
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
    served = (f"/apis/{REPORTS}/reports", *(f"/apis/{GROUP}/{plural}" for plural in ("clustergpupolicies", "gpupolicies")))
    audited.until(lambda: all(audited.cluster.api.call("GET", path).ok for path in served), "reports and policies to be served again")
    audited.create(5)
    audited.up_to_date()


@only_in_prove
def test_no_kind_of_report(audited: Audited, capsys: pytest.CaptureFixture[str]) -> None:
    """One line says so, and counts and Events go on, each Event once; once the kind is there, reports are. The command says what to
    install. `make test` has the Events without reports, and after a restart, in tests/cluster/reports/test_writer.py."""
    assert audited.running is not None
    audited.running.end(audited.cluster)
    version, kind, name = "apiextensions.k8s.io/v1", "CustomResourceDefinition", "reports.openreports.io"
    audited.cluster.api.delete({"apiVersion": version, "kind": kind, "metadata": {"name": name}})
    audited.until(lambda: audited.cluster.api.get(version, kind, name) is None, "the kind to go")
    code, out, err = typed(capsys, "--kubeconfig", str(audited.cluster.kubeconfig), "--reports")
    assert (code, out) == (2, "")
    assert err.startswith("berth: cluster: no kind of report is installed; install the definitions of OpenReports")
    running = audited.start()
    audited.until(lambda: bool(running.events("reports")), "the line")
    assert "install those of OpenReports" in running.events("reports")[0]["text"]
    audited.policy("few", require={"gpusPerPod": {"max": 1}})
    before = audited.counts("few")
    audited.until(lambda: audited.counts("few") != before, "the counts to change")
    assert len(running.events("reports")) == 1
    namespace = create_namespace(audited.cluster, "untold", {})
    job = {"template": {**_template({}), "spec": {**_template({})["spec"], "restartPolicy": "Never"}}}
    audited.cluster.api.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "alone"}, "spec": job}, namespace)
    wanted = {("WouldBeDenied", "Job", "alone"), ("NotAsEnforced", "Job", "alone")}
    audited.until(lambda: wanted <= set(audited.events()), "the Events without reports")
    running = audited.restart()
    audited.until(lambda: bool(running.events("reports")), "the line of the next one")
    audited.until(lambda: running.metric("berth_audit_reports_due") == 0, "the next one to have compared all")
    install_reports(audited.cluster)
    audited.until(lambda: audited.cluster.api.call("GET", f"/apis/{REPORTS}/reports").ok, "the kind to be served")
    audited.up_to_date()
    assert [audited.events().count(one) for one in sorted(wanted)] == [1, 1]
