"""Which of the labels that nodes are selected by nobody maintains.

GPU Feature Discovery writes the labels of NVIDIA's GPUs. The GPU Operator runs it under a ClusterPolicy (unless that says no) and never
under a GPUCluster, which may not exist beside one (NVIDIA/gpu-operator controllers/gpucluster_controller.go): nodes have no such labels
then, or those that were left behind by what ran before. Somebody may run it without the operator, so it is only taken as gone where
every node shows that: by having no label of it, or labels of a run that began before the GPUCluster was made.
"""

from __future__ import annotations

from catalog import Catalog
from policies.facts import platform_detection
from policies.facts.cluster_facts import ClusterFacts
from policies.facts.offered_devices import Offering

_NVIDIA = "nvidia.com/gpu."


def stale_since(facts: ClusterFacts) -> int | None:
    """Return when a GPUCluster took the place of a ClusterPolicy, in Unix seconds: labels of an earlier run of GPU Feature Discovery
    are left behind. None if that is not known."""
    if any(kind == "ClusterPolicy" for kind, _ in facts.stacks):
        return None
    return min((stack.created for stack in facts.stacks.values() if stack.created is not None), default=None)


def is_stale(offering: Offering, since: int | None) -> bool:
    """Return whether the labels of a node are left behind."""
    return offering.labelled and since is not None and offering.started is not None and offering.started < since


def undiscovered(facts: ClusterFacts) -> bool:
    """Return whether it is certain that no node has its labels by a GPU Feature Discovery that runs."""
    if not facts.stacks or any(stack.discovers for stack in facts.stacks.values()):
        return False
    since = stale_since(facts)
    if since is None and not any(kind == "ClusterPolicy" for kind, _ in facts.stacks):
        return False
    nodes = [one for one in facts.offerings.values() if one.gpus or one.labelled]
    return bool(nodes) and not any(one.labelled and not is_stale(one, since) for one in nodes)


def unmaintained(facts: ClusterFacts, catalog: Catalog) -> frozenset[str]:
    """Return the label keys on which no term may be written: none, or those of GPU Feature Discovery."""
    return _discovered(catalog) if undiscovered(facts) else frozenset()


def _discovered(catalog: Catalog) -> frozenset[str]:
    """Return its labels among those that the catalog selects nodes by. ``nvidia.com/gpu.present``, the anchor, is the operator's."""
    anchors = {platform.anchor for platform in catalog.platforms.values()}
    return frozenset(key for key in platform_detection.node_keys(catalog) if key.startswith(_NVIDIA)) - anchors
