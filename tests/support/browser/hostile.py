"""Objects whose texts try to become part of a page, in every place that a dump can have one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

MARK = "hostile"
"""The name that a script would set in the window, if one ran."""
SCRIPTS = (
    f"<script>window.{MARK}=1</script>",
    f"<img src=x onerror=window.{MARK}=1>",
    f"\"'><svg onload=window.{MARK}=1>",
    f"javascript:window.{MARK}=1",
    "\u202e\u2066evil\u2069\u0000\u200b",
    "W" * 3000,
)
FREE = ("annotations", "labels")
NAMES = ("name", "generateName", "namespace", "image", "priorityClassName", "schedulerName")


def hostile(values: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Copies of these objects, in turn with each of ``SCRIPTS`` after names and as values of labels and annotations. Names of namespaces
    keep together what belongs together."""
    return [_changed(value, SCRIPTS[number % len(SCRIPTS)], {}) for number, value in enumerate(values)]


def _changed(value: Any, script: str, names: dict[str, str], key: str = "") -> Any:
    if isinstance(value, dict):
        more = {f"x/{script}": script} if key in FREE else {}
        return {name: _changed(one, script, names, name) for name, one in value.items()} | more
    if isinstance(value, list):
        return [_changed(one, script, names, key) for one in value]
    if key == "namespace" and isinstance(value, str):
        return f"{value}{SCRIPTS[0]}"
    return f"{value}{script}" if key in NAMES and isinstance(value, str) else value
