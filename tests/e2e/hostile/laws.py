"""What a stored pod was given beyond what its author wrote, and whether the cluster's guardrails give it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.e2e.hostile.policies_of_owners import CAP, GRANTED, POOL, PROTECTION
from tests.testcluster.controlplane.api import Reply

Raw = dict[str, Any]
PROTECTING = {
    "karpenter.sh/do-not-disrupt",
    "cluster-autoscaler.kubernetes.io/safe-to-evict",
    "autoscaling.cast.ai/removal-disabled",
    "nvidia.com/gpu-driver-upgrade-drain.skip",
}
_SPAN = r"(\d+[hms])+"
NOT_OURS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
"""taints that the API server makes every pod tolerate"""


def beyond(before: Reply, now: Reply, guard: str) -> list[str]:
    """What ``now`` has that neither the same pod ``before`` the namespace had policies of its own, nor the guard's grants, give it."""
    if not now.ok:
        return []
    if not before.ok:
        return [f"it was denied without the namespace's policies: {before.message}"]
    return list(_found(before.body, now.body, guard))


def _found(before: Raw, now: Raw, guard: str) -> Iterator[str]:
    had = tolerations(before)
    for one in tolerations(now):
        if one not in had and not any(granted(one, taint) for taint in GRANTED[guard]):
            yield f"toleration {json.dumps(one)}"
    grace, had_grace = (pod["spec"]["terminationGracePeriodSeconds"] for pod in (now, before))
    if grace > max(CAP, had_grace):
        yield f"terminationGracePeriodSeconds {grace}"
    for name, value in marks(now).items():
        if name in PROTECTING and marks(before).get(name) != value and not (re.fullmatch(_SPAN, value) and seconds(value) <= PROTECTION):
            yield f"{name}: {value}"
    if "denied" in _selected(now) or ("granted" in _selected(now) and not GRANTED[guard]):
        yield f"nodes of {_selected(now)}"


def granted(toleration: Raw, taint: Raw) -> bool:
    """Whether it tolerates no taint but those that ``taint`` describes: a key, and a value and effect where it names them."""
    if toleration.get("key") != taint["key"]:
        return False
    exact = toleration.get("operator", "Equal") == "Equal" and toleration.get("value", "") == taint["value"] if "value" in taint else True
    return exact and taint.get("effect") in (None, toleration.get("effect"))


def tolerations(pod: Raw) -> list[Raw]:
    """Without those of the API server's own."""
    return [one for one in pod["spec"].get("tolerations") or () if one.get("key") not in NOT_OURS]


def marks(pod: Raw) -> Mapping[str, str]:
    """Annotations and labels."""
    return {**(pod["metadata"].get("annotations") or {}), **(pod["metadata"].get("labels") or {})}


def seconds(span: str) -> int:
    """Of a duration in hours, minutes and seconds."""
    return sum(int(number) * {"h": 3600, "m": 60, "s": 1}[unit] for number, unit in re.findall(r"(\d+)([hms])", span))


def _selected(pod: Raw) -> set[str]:
    """Values of the templates' label that its node affinity asks for."""
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    terms: Sequence[Raw] = (affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get("nodeSelectorTerms") or ()
    expressions = [one for term in terms for one in term.get("matchExpressions") or ()]
    return {value for one in expressions if one["key"] == POOL and one["operator"] == "In" for value in one["values"]}
