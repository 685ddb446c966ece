"""Strict parsing of lists and watch events. Anything unexpected is an error, never guessed at: the kind is
listed again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast

from cluster.client.errors import Garbled, Rejected, Reply
from cluster.watch.bounds import size_of, size_problem, strip_object
from cluster.watch.kinds import PARTIAL, Watched
from documents import json_depth
from kube.tree import Raw, map_at

LIST_END = "k8s.io/initial-events-end"
"""k8s.io/apimachinery pkg/apis/meta/v1 InitialEventsAnnotationKey"""
Change = Literal["ADDED", "MODIFIED", "DELETED"]


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a watch. ``value`` is trimmed, and None for a bookmark."""

    change: Change | None
    value: Raw | None
    version: int
    """The resourceVersion; resourceVersions compare as integers (KEP-5504)."""
    place: tuple[str, str] = "", ""
    """(namespace, name) of the object, which may be trimmed of both."""
    ends_list: bool = False
    """True for the bookmark after the last object of a list that is streamed (KEP-3157)."""


@dataclass(frozen=True, slots=True)
class ListPage:
    """One page of a list, with trimmed objects."""

    objects: list[Raw]
    version: int
    more: str
    """The ``continue`` token; "" on the last page."""


def event(line: bytes, watched: Watched, version: str) -> Event:
    """Parse one line of a watch. Raises Garbled, and Rejected for an ERROR event."""
    try:
        parsed = json_depth.loads(line)
    except ValueError as error:
        raise Garbled(f"an event is not JSON ({error}): {_shown(line)}") from error
    kind, value = (parsed.get("type"), parsed.get("object")) if isinstance(parsed, dict) else (None, None)
    if not isinstance(value, dict):
        raise Garbled(f"an event has no object: {_shown(line)}")
    if kind == "ERROR":
        raise Rejected("the watch ended", _status(value))
    if kind == "BOOKMARK":
        return Event(None, None, _bookmark(value), ends_list=map_at(value, "metadata", "annotations").get(LIST_END) == "true")
    if kind not in ("ADDED", "MODIFIED", "DELETED"):
        raise Garbled(f"an event of unknown type {str(kind)[:40]!r}")
    _check(value, watched, version)
    _check_kind(value, watched, version, needed=True)
    trimmed = _trimmed(value, watched, version)
    if len(line) > watched.most and (why := size_problem(size_of(trimmed), watched)):
        trimmed = strip_object(trimmed, why)
    metadata = value["metadata"]
    place = metadata.get("namespace") or "", metadata["name"]
    return Event(cast(Change, kind), trimmed, number(metadata["resourceVersion"]), place)


def decode_page(body: Any, watched: Watched, version: str) -> ListPage:
    """Read one page of a list. Raises Garbled."""
    wanted = {f"{watched.kind}List"} | ({f"{PARTIAL}List"} if watched.metadata_only else set())
    kind = body.get("kind") if isinstance(body, dict) else type(body).__name__
    if kind not in wanted:
        raise Garbled(f"a list is of kind {str(kind)[:40]!r} instead of {watched.kind}List")
    items, metadata = body.get("items"), body.get("metadata")
    if not isinstance(metadata, dict) or not (isinstance(items, list) or items is None):
        raise Garbled("a list has no metadata or no items")
    more = metadata.get("continue") or ""
    if not isinstance(more, str):
        raise Garbled("a list's continue is not a string")
    objects = []
    for value in items or ():
        _check(value, watched, version)
        _check_kind(value, watched, version, needed=False)
        objects.append(_trimmed(value, watched, version))
    return ListPage(objects, number(metadata.get("resourceVersion")), more)


def number(version: object) -> int:
    """Return a resourceVersion as an integer. Raises Garbled."""
    if isinstance(version, str) and version.isascii() and version.isdecimal() and len(version) < 40:
        return int(version)
    raise Garbled(f"a resourceVersion is {str(version)[:40]!r}")


def _check(value: object, watched: Watched, version: str) -> None:
    """Check that an object has a name, a namespace where its kind needs one, and a resourceVersion. Raises
    Garbled."""
    metadata = value.get("metadata") if isinstance(value, dict) else None
    if not isinstance(metadata, dict):
        raise Garbled(f"a {watched.kind} has no metadata")
    name, namespace = metadata.get("name"), metadata.get("namespace")
    if not isinstance(name, str) or not name:
        raise Garbled(f"a {watched.kind} has no name")
    if watched.namespaced and not (isinstance(namespace, str) and namespace):
        raise Garbled(f"{watched.kind} {name[:253]} has no namespace")
    number(metadata.get("resourceVersion"))


def _check_kind(value: Raw, watched: Watched, version: str, *, needed: bool) -> None:
    """Check apiVersion and kind of an object; in lists of built-in kinds the objects have neither. Raises
    Garbled."""
    found = value.get("apiVersion"), value.get("kind")
    wanted: list[tuple[str | None, str | None]] = [(watched.api_version(version), watched.kind)]
    wanted += [("meta.k8s.io/v1", PARTIAL)] if watched.metadata_only else []
    wanted += [] if needed else [(None, None)]
    if found not in wanted:
        raise Garbled(f"an object is a {str(found[1])[:40]} of {str(found[0])[:80]} instead of a {watched.kind} of {wanted[0][0]}")


def _trimmed(value: Raw, watched: Watched, version: str) -> Raw:
    return watched.trim(value, watched.api_version(version), watched.kind)


def _bookmark(value: Raw) -> int:
    metadata = value.get("metadata")
    return number(metadata.get("resourceVersion") if isinstance(metadata, dict) else None)


def _status(value: Raw) -> Reply:
    code = value.get("code")
    return Reply(code if isinstance(code, int) else 500, value)


def _shown(line: bytes) -> str:
    return line[:100].decode(errors="replace")
