"""Find accelerators in any manifest, of whatever kind: by resource name, claim or annotation, wherever they
stand.

These count as requests for a device: a resource's name as the key of an amount, a resource claim, a fraction
by annotation, a listed name beside a number (``gpu: {name: nvidia.com/gpu, quantity: 1}``), and in a text
that holds a manifest of its own a listed name as a key, or as any of these if the text is JSON. Labels,
selectors and tolerations are about nodes and are skipped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kube.quantity import QuantityError, parse
from kube.tree import Path
from policies.pods.fractions import fraction_keys
from policies.state.snapshot import Snapshot

_NOT_AMOUNTS = frozenset(
    ("labels", "nodeSelector", "nodeLabels", "matchLabels", "matchExpressions", "selector", "labelSelector", "tolerations", "taints", "env")
)
"""Fields whose keys and names are no resources, whatever they look like."""
_AMOUNTS = re.compile(r"limit|request|resource|overhead|capacity|allocatable|custom|hard|default|^min$|^max$", re.IGNORECASE)
"""Matches names of fields that may hold amounts, so that a name in them that looks like an accelerator's
is one."""
_KEY = re.compile(
    r"(?<![\w./-])([A-Za-z0-9][-A-Za-z0-9.]*/[A-Za-z0-9][-A-Za-z0-9._]*)[\"'\\]*\s*:\s*(?![\"'\\]*0[\"'\\]*(?:[\s,}]|$))[\"'\\]*[\d${<]"
)
"""Matches, in a text, a qualified name before a colon and a number or a placeholder for one."""
_GPUS = re.compile(r"(?:num[-_]?|n)?gpus?(?:[-_]?(?:count|num|number|limit|request))?(?:[-_]?per[-_]?\w+)?", re.IGNORECASE)
"""Matches names of fields that operators have for a number of GPUs: ``gpu``, ``numGPUs``, ``gpu_count``, ``gpusPerNode``."""
_COUNT = re.compile(r"[1-9]\d{0,3}")
_MOST = 64
"""The most that are found in one manifest; a message names only a few."""


@dataclass(frozen=True, slots=True)
class HeldAccelerator:
    """One accelerator in a manifest."""

    path: Path
    name: str
    """The name of the resource, the claim, the class or the annotation."""
    how: str = "holds"
    """Either ``holds`` or ``holds in the text``."""
    known: bool = True
    """False for a name that is not listed but looks like an accelerator's."""

    @property
    def in_text(self) -> bool:
        return self.how != "holds"


def find_held(value: Mapping[str, Any], snapshot: Snapshot, *, unknown: bool = False) -> tuple[HeldAccelerator, ...]:
    """Return what one object holds, in its order. Its status is written by others, so it is left out. ``unknown``: it is not known where
    objects of this kind have the resources of their pods, so a number of ``gpu`` and a listed name as a value count too."""
    found: list[HeldAccelerator] = []
    for one in _HeldSearch(snapshot, unknown).object(value):
        found.append(one)
        if len(found) >= _MOST:
            break
    return tuple(found)


@dataclass(slots=True)
class _HeldSearch:
    snapshot: Snapshot
    unknown: bool

    def object(self, value: Mapping[str, Any]) -> Iterator[HeldAccelerator]:
        for key, inner in value.items():
            if key == "metadata":
                yield from _fractions(inner, (key,))
            elif key != "status":
                yield from self._walk(inner, (key,))

    def _walk(self, top: Any, start: Path) -> Iterator[HeldAccelerator]:
        """Search depth first, in the order of the manifest.

        This does not recurse: what an operator's schema lets pass may be nested deeper than Python calls.
        """
        todo: list[tuple[Any, Path]] = [(top, start)]
        while todo:
            value, path = todo.pop()
            if isinstance(value, str):
                if self.unknown and self.snapshot.catalog.resource(value) is not None:
                    yield HeldAccelerator(path, value)
                yield from self._in_text(value, path)
            elif isinstance(value, dict):
                yield from self._in_map(value, path)
                todo += [(inner, (*path, key)) for key, inner in reversed(value.items()) if key not in (*_NOT_AMOUNTS, "metadata")]
            elif isinstance(value, list):
                todo += [(inner, (*path, number)) for number, inner in reversed(list(enumerate(value)))]

    def _in_map(self, value: dict[Any, Any], path: Path) -> Iterator[HeldAccelerator]:
        for key, inner in value.items():
            if key == "metadata" and path:
                yield from _fractions(inner, (*path, key))
            elif key == "annotations":
                yield from _fractions({"annotations": inner}, path)
            elif key == "resourceClaims" and isinstance(inner, list) and inner:
                yield HeldAccelerator((*path, key), "a resource claim")
            elif key == "deviceClassName" and isinstance(inner, str) and inner and self.snapshot.counts(inner):
                yield HeldAccelerator((*path, key), f"devices of the class {inner}")
            elif self.unknown and isinstance(key, str) and _GPUS.fullmatch(key) and _COUNT.fullmatch(str(inner)):
                yield HeldAccelerator((*path, key), key)
            elif isinstance(key, str) and _is_amount(inner):
                yield from self._named(key, (*path, key), str(path[-1]) if path else "")
        yield from self._beside_a_number(value, path)

    def _named(self, name: str, path: Path, around: str) -> Iterator[HeldAccelerator]:
        """Yield a resource's name that is the key of an amount. In a quota, a prefix tells what is
        counted."""
        if around == "hard":
            name = name.removeprefix("requests.").removeprefix("limits.")
        resource = self.snapshot.resource(name) if "/" in name else None
        if resource is None:
            if name in self.snapshot.catalog.misspellings:
                yield HeldAccelerator(path, name)
        elif resource.vendor or resource.kind == "dra":
            yield HeldAccelerator(path, name)
        elif _AMOUNTS.search(around):
            yield HeldAccelerator(path, name, known=resource.kind == "part")

    def _beside_a_number(self, value: dict[str, Any], path: Path) -> Iterator[HeldAccelerator]:
        """Yield a listed name that is the text of one field, if another field has an amount."""
        numbers = [key for key, inner in value.items() if _is_amount(inner) and str(inner).strip()[:1].isdigit()]
        for key, inner in value.items() if numbers else ():
            if isinstance(inner, str) and key not in ("key", "topologyKey") and self.snapshot.catalog.resource(inner) is not None:
                yield HeldAccelerator((*path, key), inner)

    def _in_text(self, text: str, path: Path) -> Iterator[HeldAccelerator]:
        if "/" not in text or ":" not in text:
            return
        names = dict.fromkeys(name for name in _KEY.findall(text) if self.snapshot.catalog.resource(name) is not None)
        names |= dict.fromkeys(held.name for held in self._walk(_json_of(text), path) if held.known)
        yield from (HeldAccelerator(path, name, how="holds in the text") for name in names)


def _fractions(metadata: Any, path: Path) -> Iterator[HeldAccelerator]:
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    written = annotations if isinstance(annotations, dict) else {}
    for name in fraction_keys(written):
        if written[name] is not None:
            yield HeldAccelerator((*path, "annotations", name), f"the annotation {name}")


def _json_of(text: str) -> Any:
    """Return the map or list of a text that is JSON, as the parameters of Kubeflow Pipelines are; else None."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _is_amount(value: object) -> bool:
    """Return whether the value requests a resource: zero does not, and a value that can't be parsed may."""
    if value is None or isinstance(value, bool | dict | list):
        return False
    try:
        return parse(value) != 0
    except QuantityError:
        return True
