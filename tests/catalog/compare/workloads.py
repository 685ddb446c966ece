"""Compare the kinds of workloads of the catalog with the places of pods in the custom resource definitions of projects."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from tests.catalog.compare.machines import Raw
from tests.catalog.compare.modules import Module
from tests.catalog.compare.rows import Comparison

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_SKIPPED = re.compile(r"(^|/)(tests?|testdata|examples?|vendor|docs|hack|third_party|node_modules|demo)/|crds?/minimal")
_DEEPEST = 14
"""How deep a schema is searched: pods are never deeper, and JSONSchemaProps of Kubernetes would have no end."""


def kinds(raw: Raw, module: Module, source: str) -> Iterator[Comparison]:
    """Compare the kinds whose schema has pods, and the paths of these, with those of the catalog."""
    ours = _known(raw)
    theirs: dict[str, dict[str, object]] = {}
    for group, kind, schema in _definitions(module):
        places = {place.removesuffix(".spec") if place.endswith(".spec") else place for place in pod_places(schema)}
        if places:
            name = f"{group}/{kind}"
            templates = ours.get(name, {}).get("templates")
            row = theirs.setdefault(name, {"templates": ""})
            found = {*str(row["templates"]).split(", ")} - {""} | places
            row["templates"] = ", ".join(sorted(found)) if templates is not None else None
    yield Comparison(section="workloads", source=source, ours=ours, theirs=theirs, lists=True)


def _known(raw: Raw) -> dict[str, dict[str, object]]:
    """Return the kinds of the catalog by group and kind, with the paths of their templates if they have nothing else."""
    known: dict[str, dict[str, object]] = {f"{entry['group']}/{entry['kind']}": {} for entry in raw["between"]}
    for entry in raw["workloads"]:
        for version in entry["apiVersions"]:
            paths = entry.get("templates")
            known[f"{version.rpartition('/')[0]}/{entry.get('kind', entry['name'])}"] = (
                {"templates": ", ".join(sorted(paths))} if paths and "pods" not in entry else {}
            )
    return known


def _definitions(module: Module) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield group, kind and schema of each version of each custom resource definition of a module."""
    for name, text in module.texts("*.yaml", "*.yml"):
        if _SKIPPED.search(name) or "kind: CustomResourceDefinition" not in text:
            continue
        plain = "\n".join(line for line in text.splitlines() if "{{" not in line)
        try:
            documents = list(yaml.load_all(plain, Loader=_LOADER))
        except yaml.YAMLError:
            continue  # a template of a chart; the same definitions are elsewhere in the module
        for document in documents:
            if isinstance(document, dict) and document.get("kind") == "CustomResourceDefinition":
                spec = document.get("spec") or {}
                for version in spec.get("versions") or ():
                    schema = (version.get("schema") or {}).get("openAPIV3Schema")
                    if schema and "names" in spec:
                        yield spec["group"], spec["names"]["kind"], schema


def pod_places(schema: Mapping[str, Any], path: str = "", depth: int = 0) -> Iterator[str]:
    """Yield the paths of pod specs in a schema: of objects with a list of containers that have an image and resources."""
    if depth > _DEEPEST:
        return
    properties = schema.get("properties") or {}
    containers = properties.get("containers")
    if isinstance(containers, dict) and {"image", "resources"} <= ((containers.get("items") or {}).get("properties") or {}).keys():
        yield path
        return
    for name, inner in properties.items():
        if isinstance(inner, dict):
            yield from pod_places(inner, f"{path}.{name}" if path else name, depth + 1)
    if isinstance(items := schema.get("items"), dict):
        yield from pod_places(items, f"{path}[*]", depth + 1)
    if isinstance(values := schema.get("additionalProperties"), dict):
        yield from pod_places(values, f"{path}.*", depth + 1)
