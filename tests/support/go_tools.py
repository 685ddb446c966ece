"""Programs in Go that tests run as judges; how they are built and kept: ``tests.testcluster.go_build``.

Without Go the tests that need one are skipped, loudly; on a build machine (``CI``) they fail.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.testcluster import go_build


def built(module: Path, package: str, name: str, *, tags: str = "") -> Path:
    """The program ``name`` of ``package`` (``.`` is the module's own), built in ``module``, a folder with go.mod and go.sum.

    ``tags``: build tags with commas between, for a package that leaves out what a test does not need.
    """
    try:
        return go_build.built(module, package, name, tags=tags)
    except go_build.NoGo as error:
        reason = f"this test runs a judge that is built with Go. {error}"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
