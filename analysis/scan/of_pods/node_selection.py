"""Whether a pod's own words about nodes admit a node with certain labels: nodeSelector and required node affinity, as kube-scheduler
reads them (k8s.io/component-helpers scheduling/corev1/nodeaffinity)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from policies.offers.label_matching import may_match
from policies.pods.view import TERMS, Raw
from policies.values.untyped import map_at, maps_in, text_of


def admits(raw: Raw, labels: Mapping[str, str], keys: Collection[str] | None = None) -> bool:
    """Return whether a node with these labels is one that the pod may be on. Terms by fields are about a name, and pass.

    ``keys``: the labels that count, if not all do: what the pod says of others is left out.
    """
    selector = map_at(raw, "spec", "nodeSelector")
    if any(labels.get(text_of(key)) != text_of(value) for key, value in selector.items() if keys is None or key in keys):
        return False
    required = map_at(raw, *(str(part) for part in TERMS[:-1]))
    terms = [term for term in maps_in(required.get(TERMS[-1])) if term.get("matchExpressions") or term.get("matchFields")]
    return not required or any(_matches(term, labels, keys) for term in terms)


def _matches(term: Mapping[Any, Any], labels: Mapping[str, str], keys: Collection[str] | None) -> bool:
    for expression in maps_in(term.get("matchExpressions")):
        if keys is not None and expression.get("key") not in keys:
            continue
        key, values = text_of(expression.get("key")), expression.get("values")
        texts = [text_of(value) for value in values] if isinstance(values, list) else []
        if not may_match((labels.get(key),), text_of(expression.get("operator")), texts, frozenset()):
            return False
    return True
