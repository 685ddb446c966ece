"""`berth version`: what a report of a mistake needs: the version, what it was built of, where it runs, and what it knows."""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from cli import KUBERNETES, VERSION
from documents.files import SHIPPED_CATALOG, read_catalog
from documents.printable import json_text, printable
from policies.objects.definition import KINDS
from policies.policy import API_VERSION

_PACKAGE = "gpu-berth"
_CHECKOUT = Path(__file__).parents[2]


def add_parser(subcommands: Any) -> None:
    """Add `version` to the command's subparsers."""
    parser: argparse.ArgumentParser = subcommands.add_parser(
        "version",
        help="show the versions of Berth, its catalog and its APIs",
        description="Show the versions of Berth and Python, the commit if known, the platform, the GPU catalog, the versions of "
        "Berth's custom resources, and the supported versions of Kubernetes. No cluster is read.",
        examples=(("Print what a bug report needs", "%(prog)s"), ("As JSON", "%(prog)s -o json")),
    )
    parser.add_argument("--output", "-o", choices=("text", "json"), default="text", help="output format; default: text")


def run(args: argparse.Namespace) -> int:
    """Print it."""
    found = version_value()
    print(json_text(found) if args.output == "json" else "\n".join(printable(line) for line in _lines(found)))
    return 0


def version_value() -> dict[str, Any]:
    """Return what is known, as a value for JSON; ``commit`` is None where nothing tells it."""
    catalog = read_catalog([])
    return {
        "version": VERSION,
        "commit": commit(),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "executable": sys.executable,
        "catalog": {
            "sha256": hashlib.sha256(SHIPPED_CATALOG.read_bytes()).hexdigest(),
            "gpus": len(catalog.gpus),
            "prices": dict(catalog.prices),
        },
        "kinds": dict.fromkeys(KINDS, API_VERSION),
        "kubernetes": {"oldest": KUBERNETES[0], "newest": KUBERNETES[1]},
    }


def _lines(found: dict[str, Any]) -> list[str]:
    catalog, kubernetes = found["catalog"], found["kubernetes"]
    rows = {
        "commit": found["commit"] or "unknown",
        "Python": f"{found['python']}, {found['executable']}",
        "platform": found["platform"],
        "catalog": f"{catalog['gpus']} GPU models, sha256 {catalog['sha256'][:12]}",
        "prices": "; ".join(catalog["prices"].values()) or "none",
        "kinds": ", ".join(f"{kind} {version}" for kind, version in found["kinds"].items()),
        "Kubernetes": f"{kubernetes['oldest']} to {kubernetes['newest']}",
    }
    return [f"berth {found['version']}", *(f"{name:<12}{text}" for name, text in rows.items())]


def commit() -> str | None:
    """Return the commit that this is: that of a checkout, or the one that an installer recorded
    (https://packaging.python.org/en/latest/specifications/direct-url/)."""
    if (_CHECKOUT / ".git").exists():
        return _of_checkout()
    try:
        recorded = json.loads(metadata.distribution(_PACKAGE).read_text("direct_url.json") or "{}")
    except (metadata.PackageNotFoundError, ValueError):
        return None
    found = recorded.get("vcs_info", {}).get("commit_id")
    return found if isinstance(found, str) else None


def _of_checkout() -> str | None:
    try:
        asked = subprocess.run(["git", "-C", _CHECKOUT, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    except OSError:  # there is no git
        return None
    return asked.stdout.strip() or None
