"""Taints of nodes, and which of them a toleration tolerates (k8s.io/api core/v1 Taint, Toleration ``ToleratesTaint``)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from kube.tree import maps_in, text_of

Effect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
EFFECTS: tuple[Effect, ...] = ("NoSchedule", "PreferNoSchedule", "NoExecute")
HARD = ("NoSchedule", "NoExecute")
"""Effects that keep pods off (pkg/scheduler/framework/plugins/helper ``DoNotScheduleTaintsFilterFunc``)."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Taint:
    key: str
    value: str = ""
    effect: Effect = "NoSchedule"

    def __str__(self) -> str:
        """Return ``pool=a100:NoSchedule``, as ``kubectl taint`` writes it."""
        return f"{self.key}{f'={self.value}' if self.value else ''}:{self.effect}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TolerationPattern:
    """A toleration to add, to forbid or to allow. None means any value or effect in ``forbid`` and ``allow``,
    and an absent field in ``tolerate``."""

    key: str
    value: str | None = None
    effect: Effect | None = None

    def matches(self, taint: Taint) -> bool:
        """Return whether it describes this taint."""
        return taint.key == self.key and self.value in (None, taint.value) and self.effect in (None, taint.effect)

    def __str__(self) -> str:
        """Return ``team=other:NoSchedule``, as kubectl writes taints."""
        value = f"={self.value}" if self.value is not None else ""
        return f"{self.key}{value}" + (f":{self.effect}" if self.effect else "")


UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable")
"""What the node controller writes on a cordoned node (k8s.io/api core/v1 TaintNodeUnschedulable)."""
_STATES = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "readiness.k8s.io/", "karpenter.sh/")
_STATE_ENDS = ("/agent-not-ready", "ByClusterAutoscaler")
_STATE_KEYS = ("amd-gpu-unhealthy", "amd-dcm", "remediator.kubernetes.azure.com/unschedulable")
"""Of device operators and clouds."""


def passes(key: str, startup: Iterable[str] = ()) -> bool:
    """Return whether a taint tells the state of a node that may end by itself: one of Kubernetes' own
    (``not-ready``, ``unschedulable``, ``disk-pressure`` ...: k8s.io/api/core/v1/well_known_taints.go), of the cloud's controller
    (``uninitialized``), of the node readiness controller, of Karpenter (``unregistered``, ``disrupted``), of an agent that starts (CSI
    drivers, Cilium), of a device that is mended (AMD's operator), of a node that goes (Cluster Autoscaler), or one of ``startup``."""
    return key.startswith(_STATES) or key.endswith(_STATE_ENDS) or key in _STATE_KEYS or key in startup


def taints_in(value: Any) -> Iterator[Taint]:
    """Yield the taints in a list that have a key and a known effect."""
    for item in maps_in(value):
        effect = next((effect for effect in EFFECTS if effect == item.get("effect")), None)
        if effect is not None and (key := text_of(item.get("key"))):
            yield Taint(key=key, value=text_of(item.get("value")), effect=effect)


def is_tolerated(taint: Taint, tolerations: Iterable[Mapping[Any, Any]]) -> bool:
    """Return whether any of the tolerations matches the taint.

    The operators Gt and Lt (KEP-5471), which an API server that does not know them denies, count as known; others
    match nothing.
    """
    return any(_matches(toleration, taint.key, taint.value, taint.effect, unknown=False) for toleration in tolerations)


def may_tolerate(toleration: Mapping[Any, Any], pattern: TolerationPattern) -> bool:
    """Return whether a toleration matches some taint that the pattern describes. One with an unknown operator may match
    all values."""
    return _matches(toleration, pattern.key, pattern.value, pattern.effect, unknown=True)


def covers(toleration: Mapping[Any, Any], wanted: Mapping[Any, Any]) -> bool:
    """Return whether an existing toleration matches all taints that ``wanted`` does, whose key is set and whose operator is
    Exists or Equal.

    A toleration with tolerationSeconds applies only for a while and does not cover; nor does one with an unknown
    operator.
    """
    if toleration.get("tolerationSeconds") is not None:
        return False
    if wanted["operator"] == "Exists" and text_of(toleration.get("operator")) != "Exists":
        return False
    return _matches(toleration, wanted["key"], wanted.get("value", ""), wanted.get("effect", ""), unknown=False)


def _matches(toleration: Mapping[Any, Any], key: str, value: str | None, effect: str | None, *, unknown: bool) -> bool:
    """``value`` and ``effect`` None: of some taint. ``effect`` "": of each. ``unknown``: the answer for an unknown operator."""
    own_effect, own_key = text_of(toleration.get("effect")), text_of(toleration.get("key"))
    if (own_effect and effect is not None and own_effect != effect) or (own_key and own_key != key):
        return False
    operator, own = text_of(toleration.get("operator")), text_of(toleration.get("value"))
    match operator:
        case "" | "Equal":
            return value in (None, own)
        case "Exists":
            return True
        case "Lt" | "Gt":
            return _compares(operator, own, value)
    return unknown


_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}", re.ASCII)
"""The integers that ``IsDecimalInteger`` of k8s.io/apimachinery pkg/api/validate/content accepts, no longer than an int64."""
_INT64 = range(-(2**63), 2**63)


def _compares(operator: str, own: str, value: str | None) -> bool:
    """Return whether the comparison holds. It never does for a value that is no int64; None means the most
    extreme value."""
    bound = _int64(own)
    farthest = _INT64[-1] if operator == "Gt" else _INT64[0]
    number = farthest if value is None else _int64(value)
    if bound is None or number is None:
        return False
    return number > bound if operator == "Gt" else number < bound


@lru_cache(maxsize=4096)
def _int64(text: str) -> int | None:
    return int(text) if _INTEGER.fullmatch(text) and int(text) in _INT64 else None
