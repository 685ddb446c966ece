"""The input of `berth try`, read before anything is judged: an object may be a fact about others, as a
Namespace is, or be referenced by them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from analysis.admission.manifests import fact_of
from documents.files import read_paths
from documents.yaml_reader import documents, one_value
from kube.templates import group_of
from kube.tree import map_at, text_of
from policies.document import Document, InputError, objects
from policies.state.snapshot import Snapshot
from policies.workloads.pods import Around

_Key = tuple[str, str, str]
"""API group, kind and name."""


class Inputs:
    """The documents of all files or of a text, in order, with an error in place of each that could not be read."""

    def __init__(self, found: Iterable[Document | InputError], namespace: str) -> None:
        self.namespace = namespace
        """The namespace of objects that name none."""
        self.found: list[Document | InputError] = list(found)
        items = [item for one in self.found if isinstance(one, Document) for item in objects(one) if isinstance(item, Document)]
        self.facts = [fact for item in items if (fact := fact_of(item, namespace)) is not None]
        """The objects that are facts about the cluster."""
        others = (item for item in items if fact_of(item, namespace) is None)
        self.namespaces = frozenset(text_of(map_at(item.value, "metadata").get("namespace")) or namespace for item in others)
        """The namespaces of the other objects."""
        self._named: dict[_Key, list[Document]] = {}
        for item in items:
            if (key := _key(item.value)) is not None:
                self._named.setdefault(key, []).append(item)
        self.around = Around(find=self._find, texts=one_value)

    @classmethod
    def of_files(cls, paths: Sequence[str], namespace: str) -> Inputs:
        """Read files."""
        return cls(_read(paths), namespace)

    @classmethod
    def of_text(cls, text: str, file: str, namespace: str) -> Inputs:
        """Read one text, which errors call ``file``."""
        return cls(_documents(text, file), namespace)

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
        yield from _documents(text, file)


def _documents(text: str, file: str) -> Iterator[Document | InputError]:
    found, errors = documents(text, file, unfilled=True)
    yield from errors
    yield from found


def unfilled(item: Document, snapshot: Snapshot) -> Iterator[InputError]:
    """Yield an error for each unfilled template placeholder in an object.

    A placeholder in place of an accelerator's amount is left out: it is judged, as an invalid amount.
    """
    for error in item.unfilled:
        inside = error.path[: len(item.path)] == item.path
        amount = error.path[-2:-1] in (("limits",), ("requests",)) and snapshot.resource(str(error.path[-1])) is not None
        if inside and not amount:
            yield error


def _key(value: dict[str, Any]) -> _Key | None:
    metadata = value.get("metadata")
    match value.get("apiVersion"), value.get("kind"), metadata.get("name") if isinstance(metadata, dict) else None:
        case str(api_version), str(kind), str(name):
            return group_of(api_version), kind, name
    return None
