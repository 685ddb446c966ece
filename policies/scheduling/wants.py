"""What a pod wants of a node, read once: the parts that kube-scheduler's filters read, and the names of those
filters that are not judged here.

Requests and limits are defaulted as the API server does it (``SetDefaults_Pod`` in k8s.io/kubernetes
pkg/apis/core/v1/defaults.go), so that a pod may come before or after that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from policies.pods.view import DEFAULT_SCHEDULER
from policies.scheduling.amounts import Amounts, HostPort, host_ports, requests
from policies.values.untyped import map_at, maps_in, text_of
from policies.verdict import Path

SELECTOR: Path = ("spec", "nodeSelector")
TERMS: Path = ("spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")


class LabelRequirement(NamedTuple):
    """One condition on a label of the node, or on its name."""

    key: str
    operator: str
    values: tuple[str, ...]
    path: Path
    """Where it stands in the pod."""


class AffinityTerm(NamedTuple):
    """One of the required terms of node affinity, of which any is enough."""

    labels: tuple[LabelRequirement, ...]
    names: tuple[LabelRequirement, ...]
    """``matchFields``"""

    @property
    def empty(self) -> bool:
        """A term without conditions matches no node (k8s.io/component-helpers
        scheduling/corev1/nodeaffinity isEmptyNodeSelectorTerm)."""
        return not (self.labels or self.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wants:
    """One pod, as its place is judged."""

    requests: Amounts
    paths: Mapping[str, Path] = field(default_factory=dict)
    """Resource -> where the pod asks most for it."""
    unreadable: frozenset[str] = frozenset()
    """Resources with an amount that is no quantity: they are not judged."""
    tolerations: tuple[Mapping[Any, Any], ...] = ()
    selector: tuple[LabelRequirement, ...] = ()
    terms: tuple[AffinityTerm, ...] | None = None
    """None without required node affinity."""
    node: str = ""
    """``spec.nodeName``"""
    ports: tuple[HostPort, ...] = ()
    scheduler: str = DEFAULT_SCHEDULER
    unjudged: tuple[str, ...] = ()
    """What kube-scheduler judges as well and this package does not: ``podAffinity``, ``volumes`` ..."""


def wants(pod: Mapping[str, Any]) -> Wants:
    """Read a pod. No content makes it raise."""
    spec = map_at(pod, "spec")
    asked = requests(spec)
    return Wants(
        requests=asked.amounts,
        paths=asked.paths,
        unreadable=asked.unreadable,
        tolerations=tuple(maps_in(spec.get("tolerations"))),
        selector=tuple(_selector(spec)),
        terms=_terms(spec),
        node=text_of(spec.get("nodeName")),
        ports=tuple(host_ports(spec)),
        scheduler=text_of(spec.get("schedulerName")) or DEFAULT_SCHEDULER,
        unjudged=tuple(_unjudged(spec)),
    )


def _selector(spec: Mapping[Any, Any]) -> Iterator[LabelRequirement]:
    for key, value in map_at(spec, "nodeSelector").items():
        if isinstance(key, str):
            yield LabelRequirement(key, "In", (text_of(value),), (*SELECTOR, key))


def _terms(spec: Mapping[Any, Any]) -> tuple[AffinityTerm, ...] | None:
    required = map_at(spec, "affinity", "nodeAffinity").get("requiredDuringSchedulingIgnoredDuringExecution")
    if not isinstance(required, Mapping):
        return None
    found = required.get("nodeSelectorTerms")
    return tuple(_term(item, (*TERMS, i)) for i, item in enumerate(found if isinstance(found, list) else ()) if isinstance(item, Mapping))


def _term(item: Mapping[Any, Any], path: Path) -> AffinityTerm:
    return AffinityTerm(tuple(_expressions(item, "matchExpressions", path)), tuple(_expressions(item, "matchFields", path)))


def _expressions(item: Mapping[Any, Any], field_: str, path: Path) -> Iterator[LabelRequirement]:
    found = item.get(field_)
    for i, one in enumerate(found if isinstance(found, list) else ()):
        if isinstance(one, Mapping):
            values = one.get("values")
            texts = tuple(map(text_of, values)) if isinstance(values, list) else ()
            yield LabelRequirement(text_of(one.get("key")), text_of(one.get("operator")), texts, (*path, field_, i))


_LOCAL = frozenset(
    {"configMap", "secret", "emptyDir", "downwardAPI", "projected", "hostPath", "image", "nfs", "csi", "name"},
)
"""Kinds of volume that no filter of kube-scheduler reads (pkg/scheduler/framework/plugins/volumebinding, volumezone,
volumerestrictions, nodevolumelimits); ``csi`` is an inline volume, which only counts towards a node's limit of a driver."""


def _unjudged(spec: Mapping[Any, Any]) -> Iterator[str]:
    """Yield the fields of the pod that other filters read."""
    affinity = map_at(spec, "affinity")
    for name in ("podAffinity", "podAntiAffinity"):
        required = map_at(affinity, name).get("requiredDuringSchedulingIgnoredDuringExecution")
        if isinstance(required, list) and required:
            yield name
    if any(item.get("whenUnsatisfiable") != "ScheduleAnyway" for item in maps_in(spec.get("topologySpreadConstraints"))):
        yield "topologySpreadConstraints"
    if any(set(volume) - _LOCAL for volume in maps_in(spec.get("volumes"))):
        yield "volumes"
    for name in ("resourceClaims", "schedulingGates"):
        if spec.get(name):
            yield name
