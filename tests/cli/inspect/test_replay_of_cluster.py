"""`berth replay` of the pods of a real cluster: as they came, by its own policies and by others."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from analysis.audit.assessment import Assessment
from analysis.audit.ledger import Ledger
from analysis.audit.workload_report import OPEN_REPORTS, POLICY_REPORTS
from catalog.prices import prices
from cli.main import main
from sources.sources import Origin, Sources, load_sources
from sources.state import read_whole
from tests.cli.inspect.test_audit import ROOT, pod
from tests.cli.inspect.test_replay import FEW, GRACE, policy
from tests.cli.replaying.events import event, lines
from tests.cli.replaying.events import pod as recorded
from tests.support.generators.random_worlds import catalog
from tests.testcluster.controlplane.cluster import Cluster, Options
from tests.testcluster.controlplane.starting import apply_crds
from tests.testcluster.fixtures import control_plane

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def bare(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Without Berth's kinds: a pod of eight GPUs on a node with a price, and one of one."""
    with control_plane(request.session, Options(kubelets=False)) as cluster:
        cluster.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "research"}})
        cluster.api.create(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": "big", "labels": {"node.kubernetes.io/instance-type": "p4d.24xlarge"}},
            }
        )
        for one in (pod("large", 8), pod("small", 1)):
            cluster.api.create(one)
        bound = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "large"}, "target": {"kind": "Node", "name": "big"}}
        assert cluster.api.call("POST", "/api/v1/namespaces/research/pods/large/binding", bound).ok
        yield cluster


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], bare: Cluster) -> Run:
    def typed(*words: str) -> tuple[int, str, str]:
        code = main(["replay", "--kubeconfig", str(bare.kubeconfig), "-o", "json", *words])
        out, err = capsys.readouterr()
        return code, out, err

    return typed


def written(folder: Path, name: str, *found: dict[str, Any]) -> str:
    file = folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump_all(found))
    return str(file)


def test_two_sets_of_policies_on_the_pods_that_run(run: Run, tmp_path: Path) -> None:
    """With the price of the node; without policies of then they are counted."""
    new = written(tmp_path, "new", policy("few", "Enforce", **FEW))
    code, out, err = run("--policies", new, "--prices", written(tmp_path, "prices", {"p4d.24xlarge": 16}))
    assert (code, json.loads(out)["decided"]) == (0, {"admitted": 1, "edited": 0, "denied": 1})
    assert "--against PATH" in err
    old = written(tmp_path, "old", policy("few", "Audit", **FEW))
    code, out, err = run("--policies", new, "--against", old, "--prices", written(tmp_path, "prices", {"p4d.24xlarge": 16}))
    assert (code, err) == (1, "")
    (found,) = json.loads(out)["differences"]
    assert (found["turn"], found["gpus"], found["usdPerHour"], found["example"]["pod"]) == ("newly-denied", 8, 16.0, "large")


def test_reports_are_a_record_of_what_was_found_then(run: Run, bare: Cluster, tmp_path: Path) -> None:
    """Findings that are new or gone, of the pods that exist: in either form of report."""
    old, new = policy("few", "Audit", **FEW), policy("few", "Audit", require={"gpusPerPod": {"max": 8}})
    found = read_whole(Origin(kubeconfig=str(bare.kubeconfig)), None, catalog(), lambda kind, number: None)
    then = load_sources(Sources(policies=(written(tmp_path, "old", old, GRACE),)), list(found.facts)).snapshot
    ledger, assessment = Ledger(), Assessment(then, prices(catalog()), found.owners)
    for one in found.pods:
        ledger.put(assessment.of(one) or pytest.fail("it asks for a GPU"))
    for version in (OPEN_REPORTS, POLICY_REPORTS):
        reports = [report for one in ledger.workloads() if (report := ledger.report(one, version)) is not None]
        file = written(tmp_path, "reports", {"apiVersion": "v1", "kind": "List", "items": reports})
        code, out, err = run(file, "--policies", written(tmp_path, "old", old, GRACE))
        assert (code, json.loads(out)["compared"], json.loads(out)["differences"]) == (0, 2, [])
        assert "reports, compared with the pods that exist now (1)" in err
        code, out, _ = run(file, "--policies", written(tmp_path, "new", new))
        assert code == 1
        turns = [(one["turn"], one["policies"], one["pods"], one["gpus"]) for one in json.loads(out)["differences"]]
        assert turns == [("other-edits", ["ClusterGPUPolicy/few", "ClusterGPUPolicy/grace"], 2, 9)]
        assert run(file, "--policies", written(tmp_path, "new", new), "-n", "default")[0] == 0


def test_without_policies_anywhere_it_says_what_to_type(run: Run) -> None:
    """Where Berth is not installed."""
    assert run() == (2, "", "berth: cluster: Berth is not installed there; pass the policies to evaluate: berth replay --policies PATH\n")


def test_the_clusters_own_policies_are_those_of_then_and_judge_recordings(run: Run, bare: Cluster, tmp_path: Path) -> None:
    """Once Berth's kinds are installed."""
    apply_crds(bare.api, sorted((ROOT / "deploy" / "crds").glob("*.yaml")), bare.processes)
    for value in (GRACE, policy("few", "Audit", **FEW)):
        assert bare.api.apply(value).ok
    code, out, _ = run("--policies", written(tmp_path, "same", GRACE, policy("few", "Audit", **FEW)))
    value = json.loads(out)
    assert (code, value["compared"], value["otherwise"]) == (0, 2, 0)
    code, out, _ = run("--policies", written(tmp_path, "new", GRACE, policy("few", "Enforce", **FEW)))
    assert (code, json.loads(out)["turns"]["newly-denied"]) == (1, 1)
    log = tmp_path / "audit.log"
    log.write_text(lines(event(recorded(gpus="4"))))
    code, out, _ = run(str(log))
    assert (code, json.loads(out)["decided"]["edited"]) == (0, 1)
    code, out, _ = run(str(log), "--against", written(tmp_path, "none", policy("few", "Audit", **FEW)))
    assert (code, json.loads(out)["turns"]["other-edits"]) == (1, 1)
    assert run(str(log), "--from", "x")[1:] == ("", "berth: --from: reads files instead of a cluster; remove --kubeconfig and --context\n")
