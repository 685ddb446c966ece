"""Berth as its chart installs it, on real kubelets, and what is done to it from outside."""

from __future__ import annotations

import json
from dataclasses import dataclass

from certs.rotation import Material
from tests.e2e.installation.arrivals import gpu_pod, is_policied
from tests.support.counts import count
from tests.testcluster.addons import metrics, shared_secret
from tests.testcluster.addons.helm import CHART, RELEASE, helm, own_image
from tests.testcluster.addons.installed import NAMESPACE
from tests.testcluster.controlplane.api import Api, Raw
from tests.testcluster.kubelets.rig import Rig

REPLICAS = 3
RATE = float(count(4, 100))
"""GPU pods a second"""
MIB = 1 << 20
DEPLOYMENT: Raw = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": RELEASE, "namespace": NAMESPACE}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """A release, or the place for one."""

    rig: Rig

    @property
    def api(self) -> Api:
        return self.rig.api

    def helm(self, *words: str) -> str:
        """What it prints. Raises HelmRejected."""
        return helm(*words, "--namespace", NAMESPACE, kubeconfig=self.rig.kubeconfig)

    def install(self, *options: str) -> str:
        """As the README says, but with the image that was built here."""
        return self.helm("install", RELEASE, str(CHART), "--create-namespace", *own_image(), *options)

    def upgrade(self, *options: str) -> str:
        """To these values and no others."""
        return self.helm("upgrade", RELEASE, str(CHART), *own_image(), *options)

    def pods(self) -> list[Raw]:
        """Of Berth's server; also those that are being ended, and still answer."""
        return self._pods("berth")

    def audit_pods(self) -> list[Raw]:
        """Of `berth audit --serve`."""
        return self._pods("berth-audit")

    def _pods(self, name: str) -> list[Raw]:
        selector = f"app.kubernetes.io/instance={RELEASE},app.kubernetes.io/name={name}"
        return self.api.list("v1", "Pod", NAMESPACE, labelSelector=selector)

    def replicas(self) -> list[Raw]:
        """Pods of Berth that are not being ended."""
        return [pod for pod in self.pods() if "deletionTimestamp" not in pod["metadata"]]

    def settled(self, count: int = REPLICAS) -> bool:
        """Whether so many replicas are ready, all of the newest template, and no other is left."""
        found = self.api.get("apps/v1", "Deployment", RELEASE, NAMESPACE)
        if found is None or found["status"].get("observedGeneration") != found["metadata"]["generation"]:
            return False
        numbers = [found["status"].get(name, 0) for name in ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")]
        return numbers == [count] * 4 and all(is_ready(pod) for pod in self.replicas())

    def settle(self, count: int = REPLICAS) -> None:
        """Wait for it."""
        self.rig.cluster.wait_for(lambda: self.settled(count), f"{count} replicas to be ready")

    def roll(self) -> None:
        """Every replica is replaced by a new one."""
        self.rig.kubectl("rollout", "restart", f"deployment/{RELEASE}", "--namespace", NAMESPACE)
        self.settle()

    def scale(self, count: int) -> None:
        """Ask for so many replicas."""
        self.api.patch(DEPLOYMENT, {"spec": {"replicas": count}}, subresource="scale")

    def material(self) -> Material:
        """What the replicas share; nothing in it is damaged."""
        return shared_secret.material(self.api)

    def endpoints(self) -> set[str]:
        """Addresses that the Service leads to."""
        slices = self.api.list("discovery.k8s.io/v1", "EndpointSlice", NAMESPACE, labelSelector=f"kubernetes.io/service-name={RELEASE}")
        ready = [one for part in slices for one in part["endpoints"] or () if one["conditions"].get("ready")]
        return {address for one in ready for address in one["addresses"]}

    def waiting_for(self) -> str:
        """Why containers of replicas are not running; "" if all are."""
        states = [one["state"] for pod in self.replicas() for one in pod["status"].get("containerStatuses", ())]
        return ", ".join(state["waiting"].get("reason", "") for state in states if "waiting" in state)

    def is_judged(self, namespace: str) -> bool:
        """Whether a GPU pod is admitted there with what policies add, by a dry run."""
        reply = self.api.try_create(gpu_pod(), namespace, dry_run=True)
        return reply.ok and is_policied(reply.body)

    def metric(self, name: str) -> dict[str, float]:
        """Its sum by ready replica, read through the API server."""
        names = [pod["metadata"]["name"] for pod in self.replicas() if is_ready(pod)]
        pages = {pod: self.api.text(f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}:8080/proxy/metrics") for pod in names}
        return {pod: metrics.total(page, name) for pod, page in pages.items()}

    def memory(self) -> dict[str, float]:
        """MiB by replica."""
        return {pod: found / MIB for pod, found in self.metric("process_resident_memory_bytes").items()}

    def left_behind(self) -> list[str]:
        """Objects that only this installation can have made, outside of its namespace or in it."""
        found = []
        for group in json.loads(self.rig.kubectl("get", "--raw", "/apis"))["groups"]:
            found += self._of_group(f"/apis/{group['preferredVersion']['groupVersion']}")
        return sorted([*found, *self._of_group("/api/v1")])

    def _of_group(self, path: str) -> list[str]:
        resources = [one for one in self.api.call("GET", path).body.get("resources", ()) if "list" in one["verbs"]]
        found = []
        for one in resources:
            reply = self.api.call("GET", f"{path}/{one['name']}")
            found += [f"{one['kind']} {_name(item)}" for item in reply.body.get("items") or () if _is_of_release(item)]
        return found


def is_ready(pod: Raw) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", ()))


def _is_of_release(item: Raw) -> bool:
    """By its label, or in the release's namespace and by name, as what a replica writes."""
    metadata = item["metadata"]
    labelled = metadata.get("labels", {}).get("app.kubernetes.io/instance") == RELEASE
    return labelled or ("berth" in metadata["name"] and metadata.get("namespace", NAMESPACE) == NAMESPACE)


def _name(item: Raw) -> str:
    metadata = item["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if "namespace" in metadata else str(metadata["name"])
