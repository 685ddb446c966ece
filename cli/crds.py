"""`berth crds`: the three CustomResourceDefinitions as YAML; nothing is sent anywhere."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from cli.output import yaml_writer
from policies.objects.crd import NAMES, crd
from policies.objects.definition import KINDS
from policies.objects.field_types import Kind
from policies.policy import GROUP

FOLDER = Path(__file__).parent.parent / "deploy" / "crds"
HEAD = """\
# Berth's kinds of object. Made by `berth crds` from the definition of the policies (policies/objects/definition/), not by hand.
# kubectl apply -f FILE adds or updates them; deleting one deletes every object of its kind.
"""


def add_parser(subparsers: Any) -> None:
    """Add ``crds`` to the command's subparsers."""
    subparsers.add_parser(
        "crds",
        help="Berth's kinds of object for a cluster, as YAML",
        description="Print the CustomResourceDefinitions of Berth's three kinds, for: berth crds | kubectl apply -f -",
        examples=(
            ("Install or update Berth's kinds", "%(prog)s | kubectl apply --server-side -f -"),
            ("What a change of them would do", "%(prog)s | kubectl diff -f -"),
        ),
    )


def run(args: argparse.Namespace) -> int:
    """Print all three definitions."""
    print(HEAD + "".join(f"---\n{yaml_writer.text(crd(kind))}" for kind in KINDS), end="")
    return 0


def files() -> dict[str, str]:
    """Return name -> text of each file of deploy/crds/."""
    return {f"{GROUP}_{NAMES[kind].plural}.yaml": _file(kind) for kind in KINDS}


def _file(kind: Kind) -> str:
    return f"{HEAD}---\n{yaml_writer.text(crd(kind))}"
