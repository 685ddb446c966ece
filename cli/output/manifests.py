"""The standard output of `berth try`, one class per form."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, TextIO

from analysis.admission.manifest_results import ManifestResult, PodResult
from analysis.admission.report import locate_document
from analysis.reviews.review import answer_review
from cli.terminal import screen
from cli.terminal.screen import is_terminal
from documents import yaml_writer
from documents.diff import unified
from documents.printable import json_text
from kube.review import OBJECT
from kube.tree import set_at
from policies.document import Document

_DOCUMENTS = uuid.UUID("6f2d0a86-8f0f-5be4-9a55-0f4f5b8a3f0e")
"""The UUID namespace for the uids of reviews made from manifests: the same input gives the same uid."""


class Output(ABC):
    """Writes each document when it is evaluated, or all at the end."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    @abstractmethod
    def document(self, document: Document, outcomes: list[ManifestResult]) -> None: ...

    def end(self) -> None:  # noqa: B027 - most have written everything
        ...


def output(form: str | None, stream: TextIO) -> Output:
    """Return the output of the requested form; by default a diff on a terminal and YAML otherwise."""
    form = form or ("diff" if is_terminal(stream) else "yaml")
    forms: dict[str, type[Output]] = {"diff": Diff, "yaml": Yaml, "json": JsonWriter, "review": Answers}
    return forms[form](stream)


class Diff(Output):
    def document(self, document: Document, outcomes: list[ManifestResult]) -> None:
        for outcome in outcomes:
            manifest = outcome.manifest
            if outcome.after is manifest.value:
                continue
            diff = unified(manifest.value, outcome.after, f"{locate_document(manifest.document)} {manifest.kind}/{manifest.name}")
            if diff:
                self.stream.write("\n".join(screen.output().paint_diff(diff)) + "\n")


class Yaml(Output):
    first = True

    def document(self, document: Document, outcomes: list[ManifestResult]) -> None:
        self.stream.write("" if self.first else "---\n")
        self.stream.write(yaml_writer.write_yaml(admitted(document, outcomes)))
        self.first = False


class JsonWriter(Output):
    """Writes one object as it is, and several as the items of a List, which kubectl accepts."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self.values: list[Any] = []

    def document(self, document: Document, outcomes: list[ManifestResult]) -> None:
        self.values.append(admitted(document, outcomes))

    def end(self) -> None:
        if not self.values:
            return
        whole = self.values[0] if len(self.values) == 1 else {"apiVersion": "v1", "kind": "List", "items": self._items()}
        self.stream.write(json_text(whole) + "\n")

    def _items(self) -> list[Any]:
        lists = (value["items"] if _is_list(value) else [value] for value in self.values)
        return [item for items in lists for item in items]


class Answers(Output):
    """Writes the answers of /mutate, one line of JSON each: to the given review, or to one review per pod."""

    def document(self, document: Document, outcomes: list[ManifestResult]) -> None:
        for outcome in outcomes:
            for number, pod in enumerate(outcome.pods):
                self.stream.write(json_text(_answer(pod, outcome.manifest.document, number), indent=None) + "\n")


def _answer(pod: PodResult, document: Document, number: int) -> dict[str, Any]:
    asked = pod.subject.review
    uid = asked.uid or str(uuid.uuid5(_DOCUMENTS, f"{document.file}\n{document.index}\n{document.path}\n{number}"))
    return answer_review(replace(asked, uid=uid), pod.mutate)


def admitted(document: Document, outcomes: list[ManifestResult]) -> Any:
    """Return the document with its objects as admitted; of a review, return the object under review."""
    value = document.value
    for outcome in outcomes:
        manifest = outcome.manifest
        path = manifest.document.path
        if manifest.reviewed:
            path = path[: -len(OBJECT)]
        elif outcome.after is manifest.value:
            continue
        value = set_at(value, path, outcome.after) if path else outcome.after
    return value


def _is_list(value: Any) -> bool:
    return isinstance(value, dict) and str(value.get("kind", "")).endswith("List") and isinstance(value.get("items"), list)
