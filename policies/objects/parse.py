"""Parse documents into policies and templates, strictly, by the table in ``definition``; all mistakes are
reported at once.

``parse_objects`` takes all objects that apply together, from files: one with a mistake is left out and the
others remain. ``understand`` takes one object as it comes from a cluster, whatever is in it. Both take values
that were already read; no file is opened.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from catalog import Catalog
from catalog.names import CatalogNames
from catalog.nearest import hint
from catalog.shapes.scalars import Scalar
from catalog.shapes.struct_parser import StructReader
from catalog.shapes.structs import Struct
from kube.tree import Path, dotted, kind_of
from policies.document import UNREAD, Document, InputError, objects
from policies.messages import cut_text
from policies.objects import definition
from policies.objects.field_types import Kind, TemplateName
from policies.objects.idle_defaults import find_idle_defaults
from policies.policy import API_VERSION, GROUP, NodeTemplate, Policy, PolicySet

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
    def acting(self) -> Policy | NodeTemplate | None:
        """The typed form; None for an object with errors."""
        if not self.sound:
            return None
        if self.kind == "GPUNodeTemplate":
            return NodeTemplate(name=self.name, **self.spec)
        return Policy(name=self.name, namespace=self.namespace, **self.spec)


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
    for path, message in find_idle_defaults(value["spec"]) if not reader.errors and kind != "GPUNodeTemplate" else ():
        reader.warn(("spec", *path), message)
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


LONGEST_MESSAGE = 500
"""Characters of each mistake that are reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Understood:
    """One object of a cluster: its typed form, or everything that is wrong with it."""

    acting: Policy | NodeTemplate | None = None
    """None if there are ``errors``."""
    errors: tuple[str, ...] = ()
    """For example, ``spec.require.families.in[0]: unknown GPU family "hoper"; did you mean "hopper"?``."""
    warnings: tuple[str, ...] = ()
    templates: tuple[tuple[str, str], ...] = ()
    """(where, name) of each GPUNodeTemplate that it names; that it exists is not checked here."""


def understand(value: Mapping[str, Any], kind: Kind, names: CatalogNames) -> Understood:
    """Parse one object of ``kind`` as an API server gave it.

    Mistakes are returned, never raised, whatever the object holds: the first ``MOST_REPORTED`` of them, each cut
    at ``LONGEST_MESSAGE`` characters.
    """
    if UNREAD in value:
        return Understood(errors=(f"spec: is {value[UNREAD]}; shorten it, or delete unused policies and apply it again",))
    report = ParseReport()
    found = read_object(Document(file="", value=value), kind, names, report, other_fields_are_wrong=False)
    return Understood(
        acting=found.acting,
        errors=tuple(cut_text(f"{dotted(error.path)}: {error.message}", LONGEST_MESSAGE) for error in report.errors),
        warnings=tuple(cut_text(f"{dotted(one.path)}: {one.message}", LONGEST_MESSAGE) for one in report.warnings),
        templates=tuple((dotted(path), name) for path, name in found.templates),
    )


def parse_objects(documents: Iterable[Document], catalog: Catalog) -> tuple[PolicySet, list[InputError], list[InputError]]:
    """Return every policy and template that was understood, the errors in the others, and the warnings.

    Objects may stand alone or in a v1 List.
    """
    report = ParseReport()
    names = CatalogNames(catalog)
    found = [one for document in documents for one in _objects(document, names, report)]
    kept = _without_twins(found, report)
    _check_templates(kept, report)
    typed = [parsed.acting for parsed in sorted(kept, key=lambda parsed: parsed.id)]
    policies = tuple(policy for policy in typed if isinstance(policy, Policy))
    templates = tuple(template for template in typed if isinstance(template, NodeTemplate))
    return PolicySet(policies=policies, templates=templates), report.errors, report.warnings


def _objects(document: Document, names: CatalogNames, report: ParseReport) -> Iterable[ParsedObject]:
    for item in objects(document):
        if isinstance(item, InputError):
            report.errors.append(item)
        elif (kind := kind_of_object(item, report)) is not None:
            yield read_object(item, kind, names, report)


def _without_twins(found: list[ParsedObject], report: ParseReport) -> list[ParsedObject]:
    """Return the first object of each kind, namespace and name; a second one is an error, in whatever file
    it stands."""
    first: dict[str, ParsedObject] = {}
    for one in (one for one in found if one.name):
        twin = first.setdefault(one.id, one)
        if twin is not one:
            where = twin.document.error((), "").place
            report.errors.append(one.document.error(("metadata", "name"), f"{one.id} is already defined in {where}; rename or remove one"))
    return list(first.values())


def _check_templates(found: list[ParsedObject], report: ParseReport) -> None:
    """Check the names of templates, which is possible only once all files are read."""
    defined = {one.name: one for one in found if one.kind == "GPUNodeTemplate"}
    for one in found:
        for path, name in one.templates:
            if message := _wrong_template(name, defined):
                report.errors.append(one.document.error(path, message))
                one.sound = False


def _wrong_template(name: str, defined: Mapping[str, ParsedObject]) -> str | None:
    if name not in defined:
        near = hint(name, defined) or "; none is defined: add a GPUNodeTemplate of that name"
        return f'unknown node template "{name}"{near}'
    if not defined[name].sound:
        return f'the node template "{name}" has errors ({defined[name].document.error((), "").place})'
    return None
