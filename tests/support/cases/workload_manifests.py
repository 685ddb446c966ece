"""Manifests of every kind of workload that the catalog has templates of."""

from __future__ import annotations

from typing import Any

from catalog import Workload
from policies.workloads.templates import steps
from tests.support.calls.webhook_dispatch import AdmissionRequest
from tests.support.generators.random_worlds import catalog

Raw = dict[str, Any]
WORKLOADS = {w.name: w for w in catalog().workloads if w.templates and not w.places and not w.cluster}
BUILT_IN = ("apps", "batch", "")


def with_templates(workload: Workload, version: str, templates: list[Raw | None]) -> Raw:
    """A manifest with one of ``templates`` at each path in turn; all of them, where a path has a star."""
    found: Raw = {"apiVersion": version, "kind": workload.kind, "metadata": {"name": "w"}}
    for number, path in enumerate(workload.templates):
        here = templates if "*" in path else [templates[number % len(templates)]]
        put(found, [str(step) for step in steps(path)], list(here))
    return found


def put(found: Raw, way: list[str], values: list[Any]) -> None:
    """``values`` at the end of a way: one for each item at its first star, whose other stars have one each."""
    step, *rest = way
    if not rest:
        found[step] = values[0]
    elif rest[0] == "[*]":
        items = found.setdefault(step, [])
        items += [{} for _ in range(len(values) - len(items))]
        _each(items, rest[1:], values, list(range(len(values))))
    elif rest[0] == "*":
        roles = found.setdefault(step, {})
        _each(roles, rest[1:], values, [f"role{number}" for number in range(len(values))])
    else:
        put(found.setdefault(step, {}), rest, values)


def _each(parent: Any, rest: list[str], values: list[Any], keys: list[Any]) -> None:
    for key, value in zip(keys, values, strict=True):
        if not rest:
            parent[key] = value
            continue
        if isinstance(parent, dict):
            parent.setdefault(key, {})
        put(parent[key], rest, [value])


def request_for(workload: Workload, manifest: Raw, **more: Any) -> AdmissionRequest:
    group, _, version = manifest["apiVersion"].rpartition("/")
    return AdmissionRequest(object=manifest, resource=(group, version, workload.resource), typed=group in BUILT_IN, **more)


def template_of(pod: Raw) -> Raw:
    return {"metadata": pod.get("metadata") or {}, "spec": pod["spec"]}
