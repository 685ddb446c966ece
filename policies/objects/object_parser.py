"""Parse one of our objects strictly, its kind, metadata and spec, by the table in ``definition``; all
mistakes are reported at once."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from catalog.names import CatalogNames
from catalog.nearest import hint
from catalog.shapes.scalars import Scalar
from catalog.shapes.struct_parser import StructReader
from catalog.shapes.structs import Struct
from kube.tree import Path, kind_of
from policies.document import Document, InputError
from policies.objects import definition
from policies.objects.field_types import Kind, TemplateName
from policies.policy import API_VERSION, GROUP, NodeTemplate, Policy

_ENVELOPE = ("apiVersion", "kind", "metadata", "spec", "status")
MOST_REPORTED = 100
"""Errors, and warnings, that are reported on one object of a cluster.

Parsing ends at this many errors: an object of 1.5 MiB, as etcd takes, that was written past the schema can
have 100,000, which take seven seconds.
"""


@dataclass(slots=True, kw_only=True)
class ParsedObject:
    """One of our objects, as far as it was understood."""

    kind: Kind
    namespace: str | None
    name: str
    document: Document
    spec: Any
    templates: list[tuple[Path, str]]
    """The GPUNodeTemplates that it names: (where, name) of each."""
    sound: bool

    @property
    def id(self) -> str:
        scope = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind}/{scope}{self.name}"

    @property
    def policy(self) -> Policy | None:
        """The typed policy; None for a template, and for an object with errors."""
        return Policy(name=self.name, namespace=self.namespace, **self.spec) if self.sound and self.kind != "GPUNodeTemplate" else None

    @property
    def template(self) -> NodeTemplate | None:
        """The typed node template; None for a policy, and for an object with errors."""
        return NodeTemplate(name=self.name, **self.spec) if self.sound and self.kind == "GPUNodeTemplate" else None


@dataclass(slots=True)
class ParseReport:
    """The errors and warnings on all objects that were read."""

    errors: list[InputError] = field(default_factory=list)
    warnings: list[InputError] = field(default_factory=list)


class _Enough(Exception):
    """Raised when ``MOST_REPORTED`` errors were found, to end parsing."""


class _SpecReader(StructReader):
    """A reader of one of our objects, which also collects the GPUNodeTemplates that the object names."""

    def __init__(self, kind: Kind, names: CatalogNames) -> None:
        super().__init__(kind, names)
        self.templates: list[tuple[Path, str]] = []
        """(where, name) of each."""

    def homes(self, name: str) -> list[str]:
        """Return the places that have a field of this name: ``spec``, or the maps directly in it."""
        spec = definition.SPECS[cast(Kind, self.kind)]
        places = {"spec": spec} | {f"spec.{top.name}": top.shape for top in spec.fields if isinstance(top.shape, Struct)}
        return [place for place, shape in places.items() if any(field.name == name and field.of(self.kind) for field in shape.fields)]

    def scalar(self, shape: Scalar, value: object, path: Path, example: str) -> Any:
        stored = super().scalar(shape, value, path, example)
        if isinstance(shape, TemplateName):
            self.templates.append((path, stored))
        return stored


class _Patience(_SpecReader):
    """A reader that ends at ``MOST_REPORTED`` errors and drops further warnings."""

    def wrong(self, path: Path, message: str) -> None:
        super().wrong(path, message)
        if len(self.errors) >= MOST_REPORTED:
            raise _Enough

    def warn(self, path: Path, message: str) -> None:
        if len(self.warnings) < MOST_REPORTED:
            super().warn(path, message)


def kind_of_object(document: Document, report: ParseReport) -> Kind | None:
    """Return which of our kinds an object is; if it is none, add an error and return None."""
    value = document.value
    version, kind = value.get("apiVersion"), value.get("kind")
    if kind not in definition.KINDS:
        wrong = f"is missing; write one of {', '.join(definition.KINDS)}" if kind is None else _wrong_kind(version, kind)
        report.errors.append(document.error(("kind",), wrong))
        return None
    if version != API_VERSION:
        found = "is missing" if version is None else f"{kind_of(version)} is not known"
        report.errors.append(document.error(("apiVersion",), f"{found}; write apiVersion: {API_VERSION}"))
        return None
    return cast(Kind, kind)


def _wrong_kind(version: object, kind: object) -> str:
    shown = f'"{kind}"' if isinstance(kind, str) else kind_of(kind)
    if isinstance(version, str) and version.partition("/")[0] != GROUP:
        return f"a {shown} of {version} is not a policy; this file may contain {', '.join(definition.KINDS)} of {API_VERSION}"
    return f"unknown kind {shown}{hint(str(kind), definition.KINDS)}"


def read_object(
    document: Document, kind: Kind, names: CatalogNames, report: ParseReport, *, other_fields_are_wrong: bool = True
) -> ParsedObject:
    """Parse one object and add what is wrong with it to ``report``.

    ``other_fields_are_wrong``: unknown fields beside spec are errors. They are not in an object from an API
    server, which has dropped what is not in the schema, and may add what we don't know.
    """
    value = document.value
    reader = (_SpecReader if other_fields_are_wrong else _Patience)(kind, names)
    for name in value:
        if name not in _ENVELOPE and other_fields_are_wrong:
            reader.wrong((name,), f'unknown field "{name}"{_belongs(name, kind)}')
    namespace, name = _metadata(value.get("metadata"), kind, reader)
    spec = None
    with contextlib.suppress(_Enough):
        spec = _spec(value, kind, reader)
    report.errors.extend(document.error(path, message) for path, message in reader.errors)
    report.warnings.extend(document.error(path, message) for path, message in reader.warnings)
    return ParsedObject(
        kind=kind, namespace=namespace, name=name, document=document, spec=spec, templates=reader.templates, sound=not reader.errors
    )


def _belongs(name: str, kind: Kind) -> str:
    if any(one.name == name and one.of(kind) for one in definition.SPECS[kind].fields):
        return f"; it belongs in spec: write spec.{name}"
    return hint(name, _ENVELOPE[:-1])


def _spec(value: Mapping[str, Any], kind: Kind, reader: StructReader) -> Any:
    first = next(one for one in definition.SPECS[kind].fields if one.required or one.name == "default")
    example = f"spec: {{{first.written()}}}"
    if "spec" not in value:
        reader.wrong(("spec",), f"is missing; write {example}")
        return None
    spec = reader.read(definition.SPECS[kind], value["spec"], ("spec",), example)
    if not reader.errors and kind != "GPUNodeTemplate" and not {"require", "default", "allow"} & set(value["spec"]):
        reader.warn(("spec",), "has no require, default or allow, so it does nothing")
    return spec


def _metadata(value: object, kind: Kind, reader: StructReader) -> tuple[str | None, str]:
    """Return (namespace, name), both fit for messages even if wrong; Kubernetes checks all other metadata."""
    path: Path = ("metadata",)
    if not isinstance(value, dict):
        fact = "is missing" if value is None else f"must be a map, found {kind_of(value)}"
        reader.wrong(path, f"{fact}; write metadata: {{name: training}}")
        return None, ""
    name, namespace = value.get("name"), value.get("namespace")
    if name is None:
        reader.wrong((*path, "name"), "is missing; write name: training")
    elif not definition.NAME.matches(name):
        wanted = "lower-case letters, digits, '-' and '.', as in team-training"
        reader.wrong((*path, "name"), f"{kind_of(name)} is not a valid object name; write {wanted}")
    _check_namespace(namespace, kind, reader)
    return (namespace if isinstance(namespace, str) else None), name if isinstance(name, str) else ""


def _check_namespace(namespace: object, kind: Kind, reader: StructReader) -> None:
    path: Path = ("metadata", "namespace")
    if kind not in definition.NAMESPACED:
        if namespace is not None:
            other = "" if kind == "GPUNodeTemplate" else ", or write kind: GPUPolicy for one namespace"
            reader.wrong(path, f"a {kind} belongs to the whole cluster; remove it{other}")
    elif namespace is None:
        reader.wrong(path, f"is missing: a {kind} belongs to a namespace; write namespace: ml-team")
    elif not definition.NAMESPACE.matches(namespace):
        reader.wrong(path, f"{kind_of(namespace)} is not a valid namespace; write lower-case letters, digits and '-', as in ml-team")
