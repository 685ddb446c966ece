"""Berth as its users have it: the wheel in an environment of its own, used by somebody who may not write there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

import pytest

from tests.testcluster.calls import PATIENCE

ROOT = Path(__file__).parents[3]
AS_NOBODY = ("--user", "--map-user=65534", "--map-group=65534")
"""Options of unshare: nobody in a user namespace. No capability is left, so the rights of files hold, for root too"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """An environment with the wheel in it."""

    folder: Path
    prefix: tuple[str, ...]
    """goes before each command"""
    elsewhere: Path
    """a folder that has nothing to do with it, in which commands run"""

    @property
    def programs(self) -> Path:
        return self.folder / "bin"

    def run(self, program: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Runs one of its programs to its end."""
        command = [*self.prefix, str(self.programs / program), *words]
        environ = {**os.environ, "HOME": str(self.elsewhere), **environment}
        return subprocess.run(command, cwd=self.elsewhere, env=environ, capture_output=True, text=True, timeout=PATIENCE, check=False)

    def listing(self) -> dict[Path, int]:
        """Every file with the time of its last change."""
        return {path: path.stat().st_mtime_ns for path in self.folder.rglob("*")}


def install(wheel: Path, folder: Path, elsewhere: Path) -> Installed:
    """The wheel alone is installed; of the packages of these tests it has those that ``requirements.txt`` names, by links."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, str(wheel)], check=True)
    (packages,) = folder.glob("lib/python3.*/site-packages")
    for name in re.findall(r"^([\w.-]+)==", (ROOT / "requirements.txt").read_text(), re.MULTILINE):
        package = distribution(name)
        for top in {file.parts[0] for file in package.files or ()} - {".."}:
            if not (packages / top).exists():
                (packages / top).symlink_to(Path(str(package.locate_file(top))))
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & ~0o222)
    return Installed(folder=folder, prefix=_as_nobody(), elsewhere=elsewhere)


def _as_nobody() -> tuple[str, ...]:
    """How a command runs for whom the rights of files hold; skips where root can't give that up."""
    if os.getuid() != 0:
        return ()
    unshare = shutil.which("unshare")
    if unshare and subprocess.run([unshare, *AS_NOBODY, "true"], capture_output=True, check=False).returncode == 0:
        return (unshare, *AS_NOBODY)
    pytest.skip("root may write everywhere, and user namespaces are not to be had here: run these tests as another user")
