"""``make wheel``: the wheel of this tree, the same bytes each time.

It is built in a folder of its own, of the folders that pyproject.toml names, by the setuptools of ``requirements.txt``: what an older
build left in the tree, a file's own time and rights, and who builds it leave no trace.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EPOCH = "315532800"
"""1980-01-01, the first time that a zip file can hold, as SOURCE_DATE_EPOCH: https://reproducible-builds.org/specs/source-date-epoch/"""
OF_PROJECT = ("pyproject.toml", "README.md", "LICENSE", "docs/berth.1")


def build(folder: Path) -> Path:
    """Build the wheel into ``folder``, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        source, made = Path(work, "source"), Path(work, "made")
        _copy(source)
        how = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", str(made)]
        command = [sys.executable, "-m", "pip", "wheel", *how, str(source)]
        subprocess.run(command, env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH}, umask=0o022, check=True)
        (wheel,) = made.iterdir()
        return Path(shutil.copy(wheel, folder))


def packages() -> set[str]:
    """Return the top folders of the packages."""
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["packages"]["find"]
    return {pattern.removesuffix("*") for pattern in listed["include"]}


def _copy(target: Path) -> None:
    target.mkdir()
    for name in OF_PROJECT:
        (target / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(ROOT / name, target / name)
    for name in packages():
        shutil.copytree(ROOT / name, target / name, copy_function=shutil.copyfile, ignore=shutil.ignore_patterns("__pycache__"))
    for path in target.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)


if __name__ == "__main__":
    print(build(Path(sys.argv[1])))
