"""The schema of a Helm chart's values, made from values.yaml: types from the defaults, descriptions from the comments above them.

A comment line ``# @schema {...}`` is laid over what a default tells. Nothing else is allowed beside what is there, so Helm denies a
misspelled value by its name.
"""

from __future__ import annotations

import json
from typing import Any

import yaml

Schema = dict[str, Any]
MARK = "@schema "
TYPES = {bool: "boolean", int: "integer", str: "string", list: "array", dict: "object"}
AROUND: dict[str, Schema] = {
    "global": {"type": "object", "description": "What Helm gives every chart inside another one; not read."},
    "enabled": {"type": "boolean", "description": "For a chart that has this one inside and switches it; not read."},
}


class Uncommented(Exception):
    """A value without a comment; the message names it."""


def schema(text: str) -> Schema:
    """The schema of this values.yaml. Raises Uncommented."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    assert isinstance(node, yaml.MappingNode)
    lines = text.splitlines()
    made = _object(node, yaml.safe_load(text), lines, "")
    return {"$schema": "http://json-schema.org/draft-07/schema#", "title": "Values of the chart berth"} | made | _with_around(made)


def text_of(made: Schema) -> str:
    """As the file holds it."""
    return json.dumps(made, indent=2, ensure_ascii=False) + "\n"


def _with_around(made: Schema) -> Schema:
    return {"properties": made["properties"] | AROUND}


def _object(node: yaml.MappingNode, value: dict[str, Any], lines: list[str], path: str) -> Schema:
    properties = {}
    for key, child in node.value:
        where = f"{path}{key.value}"
        comment = _comment(lines, key.start_mark.line, where)
        properties[key.value] = _one(child, value[key.value], lines, where) | comment
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _one(node: yaml.Node, value: Any, lines: list[str], where: str) -> Schema:
    if isinstance(node, yaml.MappingNode) and node.value and not node.flow_style and _is_commented(lines, node):
        return _object(node, value, lines, f"{where}.")
    return {"type": TYPES[type(value)], "default": value} | ({"additionalProperties": False} if isinstance(value, dict) else {})


def _is_commented(lines: list[str], node: yaml.MappingNode) -> bool:
    """Whether the first value inside has a comment: ``resources`` is one value, not several."""
    line: int = node.value[0][0].start_mark.line
    return lines[line - 1].lstrip().startswith("#")


def _comment(lines: list[str], line: int, where: str) -> Schema:
    above: list[str] = []
    while line > 0 and lines[line - 1].lstrip().startswith("#"):
        line -= 1
        above.insert(0, lines[line].strip().removeprefix("#").strip())
    marks = [text for text in above if text.startswith(MARK)]
    words = " ".join(text for text in above if not text.startswith(MARK))
    if not words:
        raise Uncommented(f"{where} has no comment")
    laid: Schema = {}
    for mark in marks:
        laid |= json.loads(mark.removeprefix(MARK))
    return {"description": words} | laid
