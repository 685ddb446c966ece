"""The release before this one, as it was: its files from this repository's history, run by this Python."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

from tests.testcluster.addons.berth import ROOT

INSTALLABLE = "deploy/chart/Chart.yaml"
"""Until there is a release, the one before is the first commit that could be installed: the one that brought this file."""
RELEASES = "v[0-9]*"
"""Tags"""


class NoHistory(Exception):
    """The commit is not in this copy of the repository; the message is one line that says what to type."""


def commit() -> str:
    """The tag of the last release before the commit that is checked out; until there is one, see INSTALLABLE. Raises NoHistory."""
    tag = _git("describe", "--tags", "--abbrev=0", f"--match={RELEASES}", "HEAD^")
    if tag.returncode == 0:
        return tag.stdout.decode().strip()
    brought = _git("log", "--diff-filter=A", "--format=%H", "--", INSTALLABLE).stdout.decode().split()
    if not brought or _git("rev-parse", "--is-shallow-repository").stdout.decode().strip() == "true":
        raise NoHistory("the release before is not in this copy of the repository: git fetch --unshallow --tags")
    return brought[-1]


def unpacked(folder: Path) -> Path:
    """The folder with its code, without tests. Raises NoHistory."""
    found = _git("archive", "--format=tar", commit(), "--", ".", ":!tests", ":!bench", ":!docs")
    if found.returncode != 0:
        raise NoHistory(f"the release before can't be read: {found.stderr.decode(errors='replace').strip()}")
    with tarfile.open(fileobj=io.BytesIO(found.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def _git(*words: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, check=False)
    except OSError as error:
        raise NoHistory(f"the release before is taken from the repository's history, and git can't be run: {error}") from None
