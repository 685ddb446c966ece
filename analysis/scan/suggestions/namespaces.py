"""A guardrail for each team's namespace, as wide as what runs there: as many devices to a pod as its largest has, the
architectures that its pods are on, and the tolerations that its nodes ask for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any

from analysis.scan.seen import GpuPod, ScannedCluster
from analysis.scan.suggestions.suggestion import Suggestion
from catalog import Catalog
from kube.taints import Taint
from kube.tree import map_at, maps_in
from policies.state.snapshot import NAMESPACE_LABEL

MOST = 50
"""Namespaces with a policy of their own, those with most GPUs first: more files than that nobody reads."""
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
"""What a namespace may be called (RFC 1123): a dump may hold any name, and the name is that of a file."""


def suggest(seen: ScannedCluster) -> Iterator[Suggestion]:
    """Yield one for each namespace with GPU pods that have a node, but those that Berth leaves alone."""
    teams: dict[str, list[GpuPod]] = {}
    for pod in seen.pods:
        namespace = pod.stored.namespace
        if pod.node is not None and pod.gpus and namespace not in seen.catalog.excluded_namespaces and _LABEL.fullmatch(namespace):
            teams.setdefault(namespace, []).append(pod)
    ranked = sorted(teams.items(), key=lambda one: (-sum(pod.gpus for pod in one[1]), one[0]))
    for namespace, pods in ranked[:MOST]:
        yield _of(namespace, pods, seen.catalog)


def _of(namespace: str, pods: Sequence[GpuPod], catalog: Catalog) -> Suggestion:
    largest = max(pod.gpus for pod in pods)
    families = {pod.node.gpu.family if pod.node is not None and pod.node.gpu is not None else "" for pod in pods}
    require: dict[str, Any] = {"gpusPerPod": {"max": largest}}
    if "" not in families:
        require["families"] = {"in": sorted(families)}
    taints = sorted(_own_taints(pods, catalog), key=str)
    spec: dict[str, Any] = {"match": {"namespaceSelector": {"matchLabels": {NAMESPACE_LABEL: namespace}}}, "require": require}
    if taints:
        # A pod that forgets the team's toleration has mostly forgotten that of the accelerator too, and waits for either.
        spec["default"] = {"acceleratorTaints": "Tolerate", "tolerate": [_written(taint) for taint in taints]}
    return Suggestion(
        code="namespace",
        name=f"gpu-{namespace}",
        spec=spec,
        values={
            "namespace": namespace,
            "running": len(pods),
            "gpus": sum(pod.gpus for pod in pods),
            "largest": largest,
            "families": tuple(sorted(families - {""})),
            "taints": tuple(f"{taint.key}={taint.value}:{taint.effect}" for taint in taints),
        },
        fixes=("pending", "never-fits") if taints else (),
    )


def _own_taints(pods: Sequence[GpuPod], catalog: Catalog) -> set[Taint]:
    """Return the taints of the namespace's nodes that its pods tolerate by name: not those of every accelerator or spot node, nor of
    nodes that go."""
    common = {taint.taint.key for taint in (*catalog.taints, *catalog.spot_taints)}
    found = set()
    for pod in pods:
        keys = {one.get("key") for one in maps_in(map_at(pod.raw, "spec").get("tolerations"))}
        for taint in pod.node.taints if pod.node is not None else ():
            if taint.effect == "PreferNoSchedule" or taint.key in common or taint.key not in keys:
                continue
            if not any(fnmatchcase(taint.key, glob) for glob in catalog.never_tolerate):
                found.add(taint)
    return found


def _written(taint: Taint) -> dict[str, str]:
    value = {"value": taint.value} if taint.value else {}
    return {"key": taint.key, **value, "effect": taint.effect}
