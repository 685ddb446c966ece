"""An owner that somebody writes into a pod, who is not its controller: it must move no pod out of ``require``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e import one_policy
from tests.testcluster.addons.berth import PROBE, SCOPE, registered
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.fixtures import NewNamespace

OPTIONS = ("--platforms", "gfd")
T4 = {"nvidia.com/gpu.product": "Tesla-T4"}


def owned(kind: tuple[str, str], owner: Raw) -> Raw:
    """A pod that selects what is forbidden, and says that ``owner`` controls it. ``kind``: apiVersion and kind."""
    reference = {"apiVersion": kind[0], "kind": kind[1], "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
    metadata = {"name": "owned", "ownerReferences": [{**reference, "controller": True}]}
    return {**PROBE, "metadata": metadata, "spec": {**PROBE["spec"], "nodeSelector": T4}}


def daemon_set(cluster: Cluster, namespace: str) -> Raw:
    """Of pods that are for no node."""
    template = {"metadata": {"labels": {"app": "agent"}}, "spec": {**PROBE["spec"], "nodeSelector": {"no": "node"}}}
    spec = {"selector": {"matchLabels": {"app": "agent"}}, "template": template}
    return cluster.api.create({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent"}, "spec": spec}, namespace)


def node(cluster: Cluster, namespace: str) -> Raw:
    """The one that is selected."""
    return next(one for one in cluster.api.list("v1", "Node") if T4.items() <= one["metadata"]["labels"].items())


@pytest.mark.parametrize(("kind", "made"), [(("v1", "Node"), node), (("apps/v1", "DaemonSet"), daemon_set)], ids=["node", "daemonset"])
def test_an_owner_that_is_written_into_a_pod_lets_it_nowhere(
    cluster: Cluster, new_namespace: NewNamespace, tmp_path: Path, kind: tuple[str, str], made: Callable[[Cluster, str], Raw]
) -> None:
    """Neither the owner that mirror pods have nor that of a node's agents; both are real, so that the pod is not collected as an orphan."""
    one_policy.write(tmp_path / "policy.yaml", {"families": {"in": ["hopper"]}})
    with registered(cluster, f"owned-by-a-{kind[1].lower()}", (tmp_path / "policy.yaml",), *OPTIONS) as berth:
        namespace = new_namespace({SCOPE: berth.name})
        reply = cluster.api.try_create(owned(kind, made(cluster, namespace)), namespace)
        assert (reply.status, "BERTH-121" in reply.message) == (403, True)
