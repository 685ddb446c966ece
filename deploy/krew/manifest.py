"""``make plugin REPOSITORY=OWNER/NAME``: krew's manifest, with the version, the addresses and the hashes of the archives of a release."""

from __future__ import annotations

import argparse
import hashlib
import textwrap
from pathlib import Path
from string import Template
from typing import Any

import yaml

from cli import VERSION
from deploy.krew.plugin import NAME, PLATFORMS, Platform

TEMPLATE = Path(__file__).with_name("berth.yaml")


def text(archives: Path, repository: str) -> str:
    """Return the manifest for the archives in this folder, as they will be downloaded from the release of the GitHub repository."""
    head = Template(TEMPLATE.read_text(encoding="utf-8").partition("\n")[2]).substitute(version=VERSION, repository=repository)
    platforms = [_platform(one, archives / one.archive, repository) for one in PLATFORMS]
    return head + textwrap.indent(yaml.safe_dump(platforms, sort_keys=False), "  ")


def _platform(platform: Platform, archive: Path, repository: str) -> dict[str, Any]:
    return {
        "selector": {"matchLabels": {"os": platform.os, "arch": platform.arch}},
        "uri": f"https://github.com/{repository}/releases/download/v{VERSION}/{archive.name}",
        "sha256": hashlib.sha256(archive.read_bytes()).hexdigest(),
        "bin": NAME,
    }


def main() -> None:
    """Write it beside the archives."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("archives", type=Path)
    parser.add_argument("--repository", metavar="OWNER/NAME", required=True)
    args = parser.parse_args()
    written: Path = args.archives / TEMPLATE.name
    written.write_text(text(args.archives, args.repository), encoding="utf-8")
    print(written)


if __name__ == "__main__":
    main()
