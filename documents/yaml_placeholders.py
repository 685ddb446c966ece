"""Recognize placeholders of a template, ``{{ .Values.gpus }}``, that were left in a manifest.

YAML reads one as a map in a map. It is taken as text, so that the rest can be judged, and reported; the
reader of the document decides what becomes of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from yaml import events as on

from kube.tree import Path
from policies.document import Document, InputError
from policies.messages import cut_text

Placeholders = list[tuple[Path, int | None, str]]
"""Path, line and text of each placeholder."""
_OPENING, _CLOSING = "{{", "}}"
_HINT = "render the template first (helm template, kustomize build, envsubst), and try what comes out"


def text_of(start: Any, text: str, following: Callable[[], Any]) -> str | None:
    """Return the placeholder that begins with this event, or None if none does.

    The events that belong to it are consumed.
    """
    begin = start.start_mark.index
    if not start.flow_style or not text.startswith(_OPENING, begin):
        return None
    depth, end = 1, begin
    while depth:
        event = following()
        if type(event) in (on.MappingStartEvent, on.SequenceStartEvent):
            depth += 1
        elif type(event) in (on.MappingEndEvent, on.SequenceEndEvent):
            depth -= 1
            end = event.end_mark.index
    return text[begin:end]


def unfilled(document: Document, found: Placeholders) -> tuple[InputError, ...]:
    """Return an error on each placeholder; the first also tells how many follow."""
    more = [len(found) - 1, *(0 for _ in found)]
    return tuple(document.error(path, _message(text, n), line=line) for (path, line, text), n in zip(found, more, strict=False))


def _message(placeholder: str, more: int) -> str:
    others = f" and {more} more" if more else ""
    return f"found the placeholder {cut_text(placeholder, 40)}{others}; {_HINT}"


def on_line(lines: list[str]) -> str | None:
    """Return the message on lines that can't be read as YAML because of a placeholder, or of an unfinished
    merge; else None."""
    if any(line.startswith(("<<<<<<< ", ">>>>>>> ")) for line in lines):
        return "found the marks of a merge conflict; settle it, and remove them"
    found = next((line for line in reversed(lines) if _OPENING in line or "{%" in line), None)
    return None if found is None else f"found a line of a template: {found.strip()[:60]}; {_HINT}"
