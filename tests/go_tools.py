"""Programs in Go that tests run as judges: built once from a module of their own, kept by what they are built from.

The cache is outside the checkout (``$XDG_CACHE_HOME/berth``, else ``~/.cache/berth``), so a second clone builds nothing.
Without Go the tests that need one are skipped, loudly; on a build machine (``CI``) they fail.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "berth" / "go"
BUILD_SECONDS = 1800
"""promtool takes two minutes on two idle cores; build machines are slower and busier"""


def built(module: Path, package: str, name: str, *, tags: str = "") -> Path:
    """The program ``name`` of ``package`` (``.`` is the module's own), built in ``module``, a folder with go.mod and go.sum.

    ``tags``: build tags with commas between, for a package that leaves out what a test does not need.
    """
    go = _go()
    program = CACHE / _digest(module, go, tags) / name
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        beside = program.with_name(f".{name}.{os.getpid()}")
        command = [go, "build", "-mod=readonly", "-trimpath", "-ldflags", "-s -w", "-tags", tags, "-o", str(beside), package]
        done = subprocess.run(command, cwd=module, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False)
        assert done.returncode == 0, f"go build of {package} failed:\n{done.stderr}"
        beside.rename(program)
    return program


def _go() -> str:
    go = shutil.which("go")
    if go is None:
        reason = "there is no Go here, and this test runs a judge that is built with it: install Go 1.26 or later (https://go.dev/dl)"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return go


def _digest(module: Path, go: str, tags: str) -> str:
    """Of the Go version, the tags and every file of the module."""
    version = subprocess.run([go, "env", "GOVERSION"], cwd=module, capture_output=True, check=True).stdout
    digest = hashlib.sha256(version + tags.encode())
    for file in sorted(path for path in module.iterdir() if path.is_file()):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]
