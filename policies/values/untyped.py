"""Readers for Kubernetes objects that have not been validated: no content can make them raise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

LARGEST = 2**63
"""Integers of Kubernetes are smaller (int64); Python rejects to print those of more than 4,300 digits."""

UNREAD = "berth.dev/unread"
"""Key of an object that is known by its name alone; its value says why. No field of Kubernetes has a slash in its name."""


def map_at(thing: Any, *keys: str) -> Mapping[Any, Any]:
    """The map under these keys; an empty one where there is none."""
    for key in keys:
        thing = thing.get(key) if isinstance(thing, Mapping) else None
    return thing if isinstance(thing, Mapping) else {}


def maps_in(thing: Any) -> Iterator[Mapping[Any, Any]]:
    """The maps in a list."""
    return (item for item in thing if isinstance(item, Mapping)) if isinstance(thing, list) else iter(())


def text_of(value: Any) -> str:
    """A string, and what YAML makes of one that is written bare; "" for anything else, as for null."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, float) or (isinstance(value, int) and abs(value) < LARGEST) else ""
