"""docs/audit.md is typed as it stands, command by command in the page's order, from `helm install` to Enforce and back, on a real control
plane and a node with a real kubelet, which runs the chart's replicas and its audit.

The one rule by which something else is typed than the page has: what is at an address of the internet is a file of ``LOCAL``, the same of
the same release. Berth's image is on the node under the name that the chart gives it.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from cli import VERSION
from tests.e2e.installation.installed import Installation
from tests.support.counts import only_in_prove
from tests.support.generators.random_worlds import catalog
from tests.testcluster import go_build, programs
from tests.testcluster.addons import nodes
from tests.testcluster.addons.audit import OPEN_REPORTS
from tests.testcluster.addons.berth import ROOT, create_namespace
from tests.testcluster.calls import PATIENCE
from tests.testcluster.images import archives
from tests.testcluster.kubelets import containers
from tests.testcluster.kubelets.rig import Rig
from tests.testcluster.programs import MODULES

PAGE = ROOT / "docs" / "audit.md"
BLOCK = re.compile(r"^```sh\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
LOCAL = {"https://raw.githubusercontent.com/openreports/reports-api/v0.2.1/": OPEN_REPORTS}
"""The beginning of an address -> the Go module whose files are those."""
LONGEST = 600.0
"""Seconds of one command: twice what Helm waits for replicas."""
WORKLOADS = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: chat, namespace: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: chat}}
  template:
    metadata: {labels: {app: chat}}
    spec: {containers: [{name: c, image: "registry.example/chat:1", resources: {limits: {nvidia.com/gpu: 1}}}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: typo, namespace: research}
spec:
  template:
    spec:
      restartPolicy: Never
      tolerations: [{key: nvidia.com/gpu, operator: Exists}]
      containers: [{name: c, image: "registry.example/train:1", resources: {limits: {nvidia.com/gpu: 640}}}]
"""
"""What runs before Berth comes: two pods that a toleration is wanting to, and one that asks for more GPUs than any node has."""
DENIED = r"research .*WouldBeDenied +job/typo +BERTH-111: "
PROMISED: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("berth audit --as Audit", (r"^web +ClusterGPUPolicy/berth-default +Audit +2 +2 .*", r"would change 3 and deny 0\.")),
    ("kubectl apply --server-side", (r"reports\.openreports\.io serverside-applied",)),
    ("helm install", (r"STATUS: deployed",)),
    ("helm upgrade", (r"Policies of the library: berth-default, in mode Audit\.",)),
    ("kubectl apply -f docs/examples/at-most-eight.yaml", (r"at-most-eight created",)),
    ("kubectl wait", (r"berth-default condition met", r"at-most-eight condition met")),
    ("kubectl get clustergpupolicies.berth.dev", (r"^at-most-eight +Audit .* 0 +1 ", r"^berth-default +Audit .* 2 +0 ")),
    ("kubectl get reports", (r"^web +berth-deployment-chat-\S+ +\d+ +0 +1 ", r"^research +berth-job-typo-\S+ +\d+ +1 +0 ")),
    ("kubectl get events", (DENIED,)),
    ("berth audit", (r"^research +ClusterGPUPolicy/at-most-eight +Audit +1 +640 ", r"would change 2 and deny 1\.")),
    ("berth audit -o json", (r'"patch": "\[\{.*tolerations', r'"codes": "BERTH-111"')),
    (
        "berth audit --reports",
        (r"^research +ClusterGPUPolicy/at-most-eight +Audit +1 +640 +0 +1 +0 +0", r"would change 2 pods and deny 1\."),
    ),
    (
        "berth audit --enforce-preview berth-default",
        (r"^With berth-default in Enforce, of 3 existing pods .*, 0 would be denied and 2 changed", r"^web +Deployment/chat +2 +2 "),
    ),
    ("helm upgrade", (r"in mode Audit, berth-default in Enforce\.",)),
    ("kubectl get clustergpupolicy berth-default", (r"^berth-default +Enforce +True ",)),
    ("kubectl patch", (r"at-most-eight patched",)),
    ("kubectl wait", (r"berth-default condition met",)),
    ("kubectl run check", (r'"key":"nvidia\.com/gpu","operator":"Exists"',)),
    ("kubectl get clustergpupolicy berth-default", (r'"notAsEnforced":2,',)),
    ("kubectl get events", (r"^web .*NotAsEnforced +deployment/chat ",)),
    ("helm upgrade", (r"in mode Audit, berth-default in Audit\.",)),
    ("kubectl patch", (r"at-most-eight patched",)),
    ("helm upgrade", (r"STATUS: deployed",)),
    ("helm upgrade", (r"STATUS: deployed",)),
)
"""The beginning of each command of the page, in order, and what its output has."""


def commands() -> list[str]:
    """Those of all ```sh blocks, one a line."""
    blocks = "".join(BLOCK.findall(PAGE.read_text(encoding="utf-8")))
    return [line for line in blocks.replace("\\\n", " ").splitlines() if line.strip()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Newcomer:
    """Somebody with a checkout, a kubeconfig, kubectl, Helm and Berth."""

    rig: Rig
    home: Path

    def types(self, command: str, wanted: tuple[str, ...]) -> str:
        """What a command prints; one that only reads is typed again until all that is wanted has come. Fails where it does not come."""
        until = time.monotonic() + PATIENCE
        while True:
            done = self._shell(command)
            lacking = [one for one in wanted if not re.search(one, done.stdout, re.MULTILINE)]
            if done.returncode == 0 and not lacking:
                return done.stdout
            again = command.startswith(("kubectl get", "kubectl run", "berth audit")) and time.monotonic() < until
            assert again, f"{command}\nexit code {done.returncode}, lacks {lacking}:\n{done.stdout}{done.stderr}"
            time.sleep(1)

    def _shell(self, command: str) -> subprocess.CompletedProcess[str]:
        typed = command
        for address, module in LOCAL.items():
            typed = typed.replace(address, f"{go_build.files(MODULES / 'openreports', module, ['config/crd'])}/")
        assert "://" not in typed, "the rule has no file for this address"
        environment = {
            **os.environ,
            "HOME": str(self.home),
            "KUBECONFIG": str(self.rig.kubeconfig),
            "PATH": f"{self.home / 'bin'}:{os.environ['PATH']}",
        }
        return subprocess.run(["sh", "-ec", typed], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LONGEST, check=False)


@pytest.fixture(scope="module")
def newcomer(installation: Installation, tmp_path_factory: pytest.TempPathFactory) -> Newcomer:
    """On a cluster with GPU nodes, and workloads that run there."""
    rig, home = installation.rig, tmp_path_factory.mktemp("newcomer")
    (home / "bin").mkdir()
    for name in ("helm", "kubectl"):
        (home / "bin" / name).symlink_to(programs.path(name))
    own = home / "bin" / "berth"
    own.write_text(f'#!/bin/sh\nexec env PYTHONPATH={shlex.quote(str(ROOT))} {shlex.quote(sys.executable)} -P -m cli.main "$@"\n')
    own.chmod(0o755)
    for node in rig.nodes.values():
        containers.ctr(node.machine, "images", "tag", archives.BERTH, f"ghcr.io/gpu-berth/berth:{VERSION}")
    nodes.add(rig.outside, *[node for node in nodes.bare_metal(catalog()) if node.taints])
    for name in ("web", "research"):
        create_namespace(rig.cluster, name)
    for value in yaml.safe_load_all(WORKLOADS):
        rig.api.create(value)
    rig.cluster.wait_for(lambda: [len(rig.api.list("v1", "Pod", name)) for name in ("web", "research")] == [2, 1], "the pods")
    return Newcomer(rig=rig, home=home)


@only_in_prove
def test_every_command_of_the_page_does_what_the_page_says(newcomer: Newcomer) -> None:
    """From nothing to Enforce and back: each exits with 0, and prints what is promised. In make test the chart is installed by
    test_installing.py, and the audit's reports are those of tests/e2e/audit."""
    typed = commands()
    assert [command for command, (begins, _) in zip(typed, PROMISED, strict=True) if not command.startswith(begins)] == []
    for command, (_, wanted) in zip(typed, PROMISED, strict=True):
        newcomer.types(command, wanted)
        if command.startswith("kubectl run"):
            _enforced(newcomer.rig)
    modes = {one["metadata"]["name"]: one["spec"]["mode"] for one in newcomer.rig.api.list("berth.dev/v1alpha1", "ClusterGPUPolicy")}
    assert modes == {"berth-default": "Audit", "at-most-eight": "Audit"}
    rig = newcomer.rig
    rig.cluster.wait_for(lambda: _tolerations(rig, "undone", 1) == [], "a pod to be left alone again")


def _enforced(rig: Rig) -> None:
    """While the page has them in Enforce: a pod that is created is changed, one that asks for too much denied, and those of before are
    as they were."""
    assert [one["operator"] for one in _tolerations(rig, "made", 1) or ()] == ["Exists"]
    assert _tolerations(rig, "too-large", 640) is None
    for pod in rig.api.list("v1", "Pod", "web", labelSelector="app=chat"):
        assert not [one for one in pod["spec"]["tolerations"] if one["key"] == "nvidia.com/gpu"]


def _tolerations(rig: Rig, name: str, gpus: int) -> list[dict[str, str]] | None:
    """Those for GPUs of a pod that is created now; None if it is denied by Berth."""
    limits = {"nvidia.com/gpu": str(gpus)}
    spec = {"containers": [{"name": "c", "image": "registry.example/c:1", "resources": {"limits": limits}}]}
    reply = rig.api.try_create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}, "default", dry_run=True)
    if not reply.ok:
        assert "BERTH-111" in reply.message, reply.message
        return None
    return [one for one in reply.body["spec"]["tolerations"] if one["key"] == "nvidia.com/gpu"]
