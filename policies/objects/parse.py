"""Parse documents into policies and templates, strictly, by the table in ``definition``; all mistakes are
reported at once.

``parse_objects`` takes all objects that apply together, from files: one with a mistake is left out and the
others remain. ``understand`` takes one object as it comes from a cluster, whatever is in it. Both take values
that were already read; no file is opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from catalog import Catalog
from catalog.names import CatalogNames
from catalog.nearest import hint
from kube.tree import dotted
from policies.document import UNREAD, Document, InputError, objects
from policies.messages import cut_text
from policies.objects.field_types import Kind
from policies.objects.object_parser import ParsedObject, ParseReport, kind_of_object, read_object
from policies.policy import NodeTemplate, Policy, PolicySet

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
        acting=found.policy or found.template,
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
    ordered = sorted(kept, key=lambda one: one.id)
    return (
        PolicySet(
            policies=tuple(policy for one in ordered if (policy := one.policy) is not None),
            templates=tuple(template for one in ordered if (template := one.template) is not None),
        ),
        report.errors,
        report.warnings,
    )


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
