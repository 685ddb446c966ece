"""`berth crds` prints the kinds of object that a cluster needs; deploy/crds/ holds them as they are."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from cli import crds
from cli.parser import Parser
from policies.objects.crd import crd
from policies.objects.definition import KINDS


def test_the_checked_in_files_are_those_of_the_definition() -> None:
    """deploy/crds/ is what the definition says, to the byte, and nothing else."""
    found = {file.name: file.read_text(encoding="utf-8") for file in crds.FOLDER.iterdir()}
    assert found == crds.files(), "the definition changed; run: make crds"


def test_all_three_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """Read back, the YAML is the three objects, under a head that says how to apply it."""
    parser = Parser(prog="berth")
    crds.add_parser(parser.add_subparsers(dest="command"))
    assert crds.run(parser.parse_args(["crds"])) == 0
    out = capsys.readouterr().out
    assert list(yaml.safe_load_all(out)) == [crd(kind) for kind in KINDS]
    assert "kubectl apply -f" in out.partition("---")[0]


def test_writing_them_leaves_nothing_else(tmp_path: Path) -> None:
    """The file of a kind that is no more goes; another's file stays."""
    folder = tmp_path / "crds"
    crds.main(folder)
    (folder / "berth.dev_gone.yaml").write_text("x")
    (folder / "README.md").write_text("x")
    (folder / "berth.dev_gpupolicies.yaml").write_text("x")
    crds.main(folder)
    assert {file.name for file in folder.iterdir()} == {*crds.files(), "README.md"}
    assert (folder / "berth.dev_gpupolicies.yaml").read_text() == crds.files()["berth.dev_gpupolicies.yaml"]
