"""The chart as Helm renders it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import yaml

from tests.testcluster.addons.helm import CHART, helm

Raw = dict[str, Any]
KINDS_THERE = "--api-versions=berth.dev/v1alpha1/ClusterGPUPolicy"
"""As Helm sees a cluster in which Berth's kinds are."""


def rendered_text(options: Sequence[str] = (), *, release: str = "berth", namespace: str = "berth-system") -> str:
    """What `helm template` prints."""
    return helm("template", release, str(CHART), f"--namespace={namespace}", *options)


def rendered(values: Mapping[str, Any] | None = None, *options: str, release: str = "berth", namespace: str = "berth-system") -> list[Raw]:
    """The objects, hooks included."""
    objects: list[Raw] = json.loads(_rendered(json.dumps(dict(values or {})), options, release, namespace))
    return objects


@cache
def _rendered(values: str, options: Sequence[str], release: str, namespace: str) -> str:
    """Return the objects as JSON, rendered and parsed once for the same arguments."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(values)
        file.flush()
        text = rendered_text([f"--values={file.name}", *options], release=release, namespace=namespace)
    return json.dumps([document for document in yaml.safe_load_all(text) if document])


def of_kind(objects: Sequence[Raw], kind: str) -> list[Raw]:
    return [one for one in objects if one["kind"] == kind]


def the(objects: Sequence[Raw], kind: str, *, of: str = "berth") -> Raw:
    """The only one of its kind, of the server or of another component."""
    [one] = [found for found in of_kind(objects, kind) if component(found) == of]
    return one


def component(found: Raw) -> str:
    """The server's is "berth", as is what belongs to no component; that of `berth audit --serve` is "berth-audit"."""
    name: str = found["metadata"].get("labels", {}).get("app.kubernetes.io/name", "berth")
    return name
