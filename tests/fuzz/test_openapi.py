"""Pods from Kubernetes' own schema: the kept document is the release's, and what is made from it has every field."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.fuzz import openapi, schema
from tests.testcluster.programs import MODULES

MODULE = MODULES / "kubernetes-1.36"
"""whose go.sum has the hash of the release"""


def test_the_document_is_the_release_s_own() -> None:
    """Made again from the Go module of the release, byte for byte."""
    if shutil.which("go") is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("the Kubernetes release is fetched with Go: install it (https://go.dev/dl)")
    command = ["go", "mod", "download", "-json", openapi.MODULE]
    done = subprocess.run(command, cwd=MODULE, capture_output=True, text=True, check=True)
    downloaded = json.loads(done.stdout)
    assert downloaded["Version"] == openapi.VERSION
    assert openapi.written(openapi.closure(Path(downloaded["Dir"]))) == openapi.KEPT.read_text()


def paths(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{path}.{key}"
            yield from paths(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from paths(inner, path)


def test_every_field_of_a_pod_comes_up() -> None:
    """Of its spec and of its containers, in a thousand pods."""
    random = Random(1)
    found = {path for _ in range(1000) for path in paths(schema.pod(random))}
    types = openapi.definitions()
    for prefix, name in ((".spec", "PodSpec"), (".metadata", "ObjectMeta"), (".spec.containers", "Container"), (".spec.volumes", "Volume")):
        kind = next(schema for key, schema in types.items() if key.endswith(f".{name}"))
        assert {f"{prefix}.{field}" for field in kind["properties"]} - found == set()
