"""What a case is decided by: the policies, facts and catalog that it names, read and compiled once for all cases that
name the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from catalog import Catalog
from catalog.nearest import hint
from catalog.parse import CatalogError, from_mappings
from cli.policy_cases.case import LIBRARY, Case
from cli.policy_cases.files import Seen, look
from documents.files import SHIPPED_CATALOG, read_documents
from policies.document import Document, InputError, objects
from policies.facts.cluster_facts import ClusterFacts
from policies.objects.definition import KINDS
from policies.objects.field_types import Kind
from policies.objects.parse import parse_objects
from policies.policy import API_VERSION, NodeTemplate, Policy, PolicySet
from policies.state.snapshot import Snapshot
from policies.state.updater import AUTO, Options, Updater
from policies.verdict import Mode
from sources.sources import DEFAULT_POLICIES

SHIPPED = DEFAULT_POLICIES.parent


class CaseError(Exception):
    """What a case names can't be used; ``errors`` has every reason."""

    def __init__(self, errors: list[InputError]) -> None:
        super().__init__("\n".join(map(str, errors)))
        self.errors = errors


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenObject:
    """One object of a world as it is written."""

    kind: Kind
    id: str
    file: str
    """"" for an object that stands in a case, or that Berth ships."""
    value: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseWorld:
    """The snapshot of a case, and how to get another one in which a single object is different."""

    catalog: Catalog
    sources: tuple[WrittenObject, ...]
    snapshot: Snapshot
    policy_set: PolicySet
    facts: ClusterFacts
    updater: Updater
    all_nodes: bool
    """True if there are no other nodes and NodePools than those of ``facts``."""
    variants: dict[tuple[str, str], Snapshot] = field(default_factory=dict)

    def with_object(self, name: tuple[str, str], changed: Policy | NodeTemplate) -> Snapshot:
        """Return the snapshot with this object in place of the one of its name. ``name``: of the variant."""
        found = self.variants.get(name)
        if found is None:
            policies, templates = self.policy_set.policies, self.policy_set.templates
            if isinstance(changed, Policy):
                policies = tuple(changed if one.id == changed.id else one for one in policies)
            else:
                templates = tuple(changed if one.name == changed.name else one for one in templates)
            changed_set, all_nodes = PolicySet(policies=policies, templates=templates), self.all_nodes
            found = self.updater.replace_all(changed_set, self.facts, all_nodes=all_nodes).snapshot
            self.variants[name] = found
        return found


class Worlds:
    """Makes the worlds of the cases of one run."""

    def __init__(self) -> None:
        self.warnings: dict[str, None] = {}
        """What is odd in policies but not wrong, each line once."""
        self.seen: Seen = {}
        """The files and folders that cases have named, as they looked before they were read."""
        self._documents: dict[str, tuple[list[Document], list[InputError]]] = {}
        self._catalogs: dict[str, Catalog] = {}
        self._updaters: dict[tuple[str, Options], Updater] = {}
        self._worlds: dict[tuple[str, ...], CaseWorld] = {}

    def of(self, case: Case) -> CaseWorld:
        """Return the world of a case. Raises CaseError."""
        inline = any(isinstance(one, dict) for key in ("policies", "facts", "catalog") for one in case.items(key))
        paths = ((key, case.path(one)) for key in ("policies", "facts", "catalog") for one in case.items(key) if isinstance(one, str))
        key = (*(f"{name} {path}" for name, path in paths), *_settings(case), case.name if inline else "")
        if key not in self._worlds:
            self._worlds[key] = self._make(case)
        return self._worlds[key]

    def file(self, case: Case, written: str) -> str:
        """Return a path that a case names, and remember how it looks."""
        path = case.path(written)
        if path not in self.seen:
            self.seen[path] = look(path)
        return path

    def _make(self, case: Case) -> CaseWorld:
        overlay, catalog = self._catalog(case)
        options = _options(case, catalog)
        documents = list(self._given(case, "policies"))
        policy_set, errors, warnings = parse_objects(documents, catalog)
        if errors:
            raise CaseError(errors)
        self.warnings |= dict.fromkeys(f"warning: {one.place}: {one.message}" for one in warnings)
        facts = ClusterFacts.from_objects([item.value for one in self._given(case, "facts") for item in _objects(one)])
        updater = self._updaters.setdefault((overlay, options), Updater(catalog, options))
        return CaseWorld(
            catalog=catalog,
            sources=tuple(_sources(documents, case)),
            snapshot=updater.replace_all(policy_set, facts, all_nodes=case.given["allNodes"]).snapshot,
            policy_set=policy_set,
            facts=facts,
            updater=updater,
            all_nodes=case.given["allNodes"],
        )

    def _catalog(self, case: Case) -> tuple[str, Catalog]:
        """Return the shipped catalog with those of the case laid over it, and a key for it."""
        documents = list(self._given(case, "catalog"))
        key = json.dumps([document.value for document in documents], sort_keys=True, default=str)
        if key not in self._catalogs:
            self._catalogs[key] = _overlaid(case, documents)
        return key, self._catalogs[key]

    def _given(self, case: Case, key: str) -> Iterator[Document]:
        """Yield the documents that stand in the case, and those of the files that it names."""
        for number, one in enumerate(case.items(key)):
            if isinstance(one, dict):
                value = {"apiVersion": API_VERSION, **one} if key == "policies" else one
                yield replace(case.document, value=value, path=(key, number), unfilled=())
            elif key == "policies" and one == LIBRARY:
                yield from self._read(str(SHIPPED))
            else:
                yield from self._read(self.file(case, one))

    def _read(self, path: str) -> list[Document]:
        if path not in self._documents:
            self._documents[path] = read_documents([path])
        found, errors = self._documents[path]
        if errors:
            raise CaseError(errors)
        return found


def _settings(case: Case) -> tuple[str, ...]:
    return tuple(str(case.given[key]) for key in ("platforms", "migStrategy", "queues", "maxMode", "allNodes"))


def _options(case: Case, catalog: Catalog) -> Options:
    given, known = case.given, [*catalog.platforms, AUTO]
    errors = [
        case.document.error(("platforms", number), f'unknown platform "{one}"{hint(one, known)}')
        for number, one in enumerate(given["platforms"])
        if one not in known
    ]
    if errors:
        raise CaseError(errors)
    mode = cast(Mode, given["maxMode"])
    platforms, queues = tuple(given["platforms"]), tuple(given["queues"])
    return Options(platforms=platforms, mig_strategy=given["migStrategy"], queues=queues, max_mode=mode)


def _overlaid(case: Case, overlays: list[Document]) -> Catalog:
    shipped, _ = read_documents([str(SHIPPED_CATALOG)])
    try:
        return from_mappings(shipped[0].value, *(one.value for one in overlays), names=[one.error((), "").place for one in overlays])
    except CatalogError as error:
        raise CaseError([case.document.error(("catalog",), note) for note in error.notes]) from None


def _objects(document: Document) -> Iterator[Document]:
    for item in objects(document):
        if isinstance(item, InputError):
            raise CaseError([item])
        yield item


def _sources(documents: list[Document], case: Case) -> Iterator[WrittenObject]:
    for document in documents:
        file = document.file if document.path[:1] != ("policies",) else ""
        for item in _objects(document):
            if item.value.get("kind") in KINDS:
                metadata = item.value["metadata"]
                scope = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
                shown = "" if Path(file).parent == SHIPPED else file
                yield WrittenObject(
                    kind=item.value["kind"], id=f"{item.value['kind']}/{scope}{metadata['name']}", file=shown, value=item.value
                )
