"""The policy for notebooks: a small GPU of those that the cluster has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from analysis.scan.finding import Hit
from analysis.scan.of_pods.notebooks import LARGE_GB
from analysis.scan.seen import NOTEBOOK_LABEL, NOTEBOOKS, ScannedCluster
from analysis.scan.suggestions.suggestion import Suggestion


def suggest(seen: ScannedCluster, hits: Sequence[Hit]) -> Iterator[Suggestion]:
    """Yield one for notebooks that the catalog knows, and one for those of JupyterHub, where some hold a large GPU and there is a
    smaller one."""
    found = [hit.pod for hit in hits if hit.kind == "notebook-on-large-gpu" and hit.pod.gpus == 1]
    gpus = {node.gpu.model: node.gpu for node in seen.nodes.values() if node.devices and node.gpu is not None}
    small = tuple(sorted(model for model, gpu in gpus.items() if gpu.memory_gb is not None and gpu.memory_gb < LARGE_GB))
    if not small:
        return
    known = [pod for pod in found if not NOTEBOOKS.isdisjoint(pod.signed)]
    others = len(found) - len(known)
    hub: dict[str, Any] = {"podSelector": {"matchExpressions": [{"key": NOTEBOOK_LABEL, "operator": "Exists"}]}}
    for name, match, count in (("gpu-notebooks", {"workloads": sorted(NOTEBOOKS)}, len(known)), ("gpu-jupyterhub", hub, others)):
        if count:
            yield Suggestion(
                code="notebooks",
                name=name,
                spec={"match": {**match, "gpus": {"min": 1, "max": 1}}, "default": {"models": {"in": list(small)}}},
                values={"notebooks": count, "models": small},
                fixes=("notebook-on-large-gpu",),
            )
