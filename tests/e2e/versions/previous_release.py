"""The release before this one, as it was: its files from this repository's history, run by this Python."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

from tests.testcluster.addons.berth import ROOT

BEFORE_ANY = "654f745c9a9a57b3c2ad7619c517fc88a3c72316"
"""A commit of before the first release: the last whose statuses had no condition Ready"""
RELEASES = "v[0-9]*"
"""Tags"""


class NoHistory(Exception):
    """The commit is not in this copy of the repository; the message is one line that says what to type."""


def commit() -> str:
    """The tag of the last release before the commit that is checked out; until there is one, BEFORE_ANY."""
    found = _git("describe", "--tags", "--abbrev=0", f"--match={RELEASES}", "HEAD^")
    return found.stdout.decode().strip() if found.returncode == 0 else BEFORE_ANY


def unpacked(folder: Path) -> Path:
    """The folder with its code, without tests. Raises NoHistory."""
    wanted = commit()
    found = _git("archive", "--format=tar", wanted, "--", ".", ":!tests", ":!bench", ":!docs")
    if found.returncode != 0:
        raise NoHistory(f"the release before, {wanted[:12]}, is not in this copy of the repository: git fetch --unshallow --tags")
    with tarfile.open(fileobj=io.BytesIO(found.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def _git(*words: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, check=False)
    except OSError as error:
        raise NoHistory(f"the release before is taken from the repository's history, and git can't be run: {error}") from None
