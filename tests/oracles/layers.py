"""The two layers of an output: *data* is what was decided, *text* is how it is said.

A string with a space in it is a sentence, unless it stands in a patch or a manifest. The text layer has it as it is, the data layer has the
values that it names: codes, numbers, paths and what it quotes. Rendered output is data where it is a table or a difference of manifests.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple
from xml.etree import ElementTree

import yaml

EXACT = ("patch", "value", "values", "object", "manifest", "selector")
"""Keys below which nothing is a sentence."""
QUOTED = re.compile(r'"[^"\s]*"')
PLAIN = re.compile(r"[0-9/=\[\]_@]|\w[.:]\w")
TAG = re.compile(r"<[^>]*>")
CELL = re.compile(r"<t[dh]\b[^>]*>(.*?)</t[dh]>", re.DOTALL)
MAPPING = re.compile(r"(#.*\n|---\n)*(?!berth|warning)[a-zA-Z]+:")
COLUMNS = re.compile(r" {2,}")
DIFFERENCE = re.compile(r"[-+ @\\]|$")


class Seen(NamedTuple):
    """One output. ``label``: what it answers."""

    label: str
    data: Any
    text: Any


def values_in(sentence: str) -> list[str]:
    """Return the values that a sentence names, each once, in alphabetical order: another wording may name them in another."""
    quoted = QUOTED.findall(sentence)
    words = [word.strip("`'\".,;:()!?*") for word in QUOTED.sub(" ", sentence).split()]
    return sorted({*quoted, *(word for word in words if PLAIN.search(word))})


def data_of(value: Any, *, exact: bool = False) -> Any:
    """Return a JSON value without its wording."""
    match value:
        case dict():
            exact = exact or ("apiVersion" in value and "kind" in value and "response" not in value)
            return {key: data_of(below, exact=exact or key in EXACT) for key, below in value.items()}
        case list():
            return [data_of(below, exact=exact) for below in value]
        case str() if not exact:
            if value[:1] in ("[", "{"):
                try:
                    return data_of(json.loads(value))
                except ValueError:
                    pass
            return {"says": values_in(value)} if " " in value.strip() else value
    return value


def sentences_of(value: Any) -> Iterator[str]:
    """Yield the sentences of a JSON value."""
    match value:
        case dict():
            for key, below in value.items():
                if key not in EXACT:
                    yield from sentences_of(below)
        case list():
            for below in value:
                yield from sentences_of(below)
        case str() if " " in value.strip():
            yield value


def rendered_data(text: str) -> Any:
    """Return the data of rendered output of any form."""
    start = text.lstrip()[:1]
    if start in ("{", "["):
        try:
            return data_of(json.loads(text))
        except ValueError:
            return [_line_of_json(line) for line in text.splitlines()]
    if text.startswith(("<?xml", "<testsuite")):
        return [[node.tag, data_of(dict(node.attrib)), values_in(node.text or "")] for node in ElementTree.fromstring(text).iter()]
    if start == "<":
        cells = [_cell(" ".join(TAG.sub("", cell).split())) for cell in CELL.findall(text)]
        return {"cells": cells, "values": values_in(TAG.sub(" ", CELL.sub(" ", text)))}
    if MAPPING.match(text):
        try:
            return data_of(list(yaml.safe_load_all(text)))
        except yaml.YAMLError:
            pass
    if re.match(r"[\w ]+(,[\w ]+){3,}\r?\n", text):
        return list(csv.reader(io.StringIO(text)))
    return list(_lines(text))


def _lines(text: str) -> Iterator[Any]:
    """Yield the data of each line: cells of tables, differences as they are, values of sentences."""
    is_difference = False
    for line in text.splitlines():
        is_difference = line.lstrip().startswith("--- ") or (is_difference and DIFFERENCE.match(line) is not None and line != "")
        data = line if is_difference else _line(line)
        if data:
            yield data


def _line_of_json(line: str) -> Any:
    try:
        return data_of(json.loads(line))
    except ValueError:
        return _line(line)


def _line(line: str) -> Any:
    cells = COLUMNS.split(line.strip())
    return [_cell(cell) for cell in cells] if len(cells) > 1 else values_in(line)


def _cell(cell: str) -> Any:
    """Return a cell of a table as it is, unless it holds a sentence."""
    return cell if cell.count(" ") < 4 else values_in(cell)
