"""Taints against tolerations, and labels against node selectors, as kube-scheduler reads them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from kube.taints import Taint
from policies.scheduling.wants import LabelRequirement
from policies.values.untyped import text_of

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DECIMAL = re.compile(r"-?[1-9][0-9]*|0", re.ASCII)
"""k8s.io/apimachinery pkg/api/validate/content ``IsDecimalInteger``"""
_INT64 = 2**63


def tolerates(tolerations: Iterable[Mapping[Any, Any]], taint: Taint) -> bool:
    """Return whether any toleration matches (k8s.io/api/core/v1/toleration.go ``ToleratesTaint``).

    The operators Gt and Lt, which an API server that does not know them denies, count as known.
    """
    return any(_matches(one, taint) for one in tolerations)


def _matches(toleration: Mapping[Any, Any], taint: Taint) -> bool:
    effect, key = text_of(toleration.get("effect")), text_of(toleration.get("key"))
    if (effect and effect != taint.effect) or (key and key != taint.key):
        return False
    value = text_of(toleration.get("value"))
    match text_of(toleration.get("operator")):
        case "" | "Equal":
            return value == taint.value
        case "Exists":
            return True
        case "Lt" | "Gt" as operator:
            bound, number = _decimal(value), _decimal(taint.value)
            if bound is None or number is None:
                return False
            return number < bound if operator == "Lt" else number > bound
    return False


def holds(expression: LabelRequirement, labels: Mapping[str, str]) -> bool:
    """Return whether a node's labels satisfy an expression (k8s.io/apimachinery pkg/labels ``Requirement.Matches``):
    NotIn and DoesNotExist hold if the key is missing, and what cannot be read holds never."""
    found = labels.get(expression.key)
    match expression.operator:
        case "In":
            return found is not None and found in expression.values
        case "NotIn":
            return found is None or found not in expression.values
        case "Exists":
            return found is not None
        case "DoesNotExist":
            return found is None
        case "Gt" | "Lt":
            number, bound = integer(found), integer(expression.values[0] if len(expression.values) == 1 else None)
            if number is None or bound is None:
                return False
            return number > bound if expression.operator == "Gt" else number < bound
    return False


def names(expression: LabelRequirement, node: str) -> bool:
    """Return whether a node of this name satisfies a ``matchFields``, which knows one field
    (k8s.io/component-helpers scheduling/corev1/nodeaffinity ``nodeSelectorRequirementsAsFieldSelector``)."""
    if expression.key != "metadata.name" or len(expression.values) != 1:
        return False
    match expression.operator:
        case "In":
            return node == expression.values[0]
        case "NotIn":
            return node != expression.values[0]
    return False


def integer(text: str | None) -> int | None:
    """Return a number as Go's ``strconv.ParseInt(text, 10, 64)`` reads it."""
    return _within(int(text)) if text is not None and len(text) <= 20 and _INTEGER.fullmatch(text) else None


def _decimal(text: str) -> int | None:
    return _within(int(text)) if len(text) <= 20 and _DECIMAL.fullmatch(text) else None


def _within(number: int) -> int | None:
    return number if -_INT64 <= number < _INT64 else None
