"""Programs in Go: built once from a module of their own, kept by what they are built from.

The cache is outside the checkout (``$XDG_CACHE_HOME/berth``, else ``~/.cache/berth``), so a second clone builds nothing.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "berth"
BUILD_SECONDS = 1800
"""promtool takes two minutes on two idle cores; build machines are slower and busier"""


class NoGo(Exception):
    """There is no Go here."""


class BuildFailed(Exception):
    """The message is what the compiler said."""


def built(module: Path, package: str, name: str, *, tags: str = "") -> Path:
    """The program ``name`` of ``package`` (``.`` is the module's own), built in ``module``, a folder with go.mod and go.sum.

    ``tags``: build tags with commas between. Raises NoGo and BuildFailed.
    """
    program = kept(module, name, tags=tags)
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        beside = program.with_name(f".{name}.{os.getpid()}")
        command = [_go(), "build", "-mod=readonly", "-trimpath", "-ldflags", "-s -w", "-tags", tags, "-o", str(beside), package]
        done = subprocess.run(command, cwd=module, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False)
        if done.returncode != 0:
            raise BuildFailed(f"go build of {package} failed:\n{done.stderr}")
        beside.rename(program)
    return program


def kept(module: Path, name: str, *, tags: str = "") -> Path:
    """Where the program is, or would be. Raises NoGo."""
    return CACHE / "go" / _digest(module, _go(), tags) / name


def _go() -> str:
    go = shutil.which("go")
    if go is None:
        raise NoGo("there is no Go here: install Go 1.26 or later (https://go.dev/dl)")
    return go


def _digest(module: Path, go: str, tags: str) -> str:
    """Of the Go version, the tags and every file of the module."""
    version = subprocess.run([go, "env", "GOVERSION"], cwd=module, capture_output=True, check=True).stdout
    digest = hashlib.sha256(version + tags.encode())
    for file in sorted(path for path in module.rglob("*") if path.is_file()):
        digest.update(str(file.relative_to(module)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]
