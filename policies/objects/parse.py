"""Documents to policies and templates, strictly, by the table in ``definition``: all that is wrong is told at once.

``parse_objects`` takes all that is to be in force together, from files: a policy with a mistake is left out and the others are kept.
``understand`` takes one object as it comes from a cluster, whatever it is. Both take values that were already read; no file is opened.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from policies.catalog import Catalog
from policies.catalog.names import Names
from policies.document import Document, InputError, kind_of, objects, path_text
from policies.nearest import hint
from policies.objects import definition
from policies.objects.leaf_read import matches
from policies.objects.shape import Kind
from policies.objects.shape_read import Reader
from policies.policy import API_VERSION, GROUP, NodeTemplate, Policy, PolicySet
from policies.verdict import Path
from policies.wording import cut

_ENVELOPE = ("apiVersion", "kind", "metadata", "spec", "status")
MOST_TOLD = 100
"""Errors, and warnings, of one object of a cluster. Past them it is not read on: one of 1.5 MiB, as etcd takes, that was written past the
schema can have 100,000, which take seven seconds."""
LONGEST_TOLD = 500
"""characters of each"""


@dataclass(slots=True, kw_only=True)
class _Found:
    """One object of ours, as far as it was understood."""

    kind: Kind
    namespace: str | None
    name: str
    document: Document
    spec: Any
    templates: list[tuple[Path, str]]
    """GPUNodeTemplates that it names, and where"""
    sound: bool

    @property
    def id(self) -> str:
        scope = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind}/{scope}{self.name}"


@dataclass(slots=True)
class _Said:
    errors: list[InputError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Understood:
    """One object of a cluster: what it says, or everything that is wrong with it."""

    kind: Kind
    namespace: str | None
    name: str
    policy: Policy | None
    template: NodeTemplate | None
    """one of the two, unless there are ``errors``"""
    errors: tuple[str, ...]
    """``spec.require.families.in[0]: unknown GPU family "hoper"; did you mean "hopper"?``"""
    warnings: tuple[str, ...]
    templates: tuple[tuple[str, str], ...]
    """(where, name) of each GPUNodeTemplate that it names; whether there is one is not judged here"""


class _Enough(Exception):
    """Nobody reads more."""


class _Patience(Reader):
    """Ends after so many mistakes."""

    def wrong(self, path: Path, message: str) -> None:
        super().wrong(path, message)
        if len(self.errors) >= MOST_TOLD:
            raise _Enough

    def warn(self, path: Path, message: str) -> None:
        if len(self.warnings) < MOST_TOLD:
            super().warn(path, message)


def understand(value: Mapping[str, Any], kind: Kind, names: Names) -> Understood:
    """One object of ``kind`` as an API server gave it. Whatever is in it, what is wrong is told, not raised: the first ``MOST_TOLD``
    mistakes, each cut at ``LONGEST_TOLD`` characters."""
    said = _Said()
    found = _object(Document(file="", value=value), kind, names, said, other_fields_are_wrong=False)
    return Understood(
        kind=kind,
        namespace=found.namespace,
        name=found.name,
        policy=_policy(found) if found.sound and kind != "GPUNodeTemplate" else None,
        template=_template(found) if found.sound and kind == "GPUNodeTemplate" else None,
        errors=tuple(cut(f"{path_text(error.path)}: {error.message}", LONGEST_TOLD) for error in said.errors),
        warnings=tuple(cut(warning.removeprefix("berth: warning: , "), LONGEST_TOLD) for warning in said.warnings),
        templates=tuple((path_text(path), name) for path, name in found.templates),
    )


def _policy(one: _Found) -> Policy:
    return Policy(name=one.name, namespace=one.namespace, **one.spec)


def _template(one: _Found) -> NodeTemplate:
    return NodeTemplate(name=one.name, **one.spec)


def parse_objects(documents: Iterable[Document], catalog: Catalog) -> tuple[PolicySet, list[InputError], list[str]]:
    """Every policy and template that was understood; what was wrong with the others; and what is only doubtful.

    Objects may stand alone or in a v1 List. Warnings are whole lines, ``berth: warning: FILE, spec...: ...``.
    """
    said = _Said()
    names = Names(catalog)
    found = [one for document in documents for one in _objects(document, names, said)]
    kept = _without_twins(found, said)
    _check_templates(kept, said)
    sound = sorted((one for one in kept if one.sound), key=lambda one: one.id)
    return (
        PolicySet(
            policies=tuple(_policy(one) for one in sound if one.kind != "GPUNodeTemplate"),
            templates=tuple(_template(one) for one in sound if one.kind == "GPUNodeTemplate"),
        ),
        said.errors,
        said.warnings,
    )


def _objects(document: Document, names: Names, said: _Said) -> Iterable[_Found]:
    for item in objects(document):
        if isinstance(item, InputError):
            said.errors.append(item)
        elif (kind := _kind(item, said)) is not None:
            yield _object(item, kind, names, said)


def _kind(document: Document, said: _Said) -> Kind | None:
    """Which of our kinds an object is; what is none of ours is an error."""
    value = document.value
    version, kind = value.get("apiVersion"), value.get("kind")
    if kind not in definition.KINDS:
        wrong = f"is missing; write one of {', '.join(definition.KINDS)}" if kind is None else _wrong_kind(version, kind)
        said.errors.append(document.error(("kind",), wrong))
        return None
    if version != API_VERSION:
        found = "is missing" if version is None else f"{kind_of(version)} is not known"
        said.errors.append(document.error(("apiVersion",), f"{found}; write apiVersion: {API_VERSION}"))
        return None
    return cast(Kind, kind)


def _wrong_kind(version: object, kind: object) -> str:
    shown = f'"{kind}"' if isinstance(kind, str) else kind_of(kind)
    if isinstance(version, str) and version.partition("/")[0] != GROUP:
        return f"a {shown} of {version} is no policy; here go {', '.join(definition.KINDS)} of {API_VERSION}"
    return f"unknown kind {shown}{hint(str(kind), definition.KINDS)}"


def _object(document: Document, kind: Kind, names: Names, said: _Said, *, other_fields_are_wrong: bool = True) -> _Found:
    """``other_fields_are_wrong``: beside spec; an API server has dropped what is not in the schema, and may add what we don't know."""
    value = document.value
    reader = (Reader if other_fields_are_wrong else _Patience)(kind, definition.SPECS[kind], names)
    for name in value:
        if name not in _ENVELOPE and other_fields_are_wrong:
            reader.wrong((name,), f'unknown field "{name}"{_belongs(name, kind)}')
    namespace, name = _metadata(value.get("metadata"), kind, reader)
    spec = None
    with contextlib.suppress(_Enough):
        spec = _spec(value, kind, reader)
    said.errors.extend(document.error(path, message) for path, message in reader.errors)
    said.warnings.extend(f"berth: warning: {document.error(path, message).place}: {message}" for path, message in reader.warnings)
    return _Found(
        kind=kind, namespace=namespace, name=name, document=document, spec=spec, templates=reader.templates, sound=not reader.errors
    )


def _belongs(name: str, kind: Kind) -> str:
    if any(one.name == name and one.of(kind) for one in definition.SPECS[kind].fields):
        return f"; it belongs in spec: write spec.{name}"
    return hint(name, _ENVELOPE[:-1])


def _spec(value: Mapping[str, Any], kind: Kind, reader: Reader) -> Any:
    first = next(one for one in definition.SPECS[kind].fields if one.required or one.name == "default")
    example = f"spec: {{{first.written()}}}"
    if "spec" not in value:
        reader.wrong(("spec",), f"is missing; write {example}")
        return None
    spec = reader.read(definition.SPECS[kind], value["spec"], ("spec",), example)
    if not reader.errors and kind != "GPUNodeTemplate" and not {"require", "default", "allow"} & set(value["spec"]):
        reader.warn(("spec",), "has no require, default or allow, so it does nothing")
    return spec


def _metadata(value: object, kind: Kind, reader: Reader) -> tuple[str | None, str]:
    """(namespace, name); both fit for messages even if wrong. Other metadata is Kubernetes' business."""
    path: Path = ("metadata",)
    if not isinstance(value, dict):
        found = "is missing" if value is None else f"wants a map, found {kind_of(value)}"
        reader.wrong(path, f"{found}; write metadata: {{name: training}}")
        return None, ""
    name, namespace = value.get("name"), value.get("namespace")
    if name is None:
        reader.wrong((*path, "name"), "is missing; write name: training")
    elif not matches(definition.NAME, name):
        wanted = "lower-case letters, digits, '-' and '.', as in team-training"
        reader.wrong((*path, "name"), f"{kind_of(name)} is no name for an object; write {wanted}")
    _check_namespace(namespace, kind, reader)
    return (namespace if isinstance(namespace, str) else None), name if isinstance(name, str) else ""


def _check_namespace(namespace: object, kind: Kind, reader: Reader) -> None:
    path: Path = ("metadata", "namespace")
    if kind not in definition.NAMESPACED:
        if namespace is not None:
            other = "" if kind == "GPUNodeTemplate" else ", or write kind: GPUPolicy for one namespace"
            reader.wrong(path, f"a {kind} belongs to the whole cluster; remove it{other}")
    elif namespace is None:
        reader.wrong(path, f"is missing: a {kind} belongs to a namespace; write namespace: ml-team")
    elif not matches(definition.NAMESPACE, namespace):
        reader.wrong(path, f"{kind_of(namespace)} is no name of a namespace; write lower-case letters, digits and '-', as in ml-team")


def _without_twins(found: list[_Found], said: _Said) -> list[_Found]:
    """The first of each kind, namespace and name; a second is an error wherever it stands."""
    first: dict[str, _Found] = {}
    for one in (one for one in found if one.name):
        twin = first.setdefault(one.id, one)
        if twin is not one:
            where = twin.document.error((), "").place
            said.errors.append(one.document.error(("metadata", "name"), f"{one.id} is already defined in {where}; rename or remove one"))
    return list(first.values())


def _check_templates(found: list[_Found], said: _Said) -> None:
    """Names of templates can be judged only when all files are read."""
    defined = {one.name: one for one in found if one.kind == "GPUNodeTemplate"}
    for one in found:
        for path, name in one.templates:
            if message := _wrong_template(name, defined):
                said.errors.append(one.document.error(path, message))
                one.sound = False


def _wrong_template(name: str, defined: Mapping[str, _Found]) -> str | None:
    if name not in defined:
        near = hint(name, defined) or "; none is defined: add a GPUNodeTemplate of that name"
        return f'unknown node template "{name}"{near}'
    if not defined[name].sound:
        return f'the node template "{name}" has errors itself ({defined[name].document.error((), "").place})'
    return None
