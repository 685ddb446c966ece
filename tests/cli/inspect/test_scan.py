"""`berth scan` as it is typed, of dumps; of a real API server it is tried in tests/e2e/scan."""

from __future__ import annotations

import json
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.recorded import eks, gke, on_premises
from tests.support.recorded.parts import GPU, node, pod

Run = Callable[..., tuple[int, str, str]]
HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e=1+1&\"'"


@pytest.fixture
def run(berth: Run) -> Run:
    """Types `berth scan ...`: (exit code, standard output, standard error)."""
    return lambda *words: berth("scan", *words)


def dump(folder: Path, objects: list[dict[str, Any]]) -> str:
    file = folder / "dump.yaml"
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": objects}, allow_unicode=True))
    return str(file)


@pytest.fixture
def recorded(tmp_path: Path) -> str:
    return dump(tmp_path, eks.objects())


def test_the_text_says_what_there_is_what_is_wrong_and_what_to_type(run: Run, recorded: str) -> None:
    """One screen: a line, a table of nodes, a section for each kind, and the library."""
    code, out, err = run("--from", recorded)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "7 GPU nodes with 35 GPUs, 26 used, 91.47 USD per hour; 12 GPU pods, 5 of them pending."
    assert lines[2:5] == [
        "NODE GROUP          MODEL      NODES  GPUS  USED  USD/H",
        "NodePool gpu-serve  A10G       3      3     3     3.64",
        "NodePool gpu-train  A100-40GB  4      32    23    87.83",
    ]
    at = lines.index("Long runs on spot capacity")
    assert lines[at + 2] == (
        "  - PyTorchJob research/llama (2 pods, 14 GPUs, 38.43 USD/h): "
        "expected to run for more than 2h, on spot nodes of NodePool gpu-train"
    )
    assert lines[-4:] == [
        "Berth's shipped policies would have fixed 3 of these 6 pods (15 GPUs, 38.43 USD per hour).",
        "They would have denied 1 pod, each with a fix.",
        "To see the changes, run berth scan --diff. To write policies in Audit for this cluster, run berth scan --suggest DIR.",
        "Platforms: karpenter-aws (detected from Nodes and NodePools).",
    ]


def test_a_program_reads_the_same_as_data(run: Run, recorded: str) -> None:
    """Kinds, places, values, and what each finding rests on."""
    code, out, _ = run("--from", recorded, "-o", "json")
    value = json.loads(out)
    assert code == 0
    by_kind = {one["kind"]: one for one in value["findings"]}
    assert by_kind["run-on-spot"] == {
        "kind": "run-on-spot",
        "where": {"kind": "PyTorchJob", "namespace": "research", "name": "llama"},
        "values": {"length": "says", "group": ["NodePool", "gpu-train"]},
        "pods": 2,
        "nodes": 0,
        "names": ["llama-0-0", "llama-0-1"],
        "gpus": 14,
        "usdPerHour": 38.43,
        "mended": 2,
        "restsOn": ["Node", "Job"],
        "message": "PyTorchJob research/llama: expected to run for more than 2h, on spot nodes of NodePool gpu-train",
        "advice": "berth scan --suggest DIR writes a policy in Audit that moves runs over 2h to on-demand capacity (default.longRuns)",
    }
    (reasons,) = (one["values"]["reasons"] for one in value["findings"] if one["where"]["name"] == "sixteen")
    assert reasons[0]["places"] == ["NodePool gpu-train"]
    (obstacle,) = reasons[0]["obstacles"]
    assert (obstacle["kind"], obstacle["key"], obstacle["need"], obstacle["have"]) == ("resource", GPU, 16, 8)
    assert value["library"] == {"pods": 6, "mended": 3, "denied": 1, "gpus": 15, "usdPerHour": 38.43}


class _Strict(HTMLParser):
    """Reads a page, and holds it to what was opened being closed, and to the few tags that a report needs."""

    TAGS = frozenset(["html", "head", "title", "style", "body", "h1", "h2", "p", "table", "tr", "th", "td", "code"])
    VOID = frozenset({"meta"})

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in self.TAGS | self.VOID, tag
        assert {name for name, _ in attrs} <= {"class", "lang", "charset", "http-equiv", "content", "name"}, attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def page(text: str) -> list[str]:
    """The texts of a page that keeps all that."""
    parser = _Strict()
    parser.feed(text)
    parser.close()
    assert parser.open == []
    return parser.texts


@pytest.mark.parametrize("module", [eks, gke, on_premises])
def test_the_page_is_one_file_that_loads_and_runs_nothing(run: Run, tmp_path: Path, module: Any) -> None:
    """With the same sentences as the text."""
    file = dump(tmp_path, module.objects())
    _, shown, _ = run("--from", file)
    code, out, _ = run("--from", file, "-o", "html")
    texts = " ".join(page(out))
    assert code == 0
    assert out.startswith("<!doctype html>\n")
    assert "default-src &#x27;none&#x27;" in out
    assert not any(word in out for word in ("<script", "src=", "href=", "url(", "@import"))
    for line in shown.splitlines():
        if line.startswith("      -> "):
            assert line.removeprefix("      -> ") in texts


@pytest.mark.parametrize("form", ["text", "json", "html"])
def test_odd_names_break_nothing(run: Run, tmp_path: Path, form: str) -> None:
    """Whatever a dump holds: markup, escapes of a terminal, marks that turn the direction, formulas."""
    labels = {"karpenter.sh/nodepool": HOSTILE, "nvidia.com/mig.config.state": HOSTILE, "nvidia.com/gpu.count": "8"}
    taint = {"key": f"k{HOSTILE}", "value": HOSTILE, "effect": "NoSchedule"}
    objects = [node(HOSTILE, labels, {GPU: 2}, taint), node("plain", {}, {GPU: 2, f"acme.example/gpu{HOSTILE}": 1})]
    objects += [pod(HOSTILE, HOSTILE, {GPU: 1}, nodeSelector={HOSTILE: HOSTILE})]
    objects += [pod("run", HOSTILE, {GPU: 1}, on="plain", owner=("batch/v1", "Job", HOSTILE)), pod("cpu", HOSTILE, {}, on="plain")]
    code, out, err = run("--from", dump(tmp_path, objects), "-o", form)
    assert (code, err) == (0, "")
    assert "\x1b" not in out
    assert "\u202e" not in out
    if form == "html":
        assert "<script" not in out
        page(out)


def test_the_diff_shows_what_would_have_been_written(run: Run, recorded: str) -> None:
    """By workload, and a denial with its advice."""
    code, out, _ = run("--from", recorded, "--diff")
    assert code == 0
    llama = out.partition("PyTorchJob research/llama (2 pods)\n")[2].partition("\n\n")[0].splitlines()
    assert llama[:2] == ["--- PyTorchJob research/llama", "+++ PyTorchJob research/llama (as admitted)"]
    assert {"-  terminationGracePeriodSeconds: 30", "+  terminationGracePeriodSeconds: 1800"} < set(llama)
    assert "+    karpenter.sh/do-not-disrupt: 'true'" in llama
    assert "berth.dev/applied" not in out
    assert "! denied: BERTH-114: " in out


def test_suggestions_are_files_and_none_is_overwritten(run: Run, recorded: str, tmp_path: Path) -> None:
    """Written twice they are the same; a file of another content stops it all."""
    folder = tmp_path / "policies"
    for _ in range(2):
        code, _, err = run("--from", recorded, "--suggest", str(folder))
        assert code == 0
        assert err == (f"berth: wrote 5 policies in Audit to {folder}; to preview them: berth audit --policies {folder}\n")
    files = sorted(file.name for file in folder.iterdir())
    assert files == ["gpu-notebooks.yaml", "gpu-pods.yaml", "gpu-research.yaml", "gpu-runs.yaml", "gpu-web.yaml"]
    mine = folder / "gpu-runs.yaml"
    mine.write_text("mine\n")
    (folder / "gpu-web.yaml").unlink()
    code, out, err = run("--from", recorded, "--suggest", str(folder))
    assert (code, out) == (2, "")
    assert err == f"berth: {mine}: exists with different content; nothing was written; choose another folder, or move the file\n"
    assert (mine.read_text(), (folder / "gpu-web.yaml").exists()) == ("mine\n", False)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--diff", "-o", "json"), "--diff: prints text; remove -o json"),
        (("--kubeconfig", "/none"), "--from: reads files instead of a cluster; remove --kubeconfig and --context"),
        (("--platforms", "eks"), '--platforms: unknown value "eks"; did you mean "aks"?'),
        (("--suggest", "/proc/none/x"), "/proc/none/x: cannot be written"),
    ],
)
def test_what_can_not_be_is_said(run: Run, recorded: str, words: tuple[str, ...], error: str) -> None:
    """With what to type next."""
    code, out, err = run("--from", recorded, *words)
    assert (code, out) == (2, "")
    assert err.startswith(f"berth: {error}")


def test_node_pools_are_scanned_alone(run: Run, tmp_path: Path) -> None:
    """As they stand in a repository, before anything is bought; one of v1beta1 need not say whose node class it names."""
    requirement = {"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["g4", "g5"]}
    spec = {"template": {"spec": {"nodeClassRef": {"name": "gpu"}, "requirements": [requirement]}}}
    pool = {"apiVersion": "karpenter.sh/v1beta1", "kind": "NodePool", "metadata": {"name": "gpu"}, "spec": spec}
    code, out, _ = run("--from", dump(tmp_path, [pool]))
    assert code == 0
    assert "requires g4 in karpenter.k8s.aws/instance-family, but no GPU machine in the catalog matches\n" in out
    assert "NodePools without a limit" in out
    assert "Not read: the dump has no nodes" in out


def test_kinds_that_karpenter_does_not_read_any_more_are_told(run: Run, tmp_path: Path) -> None:
    """Alone in a file they leave nothing to scan; beside other objects the scan goes on."""
    provisioner = {"apiVersion": "karpenter.sh/v1alpha5", "kind": "Provisioner", "metadata": {"name": "gpu"}}
    told = "Karpenter since 0.33 does not read Provisioner.karpenter.sh: replace it with NodePool\n"
    code, _, err = run("--from", dump(tmp_path, [provisioner]))
    assert (code, err.endswith(told)) == (2, True)
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}, "status": {"allocatable": {"cpu": "4"}}}
    code, _, err = run("--from", dump(tmp_path, [provisioner, node]))
    assert (code, err.endswith(told)) == (0, True)


def test_a_dump_of_quotas_alone_is_scanned(run: Run, tmp_path: Path) -> None:
    """An entry that nothing counts for is found without a pod."""
    spec = {"hard": {"limits.nvidia.com/gpu": "4"}}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "n"}, "spec": spec}
    code, out, _ = run("--from", dump(tmp_path, [quota]))
    assert code == 0
    assert "write requests.nvidia.com/gpu instead" in out


def test_a_dump_without_pods_and_nodes_says_how_to_make_one(run: Run, tmp_path: Path) -> None:
    """And one that is not there says so."""
    file = dump(tmp_path, [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}])
    code, _, err = run("--from", file)
    assert code == 2
    assert err == f"berth: {file}: has no Pod, Node or NodePool; dump them: kubectl get nodes,pods -A -o yaml > dump.yaml\n"
    code, _, err = run("--from", f"{file}x")
    assert code == 2
    assert "there is no such file or folder" in err


@pytest.mark.parametrize(
    ("left_out", "line"),
    [
        ("NodePool", "Not read: the dump has no nodepools.karpenter.sh, but nodes with the label karpenter.sh/nodepool; findings on "),
        ("Node", "Not read: the dump has no nodes; findings on pods, nodes, NodePools may be missing"),
        ("Pod", "Not read: the dump has no pods"),
    ],
)
def test_what_was_not_dumped_is_named_and_nothing_is_impossible_for_want_of_it(run: Run, tmp_path: Path, left_out: str, line: str) -> None:
    """As where somebody may not list it."""
    file = dump(tmp_path, [one for one in eks.objects() if one["kind"] != left_out])
    _, out, _ = run("--from", file)
    assert any(shown.startswith(line) for shown in out.splitlines())
    assert "Pods that can never be scheduled" not in out.splitlines()


def test_kinds_of_which_nothing_is_read_are_named_once(run: Run, tmp_path: Path) -> None:
    """With their API group and their number; a List says nothing of itself."""
    others = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}} for name in "ab"]
    others.append({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "c"}})
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu-a"}}
    _, _, err = run("--from", dump(tmp_path, [node, *others]))
    assert err.count("ignored in the files: 2 ConfigMap, 1 StatefulSet.apps\n") == 1


def test_prices_are_ones_own(run: Run, recorded: str, tmp_path: Path) -> None:
    """By instance type or by model."""
    (tmp_path / "prices.yaml").write_text("p4d.24xlarge: 8\ng5.2xlarge: 1\n")
    _, out, _ = run("--from", recorded, "--prices", str(tmp_path / "prices.yaml"))
    assert out.splitlines()[0].startswith("7 GPU nodes with 35 GPUs, 26 used, 35.00 USD per hour; ")


def test_one_namespace_is_looked_at_alone(run: Run, recorded: str) -> None:
    """Its pods; nodes and NodePools are everybody's."""
    _, out, _ = run("--from", recorded, "-n", "web", "-o", "json")
    value = json.loads(out)
    assert (value["gpuPods"], value["waiting"]) == (4, 1)
    assert {one["where"]["namespace"] for one in value["findings"]} == {"web", None}
