"""Read what DRA drivers publish."""

from __future__ import annotations

import re

from catalog.parse.reader import Fields
from catalog.published_devices import PublishedDevices

_IDENTIFIER = re.compile(r"([a-z0-9.-]+/)?[A-Za-z_][A-Za-z0-9_]{0,31}")
"""A qualified name (k8s.io/api/resource/v1): what follows the domain is written into CEL as it is."""
_WORDS = frozenset((
    "as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in",
    "let", "loop", "package", "namespace", "null", "return", "true", "var", "void", "while",
))  # fmt: skip
"""Words that CEL reserves (cel-spec doc/langdef.md)."""
_SHARING = ("Exclusive", "MIG", "TimeSliced")


def published(entry: Fields) -> PublishedDevices:
    found = PublishedDevices(
        driver=entry.text("driver"),
        vendor=entry.text("vendor"),
        classes=entry.labels("classes"),
        model=_attribute(entry, "model"),
        spaces=entry.flag("spaces"),
        named=_lists(entry, "names"),
        family=_attribute(entry, "family"),
        families=_lists(entry, "families"),
        type=_attribute(entry, "type"),
        sharing=_lists(entry, "sharing"),
        profile=_attribute(entry, "profile"),
        memory=_attribute(entry, "memory"),
    )
    for name in found.sharing:
        if name not in _SHARING:
            entry.notes.wanted(entry.at("sharing"), f"keys among {', '.join(_SHARING)}", name)
    return found


def _attribute(entry: Fields, key: str) -> str | None:
    name = entry.maybe_text(key)
    if name and (not _IDENTIFIER.fullmatch(name) or name.rpartition("/")[2] in _WORDS):
        entry.notes.wanted(entry.at(key), "the name of an attribute or capacity such as productName", name)
        return None
    return name or None


def _lists(entry: Fields, key: str) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for name, value, path in entry.mapped(key):
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            found[name] = tuple(value)
        else:
            entry.notes.wanted(path, "a list of strings", value)
    return found
