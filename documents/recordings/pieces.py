"""Files and folders of recordings, cut into pieces of some megabytes that can be read by several processes.

A piece of a plain file is its place in it, so that whoever works on it reads it too; of a compressed one, and of
standard input, it is the lines themselves.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple

import orjson

from documents.files import STDIN, read_paths
from policies.document import InputError

PIECE = 4 * 2**20
"""Bytes: half a second of work, so that two cores end at about the same time, and few enough to be held by each."""
LONGEST_LINE = 32 * 2**20
"""Bytes: etcd takes objects of 1.5 MiB, and an event holds a pod up to three times, and patches. What is longer is no
event, and is passed over without being held."""
_BEGINNING = 2**20
"""Bytes in which the form of a file is looked for: some events, whichever is cut."""
_AT_ONCE = 2**16
"""Bytes that are read at once of what is compressed: what comes before damage is not lost."""
_MOST_WHOLE = 256 * 2**20
"""Bytes of a document that is read as a whole, as of any other file (``documents.files``)."""
_FIRST = 3
"""Lines of which one is JSON in a file of JSON lines: the first may be cut."""
_COMPRESSED: dict[bytes, Callable[[BinaryIO], BinaryIO]] = {
    b"\x1f\x8b": lambda raw: gzip.GzipFile(fileobj=raw),  # type: ignore[dict-item, return-value]
    b"BZh": bz2.BZ2File,  # type: ignore[dict-item]
    b"\xfd7zXZ\x00": lzma.LZMAFile,  # type: ignore[dict-item]
}
_ZSTD = b"\x28\xb5\x2f\xfd"
_DAMAGED = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile, OSError)


class Piece(NamedTuple):
    """A part of a file. The lines that begin in it are its own."""

    file: str
    form: Literal["lines", "documents"]
    start: int = 0
    end: int = 0
    data: bytes | None = None
    """The lines, if they cannot be read again."""
    first: bool = True
    """True if the file begins here."""
    last: bool = True
    """True if the file ends here."""
    damaged: bool = False
    """True if compressed data end or break off here, before their end."""


def pieces(paths: Sequence[str], size: int = PIECE) -> Iterator[Piece | InputError]:
    """Yield the pieces of all files in order, and an error for each that cannot be read.

    A folder stands for the files directly in it by name, so that those that kube-apiserver has rotated come in the
    order in which they were written; files whose names begin with a dot are left out.
    """
    found = [one for path in paths for one in _files(path)]
    for file in dict.fromkeys(found):
        if isinstance(file, InputError):
            yield file
            continue
        try:
            yield from _of_file(file, size)
        except OSError:
            _, errors = read_paths([file])  # the reason, in the words for any other file
            yield from errors or [InputError(file=file, message="cannot be read to its end")]


def _files(path: str) -> Iterator[str | InputError]:
    if path == STDIN or not Path(path).is_dir():
        yield path
        return
    try:
        inside = sorted(one for one in Path(path).iterdir() if one.is_file() and not one.name.startswith("."))
    except OSError as error:
        yield InputError(file=path, message=f"cannot be read: {error.strerror or error}")
        return
    if not inside:
        yield InputError(file=path, message="the folder has no file; folders in it are not searched")
    yield from map(str, inside)


def _of_file(file: str, size: int) -> Iterator[Piece | InputError]:
    with _opened(file) as raw:
        magic = raw.peek(1)
        if magic.startswith(_ZSTD):
            name = "FILE" if file == STDIN else file
            yield InputError(file=file, message=f"is compressed with zstd; unpack it on the way: zstd -dc {name} | berth replay -")
            return
        unpack = next((unpack for begins, unpack in _COMPRESSED.items() if magic.startswith(begins)), None)
        if unpack is not None or not _is_plain(file):
            yield from _streamed(file, raw if unpack is None else unpack(raw), size)
            return
        head = raw.read(_BEGINNING)
        if not head.strip():
            yield InputError(file=file, message="is empty")
        elif _form(head) == "documents":
            yield Piece(file, "documents")
        else:
            whole = os.stat(file).st_size
            for start in range(0, whole, size):
                end = min(whole, start + size)
                yield Piece(file, "lines", start, end, None, start == 0, end == whole)


def _opened(file: str) -> BufferedReader:
    return open(sys.stdin.fileno() if file == STDIN else file, "rb", closefd=file != STDIN)


def _is_plain(file: str) -> bool:
    return file != STDIN and Path(file).is_file()


def _form(head: bytes) -> Literal["lines", "documents"]:
    """Return ``lines`` for JSON lines, of which the first may be cut; ``documents`` for YAML and JSON of many lines."""
    lines = [line for line in head.split(b"\n") if line.strip()]
    whole = lines[:-1] if len(lines) > 1 else lines
    if any(_is_entry(line) for line in whole[:_FIRST]):
        return "lines"
    alone = len(lines) == 1 or len(head) >= _BEGINNING > len(lines[0])
    return "lines" if len(lines) == 1 and lines[0].lstrip()[:2] in (b'{"', b"[{") and alone else "documents"


def _is_entry(line: bytes) -> bool:
    at = line.find(b'{"')
    if at < 0:
        return False
    try:
        return isinstance(orjson.loads(line[at:]), dict)
    except ValueError:
        return False


def _streamed(file: str, source: BinaryIO, size: int) -> Iterator[Piece | InputError]:
    """Yield a source that can be read only once, in pieces that end with a line."""
    held, damaged = _read(source, _BEGINNING)
    if not held.strip():
        yield InputError(file=file, message="is damaged from its beginning" if damaged else "is empty")
        return
    if _form(held) == "documents":
        more, broken = (b"", True) if damaged else _read(source, _MOST_WHOLE)
        yield Piece(file, "documents", data=held + more, damaged=damaged or broken)
        return
    first = True
    while not damaged:
        more, damaged = _read(source, size)
        if not more:
            break
        held += more
        cut = held.rfind(b"\n") + 1
        if cut:
            yield Piece(file, "lines", data=held[:cut], first=first, last=False)
            held, first = held[cut:], False
        elif len(held) > LONGEST_LINE + size:
            held = held[: LONGEST_LINE + 1]  # enough to be passed over as too long
    yield Piece(file, "lines", data=held, first=first, damaged=damaged)


def _read(source: BinaryIO, most: int) -> tuple[bytes, bool]:
    """Return so many bytes, fewer at the end, and whether the source is damaged behind them."""
    parts: list[bytes] = []
    try:
        while most > 0 and (part := source.read(min(most, _AT_ONCE))):
            parts.append(part)
            most -= len(part)
    except _DAMAGED:
        return b"".join(parts), True
    return b"".join(parts), False
