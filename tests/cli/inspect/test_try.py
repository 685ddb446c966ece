"""`berth try`, as a command."""

from __future__ import annotations

import base64
import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonpatch
import pytest
import yaml

from cli.main import main
from documents.yaml_writer import write_yaml as yaml_text
from tests.support.counts import count
from tests.testcluster.calls import PATIENCE

ROOT = Path(__file__).parents[3]
REVIEWS = ROOT / "tests" / "reviews"
LIBRARY = str(ROOT / "policies" / "library")
POLICY = {
    "apiVersion": "berth.dev/v1alpha1",
    "kind": "ClusterGPUPolicy",
    "metadata": {"name": "ours"},
    "spec": {
        "mode": "Enforce",
        "require": {"requestsEqualLimits": ["accelerators"], "gpusPerPod": {"max": 4}},
        "default": {"acceleratorTaints": "Tolerate", "gracePeriod": "30m"},
    },
}
TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
ONE_GPU = {"limits": {"nvidia.com/gpu": 1}}
SPEC: dict[str, Any] = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i", "resources": ONE_GPU}]}
POD: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": SPEC}
JOB = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": {"spec": SPEC}}}
CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "b"}}
MISMATCH = {
    **POD,
    "metadata": {"name": "bad"},
    "spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": 2}, "requests": {"nvidia.com/gpu": 1}}}]},
}


class Ran:
    """What a run left behind."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def documents(self) -> list[Any]:
        return list(yaml.safe_load_all(self.out))


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    file = tmp_path / "policy.yaml"
    file.write_text(yaml_text(POLICY))
    return file


@pytest.fixture
def run(tmp_path: Path, policy: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs `berth try` in this process on documents that are written to a file."""

    def runs(*values: Any, options: tuple[str, ...] = ()) -> Ran:
        file = tmp_path / "in.yaml"
        file.write_text("---\n".join(value if isinstance(value, str) else yaml_text(value) for value in values))
        code = main(["try", "--policies", str(policy), *options, str(file)])
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err.replace(str(file), "in.yaml"))

    return runs


def _command(*arguments: str, stdin: str = "") -> Ran:
    command = [sys.executable, "-m", "cli.main", "try", *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, cwd=ROOT, timeout=PATIENCE, check=False)
    return Ran(done.returncode, done.stdout, done.stderr)


def _template(manifest: Any, *path: Any) -> Any:
    for step in path:
        manifest = manifest[step]
    return manifest["spec"]


def _workload(api_version: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "w"}, "spec": spec}


TEMPLATE = {"template": {"spec": SPEC}}
WORKLOADS: list[tuple[dict[str, Any], tuple[Any, ...]]] = [
    (POD, ()),
    (JOB, ("spec", "template")),
    (_workload("apps/v1", "Deployment", TEMPLATE), ("spec", "template")),
    (_workload("batch/v1", "CronJob", {"jobTemplate": {"spec": TEMPLATE}}), ("spec", "jobTemplate", "spec", "template")),
    (
        _workload("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": {"Worker": TEMPLATE}}),
        ("spec", "pytorchReplicaSpecs", "Worker", "template"),
    ),
]


@pytest.mark.parametrize(("manifest", "path"), WORKLOADS, ids=[workload[0]["kind"] for workload in WORKLOADS])
def test_a_workload_is_shown_with_its_template_as_admitted(run: Any, manifest: dict[str, Any], path: tuple[Any, ...]) -> None:
    """Only Berth's own edits appear, at the template's path: no default, no applied annotation, no owner."""
    ran = run(manifest)
    assert ran.code == 0
    (shown,) = ran.documents
    spec = _template(shown, *path)
    edited = {**SPEC, "tolerations": [TOLERATION]}
    if manifest["kind"] != "Deployment":  # a service's grace period is raised only by a policy that names it
        edited["terminationGracePeriodSeconds"] = 1800
    assert spec == edited
    assert "berth.dev/applied" not in ran.out
    assert "ownerReferences" not in ran.out


def test_other_documents_pass_through(run: Any) -> None:
    """What makes no pods comes out as it went in, in its place."""
    ran = run(CONFIG, POD, CONFIG)
    assert ran.code == 0
    assert [document["kind"] for document in ran.documents] == ["ConfigMap", "Pod", "ConfigMap"]
    assert ran.documents[0] == CONFIG
    assert 'in.yaml document 1: ConfigMap "m": not checked: it creates no pods\n' in ran.err


def test_items_of_a_list_are_judged_in_their_place(run: Any) -> None:
    """A List stays a List; messages say which item."""
    ran = run({"apiVersion": "v1", "kind": "List", "items": [CONFIG, POD, MISMATCH]})
    (shown,) = ran.documents
    assert ran.code == 1
    assert shown["items"][1]["spec"]["tolerations"] == [TOLERATION]
    assert shown["items"][0] == CONFIG
    assert shown["items"][2] == MISMATCH
    assert 'in.yaml items[1]: Pod "p": admitted with 2 edits\n' in ran.err
    assert 'in.yaml items[2]: Pod "bad": denied\n' in ran.err


def test_a_denial_is_said_with_its_fix(run: Any) -> None:
    """Exit code 1, a line per violation, and no edit is shown."""
    ran = run(MISMATCH, options=("-o", "diff"))
    assert ran.code == 1
    assert ran.out == ""
    assert 'in.yaml: Pod "bad": denied\n  BERTH-101: ' in ran.err
    assert 'set spec.containers[0].resources.requests["nvidia.com/gpu"] to 2' in ran.err


def test_a_diff_names_file_document_kind_and_name(run: Any) -> None:
    """The headers say what changed, the lines only what Berth adds."""
    ran = run(CONFIG, JOB, options=("-o", "diff"))
    lines = ran.out.splitlines()
    assert lines[0].endswith("in.yaml document 2 Job/j")
    assert lines[1].endswith("in.yaml document 2 Job/j (as admitted)")
    assert [line for line in lines[2:] if line[0] in "+-"] == [
        "+      tolerations:",
        "+      - key: nvidia.com/gpu",
        "+        operator: Exists",
        "+        effect: NoSchedule",
        "+      terminationGracePeriodSeconds: 1800",
    ]


def test_json_is_one_object_or_a_list(run: Any) -> None:
    """One document is printed as it is, several as a List that kubectl takes back; Lists in it are unfolded."""
    alone = json.loads(run(POD, options=("-o", "json")).out)
    assert alone["spec"]["tolerations"] == [TOLERATION]
    both = json.loads(run(CONFIG, {"apiVersion": "v1", "kind": "List", "items": [POD]}, options=("-o", "json")).out)
    assert both["kind"] == "List"
    assert [item["kind"] for item in both["items"]] == ["ConfigMap", "Pod"]


def test_review_answers_for_a_manifest(run: Any) -> None:
    """The answer's patch makes the pod that a controller would make into the one that is admitted; equal input, equal uid."""
    ran = run(JOB, MISMATCH, options=("-o", "review"))
    admitted, denied = (json.loads(line)["response"] for line in ran.out.splitlines())
    patch = json.loads(base64.b64decode(admitted["patch"]))
    pod = jsonpatch.apply_patch({"metadata": {}, "spec": {**SPEC, "terminationGracePeriodSeconds": 30}}, patch)
    assert pod["spec"]["terminationGracePeriodSeconds"] == 1800
    assert "berth.dev/applied" in pod["metadata"]["annotations"]
    assert denied["allowed"] is False
    assert run(JOB, MISMATCH, options=("-o", "review")).out == ran.out


def test_a_recorded_workload_review_is_shown_as_its_manifest(capsys: pytest.CaptureFixture[str], policy: Path) -> None:
    """A Deployment under review is judged by its template; as a review it is bad input, as it is to the server."""
    file = str(REVIEWS / "deployments-create-vllm-server.json")
    assert main(["try", "--policies", str(policy), "-o", "yaml", file]) == 0
    shown = yaml.safe_load(capsys.readouterr().out)
    assert shown["kind"] == "Deployment"
    assert TOLERATION in shown["spec"]["template"]["spec"]["tolerations"]
    assert main(["try", "--policies", str(policy), "-o", "review", file]) == 2
    assert "send only pods here" in capsys.readouterr().err


def test_an_update_is_only_validated(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is edited on UPDATE."""
    assert main(["try", "--policies", LIBRARY, "-o", "diff", str(REVIEWS / "pods-update-amd-bench.json")]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert 'Pod "amd-bench": admitted unchanged\n' in captured.err


def _audit(policy: Path, mode: str = "Audit") -> None:
    policy.write_text(yaml_text({**POLICY, "spec": {**POLICY["spec"], "mode": mode}}))  # type: ignore[dict-item]


@pytest.mark.parametrize("mode", ["Audit", "Warn"])
def test_audit_and_warn_say_what_they_would_do(run: Any, policy: Path, mode: str) -> None:
    """Nothing is edited or denied; the would: lines say what would be."""
    _audit(policy, mode)
    ran = run(POD, MISMATCH)
    assert ran.code == 0
    assert ran.documents == [POD, MISMATCH]
    assert f"  ClusterGPUPolicy/ours ({mode}) would make 2 edits: add spec.tolerations, " in ran.err
    assert f"  ClusterGPUPolicy/ours ({mode}) would deny it: BERTH-101: " in ran.err


def test_as_enforce_judges_as_if_switched(run: Any, policy: Path) -> None:
    """--as Enforce gives what switching the policies to Enforce gives, and --as Audit the reverse."""
    enforced = run(POD, MISMATCH)
    _audit(policy)
    supposed = run(POD, MISMATCH, options=("--as", "Enforce"))
    assert (supposed.code, supposed.out, supposed.err) == (enforced.code, enforced.out, enforced.err)
    _audit(policy, "Enforce")
    assert run(POD, MISMATCH, options=("--as", "Audit")).code == 0


def test_namespace_and_its_labels(run: Any, policy: Path) -> None:
    """--namespace is where objects that name none go, --namespace-labels what it is labelled with, and only it."""
    selecting = {**POLICY["spec"], "match": {"namespaceSelector": {"matchLabels": {"team": "research"}}}}  # type: ignore[dict-item]
    policy.write_text(yaml_text({**POLICY, "spec": selecting}))
    elsewhere = {**POD, "metadata": {"name": "q", "namespace": "other"}}
    assert "admitted unchanged; no policy matches" in run(POD).err
    ran = run(POD, elsewhere, options=("--namespace", "lab", "--namespace-labels", "team=research,tier=dev"))
    assert 'Pod "p": admitted with 2 edits' in ran.err
    assert 'Pod "q": admitted unchanged; no policy matches' in ran.err
    assert "berth: --namespace-labels are the labels of namespace lab, not of other; for those, add -n other\n" in ran.err
    alone = run(elsewhere, options=("--namespace-labels", "team=research"))
    assert 'Pod "q": admitted with 2 edits' in alone.err
    assert "--namespace-labels" not in alone.err


def test_labels_of_the_wrong_form_are_denied(capsys: pytest.CaptureFixture[str]) -> None:
    """argparse exits with 2 and says the form."""
    with pytest.raises(SystemExit) as stopped:
        main(["try", "--namespace-labels", "research", "f.yaml"])
    assert stopped.value.code == 2
    assert "team=research" in capsys.readouterr().err


def test_the_assumed_platform_is_said_once(run: Any) -> None:
    """Without --platforms karpenter-aws is assumed, in one line; with it nothing is said."""
    assert run(POD, JOB).err.count("karpenter-aws") == 1
    assert "assuming" not in run(POD, options=("--platforms", "gke")).err


def test_a_platform_that_is_not_found_is_said_once(run: Any, tmp_path: Path) -> None:
    """With --platforms auto and no node, node affinity is left out: the platform team learns it, if a policy has any."""
    auto = ("--platforms", "auto")
    assert "auto finds no platform" not in run(POD, options=auto).err
    policy = tmp_path / "policy.yaml"
    spec = {"mode": "Enforce", "require": {"families": {"in": ["hopper"]}}}
    policy.write_text(json.dumps({"apiVersion": "berth.dev/v1alpha1", "kind": "ClusterGPUPolicy", "metadata": {"name": "p"}, "spec": spec}))
    assert run(POD, JOB, options=(*auto, "--policies", str(policy))).err.count("auto finds no platform") == 1
    assert "auto finds" not in run(POD, options=("--platforms", "gke", "--policies", str(policy))).err


def test_scheduling_gates_are_named(run: Any) -> None:
    """A gated pod waits for somebody else: its gates are named, the first three of them."""
    gates = [{"name": f"example.com/gate-{number}"} for number in range(4)]
    err = run({**POD, "spec": {**POD["spec"], "schedulingGates": gates}}).err
    assert "it waits until its scheduling gates are removed: example.com/gate-0, example.com/gate-1, example.com/gate-2 ..." in err
    assert "scheduling gates" not in run(POD).err


def test_pods_without_accelerators_are_not_judged(run: Any) -> None:
    """The webhook is never called for them."""
    assert "not checked: it requests no accelerator" in run({**POD, "spec": {"containers": [{"name": "c"}]}}).err


GOOD = yaml_text(POD)
BAD_TEXTS = {
    "wrong YAML": ("a: [1\n", "line"),
    "tab": ("kind: Pod\nspec:\n\tcontainers: []\n", "tab"),
    "duplicate key": ("apiVersion: v1\nkind: Pod\nkind: Job\n", 'the key "kind" is set twice'),
    "not an object": ("- 1\n", "must be an object"),
    "no kind": ("a: b\n", "kind"),
    "null spec": ("apiVersion: v1\nkind: Pod\nspec: null\n", "spec: must be a map; found nothing (null)"),
    "string for a list": ("apiVersion: v1\nkind: Pod\nspec: {containers: x}\n", "spec.containers: must be a list of containers"),
    "quantity": (
        "apiVersion: v1\nkind: Pod\nspec: {containers: [{resources: {limits: {nvidia.com/gpu: [1]}}}]}\n",
        'spec.containers[0].resources.limits["nvidia.com/gpu"]: must be a quantity such as 1; found a list',
    ),
    "placeholder": (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: {{ .Release.Name }}, labels: {a: {{ .b }}}}\n",
        "metadata.name: found the placeholder {{ .Release.Name }} and 1 more; render the template first",
    ),
    "a number for a name": ("apiVersion: v1\nkind: Service\nmetadata: {name: 8}\n", "metadata.name: must be text; found the number 8"),
    "null for a key": ("apiVersion: v1\nkind: Pod\nmetadata: {labels: {null: x}}\n", "metadata.labels: a key must be text"),
    "List in a List": ("apiVersion: v1\nkind: List\nitems: [{kind: List, apiVersion: v1, items: []}]\n", "items[0]: a List inside a List"),
    "not a pod's template": ("apiVersion: batch/v1\nkind: Job\nspec: {template: {a: b}}\n", "spec.template.spec: must be a map"),
}


@pytest.mark.parametrize("case", BAD_TEXTS)
def test_bad_input_is_told_and_the_rest_is_judged(run: Any, case: str) -> None:
    """Exit code 2; file, document, path and reason; the documents before and after are judged all the same."""
    text, reason = BAD_TEXTS[case]
    ran = run(GOOD, text, MISMATCH)
    assert ran.code == 2
    messages = [line for line in ran.err.splitlines() if line.startswith("berth: in.yaml, document 2")]
    assert len(messages) == 1
    assert reason in messages[0]
    assert 'Pod "p": admitted with 2 edits' in ran.err
    assert 'Pod "bad": denied' in ran.err


def test_an_empty_document_between_others_is_skipped(run: Any) -> None:
    """A stray --- is no document."""
    assert run(GOOD, "", GOOD).code == 0


def test_empty_and_missing_files_are_bad_input(tmp_path: Path, policy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty file, a file that is not there and a folder without YAML each get a line; a good file is judged beside them."""
    (tmp_path / "empty.yaml").write_text("# nothing\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "good.yaml").write_text(GOOD)
    files = [str(tmp_path / name) for name in ("empty.yaml", "missing.yaml", "folder", "good.yaml")]
    assert main(["try", "--policies", str(policy), *files]) == 2
    err = capsys.readouterr().err
    for file in files[:3]:
        assert f"berth: {file}: " in err
    assert 'Pod "p": admitted with 2 edits' in err


def test_bad_policies_are_bad_input(run: Any, policy: Path) -> None:
    """What cannot be judged with is exit code 2 as well."""
    policy.write_text("kind: ClusterGPUPolicy\n")
    assert run(POD).code == 2


def test_standard_input(policy: Path) -> None:
    """- reads standard input, and a pipe gets YAML."""
    ran = _command("--policies", str(policy), "-", stdin=GOOD)
    assert ran.code == 0
    assert ran.documents[0]["spec"]["tolerations"] == [TOLERATION]
    assert '-: Pod "p": admitted with 2 edits' in ran.err


def _on_a_terminal(environ: dict[str, str], *arguments: str) -> str:
    """Standard output of the command when that is a pseudo-terminal."""
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "cli.main", "try", *arguments]
    environ = {**os.environ, **environ}
    done = subprocess.run(command, stdout=slave, stderr=subprocess.DEVNULL, cwd=ROOT, env=environ, timeout=PATIENCE, check=False)
    os.close(slave)
    shown = os.read(master, 65536).decode()
    os.close(master)
    assert done.returncode == 0
    return shown


def test_a_terminal_gets_a_coloured_diff(tmp_path: Path, policy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Diff is the form on a terminal, in colour unless NO_COLOR is set; piped it is plain."""
    file = tmp_path / "pod.yaml"
    file.write_text(GOOD)
    arguments = ("--policies", str(policy), str(file))
    plus = "+  terminationGracePeriodSeconds: 1800"
    assert f"\x1b[32m{plus}\x1b[0m" in _on_a_terminal({"TERM": "xterm", "NO_COLOR": ""}, *arguments)
    plain = _on_a_terminal({"TERM": "xterm", "NO_COLOR": "1"}, *arguments)
    assert plus in plain
    assert "\x1b[" not in plain
    assert main(["try", "-o", "diff", *arguments]) == 0
    piped = capsys.readouterr().out
    assert "\x1b[" not in piped
    assert plain.replace("\r\n", "\n") == piped


def test_a_closed_pipe_is_no_error(tmp_path: Path, policy: Path) -> None:
    """`berth try ... | head -1` ends quietly."""
    file = tmp_path / "pods.yaml"
    file.write_text("---\n".join([GOOD] * 1000))
    command = f'"{sys.executable}" -m cli.main try --policies "{policy}" -o yaml "{file}" | head -1'
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, cwd=ROOT, timeout=PATIENCE, check=False)
    assert done.stdout == "apiVersion: v1\n"
    assert "Traceback" not in done.stderr


def test_nothing_of_the_server_is_imported() -> None:
    """`try` starts fast: no HTTP server, no TLS library, no table library."""
    code = "import sys, cli.inspect.try_; print([m for m in ('httptools', 'uvloop', 'cryptography', 'asyncio') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=PATIENCE, check=True)
    assert done.stdout == "[]\n"


def test_many_pods_are_judged_in_one_call(tmp_path: Path) -> None:
    """Each is told: a thousand, a hundred in ``make test``. That a pod more costs no more than the one before it, test_yaml_text.py and
    test_scaling.py say."""
    file = tmp_path / "pods.yaml"
    pod = json.loads((REVIEWS / "pods-create-train-llama.json").read_text())["request"]["object"]
    del pod["metadata"]["managedFields"]
    number = count(100, 1000)
    file.write_text("---\n".join([yaml_text(pod)] * number))
    ran = _command("--policies", LIBRARY, "-o", "diff", str(file))
    assert ran.code == 0
    assert ran.out.count("+++ ") == number


GPU_IN = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {containers: [{name: c, resources: {limits: {nvidia.com/gpu: %s}}}]}\n"


@pytest.mark.parametrize("amount", ["$GPUS", '"{{ .Values.gpus }}"', "{{ .Values.gpus }}", "<number of GPUs>"])
@pytest.mark.parametrize("policies", ["ours", "none"])
def test_an_amount_that_is_not_filled_in_is_a_verdict(run: Any, policy: Path, amount: str, policies: str) -> None:
    """About the manifest, with or without a policy that says so: the API server takes no such pod. Nothing else is lost for it."""
    if policies == "none":
        policy.write_text(yaml_text({**POLICY, "spec": {"mode": "Enforce"}}))
    ran = run(GPU_IN % ("left", amount), POD)
    assert ran.code == 1
    assert 'in.yaml document 1: Pod "left": denied\n  BERTH-102: container "c": ' in ran.err
    assert 'set spec.containers[0].resources.limits["nvidia.com/gpu"] to a whole number.' in ran.err
    assert 'in.yaml document 2: Pod "p": admitted' in ran.err


def test_what_only_the_platform_team_can_mend_is_told_once(run: Any, policy: Path) -> None:
    """At the end, one line each, whatever number of pods it is about; what an author can mend stands with the pod."""
    spec = {"mode": "Enforce", "default": {"mig": {"slice": "10gb"}}, "require": {"families": {"in": ["ampere", "hopper"]}}}
    policy.write_text(yaml_text({**POLICY, "spec": spec}))
    tpu = {**POD, "spec": {"containers": [{"name": "c", "resources": {"limits": {"google.com/tpu": 4}}}]}}
    typo = {**POD, "spec": {**SPEC, "nodeSelector": {"karpenter.k8s.aws/instance-gpu-name": "a10"}}}
    ran = run(POD, JOB, POD, tpu, tpu, typo)
    lines = ran.err.splitlines()
    assert len([line for line in lines if "BERTH-210" in line]) == 1
    assert len([line for line in lines if "BERTH-208" in line]) == 1
    assert all(line.startswith("for the platform team: BERTH-2") for line in lines[-3:-1])
    assert lines[-1] == "not checked: nodes and NodePools, ResourceQuotas, LimitRanges; to check them: berth why -f FILE"
    assert not any("warning: BERTH-2" in line for line in lines if "BERTH-201" not in line and "BERTH-125" not in line)


def test_objects_of_the_input_are_facts(run: Any, policy: Path) -> None:
    """Wherever they stand in it: the labels of a namespace, a claim in the namespace of objects that name none."""
    selecting = {**POLICY["spec"], "match": {"namespaceSelector": {"matchLabels": {"team": "research"}}}}  # type: ignore[dict-item]
    policy.write_text(yaml_text({**POLICY, "spec": selecting}))
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lab", "labels": {"team": "research"}}}
    devices = {"requests": [{"name": "g", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 8}}]}
    claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "all"}, "spec": {"devices": devices}}
    spec = {"resourceClaims": [{"name": "g", "resourceClaimName": "all"}], "containers": [{"name": "c"}]}
    claiming = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "claiming"}, "spec": spec}
    ran = run(claiming, space, claim, options=("-n", "lab"))
    assert 'in.yaml document 2: Namespace "lab": used as facts about the cluster' in ran.err
    assert 'in.yaml document 3: ResourceClaim "all": denied\n  BERTH-111: the claim requests 8 GPUs' in ran.err
    assert 'Pod "claiming": denied\n  BERTH-111: the pod requests 8 GPUs' in ran.err
    assert ran.code == 1


def test_a_claim_is_shown_with_its_selectors(run: Any, policy: Path) -> None:
    """At its own place, without the record; a default is told to its author, what a driver does not publish to the platform team."""
    policy.write_text(yaml_text({**POLICY, "spec": {"mode": "Enforce", "require": {"sharing": ["Exclusive"]}, "default": LIKE_L4}}))
    driver = {"cel": {"expression": "device.driver == 'gpu.nvidia.com'"}}
    known = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "any"}, "spec": {"selectors": [driver]}}
    requests = [{"name": name, "exactly": {"deviceClassName": name}} for name in ("any", "gpu.intel.com")]
    spec = {"spec": {"devices": {"requests": requests}}}
    template = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": "one"}, "spec": spec}
    ran = run(known, template)
    assert (
        'ResourceClaimTemplate "one": used as facts about the cluster, and admitted with 2 edits\n  warning: BERTH-241: spec.spec.'
        in ran.err
    )
    assert ran.err.splitlines()[-1].startswith("for the platform team: BERTH-242: sharing [Exclusive]")
    shown = ran.documents[1]["spec"]["spec"]["devices"]["requests"]
    assert [len(one["exactly"].get("selectors", [])) for one in shown] == [2, 0]
    assert (ran.documents[1]["metadata"], ran.code) == ({"name": "one"}, 0)


LIKE_L4 = {"models": {"in": ["L4"]}}


def test_nodes_of_the_input_tell_the_platform(run: Any) -> None:
    """With --platforms auto, as those of --from do."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {"cloud.google.com/gke-nodepool": "a"}}}
    selecting = {**POD, "spec": {**SPEC, "nodeSelector": {"cloud.google.com/gke-accelerator": "nvidia-l5"}}}
    assert "BERTH-201" in run(node, selecting, options=("--platforms", "auto")).err


def test_an_accelerator_is_told_wherever_it_is(run: Any) -> None:
    """Of a kind that nobody knows, in a field that no container has, in a text: with its path, and never as nothing."""
    boat = {
        "apiVersion": "example.com/v1",
        "kind": "Boat",
        "metadata": {"name": "b"},
        "spec": {"crew": [{"limits": {"nvidia.com/gpu": 1}}]},
    }
    overhead = {**POD, "spec": {"overhead": {"nvidia.com/gpu": 1}, "containers": [{"name": "c"}]}}
    text = {**CONFIG, "data": {"job.yaml": "limits:\n  nvidia.com/gpu: 2\n"}}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "q"}, "spec": {"hard": {"requests.nvidia.com/gpu": 8}}}
    err = run(boat, overhead, text, service).err
    assert (
        'Boat "b": not checked: it names nvidia.com/gpu at spec.crew[0].limits["nvidia.com/gpu"], but its kind is not in the catalog' in err
    )
    assert 'Pod "p": not checked: it names nvidia.com/gpu at spec.overhead["nvidia.com/gpu"], but no container requests it' in err
    assert 'ConfigMap "m": not checked: it names nvidia.com/gpu in the text at data["job.yaml"], but it creates no pods' in err
    assert 'Service "q": not checked: it names nvidia.com/gpu at spec.hard["requests.nvidia.com/gpu"], but it creates no pods' in err


def test_limits_of_the_namespace_are_heeded(run: Any) -> None:
    """A LimitRange fills in amounts before policies are asked, and a ResourceQuota denies pods after them."""
    limits = {"limits": [{"type": "Container", "default": {"cpu": 2}, "max": {"memory": "1Gi"}}]}
    limit_range = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "r"}, "spec": limits}
    hard = {"requests.nvidia.com/gpu": "0", "limits.cpu": "1"}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard}}
    ran = run(JOB, limit_range, quota)
    assert "warning: BERTH-251: ResourceQuota q allows 0 requests.nvidia.com/gpu in all, and a pod has 1, so none is ever" in ran.err
    assert "warning: BERTH-251: ResourceQuota q allows 1 limits.cpu in all, and a pod has 2" in ran.err
    assert 'LimitRange "r": used as facts about the cluster' in ran.err
    assert "cpu" not in json.dumps(ran.documents[0]), "what the API server fills in is not written into the manifest"
    elsewhere = {**limit_range, "metadata": {"name": "r", "namespace": "other"}}
    assert "BERTH-25" not in run(JOB, elsewhere).err


def test_facts_that_are_ignored_are_named(run: Any, tmp_path: Path) -> None:
    """Each kind once, on standard error: pods on nodes are no facts for `try`."""
    facts = tmp_path / "facts.yaml"
    facts.write_text("---\n".join(map(yaml_text, (POD, {**POD, "metadata": {"name": "q"}}, CONFIG))))
    assert run(JOB, options=("--from", str(facts))).err.count("berth: ignored in the files: 1 ConfigMap, 2 Pod\n") == 1


def test_a_runtime_of_another_file_is_found(tmp_path: Path, policy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All files are one input, whatever their order."""
    job = _workload("trainer.kubeflow.org/v1alpha1", "TrainJob", {"runtimeRef": {"name": "torch"}, "trainer": {"numNodes": 1}})
    inner = {"spec": {"replicatedJobs": [{"name": "node", "template": {"spec": {"template": {"spec": MISMATCH["spec"]}}}}]}}
    runtime = _workload("trainer.kubeflow.org/v1alpha1", "ClusterTrainingRuntime", {"template": inner}) | {"metadata": {"name": "torch"}}
    files = [tmp_path / "a.yaml", tmp_path / "b.yaml"]
    for file, value in zip(files, (job, runtime), strict=True):
        file.write_text(yaml_text(value))
    assert main(["try", "--policies", str(policy), *map(str, files)]) == 1
    err = capsys.readouterr().err
    assert 'TrainJob "w": denied\n  in spec: BERTH-101' in err
    assert 'ClusterTrainingRuntime "torch": denied' in err


def test_a_workload_is_shown_with_its_queue(run: Any, policy: Path) -> None:
    """Kueue's label on the workload itself, and none on its pods; where a queue is required, one without it is denied."""
    rules = {"default": {"queue": {"kueue": "team-a"}}, "require": {"queue": {"kueue": ["team-a"]}}}
    policy.write_text(yaml_text({**POLICY, "spec": {"mode": "Enforce", **rules}}))
    ran = run(JOB)
    (job,) = ran.documents
    assert (ran.code, job["metadata"]["labels"]) == (0, {"kueue.x-k8s.io/queue-name": "team-a"})
    assert "labels" not in job["spec"]["template"].get("metadata", {})
    policy.write_text(yaml_text({**POLICY, "spec": {"mode": "Enforce", "require": rules["require"]}}))
    ran = run(JOB)
    assert ran.code == 1
    assert 'BERTH-144: metadata.labels["kueue.x-k8s.io/queue-name"] is not set' in ran.err
    assert ran.documents == [JOB]
