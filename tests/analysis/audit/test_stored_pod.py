"""What is held of a pod of the API server, and the request by which it was created."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.audit.stored_pod import Controller, StoredPod, stored, widest
from tests.support.generators.random_worlds import catalog

Raw = dict[str, Any]
WIDE = widest(catalog())


def pod(**metadata: Any) -> Raw:
    return {
        "metadata": {"name": "p", "namespace": "team-a", "uid": "1", "creationTimestamp": "2026-11-23T08:00:00Z", **metadata},
        "spec": {"containers": [{"name": "c", "image": "train:1", "resources": {"limits": {"nvidia.com/gpu": "1"}}}], "nodeName": "n1"},
        "status": {"phase": "Running"},
    }


def of_controller(api_version: str, kind: str) -> list[Raw]:
    return [{"apiVersion": api_version, "kind": kind, "name": "o", "uid": "2", "controller": True}]


def read(value: Raw) -> StoredPod:
    return stored(value, WIDE)


def test_the_node_that_a_scheduler_chose_is_not_the_authors() -> None:
    """It is held apart; one that the pod was created with, as its managedFields say, is a part of it."""
    assert "nodeName" not in read(pod()).request().pod["spec"]
    assert read(pod()).node == "n1"
    creator = {"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": {"f:nodeName": {}}}}
    assert read(pod(managedFields=[creator])).request().pod["spec"]["nodeName"] == "n1"
    assert "nodeName" not in read(pod(managedFields=[{**creator, "subresource": "binding"}])).request().pod["spec"]


def test_a_pod_is_judged_where_it_runs_by_the_second_webhook() -> None:
    """With its node; one that is pending as it is."""
    one = read(pod())
    there = one.on_its_node(one.request())
    assert (there.phase, there.pod["spec"]["nodeName"]) == ("validate", "n1")
    waiting = pod()
    del waiting["spec"]["nodeName"]
    assert read(waiting).on_its_node(request := read(waiting).request()) is request


@pytest.mark.parametrize(
    ("owners", "user"),
    [
        (of_controller("batch/v1", "Job"), "system:serviceaccount:kube-system:job-controller"),
        (of_controller("apps/v1", "DaemonSet"), "system:serviceaccount:kube-system:daemon-set-controller"),
        (of_controller("batch.volcano.sh/v1alpha1", "Job"), ""),
        ([], ""),
    ],
)
def test_who_created_it_is_known_of_kubernetes_own_controllers(owners: list[Raw], user: str) -> None:
    """By kind and group; of others, and of people, it is not."""
    assert read(pod(ownerReferences=owners)).request().user == user


def test_a_static_pods_mirror_is_of_its_node() -> None:
    """Policies spare it; the annotation alone is anybody's."""
    mirror = {"kubernetes.io/config.mirror": "x"}
    assert read(pod(annotations=mirror, ownerReferences=of_controller("v1", "Node"))).request().groups == ("system:nodes",)
    assert read(pod(annotations=mirror)).request().groups == ()


def test_pods_of_a_workload_share_what_is_judged() -> None:
    """Names, uids and indices are apart, and labels that policies may choose by are not lost."""
    first, second = (
        read(pod(name=f"p-{n}", uid=str(n), labels={"app": "a", "batch.kubernetes.io/job-completion-index": str(n)})) for n in (0, 1)
    )
    assert first.shared == second.shared
    assert second.request().pod["metadata"]["labels"] == {"app": "a", "batch.kubernetes.io/job-completion-index": "1"}


def test_images_and_unread_annotations_are_not_held() -> None:
    """They are most of a pod."""
    assert b"notes" not in read(pod(annotations={"notes": "x" * 1000})).shared
    assert b"train:1" not in read(pod()).shared


@pytest.mark.parametrize("odd", [None, 7, [], "x", {"ownerReferences": 7, "labels": [], "managedFields": ["x", {"fieldsV1": 3}]}])
def test_an_odd_object_raises_nothing(odd: Any) -> None:
    """Whoever stores pods past the API server."""
    assert stored({"metadata": odd, "spec": odd, "status": odd}, WIDE).name == ""


def test_owner_phase_and_creation_are_held() -> None:
    """The controller, not every owner; a pod that ended holds no device."""
    owners = [{"apiVersion": "v1", "kind": "X", "name": "other", "uid": "3"}, *of_controller("batch/v1", "Job")]
    one = read({**pod(ownerReferences=owners), "status": {"phase": "Succeeded"}})
    assert one.owner == Controller("batch/v1", "Job", "o", "2")
    assert (one.finished, one.created) == (True, "2026-11-23T08:00:00Z")
    assert not read(pod()).finished
