"""`berth why` as it is typed, of a real API server and scheduler: by those who may read all of it, and by those who may not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from analysis import admission_preview
from kube.tree import apply_patch
from policies.request import Request
from policies.state.updater import Options as Chosen
from policies.state.updater import Updater
from tests.cli.inspect.test_effective import somebody
from tests.e2e.scheduling.nodes_as_objects import made
from tests.support.cluster.written_statuses import CAPPED, OURS, dump, write_statuses
from tests.support.generators.random_worlds import catalog
from tests.testcluster.controlplane.cluster import Cluster, Options
from tests.testcluster.controlplane.starting import apply_crds
from tests.testcluster.fixtures import control_plane

Raw = dict[str, Any]
Run = Callable[..., tuple[int, str, str]]
ROOT = Path(__file__).parents[3]
GPU = "nvidia.com/gpu"
TEAM = {"key": "team", "value": "ml", "effect": "NoSchedule"}
PRODUCT = "nvidia.com/gpu.product"
A100 = "NVIDIA-A100-SXM4-80GB"
POLICIES: dict[str, Raw] = {
    "few": {"mode": "Enforce", "require": {"gpusPerPod": {"max": 4}}},
    "taints": {"mode": "Enforce", "default": {"acceleratorTaints": "Tolerate"}},
    "grace": {"mode": "Audit", "default": {"gracePeriod": "10m"}},
}


@pytest.fixture
def run(berth: Run) -> Run:
    """Types `berth why ...`: (exit code, standard output, standard error)."""
    return lambda *words: berth("why", *words)


def policy(name: str) -> Raw:
    return {"apiVersion": "berth.dev/v1alpha1", "kind": "ClusterGPUPolicy", "metadata": {"name": name}, "spec": POLICIES[name]}


def pod(name: str, gpus: int = 1, **spec: Any) -> Raw:
    containers = [{"name": "main", "image": "registry.example/main:1", "resources": {"limits": {GPU: str(gpus)}}}]
    metadata = {"name": name, "namespace": "research"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers, **spec}}


def node(name: str, gpus: int, taints: list[Raw], **labels: str) -> Raw:
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "110", GPU: str(gpus)}
    metadata = {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}}
    status = {"capacity": amounts, "allocatable": amounts}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {"taints": taints}, "status": status}


def workload(kind: str, name: str, template: Raw, **spec: Any) -> Raw:
    version = {"Job": "batch/v1", "Deployment": "apps/v1"}[kind]
    inner = {"metadata": {"labels": {"app": name}}, "spec": template["spec"]}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "research"}, "spec": {"template": inner, **spec}}


def as_admitted(value: Raw) -> Raw:
    changes = {("ClusterGPUPolicy", "", name): policy(name) for name in POLICIES}
    facts = Updater(catalog(), Chosen()).apply(changes).snapshot.facts_for("research")
    judged = admission_preview.preview_admission(Request(namespace="research", user="somebody", groups=(), pod=value), facts)
    admitted: Raw = apply_patch(value, judged.mutate.patch)
    return admitted


@pytest.fixture(scope="module")
def place(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Two tainted nodes of a team, one that is open, and one without GPUs; Berth's kinds and policies, and no webhook."""
    controllers = "*,-node-lifecycle-controller,-taint-eviction-controller"
    with control_plane(request.session, Options(kubelets=False, controllers=controllers)) as cluster:
        cluster.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "research"}})
        for one in ("gpu-a", "gpu-b"):
            made(cluster, node(one, 8, [TEAM], **{PRODUCT: A100}))
        made(cluster, node("open", 1, [], **{PRODUCT: "Tesla-T4"}))
        made(cluster, node("plain", 0, []))
        apply_crds(cluster.api, sorted((ROOT / "deploy" / "crds").glob("*.yaml")), cluster.processes)
        for name in POLICIES:
            cluster.wait_for(lambda name=name: cluster.api.try_create(policy(name)).status in (201, 409), f"policy {name}")  # type: ignore[misc]
        quota = {"hard": {f"requests.{GPU}": "20"}}
        cluster.api.create(
            {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "gpus", "namespace": "research"}, "spec": quota}
        )
        cluster.api.create(as_admitted(pod("runs")))
        cluster.api.create(pod("waits", 1, nodeSelector={PRODUCT: A100}))
        cluster.api.create(pod("gated", 1, schedulingGates=[{"name": "example.com/wait"}]))
        cluster.api.create(workload("Job", "train", pod("x", 2, restartPolicy="Never")))
        selector = {"selector": {"matchLabels": {"app": "huge"}}}
        cluster.api.create(workload("Deployment", "huge", pod("x", 32), **selector))
        for name in ("runs", "waits"):
            cluster.wait_for(lambda name=name: _decided(cluster, name), f"pod {name}")  # type: ignore[misc]
        cluster.wait_for(lambda: _failed(cluster), "the Deployment's pods to be denied")
        cluster.wait_for(lambda: any(map(_answered, cluster.api.list("v1", "Pod", "research", labelSelector="app=train"))), "the Job's pod")
        yield cluster


def _decided(cluster: Cluster, name: str) -> bool:
    value = cluster.api.get("v1", "Pod", name, "research")
    return value is not None and _answered(value)


def _answered(value: Raw) -> bool:
    """The scheduler has bound the pod, or said why not."""
    return bool(value["spec"].get("nodeName")) or any(one["type"] == "PodScheduled" for one in value["status"].get("conditions", ()))


def _failed(cluster: Cluster) -> bool:
    return any(one["reason"] == "FailedCreate" for one in cluster.api.list("v1", "Event", "research"))


@pytest.fixture
def typed(run: Run, place: Cluster) -> Run:
    """`berth why ... -n research` as the administrator."""
    return lambda *words: run(*words, "-n", "research", "--kubeconfig", str(place.kubeconfig))


def test_a_pod_that_waits(typed: Run, place: Cluster, tmp_path: Path) -> None:
    """Who says what, place by place, and the smallest change, which is written to a file and gets the pod bound."""
    code, out, err = typed("pod/waits", "--fix", str(tmp_path / "fix.yaml"))
    assert (code, err) == (0, f"berth: wrote {tmp_path / 'fix.yaml'}\n")
    assert out.startswith("pod/waits in namespace research: Pending, created ")
    assert "PodScheduled=False Unschedulable" in out
    assert f"2 nodes gpu-a, gpu-b ({A100}, 8 {GPU})\n    taint team=ml:NoSchedule is not tolerated\n" in out
    assert "The smallest change (1 step) to the pod of Pod waits:\n" in out
    assert "\n  + spec.tolerations: {key: team, operator: Equal, value: ml, effect: NoSchedule}\nIt then" in out
    assert "It then fits gpu-a, gpu-b.\n" in out
    assert "ClusterGPUPolicy/grace (Audit) would change terminationGracePeriodSeconds" not in out
    place.api.delete(pod("waits"), grace=0)
    place.wait_for(lambda: place.api.get("v1", "Pod", "waits", "research") is None, "the pod to go")
    place.api.create(yaml.safe_load((tmp_path / "fix.yaml").read_text()))
    bound = place.wait_for(lambda: (place.api.get("v1", "Pod", "waits", "research") or {})["spec"].get("nodeName"), "the pod to be bound")
    assert bound in ("gpu-a", "gpu-b")


def test_the_fix_of_a_job_is_a_job(typed: Run, tmp_path: Path) -> None:
    """Whichever of its pods or the Job is asked about."""
    code, out, _ = typed("job/train", "--fix", str(tmp_path / "fix.yaml"))
    assert code == 0
    assert "to the pod of Job train (in spec.template):" in out
    fix = yaml.safe_load((tmp_path / "fix.yaml").read_text())
    assert fix["spec"]["template"]["spec"]["tolerations"] == [{**TEAM, "operator": "Equal"}]
    assert "selector" not in fix["spec"]
    assert "status" not in fix
    assert fix["spec"]["template"]["metadata"]["labels"] == {"app": "train"}


def test_denied_pods(typed: Run) -> None:
    """The controller's own words, the policy with its field, and the fix."""
    code, out, _ = typed("deploy/huge")
    assert code == 0
    assert out.startswith("deploy/huge in namespace research: its pods are denied.\n")
    assert "FailedCreate" in out
    assert "exceeded quota: gpus" in out
    assert "  ClusterGPUPolicy/few" in out
    assert "    BERTH-111: the pod requests 32 GPUs, more than the 4 allowed here\n" in out
    assert "    fix: request at most 4, or split the work over more pods\n" in out


def test_with_the_brake_on_no_policy_denies_anything(typed: Run, place: Cluster) -> None:
    """The mode that acts is that of the server, which its statuses show; --max-mode shows the policies as they are written."""
    write_statuses(place, "Audit")
    try:
        code, out, err = typed("deploy/huge")
        assert (code, err) == (0, CAPPED)
        assert "No policy would deny its pods as the policies are now; the message above says what denied them." in out, "the quota does"
        assert "BERTH-111" not in out
        code, out, err = typed("deploy/huge", "--max-mode", "Enforce")
        assert (code, err) == (0, "")
        assert "    BERTH-111: the pod requests 32 GPUs, more than the 4 allowed here\n" in out
    finally:
        write_statuses(place, "Enforce")


def test_an_admitted_pod(typed: Run) -> None:
    """Who wrote what, and what a policy in Audit would do."""
    code, out, _ = typed("pod/runs")
    assert code == 0
    assert "pod/runs in namespace research: on node open, Pending." in out
    assert "Written by policies:\n" in out
    assert "ClusterGPUPolicy/taints (tolerations)" in out
    assert "ClusterGPUPolicy/grace (Audit) would change terminationGracePeriodSeconds in Enforce." in out


def test_a_job_that_a_queue_holds(typed: Run, place: Cluster) -> None:
    """It has no pods; why is told in Kueue's own words."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    names = {"plural": "workloads", "kind": "Workload"}
    versions = [{"name": "v1beta1", "served": True, "storage": True, "schema": schema}]
    definition = {"group": "kueue.x-k8s.io", "scope": "Namespaced", "names": names, "versions": versions}
    metadata = {"name": "workloads.kueue.x-k8s.io"}
    place.api.create(
        {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": metadata, "spec": definition}
    )
    held = place.api.create(workload("Job", "held", pod("x", 1, restartPolicy="Never"), suspend=True))
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "held", "uid": held["metadata"]["uid"], "controller": True}
    condition = {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": "insufficient unused quota for nvidia.com/gpu"}
    queued = {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": {"name": "job-held", "namespace": "research", "ownerReferences": [owner]},
        "status": {"conditions": [condition]},
    }
    path = "/apis/kueue.x-k8s.io/v1beta1/namespaces/research/workloads"
    place.wait_for(lambda: place.api.call("POST", path, queued).status in (201, 409), "Kueue's Workload")
    code, out, _ = typed("jobs/held")
    assert code == 0
    assert out.startswith("jobs/held in namespace research: is suspended and creates no pods until it is resumed.\n")
    assert "  Kueue, QuotaReserved=False Pending, " in out
    assert ": insufficient unused quota for nvidia.com/gpu\n" in out


def test_gates_are_named(typed: Run) -> None:
    """No scheduler looks at such a pod."""
    _, out, _ = typed("pod/gated")
    assert "gated by example.com/wait" in out
    assert "No scheduler considers it until its scheduling gates are removed: example.com/wait" in out


def test_as_json(typed: Run) -> None:
    """All of it as data."""
    _, out, _ = typed("job/train", "-o", "json")
    found = json.loads(out)
    assert found["state"] == "pending"
    assert found["remedy"]["patch"] == [{"op": "add", "path": "/spec/tolerations/-", "value": {**TEAM, "operator": "Equal"}}]
    assert found["remedy"]["runsOn"] == ["gpu-a", "gpu-b"]
    assert {one["key"] for place in found["places"] for one in place["blockers"]} == {"team", GPU}


def test_whoever_may_only_view_the_namespace(run: Run, place: Cluster, tmp_path: Path) -> None:
    """Nodes and policies of the cluster are named as unknown; the scheduler's own words are there, and a dump of nodes gives the rest."""
    kubeconfig = somebody(place, "viewer", tmp_path, {"name": "view"})
    code, out, err = run("job/train", "-n", "research", "--kubeconfig", kubeconfig)
    assert (code, err) == (0, "")
    assert "PodScheduled=False Unschedulable" in out
    assert "; you may not list nodes; " in out
    assert "volcano" not in out, "the API server has no such kind"
    assert "Platforms: unknown (neither nodes nor the server's can be read; to set them, add --platforms).\n" in out
    kueue = "you may not list workloads.kueue.x-k8s.io in namespace research" in out
    assert kueue == (place.api.call("GET", "/apis/kueue.x-k8s.io/v1beta1").status == 200)
    for target, near in (("job/nosuch", "; "), ("job/trian", '; did you mean "train"?')):
        code, _, err = run(target, "-n", "research", "--kubeconfig", kubeconfig)
        assert code == 2
        assert err.startswith(f"berth: {target}: is not in namespace research{near}"), "not that she may not read it"
    assert "--from nodes.yaml" in out
    (tmp_path / "nodes.yaml").write_text(yaml.safe_dump_all([node("gpu-a", 8, [TEAM])]))
    _, out, _ = run("job/train", "-n", "research", "--kubeconfig", kubeconfig, "--from", str(tmp_path / "nodes.yaml"))
    assert "taint team=ml:NoSchedule is not tolerated" in out
    assert "+ spec.tolerations: {key: team" in out


def untimed(out: str) -> Raw:
    """The answer as data, with the reason alone of each message: controllers repeat messages."""
    value: Raw = json.loads(out)
    return value | {"told": [message["reason"] for message in value.get("told", ())]}


def test_a_dump_is_explained_as_its_cluster(typed: Run, run: Run, place: Cluster, tmp_path: Path) -> None:
    """Each pod and workload has the same state, messages, places and fix; no cluster is read."""
    kinds = "namespaces,nodes,pods,replicasets,deployments,jobs,events,resourcequotas,limitranges,daemonsets"
    file = dump(place, tmp_path, f"{kinds},{OURS}")
    for target in ("pod/waits", "pod/runs", "job/train", "deploy/huge"):
        _, expected, _ = typed(target, "-o", "json")
        _, shown, _ = run(target, "-o", "json", "-n", "research", "--from", file)
        assert untimed(shown) == untimed(expected), target
    code, out, err = run("job/trian", "-n", "research", "--from", file)
    assert (code, out) == (2, "")
    assert err == f'berth: job/trian: is not in namespace research of {file}; did you mean "train"?\n'


def test_a_manifest_that_is_not_created_yet(run: Run, tmp_path: Path) -> None:
    """With nodes of a file no cluster is read."""
    (tmp_path / "pod.yaml").write_text(yaml.safe_dump(pod("new", 9)))
    (tmp_path / "nodes.yaml").write_text(yaml.safe_dump_all([node("big", 8, [])]))
    code, out, err = run("-f", str(tmp_path / "pod.yaml"), "--from", str(tmp_path / "nodes.yaml"))
    assert (code, err) == (
        0,
        f"berth: {tmp_path / 'nodes.yaml'}: has no policies, so berth-default is used; to use others, add --policies PATH\n",
    )
    assert out.startswith("pod/new in namespace research: not created.\n")
    assert f"9 {GPU} requested; it has 8" in out
    assert "It can never be scheduled as written." in out
    assert f"  ~ spec.containers[0].resources.limits[\"{GPU}\"]: '8'\n" in out


def test_a_manifest_that_the_api_server_will_name(run: Run, tmp_path: Path) -> None:
    """A Job with generateName is called by that, and can only be created."""
    waits = pod("new", 9)
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"generateName": "train-", "namespace": "research"}}
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job | {"spec": {"template": {"spec": waits["spec"] | {"restartPolicy": "Never"}}}}))
    (tmp_path / "nodes.yaml").write_text(yaml.safe_dump_all([node("big", 8, [])]))
    code, out, _ = run("-f", str(tmp_path / "job.yaml"), "--from", str(tmp_path / "nodes.yaml"))
    assert code == 0
    assert "The smallest change (1 step) to the pod of job/train- (in spec.template):" in out
    assert "--fix fix.yaml, then kubectl create -f fix.yaml\n" in out
    assert "\nIncomplete: the dump has no pods, so the free amounts on nodes are unknown.\n" in out
    assert out.endswith("\nPlatforms: none (detected from Nodes and NodePools).\n")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ((), "berth: why: needs TYPE/NAME or -f FILE, for example: berth why pod/train-0"),
        (("train",), "berth: train: is not TYPE/NAME; write for example pod/train"),
        (("pod", "a", "b"), "berth: pod a b: names more than one object; explain one at a time, for example pod/train-0"),
        (("pod", "pod/a"), "berth: pod pod/a: has a type twice; write pod/a"),
        (("pod/",), "berth: pod/: is not TYPE/NAME; write for example pod/pod"),
        (("jobb/train",), 'berth: jobb: is not a known type of workload; did you mean "job"?'),
    ],
)
def test_what_is_typed_wrong(run: Run, words: tuple[str, ...], line: str) -> None:
    """Says what to type."""
    assert run(*words) == (2, "", f"{line}\n")


def test_what_is_not_there(typed: Run) -> None:
    """With the nearest name."""
    code, out, err = typed("job/trian")
    assert (code, out) == (2, "")
    assert err == 'berth: job/trian: is not in namespace research; did you mean "train"?\n'
    code, _, err = typed("pod/runs", "--fix", "/x/fix.yaml")
    assert (code, err) == (0, "berth: /x/fix.yaml was not written: there is no change to make\n")


def test_odd_characters_stay_on_their_line(run: Run, tmp_path: Path) -> None:
    """Escapes of a terminal and marks of direction in values are shown as what they are."""
    (tmp_path / "pod.yaml").write_text(yaml.safe_dump(pod("new", 1, nodeSelector={"zone": "\x1b[31mred\u202e\nx"})))
    (tmp_path / "nodes.yaml").write_text(yaml.safe_dump_all([node("big", 8, [], zone="\x1b[32ma")]))
    _, out, _ = run("-f", str(tmp_path / "pod.yaml"), "--from", str(tmp_path / "nodes.yaml"))
    assert all(line.isprintable() for line in out.splitlines())
    assert r"label zone=\x1b[31mred\u202e\nx is required; it has \x1b[32ma" in out


def test_of_several_workloads_of_a_file_the_worst_is_explained(run: Run, tmp_path: Path) -> None:
    """The others are named, each with what to type for it."""
    nodes, file = tmp_path / "nodes.yaml", tmp_path / "two.yaml"
    nodes.write_text(yaml.safe_dump_all([{"apiVersion": "v1", "kind": "Node", **node("a", 2, [])}]))
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"}, "spec": {"template": {"spec": pod("x", 1)["spec"]}}}
    file.write_text(yaml.safe_dump_all([job, pod("large", 4)]))
    code, out, _ = run("-f", str(file), "--from", str(nodes), "-n", "research")
    assert (code, out.startswith("pod/large in namespace research: not created.\n")) == (0, True)
    assert f"Other workloads in {file}, each checked as if it were alone:\n  job/train: no blocker found; " in out
    code, out, _ = run("job/train", "-f", str(file), "--from", str(nodes), "-n", "research")
    assert (code, out.startswith("job/train in namespace research: not created.\n")) == (0, True)
    code, _, err = run("job/other", "-f", str(file), "--from", str(nodes))
    assert (code, "has no job/other; it has job/train, pod/large" in err) == (2, True)


def test_a_file_without_pods_says_what_is_in_it(run: Run, tmp_path: Path) -> None:
    """A kind that creates none, and one that the catalog does not know."""
    file = tmp_path / "none.yaml"
    odd = {"apiVersion": "example.com/v1", "kind": "Odd", "metadata": {"name": "o"}, "spec": {"resources": {"limits": {GPU: 1}}}}
    file.write_text(yaml.safe_dump_all([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}, odd]))
    code, _, err = run("-f", str(file))
    assert code == 2
    assert "ConfigMap c: it creates no pods; Odd o: it names nvidia.com/gpu at spec.resources" in err
    assert "its kind is not in the catalog" in err
