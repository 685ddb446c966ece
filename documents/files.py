"""Read files and folders into texts, policies and the catalog. All errors are reported at once; whatever
can be read is read."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import catalog as catalog_package
from catalog import Catalog
from catalog.nearest import nearest
from catalog.parse import CatalogError, from_mappings
from documents.yaml_reader import documents
from policies.document import Document, InputError, objects
from policies.objects.parse import parse_objects
from policies.policy import PolicySet

SHIPPED_CATALOG = Path(catalog_package.__file__).with_name("catalog.yaml")
STDIN = "-"
_SUFFIXES = (".yaml", ".yml", ".json")
_MOST_BYTES = 256 * 2**20
"""The most bytes of a file: a dump of 50,000 pods is about 250 MB, and anything larger was hardly named on
purpose."""
_PIECE = 2**20
"""Bytes read at once: a read of the most that may come would allocate that much memory at once."""
_REASONS = {errno.EACCES: "is not readable by this user", errno.EISDIR: "is a folder"}


def read_paths(paths: Sequence[str]) -> tuple[list[tuple[str, str]], list[InputError]]:
    """Return (file, text) of each path in the order given, and the errors on what could not be read.

    A folder stands for the ``*.yaml``, ``*.yml`` and ``*.json`` directly in it, by name; ``-`` for standard
    input. A file that is named twice is read once.
    """
    found = [one for path in paths for one in _files(path)]
    texts = [_text(file) if isinstance(file, str) else file for file in dict.fromkeys(found)]
    return [one for one in texts if isinstance(one, tuple)], [one for one in texts if isinstance(one, InputError)]


Stamp = tuple[tuple[str, int, int, int], ...]
"""(file, inode, bytes, time of change in ns) of each file."""


def stamp(paths: Sequence[str]) -> Stamp:
    """Return a value that changes when the files that ``read_paths`` reads change, even if they become
    unreadable.

    Symbolic links are followed, as a kubelet swaps a ConfigMap's files by one link.
    """
    return tuple(_stamp(file) for file in dict.fromkeys(file for path in paths for file in _files(path) if isinstance(file, str)))


def read_once(paths: Sequence[str]) -> tuple[str, ...]:
    """Return those of the paths that can be read only once: standard input, pipes, and what ``<(...)``
    makes."""
    return tuple(path for path in paths if path == STDIN or _is_pipe(path))


def _is_pipe(path: str) -> bool:
    try:
        return not (stat.S_ISREG(mode := os.stat(path).st_mode) or stat.S_ISDIR(mode))
    except OSError:
        return False


def _stamp(file: str) -> tuple[str, int, int, int]:
    try:
        found = os.stat(file)
    except OSError as error:
        return file, 0, 0, error.errno or 0
    return file, found.st_ino, found.st_size, found.st_mtime_ns


def read_documents(paths: Sequence[str]) -> tuple[list[Document], list[InputError]]:
    """Return the documents of all files that ``paths`` name, and the errors on what could not be read."""
    texts, errors = read_paths(paths)
    found: list[Document] = []
    for file, text in texts:
        good, bad = documents(text, file)
        found += good
        errors += bad
    return found, errors


def read_items(paths: Sequence[str]) -> tuple[list[Document], list[InputError]]:
    """Return the objects of all files, those of Lists one by one, and the errors on what could not be read."""
    read, errors = read_documents(paths)
    items = [item for document in read for item in objects(document)]
    return [item for item in items if isinstance(item, Document)], [*errors, *(item for item in items if isinstance(item, InputError))]


def read_objects(paths: Sequence[str]) -> list[Document]:
    """Return the objects of all files, as ``read_items`` does. Raises the first InputError."""
    items, errors = read_items(paths)
    if errors:
        raise errors[0]
    return items


def read_policies(paths: Sequence[str], catalog: Catalog) -> tuple[PolicySet, list[InputError], list[InputError]]:
    """Return the policies and templates that were understood, the errors in the others, and the
    warnings."""
    found, errors = read_documents(paths)
    policy_set, mistakes, warnings = parse_objects(found, catalog)
    return policy_set, errors + mistakes, warnings


class CatalogFilesError(Exception):
    """The catalog files cannot be used; ``errors`` has every reason."""

    def __init__(self, errors: Sequence[InputError]) -> None:
        super().__init__("\n".join(map(str, errors)))
        self.errors = tuple(errors)


def read_catalog(paths: Sequence[str | Path] = ()) -> Catalog:
    """Return the shipped catalog with the files that ``paths`` name laid over it, the last on top. Raises
    CatalogFilesError."""
    shipped, unread = read_documents([str(SHIPPED_CATALOG)])
    found, errors = read_documents([str(path) for path in paths])
    names = [document.error((), "").place for document in found]
    if unread or errors:
        raise CatalogFilesError(unread + errors)
    try:
        return from_mappings(shipped[0].value, *(document.value for document in found), names=names)
    except CatalogError as error:
        raise CatalogFilesError([_of_file(note, names) for note in error.notes]) from error


def _of_file(note: str, names: Sequence[str]) -> InputError:
    """Return a note of the catalog's parser as an error.

    If it names no file, the fault lies between the shipped data and what was laid over it.
    """
    name = next((name for name in names if note.startswith(f"{name}: ")), None)
    if name is None:
        return InputError(file=", ".join(names) or SHIPPED_CATALOG.name, message=note)
    return InputError(file=name, message=note.removeprefix(f"{name}: "))


def _files(path: str) -> Iterator[str | InputError]:
    if path == STDIN or not os.path.isdir(path):  # Path.is_dir raises what reading the path reports
        yield path
        return
    try:
        inside = sorted(str(file) for file in Path(path).iterdir() if file.suffix in _SUFFIXES)
    except OSError as error:
        yield _unreadable(path, error)
        return
    if not inside:
        yield InputError(file=path, message="the folder has no .yaml, .yml or .json file; folders in it are not searched")
    yield from (_no_file(file) or file for file in inside)


def _no_file(file: str) -> InputError | None:
    """Return an error on a folder, pipe or device with the name of a policy file: it is a slip, and
    reading it might never end."""
    try:
        mode = os.stat(file).st_mode
    except OSError:
        return None  # reading it reports the reason
    return (
        None if stat.S_ISREG(mode) else InputError(file=file, message="is not a regular file; move it elsewhere, or change its extension")
    )


def _text(file: str) -> tuple[str, str] | InputError:
    try:
        raw = sys.stdin.buffer.read(_MOST_BYTES + 1) if file == STDIN else _bytes(file)
    except OSError as error:
        return _unreadable(file, error)
    except MemoryError:
        return InputError(file=file, message="does not fit into memory")
    if len(raw) > _MOST_BYTES:
        return InputError(file=file, message=f"is larger than {_MOST_BYTES // 2**20} MiB")
    try:
        return file, raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        return InputError(file=file, line=line, message=f"is not UTF-8: byte 0x{raw[error.start]:02x}; save the file as UTF-8")


def _bytes(file: str) -> bytes:
    with open(file, "rb") as opened:
        pieces = []
        size = 0
        while size <= _MOST_BYTES and (piece := opened.read(_PIECE)):
            pieces.append(piece)
            size += len(piece)
        return b"".join(pieces)


def _unreadable(file: str, error: OSError) -> InputError:
    if error.errno == errno.ENOENT and os.path.islink(file):
        return InputError(file=file, message=f"is a link to {os.readlink(file)}, which does not exist")
    if error.errno == errno.ENOENT:
        return InputError(file=file, message=f"there is no such file or folder{_beside(Path(file))}")
    reason = _REASONS.get(error.errno or 0, f"cannot be read: {error.strerror or error}")
    return InputError(file=file, message=reason)


def _beside(path: Path) -> str:
    """Return a hint at the file that was probably meant."""
    try:
        near = nearest(path.name, (one.name for one in path.parent.iterdir()))
    except OSError:
        return ""
    return f'; did you mean "{path.parent / near}"?' if near else ""
