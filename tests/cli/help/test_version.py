"""``berth version``: what a report of a mistake needs, and each fact of it true."""

from __future__ import annotations

import hashlib
import json
import platform
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from cli import KUBERNETES, VERSION
from cli.help import version
from cli.main import main
from documents.files import SHIPPED_CATALOG

ROOT = Path(__file__).parents[3]


def test_a_program_reads_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Version, Python, catalog, kinds and Kubernetes, as JSON."""
    assert main(["version", "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["version"], found["python"]) == (VERSION, platform.python_version())
    assert found["catalog"]["sha256"] == hashlib.sha256(SHIPPED_CATALOG.read_bytes()).hexdigest()
    assert found["kinds"]["GPUPolicy"] == yaml.safe_load((ROOT / "docs/examples/checkpoints.yaml").read_text())["apiVersion"]
    assert found["kubernetes"] == {"oldest": "1.30", "newest": "1.37"}


def test_a_person_reads_it(capsys: pytest.CaptureFixture[str]) -> None:
    """The version first, then a line for each fact."""
    assert main(["version"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"berth {VERSION}"
    assert {line.split()[0] for line in lines[1:]} == {"commit", "Python", "platform", "catalog", "prices", "kinds", "Kubernetes"}


def test_the_commit_of_a_checkout_is_told() -> None:
    """The one that git says; where there is no checkout, there may be none."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is no checkout: there is no commit to compare with")
    asked = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert version.commit() == asked.stdout.strip()


def test_the_commit_that_an_installer_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``pip install git+https://...`` writes it beside the package; without that record it is unknown."""
    folder = tmp_path / "gpu_berth-0.1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Name: gpu-berth\nVersion: 0.1.0\n")
    monkeypatch.setattr(version, "_CHECKOUT", tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert version.commit() is None
    (folder / "direct_url.json").write_text(json.dumps({"url": "https://h/r.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}}))
    assert version.commit() == "abc"


def test_the_versions_of_kubernetes_are_those_of_the_readme_and_the_chart() -> None:
    """The newest that was tried, and the oldest that the chart takes."""
    tried = re.findall(r"^\| (1\.\d+)", (ROOT / "README.md").read_text(), re.MULTILINE)
    chart = yaml.safe_load((ROOT / "deploy/chart/Chart.yaml").read_text())
    assert (tried[-1], tried[0]) == KUBERNETES
    assert chart["kubeVersion"] == f">={KUBERNETES[0]}.0-0"
