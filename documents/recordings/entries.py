"""The entries of a piece of a recording: objects, each with its place; and what is no object, with the reason."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import BinaryIO, Literal, NamedTuple

import orjson

from documents.files import read_paths
from documents.recordings import cloud_audit_logs
from documents.recordings.pieces import LONGEST_LINE, Piece
from documents.yaml_reader import documents
from policies.document import Document, InputError, objects

Unread = Literal["beginning", "end", "long", "unreadable", "other"]
"""The file begins in the middle of a line, or ends in it; a line is longer than any; it is no JSON; or it is about
something else, and was not parsed."""
_EVENT = b'{"kind":"Event","apiVersion":"audit.k8s.io/'
"""The beginning of an event as kube-apiserver writes it. After a crash it may follow half a line, and exports put a
time before it."""

_AUDIT = '"audit.k8s.io/'
_WRAPPED = ("message", "@message", "log")
"""Fields that hold a line of a log as text: of CloudWatch Logs, and of Fluent Bit and what else reads files."""


class RecordingEntry(NamedTuple):
    """One object, or the reason why there is none."""

    line: int
    """1-based, in the piece; that of a document in YAML is 0."""
    value: object
    unread: Unread | InputError | None = None


def entries(piece: Piece, texts: Sequence[bytes] = ()) -> Iterator[RecordingEntry]:
    """Yield what is in a piece, in order; the last has its number of lines, and no value.

    ``texts``: lines that hold none of these texts are ``other``.
    """
    if piece.form == "documents":
        yield from _documents(piece)
        yield RecordingEntry(0, None)
        return
    number = 0
    for number, (line, ended) in enumerate(_lines(piece), 1):
        stripped = line.strip()
        if not stripped:
            continue
        if len(line) > LONGEST_LINE:
            yield RecordingEntry(number, None, "long")
        elif texts and not any(text in stripped for text in texts) and stripped.endswith(b"}") and ended:
            yield RecordingEntry(number, None, "other")
        else:
            yield from _of_line(piece, number, stripped, ended=ended)
    yield RecordingEntry(number, None)


def _lines(piece: Piece) -> Iterator[tuple[bytes, bool]]:
    """Yield (line, whether a newline ends it) of those that begin in the piece."""
    if piece.data is not None:
        yield from _until(io.BytesIO(piece.data), len(piece.data))
        return
    with open(piece.file, "rb") as file:
        if piece.start:
            file.seek(piece.start - 1)
            _skip(file)
        yield from _until(file, piece.end)


def _until(file: BinaryIO, end: int) -> Iterator[tuple[bytes, bool]]:
    while file.tell() < end and (line := file.readline(LONGEST_LINE + 1)):
        if len(line) > LONGEST_LINE:
            _skip(file)
        yield line, line.endswith(b"\n")


def _skip(file: BinaryIO) -> None:
    """Read to the end of a line."""
    while (rest := file.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
        continue


def _of_line(piece: Piece, number: int, line: bytes, *, ended: bool) -> Iterator[RecordingEntry]:
    try:
        value = orjson.loads(line)
    except ValueError as error:
        at = line.rfind(_EVENT)
        if at > 0:
            yield from _of_line(piece, number, line[at:], ended=ended)
        else:
            yield RecordingEntry(number, None, _why(piece, number, error, ended=ended))
        return
    for one in _unwrapped(value):
        for item in objects(Document(file=piece.file, value=one)) if isinstance(one, dict) else ():
            yield RecordingEntry(number, None, "unreadable") if isinstance(item, InputError) else RecordingEntry(number, item.value)
        if not isinstance(one, dict):
            yield RecordingEntry(number, None, "unreadable")


def _unwrapped(value: object) -> Iterator[object]:
    """Yield the values of a list, and what a log collector has wrapped, as it was."""
    if isinstance(value, dict) and "kind" not in value and isinstance(value.get("events"), list):
        value = value["events"]
    for one in value if isinstance(value, list) else [value]:
        yield _message(one) if isinstance(one, dict) and "kind" not in one else one


def _message(wrapped: dict[str, object]) -> object:
    if "protoPayload" in wrapped:
        return cloud_audit_logs.event(wrapped)
    for field in _WRAPPED:
        text = wrapped.get(field)
        if isinstance(text, str) and _AUDIT in text:
            try:
                return orjson.loads(text[text.index("{") :])
            except ValueError:
                return wrapped
    return wrapped


def _why(piece: Piece, number: int, error: ValueError, *, ended: bool) -> Unread:
    if piece.last and not ended:
        return "end"
    return "beginning" if piece.first and number == 1 else "unreadable"


def _documents(piece: Piece) -> Iterator[RecordingEntry]:
    """Yield the objects of YAML, or of JSON of many lines, which is read as a whole."""
    if piece.data is None:
        texts, errors = read_paths([piece.file])
    else:
        texts, errors = [(piece.file, piece.data.decode(errors="replace"))], []
    for file, text in texts:
        found, bad = documents(text, file)
        errors = [*errors, *bad]
        for document in found:
            for value in _unwrapped(document.value):
                for item in objects(Document(file=file, index=document.index, only=document.only, value=value)):
                    yield RecordingEntry(0, None, item) if isinstance(item, InputError) else RecordingEntry(0, item.value)
    yield from (RecordingEntry(0, None, error) for error in errors)
