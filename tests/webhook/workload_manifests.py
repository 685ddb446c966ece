"""Manifests of every kind of workload that the catalog has templates of."""

from __future__ import annotations

from typing import Any

from policies.catalog import Workload
from tests.random_worlds import catalog
from tests.webhook.api_server import Asked

Raw = dict[str, Any]
WORKLOADS = {w.name: w for w in catalog().workloads if w.templates}
BUILT_IN = ("apps", "batch")


def with_templates(workload: Workload, version: str, templates: list[Raw | None]) -> Raw:
    """A manifest with one of ``templates`` at each path in turn; all of them, where a path has a star."""
    found: Raw = {"apiVersion": version, "kind": workload.name.removeprefix("Volcano"), "metadata": {"name": "w"}}
    for number, path in enumerate(workload.templates):
        here = templates[number % len(templates)]
        if "[*]" in path:
            _put(found, path.partition("[*].")[0], [_wrapped(path.partition("[*].")[2], t) for t in templates])
        elif "*" in path:
            before, _, after = path.partition(".*.")
            _put(found, before, {f"role{i}": _wrapped(after, t) for i, t in enumerate(templates)})
        else:
            _put(found, path, here)
    return found


def _put(found: Raw, path: str, value: object) -> None:
    *parents, last = path.split(".")
    for step in parents:
        found = found.setdefault(step, {})
    found[last] = value


def _wrapped(path: str, value: object) -> object:
    for step in reversed(path.split(".")):
        value = {step: value}
    return value


def asked_for(workload: Workload, manifest: Raw, **more: Any) -> Asked:
    group, _, version = manifest["apiVersion"].rpartition("/")
    return Asked(object=manifest, resource=(group, version, workload.resource), typed=group in BUILT_IN, **more)


def template_of(pod: Raw) -> Raw:
    return {"metadata": pod.get("metadata") or {}, "spec": pod["spec"]}
