"""The image as a strict cluster runs it: a read-only root, no capability, nobody's user."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.image.conftest import Built
from tests.image.serving import serving
from tests.support.counts import only_in_prove
from tests.testcluster.images.containers import ran

ROOT = Path(__file__).parents[2]


@pytest.fixture
def given(tmp_path: Path) -> Path:
    """A folder that whoever the image runs as may read."""
    for source in (
        ROOT / "tests/reviews/pods-create-mismatch.json",
        ROOT / "docs/examples/train.yaml",
        *(ROOT / "policies/library").glob("*.yaml"),
    ):
        shutil.copyfile(source, tmp_path / source.name)
        (tmp_path / source.name).chmod(0o644)
    tmp_path.chmod(0o755)
    return tmp_path


@only_in_prove
def test_try_admits_a_job(built: Built, given: Path) -> None:
    """As from a checkout: the shipped policies and the catalog are in the image. ``make test`` tries it with the wheel
    (``tests/deploy/release``)."""
    done = ran(built.root, "try", "--platforms", "karpenter-aws", "/given/train.yaml", given=given)
    assert (done.returncode, done.stderr) == (0, '/given/train.yaml: Job "train": admitted with 1 edit\n')
    assert "tolerations:" in done.stdout


@only_in_prove
def test_try_denies_a_wrong_pod(built: Built, given: Path) -> None:
    """With what to type, and exit code 1. ``make test`` has ``tests/cli/inspect/test_try.py``."""
    done = ran(built.root, "try", "--platforms", "karpenter-aws", "/given/pods-create-mismatch.json", given=given)
    assert done.returncode == 1
    assert "BERTH-101: container" in done.stderr


def test_it_serves_and_stops_when_it_is_told_to(built: Built) -> None:
    """Its certificates are all that it writes, into memory; SIGTERM reaches it without a shell between."""
    with serving(built.root, "--self-signed", "/tmp/tls") as server:
        assert server.readyz().endswith("ready\n")
    assert server.code == 0


@only_in_prove
def test_it_serves_policies_from_files(built: Built, given: Path) -> None:
    """A mounted folder, as of a ConfigMap. ``make test`` has ``tests/webhook/test_serve.py``."""
    (given / "train.yaml").unlink()
    (given / "pods-create-mismatch.json").unlink()
    policies = sum(len(re.findall(r"^kind: (?:Cluster)?GPUPolicy$", file.read_text(), re.MULTILINE)) for file in given.iterdir())
    with serving(built.root, "--self-signed", "/tmp/tls", "--policies", "/given", given=given) as server:
        assert f"policies: {policies} active" in server.readyz()


@only_in_prove
def test_a_root_that_is_read_only_is_told(built: Built) -> None:
    """Certificates that have no place are one line, which names it. ``make test`` has ``tests/certs/test_self_signed.py``."""
    with serving(built.root, "--self-signed", "/tls") as server:
        assert "/tls" in server.denial
    assert server.code == 2
