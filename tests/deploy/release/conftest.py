"""The wheel of this tree, and an environment that it is installed in."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploy.release import wheel
from tests.deploy.release.installed_wheel import Installed, install


@pytest.fixture(scope="package")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As ``make wheel`` builds it."""
    return wheel.build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="package")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """For all tests of this folder: they may not write to it."""
    return install(built, tmp_path_factory.mktemp("environment") / "venv", tmp_path_factory.mktemp("elsewhere"))
