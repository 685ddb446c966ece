"""``make plugin``: ``kubectl berth`` as one file for each platform, in an archive as krew wants it.

The file is a PEX: Berth and all that it needs, for each Python that it may meet. Dependencies are the wheels of ``requirements.txt``, by
their hashes, so that one machine builds for all platforms; two builds are the same bytes.
"""

from __future__ import annotations

import gzip
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from deploy.release import wheel

ROOT = wheel.ROOT
LOCK = ROOT / "requirements.txt"
NAME = "kubectl-berth"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
"""Those for which every dependency has wheels: of 3.15, orjson has none"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """One that Berth's dependencies have wheels for. (Of cryptography there are none for Macs with Intel's processors any more.)"""

    os: str
    arch: str
    """both as Go, and so krew, names them"""
    target: str
    """as pex names it"""
    tags: tuple[str, ...]
    """of its wheels, as pip wants them, which does not take two names of one thing for one"""

    @property
    def archive(self) -> str:
        return f"{NAME}-{self.os}-{self.arch}.tar.gz"


PLATFORMS = (
    Platform(os="linux", arch="amd64", target="linux_x86_64", tags=("manylinux_2_17_x86_64", "manylinux2014_x86_64")),
    Platform(os="linux", arch="arm64", target="linux_aarch64", tags=("manylinux_2_17_aarch64", "manylinux2014_aarch64")),
    Platform(os="darwin", arch="arm64", target="macosx_11_0_arm64", tags=("macosx_11_0_arm64",)),
)


def build(folder: Path, platform: Platform, pythons: Sequence[str] = PYTHONS) -> Path:
    """Build the archive of one platform into ``folder``, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        own, wheels = Path(work, "own"), Path(work, "wheels")
        with zipfile.ZipFile(wheel.build(Path(work))) as built:
            built.extractall(own, [name for name in built.namelist() if ".data/" not in name])  # of the one file the manual page is no part
        for python in pythons:
            _download(wheels, platform, python)
        file = _file(Path(work, NAME), own, wheels, _targets(platform, pythons))
        return _archive(folder / platform.archive, file)


def _targets(platform: Platform, pythons: Sequence[str]) -> list[str]:
    return [f"{platform.target}-cp-{digits}-cp{digits}" for digits in (python.replace(".", "") for python in pythons)]


def _download(folder: Path, platform: Platform, python: str) -> None:
    tags = [word for tag in platform.tags for word in ("--platform", tag)]
    target = ["--only-binary", ":all:", "--implementation", "cp", "--python-version", python, *tags]
    _run("pip", "download", "--quiet", "--require-hashes", "--no-deps", *target, "--dest", folder, "--requirement", LOCK)


def _file(file: Path, own: Path, wheels: Path, targets: Sequence[str]) -> Path:
    """Make the PEX, which unpacks itself on its first run; its Python is the first on the PATH that it was made for."""
    platforms = [word for target in targets for word in ("--platform", target)]
    runs = ["--entry-point", "cli.main:plugin", "--python-shebang", "#!/usr/bin/env python3", "--venv"]
    holds = ["--sources-directory", str(own), "--pre-resolved-dists", str(wheels), "--requirement", str(LOCK)]
    _run("pex", "--no-emit-warnings", *holds, *platforms, *runs, "--output-file", str(file))
    return file


def _run(module: str, *words: str | Path) -> None:
    subprocess.run([sys.executable, "-m", module, *map(str, words)], check=True)


def _archive(archive: Path, file: Path) -> Path:
    """Pack the file with the licence, as krew's index asks for it, under nobody's name and at no time."""
    with gzip.GzipFile(archive, "wb", mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
        for path, mode in ((file, 0o755), (ROOT / "LICENSE", 0o644)):
            entry = tarfile.TarInfo(path.name)
            entry.size, entry.mode = path.stat().st_size, mode
            with path.open("rb") as content:
                tar.addfile(entry, content)
    return archive


if __name__ == "__main__":
    for one in PLATFORMS:
        print(build(Path(sys.argv[1]), one))
