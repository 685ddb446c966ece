"""`berth audit` as it is typed, of a real API server: by those who may read all of it, and by those who may not."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.inspect.test_effective import somebody
from tests.support.cluster.written_statuses import OURS, dump
from tests.testcluster.controlplane.cluster import Cluster, Options
from tests.testcluster.controlplane.starting import apply_crds
from tests.testcluster.fixtures import control_plane

Raw = dict[str, Any]
Run = Callable[..., tuple[int, str, str]]
ROOT = Path(__file__).parents[3]
POLICIES = """
apiVersion: berth.dev/v1alpha1
kind: ClusterGPUPolicy
metadata: {name: grace}
spec: {mode: Audit, default: {gracePeriod: 10m}}
---
apiVersion: berth.dev/v1alpha1
kind: ClusterGPUPolicy
metadata: {name: few}
spec: {mode: Audit, require: {gpusPerPod: {max: 4}}}
---
apiVersion: berth.dev/v1alpha1
kind: ClusterGPUPolicy
metadata: {name: taints}
spec: {mode: Enforce, default: {acceleratorTaints: Tolerate}}
"""
HEADS = (
    "NAMESPACE  POLICY                   MODE     PODS  GPUS  USD/H  WOULD CHANGE  WOULD DENY  NOT AS ENFORCED  NO LONGER FIT"
    "  UNPROTECTED  ON SPOT"
)


@pytest.fixture
def run(berth: Run) -> Run:
    """Types `berth audit ...`: (exit code, standard output, standard error)."""
    return lambda *words: berth("audit", *words)


def pod(name: str, gpus: int | None, namespace: str = "research", grace: int = 30) -> Raw:
    limits = {"cpu": "1"} if gpus is None else {"nvidia.com/gpu": str(gpus)}
    container = {"name": "main", "image": "registry.example/main:1", "resources": {"limits": limits}}
    spec = {"containers": [container], "terminationGracePeriodSeconds": grace, "schedulerName": "nobody"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": spec}


@pytest.fixture(scope="module")
def bare(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Without Berth's kinds: two pods that ask for GPUs, one that does not, a Deployment of two, and a node with a price."""
    with control_plane(request.session, Options(kubelets=False)) as cluster:
        for name in ("research", "web"):
            cluster.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        labels = {"node.kubernetes.io/instance-type": "p4d.24xlarge", "karpenter.k8s.aws/instance-family": "p4d"}
        labels |= {"karpenter.sh/nodepool": "gpu", "karpenter.sh/capacity-type": "spot"}
        cluster.api.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "big", "labels": labels}})
        for one in (pod("large", 8), pod("right", 1, grace=600), pod("plain", None)):
            cluster.api.create(one)
        bound = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "large"}, "target": {"kind": "Node", "name": "big"}}
        assert cluster.api.call("POST", "/api/v1/namespaces/research/pods/large/binding", bound).ok
        template = {"metadata": {"labels": {"app": "llm"}}, "spec": pod("x", 1, "web")["spec"] | {"schedulerName": "nobody"}}
        spec = {"replicas": 2, "selector": {"matchLabels": {"app": "llm"}}, "template": template}
        cluster.api.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "llm", "namespace": "web"}, "spec": spec})
        cluster.wait_for(lambda: len(cluster.api.list("v1", "Pod", "web")) == 2, "the Deployment's pods")
        yield cluster


@pytest.fixture
def policies(tmp_path: Path) -> str:
    (tmp_path / "policies.yaml").write_text(POLICIES)
    return str(tmp_path / "policies.yaml")


def test_without_policies_it_says_what_to_type(run: Run, bare: Cluster) -> None:
    """Where Berth is not installed."""
    code, out, err = run("--kubeconfig", str(bare.kubeconfig))
    assert (code, out) == (2, "")
    assert err == "berth: cluster: Berth is not installed there; pass the policies to evaluate: berth audit --policies PATH\n"


def test_what_policies_of_files_would_do_is_seen_before_anything_is_installed(run: Run, bare: Cluster, policies: str) -> None:
    """Each namespace, then each policy there: pods, GPUs, what they cost, and what would become of them."""
    code, out, err = run("--kubeconfig", str(bare.kubeconfig), "--policies", policies)
    assert (code, err) == (0, "")
    table = out.splitlines()
    assert table[0] == HEADS
    rows = {(cells[0], cells[1]): cells[2:] for cells in (line.split() for line in table[1:-3])}
    usd = rows["research", "(all)"][2]
    assert float(usd) > 10
    assert rows["research", "(all)"] == ["2", "9", usd, "1", "1", "2", "0", "0", "1"]
    assert rows["research", "ClusterGPUPolicy/grace"] == ["Audit", "2", "9", usd, "1", "0", "0", "0", "0", "1"]
    assert rows["research", "ClusterGPUPolicy/few"] == ["Audit", "2", "9", usd, "0", "1", "0", "0", "0", "1"]
    assert rows["research", "ClusterGPUPolicy/taints"] == ["Enforce", "2", "9", usd, "0", "0", "2", "0", "0", "1"]
    assert rows["web", "(all)"] == ["2", "2", "0", "0", "2", "0", "0", "0"]
    assert table[-2] == "Of 4 pods with accelerators, policies in Audit or Warn would change 1 and deny 1."
    assert table[-1].startswith("Platforms: ")
    assert table[-1].endswith(" (detected from Nodes and NodePools).")


def test_policies_of_files_are_judged_as_if_in_audit(run: Run, bare: Cluster, policies: str) -> None:
    """Each alone, and none of them taken for what made the pods that run."""
    code, out, err = run("--kubeconfig", str(bare.kubeconfig), "--policies", policies, "--as", "Audit")
    assert (code, err) == (0, "")
    rows = {(cells[0], cells[1]): cells[2:] for cells in (line.split() for line in out.splitlines()[1:-3])}
    assert rows["web", "ClusterGPUPolicy/taints"][:3] == ["Audit", "2", "2"]
    assert {cells[-4] for cells in rows.values()} == {"0"}
    assert "\nOf 4 pods with accelerators, policies in Audit or Warn would change 4 and deny 1.\n" in out


def test_a_program_reads_the_patch_by_workload(run: Run, bare: Cluster, policies: str) -> None:
    """Of a Deployment, not of its ReplicaSet; pods that are alike are one result."""
    code, out, _ = run("--kubeconfig", str(bare.kubeconfig), "--policies", policies, "-o", "json", "--namespace", "web")
    assert code == 0
    value = json.loads(out)
    assert (value["policies"][0]["policy"], value["policies"][0]["pods"]) == (None, 2)
    (workload,) = value["workloads"]
    assert (workload["scope"]["kind"], workload["scope"]["name"]) == ("Deployment", "llm")
    (result,) = workload["results"]
    assert (result["policy"], result["properties"]["finding"], result["properties"]["pods"]) == (
        "ClusterGPUPolicy/taints",
        "not-as-enforced",
        "2",
    )


def test_a_spreadsheet_has_the_same_lines(run: Run, bare: Cluster, policies: str, tmp_path: Path) -> None:
    """With prices of one's own."""
    (tmp_path / "prices.yaml").write_text("p4d.24xlarge: 16\n")
    words = ("--kubeconfig", str(bare.kubeconfig), "--policies", policies, "-o", "csv", "--prices", str(tmp_path / "prices.yaml"))
    code, out, _ = run(*words)
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [(row["namespace"], row["policy"]) for row in rows[:2]] == [("research", "(all)"), ("research", "ClusterGPUPolicy/few")]
    assert rows[0]["usd_per_hour"] == "16.00"


def test_management_opens_one_file(run: Run, bare: Cluster, policies: str) -> None:
    """Which loads nothing, and has the counts and every result."""
    code, out, _ = run("--kubeconfig", str(bare.kubeconfig), "--policies", policies, "-o", "html")
    assert (code, out.count("<html"), "<script" in out) == (0, 1, False)
    for shown in ("Of 4 pods with accelerators", "ClusterGPUPolicy/few", "would deny", "Deployment/llm", "BERTH-111"):
        assert shown in out


def test_a_switch_to_enforce_is_seen_before_it_is_made(run: Run, bare: Cluster, policies: str, tmp_path: Path) -> None:
    """The sentence, then the list; of what runs, and of recorded creations."""
    words = ("--kubeconfig", str(bare.kubeconfig), "--policies", policies)
    code, out, err = run(*words, "--enforce-preview", "few")
    assert (code, err) == (0, "")
    first, _, heads, row = out.splitlines()
    assert first.startswith("With few in Enforce, of 4 existing pods with accelerators, 1 would be denied and 0 changed (8 GPUs, ")
    assert first.endswith("). Existing pods are unchanged until recreated.")
    assert heads.split()[:2] == ["NAMESPACE", "WORKLOAD"]
    assert "denied (BERTH-111)" in row
    code, out, _ = run(*words, "--enforce-preview", "ClusterGPUPolicy/grace")
    assert "0 would be denied and 1 changed" in out
    review = {"uid": "u", "operation": "CREATE", "namespace": "research", "resource": {"version": "v1", "resource": "pods"}}
    review |= {"kind": {"version": "v1", "kind": "Pod"}, "userInfo": {"username": "jane"}, "object": pod("recorded", 8)}
    file = tmp_path / "reviews.json"
    file.write_text(json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": review}))
    code, out, _ = run(*words, "--enforce-preview", "few", "--recordings", str(file))
    assert code == 0
    assert "Of 1 recorded pod with accelerators, 1 would be denied and 0 changed" in out


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--enforce-preview", "fwe"), '--enforce-preview: there is no policy "fwe"; did you mean'),
        (("--enforce-preview", "taints"), '--enforce-preview: "taints" is already in Enforce; berth audit lists the pods that'),
        (
            ("--enforce-preview", "few", "--as", "Audit"),
            "--as: cannot be combined with --enforce-preview",
        ),
        (("--recordings", "x"), "--recordings: needs --enforce-preview POLICY; to evaluate only recordings, use berth replay"),
    ],
)
def test_a_wrong_preview_says_what_is_wanted(run: Run, bare: Cluster, policies: str, words: tuple[str, ...], error: str) -> None:
    """With the nearest policy."""
    code, out, err = run("--kubeconfig", str(bare.kubeconfig), "--policies", policies, *words)
    assert (code, out) == (2, "")
    assert err.startswith(f"berth: {error}")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "p4d.24xlage: 1",
            '["p4d.24xlage"]: "p4d.24xlage" is neither an instance type nor a model; did you mean "p4d.24xlarge"?; berth gpus lists them',
        ),
        ("T4: free", 'T4: must be USD per hour, a number above 0; found the text "free"'),
        ("- T4", "must be names with prices, such as p5.48xlarge: 55.04; found a list"),
    ],
)
def test_a_wrong_price_says_what_is_wanted(run: Run, policies: str, tmp_path: Path, text: str, error: str) -> None:
    """With its file and place, before the cluster is asked."""
    (tmp_path / "prices.yaml").write_text(text)
    code, out, err = run("--policies", policies, "--prices", str(tmp_path / "prices.yaml"), "--kubeconfig", "/none")
    assert (code, out) == (2, "")
    assert err.endswith(f"{error}\n")
    assert err.startswith(f"berth: {tmp_path / 'prices.yaml'}")


def test_with_the_rights_of_a_namespace_what_is_not_seen_is_named(run: Run, bare: Cluster, policies: str, tmp_path: Path) -> None:
    """The role view: pods and their owners, no nodes."""
    kubeconfig = somebody(bare, "viewer", tmp_path, {"name": "view"})
    code, out, err = run("--kubeconfig", kubeconfig, "--policies", policies)
    assert (code, out) == (2, "")
    assert err == (
        "berth: cluster: you may not list pods; set a namespace that you can read: --namespace NS; or use Berth's reports, "
        "which needs only permission to list them: berth audit --reports\n"
    )
    code, out, err = run("--kubeconfig", kubeconfig, "--policies", policies, "--namespace", "research")
    assert code == 0
    assert "you may not list nodes; results that depend on it are unknown" in err
    assert "ClusterGPUPolicy/few" in out


def test_the_clusters_own_policies_are_audited(run: Run, bare: Cluster, policies: str) -> None:
    """Where Berth's kinds are installed; the same is said as of the same policies in files."""
    _, from_files, _ = run("--kubeconfig", str(bare.kubeconfig), "--policies", policies)
    apply_crds(bare.api, sorted((ROOT / "deploy" / "crds").glob("*.yaml")), bare.processes)
    for value in yaml.safe_load_all(POLICIES):
        assert bare.api.apply(value).ok
    code, out, err = run("--kubeconfig", str(bare.kubeconfig))
    assert (code, out, err) == (0, from_files, "")
    preview = ("--enforce-preview", "few")
    assert run("--kubeconfig", str(bare.kubeconfig), *preview) == run(
        "--kubeconfig", str(bare.kubeconfig), "--policies", policies, *preview
    )


def test_a_dump_is_audited_as_its_cluster(run: Run, bare: Cluster, policies: str, tmp_path: Path) -> None:
    """By policies of files, and by the cluster's own, which are among the dumped objects; what the dump lacks is named."""
    cluster = ("--kubeconfig", str(bare.kubeconfig))
    facts = ("--from", dump(bare, tmp_path, "namespaces,nodes,pods,replicasets,jobs"))
    code, out, err = run(*facts, "--policies", policies)
    assert (code, out) == run(*cluster, "--policies", policies)[:2]
    nodes = "the dump has no nodepools.karpenter.sh, but nodes with the label karpenter.sh/nodepool"
    assert err == f"berth: {nodes}; results that depend on it are unknown\n"
    whole = ("--from", dump(bare, tmp_path, f"namespaces,nodes,pods,replicasets,jobs,{OURS}"))
    for words in ((), ("--as", "Audit"), ("--enforce-preview", "few"), ("-o", "json", "-n", "web")):
        assert run(*whole, *words)[:2] == run(*cluster, *words)[:2]


def test_a_dump_that_cannot_be_audited_says_what_to_type(run: Run, policies: str, tmp_path: Path) -> None:
    """Without pods, without policies, and together with a cluster."""
    file = tmp_path / "dump.yaml"
    file.write_text(yaml.safe_dump_all([{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}]))
    code, _, err = run("--from", str(file), "--policies", policies)
    assert (code, err.startswith(f"berth: {file}: has no Pod; dump them: kubectl get pods,")) == (2, True)
    file.write_text(yaml.safe_dump_all([pod("large", 8)]))
    code, _, err = run("--from", str(file))
    assert (code, err.splitlines()[-1].startswith(f"berth: {file}: has no policy; dump the cluster's")) == (2, True)
    code, _, err = run("--from", str(file), "--kubeconfig", "x")
    assert (code, err) == (2, "berth: --from: reads files instead of a cluster; remove --kubeconfig and --context\n")
