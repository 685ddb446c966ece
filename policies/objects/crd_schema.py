"""Build the schema that a CRD takes for a spec: that of ``json_schema``, with CEL for each rule whose message
in JSON Schema would not help.

The API server's message on a pattern shows a regular expression, and its message on ``anyOf`` shows nothing.
So patterns and choices between fields are CEL here, each with a message that names the wanted form, as
Berth's parser does; and each description ends with an example, for ``kubectl explain``. What is accepted here
is a subset of what the parser accepts, except for names that only the catalog knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from catalog.shapes.scalars import PatternText, WordChoice
from catalog.shapes.structs import Field, Items, Mapped, Shape, Struct
from kube import duration
from policies.objects import definition, validation
from policies.objects import parts as part
from policies.objects.field_types import Cel, Kind, Memory, SliceSize, Span, UsableMemory
from policies.objects.json_schema import Schema, json_schema

Raw = dict[str, Any]
MOST_LABELS = 256
"""Labels of one map; as many as items of a list. The cost of a rule is bounded, and estimated from the
largest possible object."""
MOST_NESTED = 64
"""Items of a list whose items hold lists: the parser takes 256 there too, whose 65,536 values are too many
to judge."""
_CHARACTERS = 32
"""Characters of a duration, as in the parser (``kube.duration``), and of a size; a quantity may have
64 (``kube.quantity``)."""
_SECONDS = "duration(self) >= duration('1s') && duration(self) <= duration('8784h')"
_WHOLE_SECONDS = "duration(self).getMilliseconds() % 1000 == 0"
_ABOUT_SPEC: dict[Kind, str] = {
    "ClusterGPUPolicy": "The pods (match), their requirements (require), defaults (default), and what teams may use (allow).",
    "GPUPolicy": "The pods (match), their requirements (require) and defaults (default).",
    "GPUNodeTemplate": "The GPUs and capacity of these nodes, and the labels and taints that only they have.",
}


def spec_schema(kind: Kind) -> Schema:
    """Return ``properties.spec`` of the CRD of ``kind``: a structural schema, with
    ``x-kubernetes-validations``."""
    spec = definition.SPECS[kind]
    given: Schema = json_schema(kind)["properties"]["spec"]
    return {"description": _ABOUT_SPEC[kind], **_schema(given, spec, kind, "")}


def _schema(given: Schema, shape: Shape, kind: Kind, example: str) -> Schema:
    """Return the CRD's form of ``given``, the plain schema of ``shape``.

    ``example``: what to write, ``in: [hopper]``.
    """
    match shape:
        case Struct():
            return _struct(given, shape, kind)
        case Items():
            most = min(shape.most, MOST_NESTED) if _nests(shape) else shape.most
            return {**given, "maxItems": most, "items": _schema(given["items"], shape.of, kind, example)}
        case Mapped():
            values = _schema(given["additionalProperties"], part.VALUE, kind, example)
            keys = _validations([_keys(part.KEY, example)])
            return {**given, "maxProperties": MOST_LABELS, "additionalProperties": values, **keys}
        case PatternText(pattern=str()):
            return _word(given, _text(shape, example), shape.most)
        case Span():
            return _word(given, _span(shape), _CHARACTERS)
        case SliceSize():
            return _word(given, _SIZE, _CHARACTERS)
        case UsableMemory():
            return _word(given, _usable(given["pattern"]), 2 * _CHARACTERS)
        case Memory():
            return _word(given, _memory(given["pattern"], example), 2 * _CHARACTERS)
    return given


def _nests(shape: Items) -> bool:
    return isinstance(shape.of, Struct) and any(isinstance(field.shape, Items) for field in shape.of.fields)


def _struct(given: Schema, shape: Struct, kind: Kind) -> Schema:
    plain = {name: value for name, value in given.items() if name not in ("anyOf", "oneOf")}
    properties = {
        field.name: _schema(given["properties"][field.name], field.shape, kind, field.written()) | {"description": described(field)}
        for field in shape.fields
        if field.of(kind)
    }
    return {**plain, "properties": properties, **_validations(list(rules(shape, kind)))}


def described(field: Field) -> str:
    """Return the text of a field for ``kubectl explain``, which shows no enum of a list's items and no
    form of a text."""
    return f"{strip_backticks(field.description)}{_form(field.shape)}{strip_backticks(field.default_note)}\nExample: {field.written()}"


def strip_backticks(markdown: str) -> str:
    """Return the text without backticks, which a terminal shows as they are.

    Quotes replace those around words that belong together, ``berth gpus``.
    """
    return re.sub(r"`([^` ]*)`", r"\1", markdown).replace("`", "'")


def _form(shape: Shape) -> str:
    match shape:
        case Items(of=WordChoice(values=values)):
            return f" Values: {', '.join(values)}."
        case Span(word=word):
            return f" A duration such as 2h, 90s or 1h30m{f', or {word}' if word else ''}."
    return ""


def rules(shape: Struct, kind: Kind) -> Iterator[Cel]:
    """Yield the rules between the fields of ``shape`` in objects of ``kind``."""
    fields = {field.name: field for field in shape.fields}
    if shape.any_of:
        yield _any_of(shape.any_of, fields[shape.any_of[0]])
    if shape.one_of:
        yield _one_of(shape.one_of, fields[shape.one_of[0]])
    for rule in shape.rules:
        yield from (cel for cel in validation.IN_CEL[rule] if not cel.kinds or kind in cel.kinds)


def _any_of(names: tuple[str, ...], first: Field) -> Cel:
    return Cel(
        rule=" || ".join(f"has(self.{_escaped(name)})" for name in names),
        message=f"must have {' or '.join(names)}; write {first.written()}",
        reason="FieldValueRequired",
    )


def _one_of(names: tuple[str, ...], first: Field) -> Cel:
    neither = f"must have {' or '.join(names)}; write {first.written()}"
    both = f"must have only one of {' and '.join(names)}; remove one"
    there = [f"has(self.{_escaped(name)})" for name in names]
    return Cel(
        rule=f"[{', '.join(there)}].exists_one(there, there)", message=neither, message_expression=f"{there[0]} ? '{both}' : '{neither}'"
    )


def _escaped(name: str) -> str:
    """Return a field's name in CEL: ``in`` is a reserved word, for which the API server offers another
    name."""
    return f"__{name}__" if name == "in" else name


def _text(text: PatternText, example: str) -> Cel:
    return Cel(rule=f"self.matches({_quoted(text)})", message=f"is not {text.wanted}; write {example}")


def _keys(text: PatternText, example: str) -> Cel:
    return Cel(
        rule=f"self.all(key, key.size() <= {text.most} && key.matches({_quoted(text)}))",
        message=f"has a key that is not {text.wanted}; write {example}",
    )


def _quoted(text: PatternText) -> str:
    """Return the pattern as a raw string of CEL, where a backslash stands for itself."""
    assert text.pattern is not None
    assert "'" not in text.pattern
    return f"r'{text.pattern}'"


def _span(span: Span) -> Cel:
    right = f"self.size() > 0 && self.matches(r'{duration.IN_ORDER}') && {_SECONDS} && {_WHOLE_SECONDS}"
    wanted = "must be a duration in whole seconds, from 1s to a year (8784h); write 2h, 90s or 1h30m"
    if span.word is None:
        return Cel(rule=right, message=wanted)
    return Cel(rule=f"self == '{span.word}' || {right}", message=f"{wanted}, or {span.word}")


_SIZE = Cel(
    rule="self.matches('^[0-9]{1,4}gb$')",
    message="is not a nominal MIG slice size; write slice: 10gb",
    message_expression=(
        "'is not a nominal MIG slice size; write slice: ' + (self.find('[0-9]{1,4}gb') == '' ? '10gb' : self.find('[0-9]{1,4}gb'))"
    ),
)


def _usable(pattern: str) -> Cel:
    return Cel(
        rule=f"self.matches(r'{pattern}') && quantity(self).isGreaterThan(quantity('0'))",
        message="must be an amount of memory; write usableMemory: 9.5Gi",
    )


def _memory(pattern: str, example: str) -> Cel:
    return Cel(
        rule=f"self.matches(r'{pattern}') && quantity(self).compareTo(quantity('1Mi')) >= 0"
        " && quantity(self).compareTo(quantity('1Ti')) <= 0",
        message=f"must be an amount of memory from 1Mi to 1Ti; write {example}",
    )


def _word(given: Schema, cel: Cel, most: int) -> Schema:
    """Return the schema of text that a rule judges; it has a length, because the rule's cost is estimated
    from it."""
    return {"type": given["type"], "maxLength": most, **_validations([cel])}


def _validations(cels: list[Cel]) -> Raw:
    return {"x-kubernetes-validations": [_validation(cel) for cel in cels]} if cels else {}


def _validation(cel: Cel) -> Raw:
    optional = {"messageExpression": cel.message_expression, "fieldPath": cel.field, "reason": cel.reason}
    usual = ("", "FieldValueInvalid")
    return {"rule": cel.rule, "message": cel.message, **{name: value for name, value in optional.items() if value not in usual}}
