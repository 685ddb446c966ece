"""`kubectl berth`: found by the real kubectl by its name, with kubectl's own settings, and speaking under that name."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from tests.deploy.release.installed_wheel import Installed
from tests.testcluster import programs
from tests.testcluster.addons import installed as addons
from tests.testcluster.calls import PATIENCE
from tests.testcluster.controlplane.cluster import Cluster, Options
from tests.testcluster.fixtures import control_plane

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
Typed = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """With the kinds, and policies in namespace research."""
    with control_plane(request.session, Options(kubelets=False)) as started:
        addons.install(started)
        for name in ("namespaces.yaml", "platform.yaml", "research.yaml"):
            for value in yaml.safe_load_all((EXAMPLES / "guardrails" / name).read_text()):
                assert started.api.apply(value).ok
        yield started


@pytest.fixture
def typed(installed: Installed, cluster: Cluster) -> Typed:
    """Types `kubectl ...` where both are on the PATH, and nothing but KUBECONFIG tells of the cluster."""
    kubectl = str(programs.path("kubectl"))
    path = f"{installed.programs}{os.pathsep}{os.environ['PATH']}"
    environ = {**os.environ, "PATH": path, "HOME": str(installed.elsewhere), "KUBECONFIG": str(cluster.kubeconfig)}

    def run(*words: str, **changed: str) -> subprocess.CompletedProcess[str]:
        command = [*installed.prefix, kubectl, *words]
        return subprocess.run(
            command, cwd=installed.elsewhere, env={**environ, **changed}, capture_output=True, text=True, timeout=PATIENCE, check=False
        )

    return run


def test_kubectl_lists_it(typed: Typed, installed: Installed) -> None:
    """Without a warning that it is overshadowed or not executable."""
    done = typed("plugin", "list", PATH=str(installed.programs))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == str(installed.programs / "kubectl-berth")
    assert done.stderr == ""


def test_it_tries_a_manifest(typed: Typed, installed: Installed) -> None:
    """With its exit code: 0, and 1 for a pod that is denied."""
    shutil.copy(EXAMPLES / "train.yaml", installed.elsewhere / "train.yaml")
    done = typed("berth", "try", "train.yaml")
    assert (done.returncode, yaml.safe_load(done.stdout)["kind"]) == (0, "Job")
    assert done.stderr.splitlines()[0] == "kubectl berth: assuming --platforms karpenter-aws"
    shutil.copy(EXAMPLES.parents[1] / "tests" / "reviews" / "pods-create-mismatch.json", installed.elsewhere / "mismatch.json")
    assert typed("berth", "try", "mismatch.json").returncode == 1


def test_it_reads_the_cluster_that_kubectl_would(typed: Typed, cluster: Cluster, tmp_path: Path) -> None:
    """By KUBECONFIG, also of several files, and with the namespace of the context."""
    done = typed("berth", "effective", "-n", "research")
    assert done.returncode == 0, done.stderr
    assert "research" in done.stdout
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["contexts"][0]["context"]["namespace"] = "research"
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    several = f"{tmp_path / 'nowhere'}{os.pathsep}{tmp_path / 'config'}"
    assert typed("berth", "effective", KUBECONFIG=several).stdout == done.stdout


def test_it_speaks_under_that_name(typed: Typed) -> None:
    """Usage, and each line of bad input."""
    assert typed("berth", "--help").stdout.startswith("usage: kubectl berth ")
    assert typed("berth", "gpus", "--nope").stderr.startswith('kubectl berth: gpus: unknown option "--nope"; see kubectl berth gpus --help')
    assert typed("berth", "try").stderr.splitlines()[1].startswith("usage: kubectl berth try ")
    assert typed("berth", "try", "nowhere.yaml").stderr.splitlines()[-1] == "kubectl berth: nowhere.yaml: there is no such file or folder"
    assert typed("berth", "effective", "-n", "reserach").stderr.startswith('kubectl berth: cluster: there is no namespace "reserach"')


def test_berth_speaks_under_its_own(installed: Installed) -> None:
    """The other program of the same wheel."""
    assert installed.run("berth", "--help").stdout.startswith("usage: berth ")
    assert installed.run("berth", "try", "nowhere.yaml").stderr.splitlines()[-1].startswith("berth: nowhere.yaml: ")


def test_kubectl_completes_it(typed: Typed) -> None:
    """As kubectl's completion asks it: commands, options with what they are, choices; and for files what the shell itself knows."""
    assert typed("__complete", "berth", "tr").stdout.splitlines() == [
        "try\tshow how policies change manifests, or why they deny them",
        ":4",
    ]
    assert typed("__complete", "berth", "try", "--ou").stdout.startswith("--output\t")
    assert typed("__complete", "berth", "audit", "-o", "").stdout.splitlines() == ["table", "json", "csv", "html", ":4"]
    assert typed("__complete", "berth", "try", "").stdout.splitlines() == [":0"]
