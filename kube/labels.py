"""Labels: those of nodes that every cluster knows, and expressions and selectors over labels, as Kubernetes evaluates them
(k8s.io/apimachinery pkg/labels ``Requirement.Matches``)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from kube.tree import Path, map_at, maps_in, text_of

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
ARCH = "kubernetes.io/arch"
OS = "kubernetes.io/os"
HOSTNAME = "kubernetes.io/hostname"
"""Labels of k8s.io/api core/v1 well_known_labels.go."""
OLDER_NAMES = {
    "failure-domain.beta.kubernetes.io/zone": ZONE,
    "failure-domain.beta.kubernetes.io/region": REGION,
    "beta.kubernetes.io/arch": ARCH,
    "beta.kubernetes.io/os": OS,
    "beta.kubernetes.io/instance-type": INSTANCE_TYPE,
}
"""Older name of a label -> its name (sigs.k8s.io/karpenter pkg/apis/v1/labels.go ``NormalizedLabels``)."""

NODE_POOL = "karpenter.sh/nodepool"
INITIALIZED = "karpenter.sh/initialized"
"""Karpenter writes it when a node offers what was requested of it, and until then counts what its machine has
(sigs.k8s.io/karpenter pkg/controllers/state/statenode.go ``Capacity``, nodeclaim/lifecycle/initialization.go)."""
CAPACITY_TYPE = "karpenter.sh/capacity-type"
OF_KARPENTER = frozenset({NODE_POOL, CAPACITY_TYPE, ARCH, OS, INSTANCE_TYPE, "node.kubernetes.io/windows-build", REGION, ZONE})
"""Labels that every machine of Karpenter has, whatever its cloud (pkg/apis/v1/labels.go ``WellKnownLabels``)."""
EKS_GROUP, GKE_GROUP, AKS_GROUP = "eks.amazonaws.com/nodegroup", "cloud.google.com/gke-nodepool", "kubernetes.azure.com/agentpool"
CAST_AI = "provisioner.cast.ai/managed-by"
SCALED_BY_CLOUD = (GKE_GROUP, AKS_GROUP, "agentpool")
"""Labels of nodes whose groups the cloud's own autoscaler may scale up from nothing."""

GPU_PRESENT = "nvidia.com/gpu.present"
"""The GPU Operator keeps it on every node with a GPU (NVIDIA/gpu-operator controllers/nodelabeling_controller.go)."""
GPU_PRODUCT, GPU_FAMILY = "nvidia.com/gpu.product", "nvidia.com/gpu.family"
GPU_COUNT = "nvidia.com/gpu.count"
AMD_PREFIX, AMD_PARTITION = "amd.com/", "amd.com/compute-memory-partition"
"""The partitions into which AMD's labeller says that the GPUs of a node are cut, such as ``cpx_nps4``: a resource name after the prefix."""
GPU_REPLICAS = "nvidia.com/gpu.replicas"
"""As how many devices the plugin offers each GPU, by time slicing or MPS."""
GPU_DISCOVERED = "nvidia.com/gfd.timestamp"
"""When GPU Feature Discovery started on the node, in Unix seconds; not written with ``--no-timestamp``. It writes the four above
too (NVIDIA/k8s-device-plugin internal/lm/resource.go, timestamp.go)."""
MIG_STRATEGY = "nvidia.com/mig.strategy"
MIG_PREFIX, MIG_COUNT_END = "nvidia.com/mig-", ".count"
"""Of each MIG profile of the strategy ``mixed`` GPU Feature Discovery writes ``nvidia.com/mig-1g.10gb.count``, and with replicas
``.replicas`` (NVIDIA/k8s-device-plugin internal/lm/mig-strategy.go)."""
MIG_CONFIG = "nvidia.com/mig.config"
MIG_STATE = "nvidia.com/mig.config.state"
"""Of NVIDIA's MIG manager: ``pending`` or ``rebooting`` while the devices of a node change, then ``success`` or ``failed``
(NVIDIA/mig-parted, deployments/gpu-operator)."""

Possible = tuple[str | None, ...]
"""The values that a label may have on nodes of one kind. None: no label. A value that ends in ``*`` is any value that
begins so; ``?`` is a value that is in no list, and ``*`` any value at all."""
ABSENT: Possible = (None,)
NEW: Possible = ("?",)
ANY: Possible = ("*",)
POSITIVE = frozenset({"In", "Exists", "Gt", "Lt"})
"""Operators that a missing label does not satisfy."""
_OF_SELECTORS = frozenset({"In", "NotIn", "Exists", "DoesNotExist"})
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_INT64 = 2**63


class Expression(NamedTuple):
    """One condition on a label, of a label selector or of node affinity."""

    key: str
    operator: str
    """In, NotIn, Exists or DoesNotExist; of node affinity also Gt or Lt. Another is satisfied by nothing."""
    values: tuple[str, ...] = ()
    path: Path = ()
    """Its path in the pod, where that matters."""

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Return whether these labels satisfy it. NotIn and DoesNotExist hold if the key is missing."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                return value is not None and self._compares(value)
        return False

    def holds_name(self, node: str) -> bool:
        """Return whether a node of this name satisfies it as one of ``matchFields``, which know one field
        (k8s.io/component-helpers scheduling/corev1/nodeaffinity ``nodeSelectorRequirementsAsFieldSelector``)."""
        if self.key != "metadata.name" or len(self.values) != 1:
            return False
        return {"In": node == self.values[0], "NotIn": node != self.values[0]}.get(self.operator, False)

    def may_hold(self, possible: Possible, known: frozenset[str]) -> bool:
        """Return whether a label with one of these possible values can satisfy it. ``known``: the values that ``?`` is
        none of."""
        match self.operator:
            case "In":
                return any(self._may_be(value, known) for value in possible if value is not None)
            case "NotIn":
                return any(value is None or value in ("*", "?") or value not in self.values for value in possible)
            case "Exists":
                return possible != ABSENT
            case "DoesNotExist":
                return None in possible
            case "Gt" | "Lt":
                return any(value in ("*", "?") or self._compares(value) for value in possible if value is not None)
        return False

    def implies(self, other: Expression) -> bool:
        """Return whether all labels that satisfy this expression satisfy the other, which has the same key and is no Gt or
        Lt. False where neither is certain."""
        mine, values = set(self.values), set(other.values)
        match other.operator:
            case "In":
                return self.operator == "In" and mine <= values
            case "NotIn":
                return {"In": mine.isdisjoint(values), "NotIn": values <= mine}.get(self.operator, self.operator == "DoesNotExist")
            case "Exists":
                return self.operator in POSITIVE
        return self.operator == "DoesNotExist"

    def __str__(self) -> str:
        """Return ``team in (a, b)``, ``team`` or ``!team``, in the syntax of ``kubectl -l``."""
        if self.operator in ("Exists", "DoesNotExist"):
            return f"{'' if self.operator == 'Exists' else '!'}{self.key}"
        return f"{self.key} {self.operator.lower()} ({', '.join(self.values)})"

    def _may_be(self, value: str, known: frozenset[str]) -> bool:
        if value in self.values or value == "*" or (value == "?" and not known.issuperset(self.values)):
            return True
        return any(_begins(written, value) for written in self.values)

    def _compares(self, value: str) -> bool:
        number, bound = integer(value), integer(self.values[0] if len(self.values) == 1 else None)
        if number is None or bound is None:
            return False
        return number > bound if self.operator == "Gt" else number < bound


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSelector:
    """A Kubernetes label selector; an empty one matches everything."""

    match_labels: tuple[tuple[str, str], ...] = ()
    match_expressions: tuple[Expression, ...] = ()

    @property
    def keys(self) -> frozenset[str]:
        """The label keys that the selector uses."""
        return frozenset((*(key for key, _ in self.match_labels), *(expression.key for expression in self.match_expressions)))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether the labels match."""
        return all(labels.get(key) == value for key, value in self.match_labels) and all(
            expression.holds(labels) for expression in self.match_expressions
        )

    def __str__(self) -> str:
        """Return ``team=research,environment notin (dev),!tier``, in the syntax of ``kubectl -l``;
        ``anything`` for an empty selector."""
        return ",".join([*(f"{key}={value}" for key, value in self.match_labels), *map(str, self.match_expressions)]) or "anything"


def selector_of(value: Mapping[Any, Any]) -> LabelSelector:
    """Return the label selector of a stored object. A part that can't be read selects everything."""
    labels = tuple((text_of(key), text_of(text)) for key, text in map_at(value, "matchLabels").items())
    expressions = (read_expression(part) for part in maps_in(value.get("matchExpressions")))
    return LabelSelector(match_labels=labels, match_expressions=tuple(part for part in expressions if part.operator in _OF_SELECTORS))


def read_expression(value: Mapping[Any, Any], path: Path = ()) -> Expression:
    """Return the expression in a stored object or a pod, with its path. No content makes it raise."""
    values = value.get("values")
    texts = tuple(map(text_of, values)) if isinstance(values, list) else ()
    return Expression(text_of(value.get("key")), text_of(value.get("operator")), texts, path)


def may_all_hold(expressions: Sequence[Expression]) -> bool:
    """Return whether one label can satisfy all of these expressions of a label selector, which share one key.

    There is always one more value than those that they name.
    """
    key = expressions[0].key
    named = {value for expression in expressions for value in expression.values}
    fresh = f"{''.join(sorted(named))}-"  # longer than each, so equal to none
    labels = ({}, *({key: value} for value in (*sorted(named), fresh)))
    return any(all(expression.holds(every) for expression in expressions) for every in labels)


def is_among(value: str, classes: Iterable[Possible]) -> bool:
    """Return whether the value matches a possible value that ends in ``*``, as ``n1-standard-8`` matches
    ``n1-*``."""
    return any(_begins(value, known) for possible in classes for known in possible if known is not None)


def integer(text: str | None) -> int | None:
    """Return a number as Go's ``strconv.ParseInt(text, 10, 64)`` reads it, and None where that is an error."""
    if text is None or len(text) > 1_000 or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -_INT64 <= number < _INT64 else None


def _begins(value: str, many: str) -> bool:
    return len(many) > 1 and many.endswith("*") and value.startswith(many[:-1])
