"""Whether the pods of a workload match a flavor of a ClusterQueue, by Kueue's own rule.

Kueue holds required node affinity and nodeSelector against the labels of a flavor, of which it reads those on keys that
this flavor has, and its taints of effect NoSchedule and NoExecute against the tolerations of the pod and of the flavor
(kueue 0.19.2 pkg/scheduler/flavorassigner/flavorassigner.go, checkFlavorForPodSets and flavorSelector).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from kube.scheduling import required_terms
from kube.taints import HARD, Taint, is_tolerated
from kube.tree import map_at, maps_in, text_of
from policies.facts.admission_queues import Flavor

_OPERATORS = frozenset(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))


class Apart(NamedTuple):
    """Why pods and a flavor do not match: by a taint of the flavor, or else by a label."""

    taint: Taint | None = None
    key: str = ""
    value: str = ""
    """Of the flavor's label."""


def apart(spec: Mapping[Any, Any], flavor: Flavor) -> Apart | None:
    """Return why pods of this spec do not get a flavor; None if they may, or if the spec is one that Kueue can't read."""
    labels = dict(flavor.labels)
    tolerations = [*maps_in(spec.get("tolerations")), *(toleration.written() for toleration in flavor.tolerations)]
    for taint in flavor.taints:
        if taint.effect in HARD and not is_tolerated(taint, tolerations):
            return Apart(taint=taint)
    for key, value in map_at(spec, "nodeSelector").items():
        if key in labels and labels[key] != value:
            return Apart(key=text_of(key), value=labels[key])
    terms = [[expression for expression in term.labels if expression.key in labels] for term in required_terms(spec) or ()]
    if not all(terms) or any(expression.operator not in _OPERATORS for term in terms for expression in term):
        return None  # a term that says nothing of the flavor's keys matches it
    missed = [next((expression for expression in term if not expression.holds(labels)), None) for term in terms]
    first = next((expression for expression in missed if expression is not None), None)
    return None if first is None or None in missed else Apart(key=first.key, value=labels[first.key])


def placed(pod: Mapping[str, Any], flavor: Flavor) -> dict[str, Any]:
    """Return a pod as it is made once Kueue has given its workload this flavor: with its labels as nodeSelector, and its
    tolerations (pkg/podset, Merge)."""
    spec = map_at(pod, "spec")
    tolerations = [*maps_in(spec.get("tolerations")), *(toleration.written() for toleration in flavor.tolerations)]
    given: dict[str, Any] = {"nodeSelector": {**map_at(spec, "nodeSelector"), **dict(flavor.labels)}} if flavor.labels else {}
    return {**pod, "spec": {**spec, **given, **({"tolerations": tolerations} if tolerations else {})}}
