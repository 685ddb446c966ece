"""Complete objects embedded in an object of another kind, such as an AppWrapper, Katib Experiment or
OpenShift Template."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kube.tree import Path

_MOST = 64
"""Most embedded objects that are read of one object."""


def inside(value: dict[str, Any]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield (path, object) of each map in ``value`` that has apiVersion, kind and a spec, which mere
    references lack.

    Maps inside such a map are not searched.
    """
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
