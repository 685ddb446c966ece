"""Check that all candidates do the same work: compare the pods that their patches make with those that Berth's patches make."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jsonpatch
import orjson

from bench.harness.setting import Candidate
from bench.inputs import bodies
from tests.support.machine import BenchError

APPLIED = "berth.dev/applied"
PLACED = 0.8
"""Share of the pods of a load that must get affinity; the others require all of it themselves."""


def compare(servers: Sequence[Candidate], load: str, file: Path, most: int = 100) -> None:
    """Send up to ``most`` bodies of a load to every server; the first is Berth.

    Raises BenchError if a pod differs from Berth's, or if Berth does not write affinity into nearly every pod with an accelerator.
    """
    lines, placed = file.read_bytes().splitlines(), []
    for number, line in enumerate(lines[:: -(-len(lines) // most)]):
        body = bodies.with_number(line, number)
        ours, *others = (patched(body, server.post(body)) for server in servers)
        for server, pod in zip(servers[1:], others, strict=True):
            if edit := difference(ours, pod):
                raise BenchError(f"{server.name} makes another pod than {servers[0].name} of body {number} of {load}, without {edit}")
        placed.append(ours["spec"].get("affinity") != _normal(orjson.loads(body)["request"]["object"])["spec"].get("affinity"))
    share = sum(placed) / len(placed)
    if share > 0 if load == "plain" else share < PLACED:
        raise BenchError(f"{servers[0].name} wrote node affinity into {share:.0%} of the pods of {load}: is --platforms given?")


def patched(body: bytes, answer: bytes) -> Any:
    """Return the pod of a review as the answer changes it, in a form that can be compared.

    It lacks the text of Berth's own annotation, and the nulls and empty maps that typed structs add. Raises BenchError if it was denied.
    """
    response = orjson.loads(answer)["response"]
    if not response["allowed"]:
        raise BenchError(f"a pod of the load was denied: {response['status']['message']}")
    pod = orjson.loads(body)["request"]["object"]
    if "patch" in response:
        pod = jsonpatch.apply_patch(pod, orjson.loads(base64.b64decode(response["patch"])))
        pod["metadata"]["annotations"][APPLIED] = "..."
    return _normal(pod)


def difference(ours: Any, theirs: Any) -> str:
    """Return the first edit that makes our pod of theirs, or nothing."""
    return next((str(edit) for edit in jsonpatch.make_patch(theirs, ours)), "")


def _normal(value: Any) -> Any:
    if isinstance(value, dict):
        fields = {key: _normal(field) for key, field in value.items()}
        return {key: field for key, field in fields.items() if field is not None and field != {}}
    return [_normal(item) for item in value] if isinstance(value, list) else value
