"""Topology: pods of one workload prefer nodes that are near to each other, where their network is fast.

Reads   spec.affinity.podAffinity, the labels by which workloads mark their pods
Writes  one preferred pod affinity term: nodes with the same value of ``default.topology`` as other pods of the workload
Checks  nothing
Never   requires anything of a place; adds to pod affinity that the author wrote
"""

from __future__ import annotations

from collections.abc import Iterator

from kube.pod import PREFERRED, Pod, mapping_at
from kube.tree import Path
from policies.planning.plan import Plan
from policies.request import Request
from policies.verdict import Edit, Remark

NAME = "topology"
_PATH: Path = ("spec", "affinity", "podAffinity", PREFERRED, "-")
_WEIGHT = 100
"""The most that a preference may weigh (k8s.io/api core/v1 WeightedPodAffinityTerm): it stands alone."""


def mutate(request: Request, plan: Plan) -> Iterator[Edit | Remark]:
    """Write the term, or tell the platform team that its policies differ."""
    default = plan.demands.named("topology")
    if default is None or plan.actor.affinity != "write" or not plan.actor.chooses or _speaks(plan.pod):
        return
    if default.value is None:
        yield default.differs("topology", NAME)
        return
    for key in plan.snapshot.catalog.workload_labels:
        name = plan.pod.labels.get(key)
        if isinstance(name, str) and name:
            term = {"topologyKey": default.value, "labelSelector": {"matchLabels": {key: name}}}
            yield Edit(op="add", path=_PATH, value={"weight": _WEIGHT, "podAffinityTerm": term}, rule=NAME, policies=default.policies)
            return


def _speaks(pod: Pod) -> bool:
    affinity = mapping_at(pod.spec, "affinity", ("spec",))
    return any(mapping_at(affinity, "podAffinity", ("spec", "affinity")).values())
