"""Objects that stand whole inside an object of another kind: of an AppWrapper, a Katib Experiment, an OpenShift Template."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from policies.verdict import Path

_MOST = 64
"""in one object"""


def inside(value: dict[str, Any]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """(path, object) of each map in ``value`` that says apiVersion and kind and has a spec, as a mere reference has none; not of those in
    such a map."""
    todo: list[tuple[Path, Any]] = [((key,), inner) for key, inner in reversed(value.items()) if key not in ("metadata", "status")]
    found = 0
    while todo and found < _MOST:
        path, here = todo.pop()
        if isinstance(here, dict):
            if isinstance(here.get("apiVersion"), str) and isinstance(here.get("kind"), str) and isinstance(here.get("spec"), dict):
                found += 1
                yield path, here
            else:
                todo += [((*path, key), inner) for key, inner in reversed(here.items())]
        elif isinstance(here, list):
            todo += [((*path, number), inner) for number, inner in reversed(list(enumerate(here)))]
