"""The types of a Pod as Kubernetes' own OpenAPI document has them, without its prose: ``pod.openapi.json``, and how it is made.

python -m tests.fuzz.openapi "$(go mod download -json k8s.io/kubernetes@v1.36.3 | jq -r .Dir)"
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

MODULE, VERSION = "k8s.io/kubernetes", "v1.36.3"
DOCUMENT = "api/openapi-spec/swagger.json"
POD = "io.k8s.api.core.v1.Pod"
KEPT = Path(__file__).parent / "pod.openapi.json"
READ = ("type", "format", "enum", "$ref", "items", "additionalProperties", "properties", "required")
"""of a schema; descriptions are nine tenths of the document"""
_REF = "#/definitions/"


@cache
def definitions() -> dict[str, Any]:
    """By the name of the type, ``io.k8s.api.core.v1.Pod`` and every type that it holds."""
    found: dict[str, Any] = json.loads(KEPT.read_text())["definitions"]
    return found


def closure(module: Path) -> dict[str, Any]:
    """The kept document, from an unpacked ``k8s.io/kubernetes``."""
    every = json.loads((module / DOCUMENT).read_text())["definitions"]
    kept: dict[str, Any] = {}
    wanted = [POD]
    while wanted:
        name = wanted.pop()
        if name not in kept:
            kept[name] = _read(every[name])
            wanted += _refs(kept[name])
    head = {"source": f"{MODULE}@{VERSION} {DOCUMENT}, {POD} and what it holds", "license": "Apache-2.0"}
    return {**head, "definitions": dict(sorted(kept.items()))}


def written(document: dict[str, Any]) -> str:
    """One definition a line."""
    lines = [f"{json.dumps(name)}: {json.dumps(schema, separators=(',', ':'))}" for name, schema in document["definitions"].items()]
    head = "".join(f"{json.dumps(key)}: {json.dumps(value)},\n" for key, value in document.items() if key != "definitions")
    return "{\n" + head + '"definitions": {\n' + ",\n".join(lines) + "\n}\n}\n"


def referred(schema: dict[str, Any]) -> str | None:
    """The name of the definition that a schema refers to."""
    ref = schema.get("$ref")
    return ref.removeprefix(_REF) if isinstance(ref, str) else None


def _read(schema: dict[str, Any]) -> dict[str, Any]:
    out = {key: schema[key] for key in READ if key in schema}
    for key in ("items", "additionalProperties"):
        if isinstance(out.get(key), dict):
            out[key] = _read(out[key])
    if "properties" in out:
        out["properties"] = {name: _read(value) for name, value in out["properties"].items()}
    return out


def _refs(schema: dict[str, Any]) -> Iterator[str]:
    if (name := referred(schema)) is not None:
        yield name
    inner = [schema.get("items"), schema.get("additionalProperties"), *schema.get("properties", {}).values()]
    for one in inner:
        if isinstance(one, dict):
            yield from _refs(one)


if __name__ == "__main__":
    KEPT.write_text(written(closure(Path(sys.argv[1]))))
