"""Programs built from sources that no registry serves: archives in a folder ``thirdparty`` beside the checkout's own parent.

An archive has the sources of one release, mostly with their dependencies (``vendor/``). Where it is not there, the tests that need it
skip and say so; ``BERTH_THIRDPARTY`` names another folder. What is built, and what of the sources tests read, is kept in the cache.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.testcluster import go_build
from tests.testcluster.go_build import Progress

FOLDER = "BERTH_THIRDPARTY"
"""Names a folder of archives."""
BESIDE = Path(__file__).resolve().parents[2].parent / "shared" / "thirdparty"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The sources of one release."""

    archive: str
    version: str
    programs: tuple[str, ...]
    """Names, each of the package ``./cmd/NAME``."""
    kept: tuple[str, ...] = ()
    """Folders that tests read."""
    vendored: bool = True
    """False: the module proxy has its dependencies."""


KUEUE = Sources(archive="kueue-0.19.2.tar.xz", version="v0.19.2", programs=("kueue",), kept=("config/components",))
KAI = Sources(
    archive="kai-scheduler-0.17.0.tar.xz",
    version="v0.17.0",
    programs=("scheduler", "podgrouper", "binder", "admission"),
    kept=("deployments/kai-scheduler/crds", "deployments/kai-scheduler/templates/priorityclasses"),
)
EXAMPLE_DRIVER = Sources(
    archive="dra-example-driver-0.4.0.tar.xz", version="v0.4.0", programs=("dra-example-kubeletplugin",), vendored=False
)
ALL = (KUEUE, KAI, EXAMPLE_DRIVER)


def missing(sources: Sources) -> str:
    """Why it can't be built here; "" if it can."""
    return "" if _archive(sources).is_file() else f"there is no {sources.archive} in {_folder()}; {FOLDER} names another folder"


def files(sources: Sources, folder: str) -> Path:
    """One of the folders ``kept``, as its authors publish it. Raises BuildFailed."""
    return _unpacked(sources) / folder


def program(sources: Sources, name: str, progress: Progress | None = None) -> Path:
    """The program, built first where it has to be. Raises NoGo and BuildFailed."""
    made = _home(sources) / name
    if made.exists():
        return made
    with go_build.alone(made, progress):
        if not made.exists():
            source = _home(sources) / f".source.{os.getpid()}"
            try:
                _extract(sources, source)
                mod = "vendor" if sources.vendored else "readonly"
                go_build.build(made, source, f"./cmd/{name}", "", "", progress or (lambda _: None), mod=mod)
            finally:
                shutil.rmtree(source, ignore_errors=True)
    return made


def build_all(progress: Progress) -> None:
    """Build every program of the archives that are there. Raises NoGo and BuildFailed."""
    for sources in ALL:
        if reason := missing(sources):
            progress(f"not built: {reason}")
            continue
        for name in sources.programs:
            if not (_home(sources) / name).exists():
                program(sources, name, lambda text, name=name: progress(f"{name}: {text}"))  # type: ignore[misc]


def _unpacked(sources: Sources) -> Path:
    made = _home(sources) / "files"
    if made.exists():
        return made
    with go_build.alone(made):
        if not made.exists():
            beside = made.with_name(f".files.{os.getpid()}")
            _extract(sources, beside, sources.kept)
            beside.rename(made)
    return made


def _extract(sources: Sources, folder: Path, only: tuple[str, ...] = ()) -> None:
    with tarfile.open(_archive(sources)) as archive:
        members = [m for m in archive if not only or m.name.removeprefix("./").startswith(tuple(f"{name}/" for name in only))]
        archive.extractall(folder, members, filter="data")


def _home(sources: Sources) -> Path:
    return go_build.CACHE / "thirdparty" / _digest(_archive(sources))


@cache
def _digest(archive: Path) -> str:
    return hashlib.sha256(archive.read_bytes()).hexdigest()[:16]


def _archive(sources: Sources) -> Path:
    return _folder() / sources.archive


def _folder() -> Path:
    return Path(os.environ.get(FOLDER) or BESIDE)
