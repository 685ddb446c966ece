"""`berth effective` as it is typed: from files, and from a real control plane, by those who may read it and by those who may not."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from sources.state import default_kubeconfig
from tests.support.cluster.written_statuses import CAPPED, forget_server, write_statuses
from tests.testcluster.calls import PATIENCE
from tests.testcluster.controlplane.cluster import Cluster, Options
from tests.testcluster.controlplane.starting import apply_crds
from tests.testcluster.fixtures import control_plane

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "docs" / "examples" / "guardrails"
POLICIES = ("platform.yaml", "research.yaml", "web.yaml")
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(berth: Run) -> Run:
    """Types `berth effective ...`: (exit code, standard output, standard error)."""
    return lambda *words: berth("effective", *words)


def files(*words: str) -> tuple[str, ...]:
    """The options for the guide's objects, then ``words``."""
    policies = [word for name in POLICIES for word in ("--policies", str(EXAMPLES / name))]
    return ("--platforms", "karpenter-aws", *policies, "--from", str(EXAMPLES / "namespaces.yaml"), *words)


def sections(table: str) -> dict[str, str]:
    """Heading -> what stands below it."""
    parts = [part.partition("\n") for part in table.split("\n\n")]
    return {head: body for head, _, body in parts}


# --- from files --------------------------------------------------------------------------------------------------------


def test_a_table_has_its_sections_and_fits_a_terminal(run: Run) -> None:
    """In this order, none wider than the hundred columns of a pipe."""
    code, out, err = run(*files("-n", "research"))
    assert (code, err) == (0, "")
    assert list(sections(out)) == [
        "scope",
        "active policies",
        "require",
        "default",
        "allow",
        "for some pods only",
        "in Audit or Warn, not enforced",
    ]
    assert max(map(len, out.splitlines())) <= 100
    assert "team=research" in sections(out)["scope"]
    assert "clipped from 48h by protection.max of ClusterGPUPolicy/baseline" in sections(out)["default"]


def test_nothing_is_told_that_is_not_there(run: Run) -> None:
    """No empty section; a policy that is not for such pods says so and sets nothing."""
    _, out, _ = run(*files("-n", "web", "--workload", "Job", "--gpus", "1", "--pod-labels", ""))
    assert "in Audit or Warn, not enforced" not in out
    assert "does not match: this namespace, pods of Deployment" in sections(out)["active policies"]
    assert "GPUPolicy/web/inference" not in sections(out)["default"]


def test_a_namespace_without_policies(run: Run, tmp_path: Path) -> None:
    """Pods are admitted as they are."""
    own = tmp_path / "own.yaml"
    own.write_text((EXAMPLES / "web.yaml").read_text() + "---\n" + (EXAMPLES / "platform.yaml").read_text().split("---\n")[-1])
    code, out, _ = run("--platforms", "gfd", "--policies", str(own), "-n", "elsewhere")
    assert code == 0
    assert sections(out)["active policies"].strip() == "none: pods are admitted unchanged"


def test_json_and_yaml_say_the_same(run: Run) -> None:
    """One value for programs, durations in seconds."""
    _, as_json, _ = run(*files("-n", "research", "-o", "json"))
    _, as_yaml, _ = run(*files("-n", "research", "-o", "yaml"))
    value = json.loads(as_json)
    assert yaml.safe_load(as_yaml) == value
    grace = next(row for row in value["default"] if row["field"] == "gracePeriod")
    assert (grace["value"], grace["setBy"]) == (1800, ["GPUPolicy/research/training"])
    assert next(row for row in value["require"] if row["field"] == "families")["value"] == {"in": ["hopper", "ampere"]}
    assert value["would"][0]["policies"] == ["ClusterGPUPolicy/whole-nodes"]


def test_the_hint_of_a_layer_leads_to_the_same_values(run: Run) -> None:
    """What is typed as it says has the layer's values in its own sections."""
    _, out, _ = run(*files("-n", "research"))
    assert "--workload Job --gpus 8" in sections(out)["for some pods only"]
    _, exact, _ = run(*files("-n", "research", "--workload", "Job", "--gpus", "8"))
    assert "nodeTemplate       h100-training" in sections(exact)["default"]


BAD: dict[str, tuple[tuple[str, ...], str]] = {
    "namespace": (("-n", "wbe"), 'berth: --namespace: "wbe" is not in the files of --from; did you mean "web"?'),
    "workload": (("-n", "web", "--workload", "Jobb"), 'berth: --workload: "Jobb" is not a known kind of workload; did you mean "Job"?'),
    "labels": (("--pod-labels", "a"), '--pod-labels: "a" is not a label; write for example team=research,tier=dev'),
    "a label's key": (("--pod-labels", "a b=c"), '"a b=c" is not a label'),
    "gpus": (("--gpus", "0"), '--gpus: "0" is not a number of GPUs; write a whole number, at least 1'),
    "many gpus": (("--gpus", "99999999999"), "is not a number of GPUs"),
    "duration": (("--duration", "2d"), '"2d" has no unit that Go knows; write 48h'),
    "both sources": (
        ("--kubeconfig", "x"),
        "berth: --policies: reads files, and --kubeconfig and --context read a cluster; use one or the other",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_says_what_to_type_next(run: Run, case: str) -> None:
    """Exit code 2 and one sentence; nothing on standard output."""
    words, sentence = BAD[case]
    code, out, err = run(*files(*words))
    assert (code, out) == (2, "")
    assert sentence in err


@pytest.mark.parametrize(("name", "known"), [("CronJob", "as Job"), ("TrainJob", "as Job")])
def test_a_workload_whose_pods_do_not_carry_its_name_is_said(run: Run, name: str, known: str) -> None:
    """Policies that name it match no pod, which nobody would guess."""
    code, _, err = run(*files("-n", "web", "--workload", name))
    assert (code, err) == (0, f"berth: policies that name {name} do not match its pods: admission sees them {known}\n")
    assert run(*files("-n", "web", "--workload", "Pod"))[2] == ""


def test_files_without_policies_are_denied(run: Run) -> None:
    """Says how to dump the policies, or which option names them."""
    code, _, err = run("--from", str(EXAMPLES / "namespaces.yaml"))
    assert code == 2
    assert "has no policy; dump the cluster's and add --from policies.yaml: kubectl get clustergpupolicies," in err
    assert err.endswith("; or name policies: berth effective --policies PATH\n")


def test_policies_among_the_files_are_in_force(run: Run) -> None:
    """The output is the same as with --policies, which replaces them."""
    words = ("-n", "web", "--platforms", "karpenter-aws", "--mig-strategy", "mixed")
    named = run(*files(*words))
    dumped = [word for file in ("platform.yaml", "research.yaml", "web.yaml") for word in ("--from", str(EXAMPLES / file))]
    assert run(*words, *dumped, "--from", str(EXAMPLES / "namespaces.yaml")) == named
    code, _, err = run("-n", "wbe", *dumped, "--from", str(EXAMPLES / "namespaces.yaml"))
    assert (code, err) == (2, 'berth: --namespace: "wbe" is not in the files of --from; did you mean "web"?\n')


def test_a_policy_with_a_mistake_is_told(run: Run, tmp_path: Path) -> None:
    """As `berth try` tells it."""
    (tmp_path / "bad.yaml").write_text(
        "apiVersion: berth.dev/v1alpha1\nkind: GPUPolicy\nmetadata: {name: a, namespace: b}\nspec: {mod: Warn}\n"
    )
    code, _, err = run("--policies", str(tmp_path / "bad.yaml"), "-n", "b")
    assert code == 2
    assert 'unknown field "mod"; did you mean "mode"?' in err


def test_a_kubeconfig_that_is_not_there(run: Run, tmp_path: Path) -> None:
    """Says what to write."""
    code, _, err = run("-n", "web", "--kubeconfig", str(tmp_path / "none"))
    assert code == 2
    assert err.startswith("berth: cluster: there is no kubeconfig ")
    assert len(err.splitlines()) == 1


def test_a_cluster_that_does_not_answer(run: Run, tmp_path: Path) -> None:
    """One sentence with the address, no trace."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: denied
        address = f"https://127.0.0.1:{taken.getsockname()[1]}"
        context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
        users, clusters = [{"name": "u", "user": {"token": "t"}}], [{"name": "c", "cluster": {"server": address}}]
        text = {"kind": "Config", "apiVersion": "v1", "clusters": clusters, "users": users, "contexts": [context], "current-context": "c"}
        (tmp_path / "config").write_text(yaml.safe_dump(text))
        code, out, err = run("-n", "web", "--kubeconfig", str(tmp_path / "config"))
    assert (code, out) == (2, "")
    assert err.startswith("berth: cluster: ")
    assert address in err
    assert len(err.splitlines()) == 1


def test_the_kubeconfig_is_found_as_kubectl_finds_it(tmp_path: Path) -> None:
    """$KUBECONFIG, then ~/.kube/config."""
    assert default_kubeconfig({"KUBECONFIG": "/a:/b", "HOME": str(tmp_path)}) == "/a:/b"
    assert default_kubeconfig({"HOME": str(tmp_path)}) == str(tmp_path / ".kube" / "config")


def test_from_files_no_client_is_imported() -> None:
    """Without a cluster the command starts fast: no Kubernetes client, no HTTP library, no TLS."""
    heavy = ("kubernetes", "aiohttp", "httptools", "cryptography")
    code = f"import sys, cli.inspect.effective; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=PATIENCE, check=True)
    assert done.stdout == "[]\n"


# --- from a cluster ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bare(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A control plane without Berth's kinds."""
    with control_plane(request.session, Options(kubelets=False)) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def cluster(bare: Cluster) -> Cluster:
    """With the kinds, the roles, and the objects of the guide."""
    apply_crds(bare.api, sorted((ROOT / "deploy" / "crds").glob("*.yaml")), bare.processes)
    for file in (ROOT / "deploy" / "rbac.yaml", *(EXAMPLES / name for name in ("namespaces.yaml", *POLICIES))):
        for value in yaml.safe_load_all(file.read_text()):
            bare.api.apply(value)
    return bare


def somebody(cluster: Cluster, name: str, folder: Path, *roles: dict[str, Any]) -> str:
    """The kubeconfig of a service account of namespace research with these bindings."""
    cluster.api.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "research"}})
    for role in roles:
        binding = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": f"{name}-{role['name']}", "namespace": "research"}}
        kind = "ClusterRoleBinding" if role.get("everywhere") else "RoleBinding"
        if role.get("everywhere"):
            del binding["metadata"]["namespace"]  # type: ignore[attr-defined]
        subject = {"kind": "ServiceAccount", "name": name, "namespace": "research"}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role["name"]}
        assert cluster.api.apply({**binding, "kind": kind, "roleRef": reference, "subjects": [subject]}).ok
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    token = cluster.api.call("POST", f"/api/v1/namespaces/research/serviceaccounts/{name}/token", asked).body["status"]["token"]
    text = yaml.safe_load(cluster.kubeconfig.read_text())
    text["users"][0]["user"] = {"token": token}
    text["contexts"][0]["context"]["namespace"] = "research"
    (folder / name).write_text(yaml.safe_dump(text))
    return str(folder / name)


def test_a_cluster_without_the_kinds_says_what_to_install(run: Run, bare: Cluster) -> None:
    """Before the definitions are applied."""
    if bare.api.call("GET", "/apis/berth.dev/v1alpha1").ok:
        pytest.skip("another test has applied them")
    code, _, err = run("-n", "default", "--kubeconfig", str(bare.kubeconfig))
    assert code == 2
    advice = "install the definitions: berth crds | kubectl apply --server-side -f -"
    assert err == f"berth: cluster: the kind ClusterGPUPolicy is not installed; {advice}\n"


def test_a_cluster_says_what_its_files_say(run: Run, cluster: Cluster) -> None:
    """The same objects, applied or in files, give the same answer but for the namespace's own label."""
    for namespace in ("research", "web"):
        _, from_files, _ = run(*files("-n", namespace))
        code, from_cluster, err = run("-n", namespace, "--platforms", "karpenter-aws", "--kubeconfig", str(cluster.kubeconfig))
        assert (code, err) == (0, "")
        assert from_cluster == from_files


def test_with_the_brake_on_the_mode_that_acts_is_shown(run: Run, cluster: Cluster) -> None:
    """As the statuses of the policies have it, with a line on what caps them."""
    words = ("-n", "research", "--platforms", "karpenter-aws", "--kubeconfig", str(cluster.kubeconfig))
    _, enforced, _ = run(*words)
    write_statuses(cluster, "Audit")
    try:
        code, out, err = run(*words)
        assert (code, err) == (0, CAPPED)
        assert "Audit (--max-mode caps Enforce)" in sections(out)["active policies"]
        assert "require" not in sections(out)
        assert run(*words, "--max-mode", "Enforce") == (0, enforced, "")
    finally:
        write_statuses(cluster, "Enforce")
    assert run(*words) == (0, enforced, "")


def test_an_unknown_namespace_of_a_cluster(run: Run, cluster: Cluster) -> None:
    """The nearest that there is."""
    code, _, err = run("-n", "reserch", "--kubeconfig", str(cluster.kubeconfig))
    assert (code, err) == (2, 'berth: cluster: there is no namespace "reserch"; did you mean "research"?\n')


def test_the_platforms_are_those_of_the_server(run: Run, cluster: Cluster) -> None:
    """Which its statuses show, to somebody who may list no nodes too."""
    write_statuses(cluster, "Enforce")
    code, out, err = run("-n", "research", "--kubeconfig", str(cluster.kubeconfig))
    assert (code, err) == (0, "")
    assert sections(out)["scope"].splitlines()[-1].split(maxsplit=1) == ["platforms", "karpenter-aws (those of the cluster's server)"]
    _, out, _ = run("-n", "research", "--kubeconfig", str(cluster.kubeconfig), "--platforms", "gke", "-o", "json")
    assert json.loads(out)["platforms"] == {"names": ["gke"], "source": "given"}


def test_without_a_node_the_platform_is_not_known_and_said(run: Run, cluster: Cluster) -> None:
    """As the servers have it then: judged, not written."""
    forget_server(cluster)
    code, _, err = run("-n", "web", "--kubeconfig", str(cluster.kubeconfig))
    assert code == 0
    assert err == "berth: no node shows the platform, so placement is checked but not written; set --platforms\n"


def test_who_may_only_view_the_namespace_is_told_which_role_to_ask_for(run: Run, cluster: Cluster, tmp_path: Path) -> None:
    """``view`` reads GPUPolicies and not the guardrails; with berth-guardrails-view all is shown, in the context's namespace."""
    viewer = somebody(cluster, "viewer", tmp_path, {"name": "view"})
    cluster.wait_for(lambda: "clustergpupolicies" in run("--kubeconfig", viewer)[2], "view to be aggregated")
    code, _, err = run("--kubeconfig", viewer)
    assert (code, err) == (
        2,
        'berth: cluster: you may not list clustergpupolicies.berth.dev; ask for the ClusterRole "berth-guardrails-view"\n',
    )
    forget_server(cluster)
    reader = somebody(cluster, "reader", tmp_path, {"name": "view"}, {"name": "berth-guardrails-view", "everywhere": True})
    cluster.wait_for(lambda: run("--kubeconfig", reader)[0] == 0, "berth-guardrails-view to be enough")
    code, out, err = run("--kubeconfig", reader)
    assert err == "berth: assuming --platforms karpenter-aws\n"
    assert out.replace("assumed; to set them, add --platforms", "set by --platforms") == run(*files("-n", "research"))[1]


def test_who_may_read_nothing_is_told_so(run: Run, cluster: Cluster, tmp_path: Path) -> None:
    """Not even the namespace's labels."""
    nobody = somebody(cluster, "nobody", tmp_path)
    code, _, err = run("--kubeconfig", nobody)
    assert code == 2
    sentence = 'you may not read namespace research; its labels decide which policies apply there; ask for the role "view" in research'
    assert err == f"berth: cluster: {sentence}\n"


def test_an_object_with_a_mistake_is_named_and_its_last_good_form_acts(run: Run, cluster: Cluster) -> None:
    """The API server takes a family that only Berth's catalog can judge; the status' lastGood goes on."""
    good = {"mode": "Enforce", "default": {"gracePeriod": "45m"}}
    wrong = {"mode": "Enforce", "require": {"families": {"in": ["hoper"]}}, "default": {"gracePeriod": "50m"}}
    policy = {"apiVersion": "berth.dev/v1alpha1", "kind": "GPUPolicy", "metadata": {"name": "slip", "namespace": "web"}, "spec": wrong}
    assert cluster.api.apply(policy).ok
    words = ("-n", "web", "--platforms", "karpenter-aws", "--kubeconfig", str(cluster.kubeconfig))
    try:
        _, out, _ = run(*words)
        assert "GPUPolicy/web/slip: it has no effect" in sections(out)["invalid policies"]
        assert 'unknown GPU family "hoper"; did you mean "hopper"?' in " ".join(sections(out)["invalid policies"].split())
        assert "GPUPolicy/web/slip" not in sections(out)["default"]
        cluster.api.patch(policy, {"status": {"lastGood": {"generation": 1, "spec": good}}}, subresource="status")
        _, out, _ = run(*words)
        assert "GPUPolicy/web/slip: generation 1 stays in effect" in sections(out)["invalid policies"]
        assert "gracePeriod 45m GPUPolicy/web/slip" in " ".join(sections(out)["default"].split())
    finally:
        cluster.api.delete(policy)
