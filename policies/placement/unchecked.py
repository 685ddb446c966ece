"""What decides whether and where a pod runs and an answer has not checked (law 15): as data, and in the words of all front ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

Unchecked = Literal[
    "nodes",
    "podsOnNodes",
    "daemonSets",
    "nodeClasses",
    "machineSizes",
    "nodePoolLimits",
    "resourceQuotas",
    "limitRanges",
    "queues",
    "podAffinity",
    "podAntiAffinity",
    "topologySpreadConstraints",
    "volumes",
    "resourceClaims",
    "schedulingGates",
    "deviceClasses",
    "vgpuAmounts",
    "addedAmounts",
    "scheduler",
]
"""``nodes``: nodes or NodePools that could not be read. ``podsOnNodes``: what pods hold of the nodes. ``daemonSets``: what their pods will
take of new machines. ``nodeClasses``: what an EC2NodeClass has the kubelet keep of them. ``machineSizes``: what machines that Karpenter
may make have of CPU, memory and storage for pods. ``nodePoolLimits``: limits that these sizes
decide. ``queues``: whether a queue ever admits the workload. ``podAffinity`` to ``schedulingGates``: fields of the pod, which
``Wants.unjudged`` names. ``deviceClasses``: resources that a DeviceClass offers, for which drivers find devices. ``vgpuAmounts``: memory
and cores that the scheduler extender of HAMi or Volcano counts. ``addedAmounts``: CPU and memory of pods that an
operator writes itself. ``scheduler``: the rules of a scheduler other than kube-scheduler."""
WORDS: Mapping[str, str] = {
    "nodes": "nodes and NodePools",
    "podsOnNodes": "what pods on nodes use",
    "daemonSets": "DaemonSets",
    "nodeClasses": "what EC2NodeClasses keep of new machines",
    "machineSizes": "CPU and memory of new machines",
    "nodePoolLimits": "CPU and memory limits of NodePools",
    "resourceQuotas": "ResourceQuotas",
    "limitRanges": "LimitRanges",
    "queues": "queues",
    "podAffinity": "affinity to other pods",
    "podAntiAffinity": "anti-affinity to other pods",
    "topologySpreadConstraints": "topology spread",
    "volumes": "volumes",
    "resourceClaims": "resource claims",
    "schedulingGates": "scheduling gates",
    "deviceClasses": "devices of DeviceClasses (DRA)",
    "vgpuAmounts": "vGPU memory and cores, which the scheduler of HAMi or Volcano counts",
    "addedAmounts": "CPU and memory that its operator requests",
    "scheduler": "the rules of its own scheduler",
}


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Return each of these once, in the order of ``WORDS``."""
    every = frozenset(names)
    return tuple(name for name in WORDS if name in every)


def words(names: Iterable[str]) -> str:
    """Return all of these as a part of a sentence; "" where everything was checked."""
    return ", ".join(WORDS[name] for name in in_order(names))
