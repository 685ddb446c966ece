"""The input of `berth try`, read before anything is judged: an object may be a fact about others, as a
Namespace is, or be referenced by them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from cli.given.manifests import fact_of
from documents.files import read_paths
from documents.yaml_reader import documents, one_value
from policies.document import Document, InputError, objects
from policies.workloads.controllers import group_of
from policies.workloads.pods import Around

_Key = tuple[str, str, str]
"""API group, kind and name."""


class Inputs:
    """The documents of all files, in order, with an error in place of each that could not be read."""

    def __init__(self, paths: Sequence[str], namespace: str) -> None:
        self.namespace = namespace
        """The namespace of objects that name none."""
        self.found: list[Document | InputError] = list(_read(paths))
        items = [item for one in self.found if isinstance(one, Document) for item in objects(one) if isinstance(item, Document)]
        self.facts = [fact for item in items if (fact := fact_of(item, namespace)) is not None]
        """The objects that are facts about the cluster."""
        self._named: dict[_Key, list[Document]] = {}
        for item in items:
            if (key := _key(item.value)) is not None:
                self._named.setdefault(key, []).append(item)
        self.around = Around(find=self._find, texts=one_value)

    def _find(self, kinds: Sequence[tuple[str, str]], namespace: str, name: str) -> Document | None:
        """Return the object of that name in the namespace of the referrer, or of a cluster-scoped kind."""
        for group, kind in kinds:
            for one in self._named.get((group, kind, name), ()):
                if kind.startswith("Cluster") or (one.value["metadata"].get("namespace") or self.namespace) == namespace:
                    return one
        return None


def _read(paths: Sequence[str]) -> Iterator[Document | InputError]:
    texts, errors = read_paths(paths)
    yield from errors
    for file, text in texts:
        found, errors = documents(text, file, unfilled=True)
        yield from errors
        yield from found


def _key(value: dict[str, Any]) -> _Key | None:
    metadata = value.get("metadata")
    match value.get("apiVersion"), value.get("kind"), metadata.get("name") if isinstance(metadata, dict) else None:
        case str(api_version), str(kind), str(name):
            return group_of(api_version), kind, name
    return None
