"""Put each field of a policy or a template into words: one label, one text and one form, by
``policies.objects.definition``.

Statuses, ``berth effective`` and all messages that name a requirement use these, so that a field which is
added to the definition is shown by all of them. A field is named by its path,
``spec.require.gpusPerPod.max``; its value is the stored, typed one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from operator import attrgetter
from typing import Any

from catalog.nearest import list_known
from catalog.shapes.scalars import Flag, WordChoice
from catalog.shapes.structs import Field, Items, Mapped, Shape, Struct
from kube import duration, quantity
from kube.labels import LabelSelector
from policies.objects import definition
from policies.objects.field_types import Kind, Memory, SliceSize, Span, UsableMemory
from policies.policy import NodeTemplate, Policy

# --- which fields there are, and what an object gives -------------------------------------------------------


def _fields_to(path: str) -> Iterator[Field]:
    """Yield the fields from the spec down to the one at ``path``. The two kinds of spec have no field of
    the same name."""
    fields = [field for kind in ("ClusterGPUPolicy", "GPUNodeTemplate") for field in definition.SPECS[kind].fields]
    for name in path.split(".")[1:]:
        field = next(field for field in fields if field.name == name)
        yield field
        fields = [*_inner(field)]


def _shape(path: str) -> Shape:
    """Return the shape of a field, or of one item of it, ``spec.allow.tolerations[]``."""
    shape = field_at(path.removesuffix("[]")).shape
    return shape.of if isinstance(shape, Items) and path.endswith("[]") else shape


def _inner(field: Field) -> tuple[Field, ...]:
    return field.shape.fields if isinstance(field.shape, Struct) else ()


def field_at(path: str) -> Field:
    """Return the field at ``path``."""
    *_, field = _fields_to(path)
    return field


def label(path: str) -> str:
    """Return the name of a field within its section: ``gpusPerPod.max``."""
    return path.split(".", 2)[2]


def paths(section: str) -> Iterator[str]:
    """Yield the path of each setting in a section such as ``spec.require``.

    A setting is a field, or each field in it if several policies merge by these (``Field.merge``).
    """
    for field in _inner(field_at(section)):
        inside = f"{section}.{field.name}"
        if any(one.merge != "each" for one in _inner(field)):
            yield from paths(inside)
        else:
            yield inside


def value_at(given: object, path: str) -> Any:
    """Return the value that a policy or a template has at ``path``, or None if it sets none."""
    for field in _fields_to(path):
        given = None if given is None else _value(field, given)
    return given


_attribute = lru_cache(maxsize=256)(attrgetter)
"""Cached by field: making a getter takes longer than calling it."""


def _value(field: Field, owner: object) -> Any:
    if field.attribute == "":
        return owner if any(_given(_inner(field), owner)) else None
    value = _attribute(field.attribute or field.argument)(owner)
    if isinstance(field.shape, WordChoice):
        return next((word for word in field.shape.values if field.shape.means.get(word, word) == value), None)
    return None if value == () else value


def _given(fields: Iterable[Field], owner: object) -> Iterator[tuple[Field, Any]]:
    return ((field, value) for field in fields if (value := _value(field, owner)) is not None)


# --- in words -----------------------------------------------------------------------------------------------


def describe_value(path: str, value: object, most: int | None = None) -> str:
    """Return a value in words: ``in [hopper, ampere]``, ``2h``, ``team=research:NoSchedule``.

    ``most``: items named of each list; None: all.
    """
    return _text(_shape(path), value, most)


def describe_field(path: str, value: object, most: int | None = None) -> str:
    """Return a field with its value: ``families in [hopper, ampere]``."""
    return _phrase(field_at(path), value, most)


def summarize_object(given: Policy | NodeTemplate, most: int) -> str:
    """Return all that a policy or a template does: ``require families in [hopper], gpusPerPod max 8;
    default gracePeriod 30m``."""
    kind: Kind = "GPUNodeTemplate" if isinstance(given, NodeTemplate) else "ClusterGPUPolicy"
    fields = [field for field in definition.SPECS[kind].fields if field.name not in ("mode", "match")]
    return "; ".join(filter(None, (_section(field, value, most) for field, value in _given(fields, given))))


def _section(field: Field, value: object, most: int) -> str:
    parts = [_phrase(inner, item, most) for inner, item in _given(_inner(field), value)]
    return _phrase(field, value, most) if not _inner(field) else f"{field.name} {', '.join(parts)}" if parts else ""


def _phrase(field: Field, value: Any, most: int | None) -> str:
    if not field.words:
        return f"{field.name} {_text(field.shape, value, most)}"
    return field.words.format(_listed(field.shape, value, most) if isinstance(field.shape, Items) else _text(field.shape, value, most))


def _text(shape: Shape, value: Any, most: int | None) -> str:
    match shape:
        case Struct():
            return shape.text(value) if shape.text else " ".join(_in_struct(shape, value, most))
        case Items():
            return f"[{_listed(shape, value, most)}]"
        case Mapped():
            return ", ".join(f"{key}={item}" for key, item in value)
        case Span() if isinstance(value, int):
            return duration.format_duration(value)
        case SliceSize():
            return f"{value}gb"
        case UsableMemory():
            return f"{value}Mi"
        case Memory():
            return quantity.binary(value)
        case Flag():
            return "true" if value else "false"
    return str(value)


def _in_struct(shape: Struct, owner: object, most: int | None) -> Iterator[str]:
    """Yield the fields one by one, without those that have their default."""
    return (_phrase(field, value, most) for field, value in _given(shape.fields, owner) if value != field.default)


def _listed(shape: Items, values: Iterable[Any], most: int | None) -> str:
    """Return ``a, b, c``, or with more than ``most`` values ``a, b and 7 more``, with ``most`` - 1 of
    them."""
    texts = [_text(shape.of, value, most) for value in values]
    return list_known(texts, len(texts) if most is None or len(texts) <= most else most - 1)


def form(path: str, value: object) -> Any:
    """Return a value for programs: ``{"in": ["hopper"]}``, as its object writes it, but with durations in
    seconds."""
    return _form(_shape(path), value)


def _form(shape: Shape, value: Any) -> Any:
    match shape:
        case Struct():
            return {field.name: _form(field.shape, item) for field, item in _given(shape.fields, value)}
        case Items():
            return [_form(shape.of, item) for item in value]
    return value


# --- which pods a policy is for -----------------------------------------------------------------------------


def condition(policy: Policy) -> str:
    """Return the condition on pods, ``pods of Job that ask for at least 8 GPUs``; empty if all pods match.

    It takes the fields that a GPUPolicy has, which are those about pods.
    """
    fields = [field for field in _inner(field_at("spec.match")) if field.of("GPUPolicy")]
    parts = [_phrase(field, value, None) for field, value in _given(fields, policy)]
    return " ".join(["pods", *parts]) if parts else ""


def describe_scope(policy: Policy, namespaces: str = "namespaces") -> str:
    """Return the namespaces of a policy: ``all namespaces``, ``this namespace``, ``namespaces with
    team=research``."""
    selector = policy.match.namespace_selector
    if policy.namespace is not None:
        return "this namespace"
    return "all namespaces" if selector in (None, LabelSelector()) else f"{namespaces} with {selector}"
