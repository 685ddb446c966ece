"""Real containers on real kubelets: what Kubernetes does with them, and what the rig can do to them."""

from __future__ import annotations

import contextlib

import pytest

from tests.e2e.kubelets import answering
from tests.support.counts import only_in_prove
from tests.testcluster.controlplane.processes import ClusterFailed
from tests.testcluster.kubelets.rig import Rig

NAME = "answering"


@pytest.fixture(scope="module")
def service(kubelets: Rig) -> str:
    """The cluster IP of three replicas."""
    address: str = answering.deploy(kubelets, NAME, 3)["spec"]["clusterIP"]
    return address


def one(rig: Rig) -> str:
    return min(answering.names(rig, NAME))


def test_a_service_is_reached_by_its_address(kubelets: Rig, service: str) -> None:
    """Three replicas on three nodes; whoever asks at the Service's address from inside gets to each, and a pod's log is read."""
    wanted = answering.names(kubelets, NAME)
    assert {pod["spec"]["nodeName"] for pod in answering.pods(kubelets, NAME)} == set(kubelets.nodes)
    found: set[str | None] = set()

    def each() -> bool:
        found.add(answering.asked(kubelets, service))
        return wanted <= found

    kubelets.cluster.wait_for(each, "an answer of every pod")
    assert "serving" in kubelets.kubectl("logs", one(kubelets))
    assert "serving" in kubelets.logs(one(kubelets))


def test_the_api_server_is_reached_by_its_service(kubelets: Rig) -> None:
    """From a node, as pods call it."""
    node = kubelets.nodes["node-1"].machine

    def version() -> str | None:
        with contextlib.suppress(ClusterFailed):  # until kube-proxy has written its rules
            return node.run("curl", "--silent", "--show-error", "--insecure", "--max-time", "5", "https://10.0.0.1/version")
        return None

    assert '"gitVersion"' in kubelets.cluster.wait_for(version, "the API server to answer at the address of its Service")


def test_the_api_server_calls_it_as_a_webhook(kubelets: Rig, service: str) -> None:
    """By its Service, with the CA of the registration, and from a machine that no pod runs on."""
    answering.register(kubelets, NAME)
    value = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "asked"}}

    def warned() -> tuple[str, ...]:
        reply = kubelets.api.try_create(value, "default", dry_run=True)
        return reply.warnings if reply.ok else ()

    (warning,) = kubelets.cluster.wait_for(warned, "the webhook to be called")
    assert warning.removeprefix("answered by ") in answering.names(kubelets, NAME)


def test_a_killed_container_is_started_again(kubelets: Rig, service: str) -> None:
    """By its kubelet, in the same pod."""
    pod = one(kubelets)
    kubelets.kill_container(pod, "answering")

    def restarted() -> bool:
        (status,) = (kubelets.api.get("v1", "Pod", pod, "default") or {})["status"]["containerStatuses"]
        killed = status["lastState"].get("terminated", {}).get("exitCode") == 137
        return bool(status["restartCount"] == 1 and status["ready"] and killed)

    kubelets.cluster.wait_for(restarted, f"the container of {pod} to run again")
    with pytest.raises(LookupError, match="no container nobody of the pod"):
        kubelets.kill_container(pod, "nobody")


def test_a_rolling_update_replaces_every_pod(kubelets: Rig, service: str) -> None:
    """By others, which are called in their place."""
    before = answering.names(kubelets, NAME)
    kubelets.kubectl("rollout", "restart", f"deployment/{NAME}")
    answering.rolled(kubelets, NAME)
    kubelets.cluster.wait_for(lambda: not before & answering.names(kubelets, NAME), "the former pods to end")
    kubelets.cluster.wait_for(lambda: answering.asked(kubelets, service) in answering.names(kubelets, NAME), "an answer of a new pod")


@only_in_prove
def test_a_drain_moves_pods(kubelets: Rig, service: str) -> None:
    """They are evicted, and run elsewhere. Tests of `make prove` alone drain nodes, so `make test` needs none of it."""
    kubelets.drain("node-1")
    answering.rolled(kubelets, NAME)
    assert "node-1" not in {pod["spec"]["nodeName"] for pod in answering.pods(kubelets, NAME)}  # drain waits until they have ended
    kubelets.uncordon("node-1")


@only_in_prove
def test_pods_of_a_vanished_node_are_called_no_more(kubelets: Rig, service: str) -> None:
    """Their addresses leave the Service once the node is not heard of, others take their place; the node comes back with its images.
    Tests of `make prove` alone stop nodes, so `make test` needs none of it."""
    lost = answering.pods(kubelets, NAME)[0]
    node, address = lost["spec"]["nodeName"], lost["status"]["podIP"]
    kubelets.stop_node(node)
    kubelets.cluster.wait_for(lambda: address not in answering.endpoints(kubelets, NAME), f"{address} to be no endpoint")
    kubelets.cluster.wait_for(lambda: len(answering.endpoints(kubelets, NAME)) == 3, "three endpoints elsewhere")
    kubelets.start_node(node)
    kubelets.cluster.wait_for(lambda: lost["metadata"]["name"] not in answering.names(kubelets, NAME), "the lost pod to be cleared away")


@only_in_prove
def test_all_comes_back_after_a_stop_of_everything(kubelets: Rig, service: str) -> None:
    """API server, etcd and every machine; the same objects, and pods that answer, with nothing typed. Tests of `make prove` alone stop
    everything, so `make test` needs none of it."""
    kubelets.restart_control_plane()
    kubelets.stop_everything()
    kubelets.start_everything()
    answering.rolled(kubelets, NAME)
    kubelets.cluster.wait_for(lambda: answering.asked(kubelets, service), "an answer at the Service's address")
