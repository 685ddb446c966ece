"""Whether the candidates do the same work: the pods that their patches make are compared with those that Berth's make."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jsonpatch
import orjson

from bench.load import bodies
from bench.measuring.candidates import Server
from tests.support.machine import BenchError

APPLIED = "berth.dev/applied"
PLACED = 0.8
"""share of the pods of a load that must get affinity; the others ask for all of it themselves"""


def compare(servers: Sequence[Server], load: str, file: Path, most: int = 100) -> None:
    """Send up to ``most`` bodies of a load to everybody; the first is Berth. Raises BenchError with the first pod that is not
    the same as Berth's, and where Berth does not write affinity into nearly every pod that has an accelerator."""
    lines = file.read_bytes().splitlines()
    chosen = lines[:: -(-len(lines) // most)]
    placed = sum(_compared(servers, bodies.with_number(line, number), f"body {number} of {load}") for number, line in enumerate(chosen))
    share = placed / len(chosen)
    if share > 0 if load == "plain" else share < PLACED:
        raise BenchError(f"{servers[0].name} wrote node affinity into {share:.0%} of the pods of {load}: is --platforms given?")


def _compared(servers: Sequence[Server], body: bytes, what: str) -> bool:
    """Whether Berth wrote affinity into it."""
    first, *others = servers
    expected = patched(body, first.post(body))
    for server in others:
        made = patched(body, server.post(body))
        if made != expected:
            raise BenchError(f"{server.name} makes another pod than {first.name} of {what}: {difference(expected, made)}")
    came = _normal(orjson.loads(body)["request"]["object"])
    return bool(expected["spec"].get("affinity") != came["spec"].get("affinity"))


def patched(body: bytes, answer: bytes) -> Any:
    """The pod of a review as the answer changes it, in a form in which only what differs differs: without the text of Berth's
    own annotation, and without the nulls and empty maps that typed structs add. Raises BenchError where it was denied."""
    response = orjson.loads(answer)["response"]
    if not response["allowed"]:
        raise BenchError(f"a pod of the load was denied: {response['status']['message']}")
    pod = orjson.loads(body)["request"]["object"]
    if "patch" in response:
        pod = jsonpatch.apply_patch(pod, orjson.loads(base64.b64decode(response["patch"])))
        pod["metadata"]["annotations"][APPLIED] = "..."
    return _normal(pod)


def difference(ours: Any, theirs: Any, path: str = "") -> str:
    """The first place where two differ."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted({*ours, *theirs}):
            if ours.get(key) != theirs.get(key):
                return difference(ours.get(key), theirs.get(key), f"{path}/{key}")
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return next(difference(a, b, f"{path}/{i}") for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b)
    return f"{path} is {theirs!r}, not {ours!r}"


def _normal(value: Any) -> Any:
    if isinstance(value, dict):
        fields = {key: _normal(field) for key, field in value.items()}
        return {key: field for key, field in fields.items() if field is not None and field != {}}
    return [_normal(item) for item in value] if isinstance(value, list) else value
