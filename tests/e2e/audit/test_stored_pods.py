"""Pods as a real API server stores them, after a real scheduler and real controllers: who chose the node, and who created the pod."""

from __future__ import annotations

import pytest

from analysis.audit.stored_pod import StoredPod, stored, widest
from tests.e2e.workloads import TOLERATION, created, node_of, pod
from tests.support.generators.random_worlds import catalog
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.fixtures import NewNamespace

WIDE = widest(catalog())


def as_stored(cluster: Cluster, of: Raw) -> StoredPod:
    """Read back."""
    found = cluster.api.get("v1", "Pod", of["metadata"]["name"], of["metadata"]["namespace"])
    assert found is not None
    return stored(found, WIDE)


def test_a_node_that_a_scheduler_chose_is_not_the_authors(cluster: Cluster, new_namespace: NewNamespace) -> None:
    """The binding leaves no mark of its own, and later changes of the pod by others leave none either."""
    made = cluster.api.create(pod(tolerations=[TOLERATION]), new_namespace())
    node = node_of(cluster, made)
    assert as_stored(cluster, made).node == node
    assert "nodeName" not in as_stored(cluster, made).request().pod["spec"]
    cluster.api.patch(made, {"metadata": {"labels": {"later": "yes"}}})
    assert "nodeName" not in as_stored(cluster, made).request().pod["spec"]


def test_a_node_that_the_author_chose_is_a_part_of_the_pod(cluster: Cluster, new_namespace: NewNamespace) -> None:
    """No scheduler sees such a pod; by create, and by server-side apply."""
    namespace = new_namespace()
    made = cluster.api.create(pod(nodeName="a10g", tolerations=[TOLERATION]), namespace)
    assert as_stored(cluster, made).request().pod["spec"]["nodeName"] == "a10g"
    applied = {**pod(nodeName="a10g"), "metadata": {"name": "applied", "namespace": namespace}}
    assert cluster.api.apply(applied).ok
    assert as_stored(cluster, applied).request().pod["spec"]["nodeName"] == "a10g"


@pytest.mark.parametrize("kind", ["Job", "Deployment", "StatefulSet", "DaemonSet"])
def test_who_created_it_is_known(cluster: Cluster, new_namespace: NewNamespace, kind: str) -> None:
    """The controller's account, as the API server's managers of fields know it by another name; none for a pod that somebody made."""
    made = created(cluster, new_namespace(), kind, pod(tolerations=[TOLERATION]))
    found = as_stored(cluster, made)
    wanted = {"Deployment": "replicaset"}.get(kind, kind.lower().replace("daemonset", "daemon-set"))
    assert found.request().user == f"system:serviceaccount:kube-system:{wanted}-controller"
    assert found.owner is not None
    assert (found.owner.kind, found.owner.uid) == (
        made["metadata"]["ownerReferences"][0]["kind"],
        made["metadata"]["ownerReferences"][0]["uid"],
    )
