"""Rolling updates of Deployments whose new pods wait for devices that their old pods hold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from analysis.audit.stored_pod import Controller
from analysis.scan.finding import PlaceReason, Value
from analysis.scan.seen import GpuPod, ScannedCluster

Values = tuple[tuple[str, Value], ...]


class Rollouts:
    """The pods of Deployments that hold devices."""

    def __init__(self, seen: ScannedCluster) -> None:
        self._seen = seen
        self._holding: dict[str, list[GpuPod]] = defaultdict(list)
        for pod in seen.pods:
            if pod.stored.node and (deployment := self._deployment(pod)) is not None:
                self._holding[deployment.uid].append(pod)

    def find_wait(self, pod: GpuPod, reasons: Iterable[PlaceReason]) -> Values | None:
        """Return the values of the finding on a pod that waits for what old pods of its Deployment hold; None if it does not, or if the
        Deployment may end one of them first."""
        deployment = self._deployment(pod)
        if deployment is None:
            return None
        update = self._seen.cluster.rolling.get((pod.stored.namespace, deployment.name))
        if update is None or update.unavailable:
            return None
        short = {obstacle.key for reason in reasons for obstacle in reason.obstacles if obstacle.kind == "capacity"}
        for name in sorted(short.intersection(pod.names)):
            old = [other for other in self._holding[deployment.uid] if other.stored.owner != pod.stored.owner and name in other.names]
            if old:
                return ("deployment", deployment.name), ("surge", update.surge), ("old", len(old)), ("resource", name)
        return None

    def _deployment(self, pod: GpuPod) -> Controller | None:
        """Return the Deployment that makes the ReplicaSet of a pod."""
        owner = pod.stored.owner
        above = self._seen.cluster.owners.get(owner.uid) if owner is not None and owner.kind == "ReplicaSet" else None
        return above if above is not None and above.kind == "Deployment" else None
