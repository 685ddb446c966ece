"""The image, built where the machine allows it, and unpacked; elsewhere these tests are skipped, and the run's summary says so."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from deploy.image.archive import Image, unpack
from tests.testcluster.fixtures import MISSED
from tests.testcluster.images import archives
from tests.testcluster.images.containers import Root
from tests.testcluster.images.store import NoImage, needs

ROOT = Path(__file__).parents[2]
TOOL = Path(sys.prefix) / "sbom" / "bin" / "python"
"""make installs it, see Makefile"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """Berth's image."""

    archive: Path
    image: Image
    root: Root


@pytest.fixture(scope="session")
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Root alone can build and run it. A folder of another user's can't be looked into by the image's, so all may pass."""
    try:
        needs("buildah", "mmdebstrap", "runc")
        archive = archives.berth(lambda text: print(f"building {text}", file=sys.stderr))
    except NoImage as error:
        reason = f"this test runs Berth's image. {error}"
        request.config.stash.setdefault(MISSED, []).append(reason)
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("image") / "root"
    image = unpack(archive, folder)
    return Built(archive=archive, image=image, root=Root(folder=folder, config=image.config["config"]))


@pytest.fixture(scope="session")
def bill(built: Built, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """As `make sbom` writes it."""
    if not TOOL.exists():
        pytest.skip("this test writes a bill of materials. There is no cyclonedx-py here: make .venv/sbom")
    target = tmp_path_factory.mktemp("sbom") / "berth.cdx.json"
    subprocess.run([TOOL, "-m", "deploy.image.sbom", built.archive, target], cwd=ROOT, check=True, capture_output=True)
    found: dict[str, Any] = json.loads(target.read_text())
    return found
