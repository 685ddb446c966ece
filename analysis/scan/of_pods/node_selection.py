"""Whether a pod's own words about nodes admit a node with certain labels: nodeSelector and required node affinity, as kube-scheduler
reads them (k8s.io/component-helpers scheduling/corev1/nodeaffinity)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from kube.labels import Expression
from kube.scheduling import node_selector, required_terms
from kube.tree import Raw, map_at


def admits(raw: Raw, labels: Mapping[str, str], keys: Collection[str] | None = None) -> bool:
    """Return whether a node with these labels is one that the pod may be on. Terms by fields are about a name, and pass.

    ``keys``: the labels that count, if not all do: what the pod says of others is left out.
    """

    def hold(expressions: Iterable[Expression]) -> bool:
        return all(expression.holds(labels) for expression in expressions if keys is None or expression.key in keys)

    spec = map_at(raw, "spec")
    terms = required_terms(spec)
    return hold(node_selector(spec)) and (terms is None or any(hold(term.labels) for term in terms if not term.empty))
