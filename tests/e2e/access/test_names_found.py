"""`berth webhooks` reading a real cluster, and a replica that tells what a registration lacks."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.testcluster.addons.berth import COMMAND, ROOT, SCOPE, Berth, create_namespace, manifests, serve
from tests.testcluster.addons.installed import install
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster

NAME = "acme.example/gpu"
NODE: Raw = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "renamed"}}


@pytest.fixture(scope="module")
def kubeconfig(cluster: Cluster) -> Iterator[Path]:
    """Of Berth's own account. There is an operator's namespace, and a node whose device plugin has a name of its own for GPUs."""
    create_namespace(cluster, "habana-system")
    cluster.api.create(NODE)
    amounts = {"cpu": "1", "nvidia.com/gpu": "1", NAME: "8", "rdma/hca": "1"}
    cluster.api.patch(NODE, {"status": {"capacity": amounts, "allocatable": amounts}}, subresource="status")
    yield install(cluster)
    cluster.api.delete(NODE)
    cluster.api.delete({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "habana-system"}})


def printed(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run([*COMMAND, "webhooks", *words], cwd=ROOT, capture_output=True, text=True, check=False, env=environment)


def test_what_a_cluster_has_is_registered(kubeconfig: Path) -> None:
    """Namespaces of operators that exist are left out, others are named on top; names on nodes that may be accelerators are called for."""
    done = printed("--kubeconfig", str(kubeconfig))
    assert (done.returncode, done.stderr) == (0, "")
    head, _, text = done.stdout.partition("---\n")
    webhook = next(yaml.safe_load_all(text))["webhooks"][0]
    excluded = webhook["namespaceSelector"]["matchExpressions"][0]["values"]
    assert {"kube-system", "habana-system", "berth-system"} <= set(excluded)
    assert "gpu-operator" not in excluded
    assert "gpu-operator" in head
    assert NAME in webhook["matchConditions"][1]["expression"]
    assert "rdma/hca" not in text


def test_a_replica_tells_what_its_registration_lacks(cluster: Cluster, kubeconfig: Path) -> None:
    """Its name is caught by no condition, then by one; another catalog is another registration."""
    replica = serve(cluster, "names", kubeconfig, "--platforms", "gfd", "--lease", "default/names")
    plain = manifests(replica)
    with_name = list(yaml.safe_load_all(printed("--url", replica.url, "--resource-name", NAME).stdout))
    other = [{**one, "metadata": {**one["metadata"], "annotations": {"berth.dev/made-of": "other"}}} for one in plain]
    same, another = "configurations match this replica's catalog", "do not match this replica's catalog"
    overlooked = f"no match condition covers {NAME}"
    try:
        for values, sentences in ((plain, {same, overlooked}), (with_name, {same}), (other, {another, overlooked})):
            for value in values:
                for webhook in value["webhooks"]:
                    webhook["namespaceSelector"] = {"matchLabels": {SCOPE: "nowhere"}}
                assert cluster.api.apply(value).ok
            cluster.wait_for(lambda wanted=sentences: wanted == told(replica, {same, another, overlooked}), f"/readyz to tell {sentences}")  # type: ignore[misc]
        assert json.loads(replica.page("/policies").body)["overlooked"] == [NAME]
    finally:
        cluster.processes.end(replica.process)
        for value in plain:
            cluster.api.delete(value)


def told(replica: Berth, sentences: set[str]) -> set[str]:
    """Those of them that stand in the line about the registration."""
    lines = replica.page("/readyz").body.decode().splitlines()
    return {sentence for sentence in sentences if any("registration" in line and sentence in line for line in lines)}
