"""Label selectors of objects that a cluster stores. No content makes the reader raise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from kube.labels import Expression, LabelSelector
from kube.tree import map_at, maps_in, text_of

_Operator = Literal["In", "NotIn", "Exists", "DoesNotExist"]


def selector_of(value: Mapping[Any, Any]) -> LabelSelector:
    """Return the selector. A part that can't be read selects everything."""
    labels = tuple((text_of(key), text_of(text)) for key, text in map_at(value, "matchLabels").items())
    expressions = (_expression(part) for part in maps_in(value.get("matchExpressions")))
    return LabelSelector(match_labels=labels, match_expressions=tuple(filter(None, expressions)))


def _expression(value: Mapping[Any, Any]) -> Expression | None:
    operator: _Operator | None = next((word for word in get_args(_Operator) if word == value.get("operator")), None)
    values = value.get("values")
    texts = tuple(map(text_of, values)) if isinstance(values, list) else ()
    return Expression(key=text_of(value.get("key")), operator=operator, values=texts) if operator is not None else None
