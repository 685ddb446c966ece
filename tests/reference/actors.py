"""Who a pod is, and what is done to it and asked of it for that (``docs/laws.md``, "The actor table")."""

from __future__ import annotations

from dataclasses import dataclass

from catalog import Catalog
from policies.request import Request
from tests.reference.asking import Asking, by_annotation
from tests.reference.pods import metadata, owner, pinned, workloads

LEVELS = ("none", "left", "node", "all")
"""of its place a pod may be denied for: nothing; that nothing is left; its known node too; everything"""
WORDS = (
    "gpu-fraction", "gpu-memory", "gpu-sm-", "kai.scheduler/container.", "nvidia.com/container.",
    "hami.io/", "nvidia.com/use-gpu", "nvidia.com/nouse-gpu", "nvidia.com/vgpu-", "volcano.sh/vgpu-",
)  # fmt: skip
"""annotations for a scheduler that shares GPUs: it, and no default, decides where such a pod runs"""
DAEMON_USERS = ("system:serviceaccount:kube-system:daemon-set-controller", "system:kube-controller-manager")


@dataclass(kw_only=True)
class Row:
    """What the actor table lets happen to this pod."""

    mirror: bool = False
    tolerations: bool = True
    driver_only: bool = False
    affinity: str = "write"
    rename: bool = True
    repair: bool = True
    chooses: bool = True
    in_part: bool = False
    """of a whole GPU, whatever shares the others of its node"""
    grace: str = "yes"
    floor: str = "yes"
    annotations: str = "yes"
    placement: str = "all"


def row(request: Request, catalog: Catalog, queues: tuple[str, ...], asked: Asking) -> Row:
    """Of the edits the least, of the denials the most."""
    pod = request.pod
    spec, labels, annotations = pod.get("spec") or {}, metadata(pod, "labels"), metadata(pod, "annotations")
    who, out = owner(pod), Row()
    levels: list[str] = []
    if "kubernetes.io/config.mirror" in annotations and "system:nodes" in request.groups:
        return Row(mirror=True)
    kinds = {w.name: w for w in catalog.workloads}
    scheduler = spec.get("schedulerName")
    if any(kinds[w].service for w in workloads(pod, catalog)) or who.get("kind") in ("ReplicaSet", "StatefulSet"):
        out.grace = out.annotations = "named"
        out.floor = "opt-out"
        levels.append("all")
    if pinned(pod) is not None:
        out.affinity, out.rename, out.repair = "no", False, False
        levels.append("node")
        if request.user in DAEMON_USERS and "system:nodes" not in request.groups:
            out.grace, out.annotations, out.floor = "no", "no", "no"
    if spec.get("nodeName"):
        out.tolerations, out.affinity, out.rename, out.grace, out.annotations = False, "no", False, "no", "no"
        levels.append("node")
    if scheduler in ("kai-scheduler", "volcano", "runai-scheduler") or (
        who and ("kueue.x-k8s.io/queue-name" in labels or "kueue.x-k8s.io/podset" in labels)
    ):
        out.rename = False
        levels.append("all")
    in_group = labels.get("kueue.x-k8s.io/pod-group-name") and labels.get("kueue.x-k8s.io/queue-name")
    by_kueue = in_group and labels.get("kueue.x-k8s.io/managed") == "true"
    flavors = "kueue" if by_kueue else "slurm-bridge" if scheduler == "slurm-bridge-scheduler" else ""
    if flavors and flavors in queues:
        out.rename = False
        out.affinity = "check" if out.affinity == "write" else out.affinity
        levels.append("left")
    if asked.resources and (asked.in_part or any(key.startswith(WORDS) for key in annotations)):
        out.rename = out.chooses = False
        levels.append("all")
    elif not asked.resources and by_annotation(pod):
        out.rename = out.repair = out.chooses = False
        out.in_part = True
        levels.append("all")
    elif not asked.resources and spec.get("resourceClaims"):
        out.affinity, out.rename, out.driver_only = "no", False, True
        levels.append("none")
    if levels:
        out.placement = max(levels, key=LEVELS.index)
    return out
