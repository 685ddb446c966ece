"""Build the pod of a workload that has a queue of Kueue's, as Kueue's webhooks leave it.

Sources: kueue 0.19.2 pkg/podset (the label of the pods of a workload that was suspended), and under
pkg/controller/jobs the webhooks of deployment, statefulset and leaderworkerset (annotation and label of the template)
and of pod (the gate).
"""

from __future__ import annotations

from typing import Any

from policies.catalog import Workload
from policies.pods.permissions import QUEUE_NAME
from policies.pods.queue_systems import KUEUE_GATE, KUEUE_PARENT
from policies.values.untyped import map_at, maps_in

Raw = dict[str, Any]
_PODSET = "kueue.x-k8s.io/podset"


def in_kueue(pod: Raw, workload: Workload, queue: str) -> Raw:
    """Return the pod of a workload of this kind that is in ``queue``; ``pod`` is not changed.

    A kind that Kueue does not suspend has its pods gated. Whether Kueue manages pods at all is for the caller to know:
    the gate of a pod counts only where it does. A StatefulSet's pod gets the label from Kueue's controller a moment later.
    """
    metadata, spec = map_at(pod, "metadata"), map_at(pod, "spec")
    labels = dict(map_at(metadata, "labels"))
    if workload.kueue != "gates":
        return {**pod, "metadata": {**metadata, "labels": {**labels, _PODSET: "main"}}}
    annotations = {**map_at(metadata, "annotations"), KUEUE_PARENT: workload.name.lower()}
    gates = [*maps_in(spec.get("schedulingGates"))]
    if all(gate.get("name") != KUEUE_GATE for gate in gates):
        gates.append({"name": KUEUE_GATE})
    return {
        **pod,
        "metadata": {**metadata, "labels": {**labels, QUEUE_NAME: queue}, "annotations": annotations},
        "spec": {**spec, "schedulingGates": gates},
    }
