"""Pods made from Kubernetes' own schema, every field that a Pod can have, with the values that donors have where one is known."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.fuzz import donors, trees
from tests.fuzz.openapi import POD, definitions, referred

Raw = dict[str, Any]
KNOWN = 0.75
"""part of the fields whose value is a donor's, where one has it"""
ODD = 0.03
"""part of the leaves that are at some boundary"""
OPTIONAL = (0.9, 0.35, 0.45, 0.4, 0.3, 0.25, 0.2, 0.15)
"""part of the optional fields that are set, by depth"""
ALWAYS = ("metadata", "spec", "containers", "resources", "limits")
"""set wherever a type has them: without them no rule sees the pod"""
DEEPEST = 12
QUANTITY = ".Quantity"


def pod(random: Random) -> Raw:
    """A pod, right in every type but for the odd value."""
    made: Raw = _object(random, definitions()[POD], 0)
    return made


def _object(random: Random, schema: Raw, depth: int) -> Raw:
    part = OPTIONAL[min(depth, len(OPTIONAL) - 1)]
    required = (*schema.get("required", ()), *ALWAYS)
    chosen = {name: inner for name, inner in schema.get("properties", {}).items() if name in required or random.random() < part}
    return {name: _field(random, name, inner, depth + 1) for name, inner in chosen.items()}


def _field(random: Random, name: str, schema: Raw, depth: int) -> Any:
    """What a donor has there, or what the schema says."""
    known = donors.values().get(name)
    if known and random.random() < (KNOWN if name not in ALWAYS else 0.2):
        return trees.copied(random.choice(known))
    return _value(random, name, schema, depth)


def _value(random: Random, name: str, schema: Raw, depth: int) -> Any:
    if random.random() < ODD:
        return trees.boundary(random)
    reference = referred(schema)
    if reference is not None:
        return _referred(random, name, reference, depth)
    if schema.get("type") == "array":
        return [_value(random, name, schema["items"], depth + 1) for _ in range(_number(random, depth))]
    if "additionalProperties" in schema:
        return {
            _map_key(random, name): _value(random, name, schema["additionalProperties"], depth + 1) for _ in range(random.randint(0, 3))
        }
    return _leaf(random, schema)


def _referred(random: Random, name: str, reference: str, depth: int) -> Any:
    schema = definitions()[reference]
    if reference.endswith(QUANTITY):
        return random.choice(trees.QUANTITIES) if random.random() < 0.15 else random.choice(("1", "1", "2", "8", 1))
    if "properties" in schema:
        return _object(random, schema, depth) if depth < DEEPEST else {}
    return _value(random, name, schema, depth)


def _number(random: Random, depth: int) -> int:
    return random.choice((0, 1, 1, 1, 2, 3)) if depth > 2 else random.choice((1, 1, 1, 2))


def _map_key(random: Random, name: str) -> str:
    known = donors.map_keys().get(name, ())
    return random.choice(known) if known else str(random.choice(trees.TEXTS))


def _leaf(random: Random, schema: Raw) -> Any:
    match schema.get("type"):
        case "integer" | "number":
            return random.choice((0, 1, 30, 3600, 2**31 - 1, -1))
        case "boolean":
            return random.random() < 0.5
        case "string" if schema.get("format") == "date-time":
            return "2026-11-20T19:00:00Z"
        case "string":
            return random.choice((*schema.get("enum", ()), "a", "x.y/z", random.choice(trees.TEXTS)))
    return {}
