"""`berth crds` prints the kinds of object that a cluster needs."""

from __future__ import annotations

import pytest
import yaml

from cli import crds
from cli.parser import Parser
from policies.objects.crd import crd
from policies.objects.definition import KINDS


def test_all_three_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """Read back, the YAML is the three objects, under a head that says how to apply it."""
    parser = Parser(prog="berth")
    crds.add_parser(parser.add_subparsers(dest="command"))
    assert crds.run(parser.parse_args(["crds"])) == 0
    out = capsys.readouterr().out
    assert list(yaml.safe_load_all(out)) == [crd(kind) for kind in KINDS]
    assert "kubectl apply -f" in out.partition("---")[0]
