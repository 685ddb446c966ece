"""buildah in a folder of its own: nothing of the machine's images is read or changed.

Of several processes one builds at a time. What a killed one left there, mounts included, is taken away by the next.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.testcluster import go_build
from tests.testcluster.go_build import BuildFailed, Progress

CACHE = go_build.CACHE / "images"
BUILD_SECONDS = 1200
"""a base of Debian packages and an image take two minutes where packages come fast"""
PACKAGES = "buildah mmdebstrap runc gcc libc6-dev"
"""of Debian and Ubuntu"""
PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
"""mmdebstrap calls chroot and others, which an ordinary user's PATH lacks"""


class NoImage(Exception):
    """No image can be built here; the message is one sentence that says what to do."""


def needs(*programs: str) -> None:
    """Raises NoImage where one is missing, or this is not root."""
    missing = [program for program in programs if shutil.which(program, path=PATH) is None]
    if missing:
        raise NoImage(f"no image is built without {' and '.join(missing)}: apt-get install {PACKAGES}")
    if os.geteuid() != 0:
        raise NoImage("images of the tests are built and run by root alone, and this is another user: run the tests as root")


@go_build.charged()
def run(*command: str | Path, folder: Path | None = None) -> str:
    """What it printed. Raises BuildFailed with the end of what it complained of."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words, cwd=folder, env={**os.environ, "PATH": PATH}, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise BuildFailed(f"{words[0]} was not done after {BUILD_SECONDS} s") from None
    if done.returncode != 0:
        raise BuildFailed(f"{words[0]} failed:\n{(done.stdout + done.stderr)[-4000:]}")
    return done.stdout


@dataclass(frozen=True, slots=True)
class Store:
    """A folder of images and layers."""

    folder: Path

    def buildah(self, command: str, *arguments: str | Path) -> str:
        where = ("--root", self.folder / "root", "--runroot", self.folder / "run")
        return run("buildah", "--storage-driver", "overlay", *where, command, *arguments)

    def take(self, archive: Path, name: str) -> None:
        """A root file system in a tar file as the image ``name``, the same each time."""
        container = self.buildah("from", "scratch").strip()
        self.buildah("add", "--quiet", container, archive, "/")
        self.buildah("commit", "--quiet", "--timestamp", "0", "--rm", container, name)

    def export(self, name: str, archive: Path) -> None:
        """As an OCI archive, which appears whole."""
        beside = archive.with_name(f".{archive.name}.{os.getpid()}")
        try:
            self.buildah("push", "--quiet", name, f"oci-archive:{beside}:{name}")
            beside.rename(archive)
        finally:
            beside.unlink(missing_ok=True)


@contextmanager
def empty(progress: Progress | None = None) -> Iterator[Store]:
    """A store without anything in it, nobody else's, gone afterwards. ``progress`` is told whom it waits for."""
    folder = CACHE / "store"
    with go_build.alone(folder, progress):
        _clear(folder)
        folder.mkdir()
        try:
            yield Store(folder)
        finally:
            _clear(folder)


def _clear(folder: Path) -> None:
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for mount in sorted((mount for mount in mounts if mount.startswith(f"{folder}/")), reverse=True):
        run("umount", mount)
    shutil.rmtree(folder, ignore_errors=True)
