"""Documents of a file, before they are interpreted, and the one form in which bad input is reported.

Nothing here reads a file or knows YAML: ``documents.yaml_reader`` makes Documents; whoever judges them makes
InputErrors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from kube.tree import Path, dotted, kind_of

UNREAD = "berth.dev/unread"
"""Key of an object that is known by its name alone; its value says why. No field of Kubernetes has a slash in its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One YAML or JSON document of a file."""

    file: str
    """The file as the user named it; ``-`` is standard input."""
    index: int = 1
    """1-based, as the documents of the file are separated, empty ones counted"""
    value: Any
    only: bool = True
    """False where the file has several documents that are not empty: messages then say which"""
    path: Path = ()
    """The path of ``value`` in the document: ``("items", 0)`` for an item of a List."""
    unfilled: tuple[InputError, ...] = ()
    """A template's placeholders in the document, if its reader asked for such documents too."""

    def error(self, path: Path, message: str, *, line: int | None = None) -> InputError:
        """Return the error at ``path`` of ``value``."""
        number = None if self.only else self.index
        return InputError(file=self.file, document=number, path=self.path + path, line=line, message=message)


@dataclass(kw_only=True, unsafe_hash=True)
class InputError(ValueError):
    """Bad input, as it is printed: ``berth: FILE, document 2, spec.mode: what is, what was wanted``.

    A value to collect as well as an exception; not frozen only because Python sets ``__traceback__`` on what is raised.
    """

    file: str
    message: str
    document: int | None = None
    """None where the file has only one"""
    path: Path = ()
    line: int | None = None
    """1-based, of the file"""

    @property
    def place(self) -> str:
        """``FILE, document 2, line 7, spec.mode``, as far as it is known."""
        document = f", document {self.document}" if self.document is not None else ""
        line = f", line {self.line}" if self.line is not None else ""
        path = f", {dotted(self.path)}" if self.path else ""
        return f"{self.file}{document}{line}{path}"

    def __str__(self) -> str:
        return f"berth: {self.place}: {self.message}"


def objects(document: Document) -> Iterator[Document | InputError]:
    """Yield the Kubernetes objects in a document: itself, or the items of a List (``kubectl get -o
    yaml``); an InputError for what is no object."""
    value = document.value
    if not isinstance(value, dict):
        yield document.error((), f"must be an object, a map with apiVersion and kind; found {kind_of(value)}")
    elif not _is_list(value):
        yield document
    elif not isinstance(items := value.get("items"), list):
        yield document.error(("items",), f"a {value['kind']} must have a list of objects in items; found {kind_of(items)}")
    else:
        yield from (_item(document, number, item) for number, item in enumerate(items))


def _is_list(value: dict[str, Any]) -> bool:
    kind = value.get("kind")
    return isinstance(kind, str) and kind.endswith("List") and ("items" in value or kind == "List")


def _item(document: Document, number: int, item: object) -> Document | InputError:
    path: Path = ("items", number)
    if not isinstance(item, dict):
        return document.error(path, f"must be an object, a map with apiVersion and kind; found {kind_of(item)}")
    if _is_list(item):
        return document.error(path, "a List inside a List; write its items into the outer one")
    return replace(document, value=item, path=document.path + path)
