"""Build the JSON schema of each kind from ``definition``: draft 2020-12, limited to what a CRD's structural
schema may hold.

So there is no ``$ref``, no ``$schema`` and no ``additionalProperties: false``: Kubernetes denies unknown
fields itself (``fieldValidation=Strict``, what kubectl asks for). Names of the catalog are plain strings
here: the catalog grows without a new CRD, and Berth's parser checks them.
"""

from __future__ import annotations

from typing import Any

from catalog.shapes.scalars import Flag, PatternText, Scalar, Whole, WordChoice
from catalog.shapes.structs import Field, Items, Mapped, Shape, Struct
from kube import duration
from policies.objects import definition
from policies.objects import parts as part
from policies.objects.field_types import Kind, Memory, SliceSize, Span, UsableMemory
from policies.policy import API_VERSION

Schema = dict[str, Any]
_NAME_LENGTH = 253


def json_schema(kind: Kind) -> Schema:
    """Return the schema of one whole object of ``kind``; ``properties.spec`` is the part that a CRD takes."""
    metadata: Schema = {"name": _schema(definition.NAME, kind)}
    required = ["name"]
    if kind in definition.NAMESPACED:
        metadata["namespace"] = _schema(definition.NAMESPACE, kind)
        required.append("namespace")
    return {
        "type": "object",
        "description": definition.ABOUT[kind],
        "required": ["apiVersion", "kind", "metadata", "spec"],
        "properties": {
            "apiVersion": {"type": "string", "enum": [API_VERSION]},
            "kind": {"type": "string", "enum": [kind]},
            "metadata": {"type": "object", "required": required, "properties": metadata},
            "spec": _schema(definition.SPECS[kind], kind),
            "status": {"type": "object"},
        },
    }


def _schema(shape: Shape, kind: Kind) -> Schema:
    match shape:
        case Struct():
            return _struct(shape, kind)
        case Items():
            return {"type": "array", "items": _schema(shape.of, kind), "minItems": shape.least, "maxItems": shape.most}
        case Mapped():
            return {"type": "object", "minProperties": shape.least, "additionalProperties": _schema(part.VALUE, kind)}
        case Flag():
            return {"type": "boolean"}
        case Whole():
            return {"type": "integer", "minimum": shape.least, "maximum": shape.most}
        case WordChoice():
            return {"type": "string", "enum": list(shape.values)}
    return {"type": "string", **_word(shape)}


def _word(shape: Scalar) -> Schema:
    match shape:
        case PatternText(pattern=str()):
            return {"maxLength": shape.most, "pattern": shape.pattern}
        case Span(word=str()):
            return {"pattern": f"{duration.PATTERN}|^{shape.word}$"}
        case Span():
            return {"pattern": duration.PATTERN}
        case SliceSize():
            return {"pattern": "^[0-9]{1,4}gb$"}
        case UsableMemory() | Memory():
            return {"pattern": r"^[0-9]+(\.[0-9]+)?([kMGT]|[KMGT]i)?$"}
    return {"minLength": 1, "maxLength": _NAME_LENGTH}


def _struct(shape: Struct, kind: Kind) -> Schema:
    fields = [field for field in shape.fields if field.of(kind)]
    required = [field.name for field in fields if field.required]
    schema: Schema = {"type": "object", "properties": {field.name: _field(field, kind) for field in fields}}
    if required:
        schema["required"] = required
    if shape.any_of:
        schema["anyOf"] = [{"required": [name]} for name in shape.any_of]
    if shape.one_of:
        schema["oneOf"] = [{"required": [name]} for name in shape.one_of]
    return schema


def _field(field: Field, kind: Kind) -> Schema:
    default = {} if field.default is None else {"default": field.default}
    return {"description": field.description, **_schema(field.shape, kind), **default}
