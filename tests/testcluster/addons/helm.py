"""Helm, and the chart with the image that was built here."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from tests.testcluster import programs
from tests.testcluster.addons.berth import ROOT
from tests.testcluster.images import archives

CHART = ROOT / "deploy" / "chart"
RELEASE = "berth"
SECONDS = 600
"""Twice the time for which Helm waits by itself (`--timeout`)."""


class HelmRejected(Exception):
    """What Helm said."""


def helm(*words: str, kubeconfig: Path | None = None) -> str:
    """What it prints. Raises HelmRejected, and NoProgram. Nothing of whoever runs the tests is read or written."""
    program = programs.path("helm")
    with tempfile.TemporaryDirectory() as home:
        own = {f"HELM_{name}_HOME": f"{home}/{name}" for name in ("CACHE", "CONFIG", "DATA")} | {"KUBECACHEDIR": f"{home}/kube"}
        environment = {**os.environ, **own, "KUBECONFIG": str(kubeconfig or f"{home}/none")}
        done = subprocess.run([program, *words], env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode != 0:
        raise HelmRejected(f"{done.stdout}{done.stderr}")
    return done.stdout


def own_image() -> tuple[str, ...]:
    """Options that name it."""
    image, _, tag = archives.BERTH.rpartition(":")
    return "--set", f"image.repository={image},image.tag={tag}"
