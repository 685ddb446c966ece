"""Try manifests that others wrote (``berth try``), and write each one's address and outcome, never its text.

    python -m bench.manifests FOLDER [--platforms P,...] > bench/PUBLIC_MANIFESTS.md

``FOLDER`` has sub-folders of files ``NNN.yaml`` with an ``index.tsv``: number, repository, path.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from cli import main as berth
from tests.support import results_page
from tests.testcluster.addons.berth import LIBRARY


class TriedManifest(NamedTuple):
    """One file and its outcome."""

    repository: str
    path: str
    outcome: str
    warnings: tuple[str, ...]


def tried(folder: Path, platforms: str) -> Iterator[TriedManifest]:
    """Try every file of every index under ``folder``, in order. What ends ``berth try`` with a traceback ends this too."""
    for index in sorted(folder.glob("*/index.tsv")):
        for line in index.read_text().splitlines():
            number, repository, path = line.split("\t")[:3]
            words = ["try", "--policies", str(LIBRARY), "--platforms", platforms, "--namespace", "team", "--output", "yaml"]
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as errors:
                code = berth.main([*words, str(index.parent / f"{number}.yaml")])
            denied, warned = (sorted(set(re.findall(p, errors.getvalue()))) for p in (r"BERTH-1\d\d", r"warning: (BERTH-2\d\d)"))
            yield TriedManifest(repository, path, {0: "admitted", 1: f"denied: {', '.join(denied)}", 2: "bad input"}[code], tuple(warned))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.manifests", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--platforms", default="karpenter-aws")
    given = parser.parse_args()
    manifests = list(tried(given.folder, given.platforms))
    print(
        f"# Public manifests\n\n`berth try` with the shipped policies and `--platforms {given.platforms}` over {len(manifests)} files that"
    )
    print("others wrote. Where an index names a file by its number alone, its repository is unknown.\n")
    warnings = Counter(warning for manifest in manifests for warning in manifest.warnings)
    for name, counts in (("outcome", Counter(manifest.outcome for manifest in manifests)), ("warning", warnings)):
        print(*results_page.table((name, "files"), [(value, str(number)) for value, number in counts.most_common()]), "", sep="\n")
    rows = [(manifest.repository, manifest.path, manifest.outcome, " ".join(manifest.warnings)) for manifest in manifests]
    print(*results_page.table(("repository", "file", "outcome", "warnings"), rows), sep="\n")
