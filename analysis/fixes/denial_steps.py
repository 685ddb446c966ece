"""The steps that could mend a denial: found by the places of the pod that it is about, and by the values that its fix names.

Whether a step does mend it is for the policies to judge (``analysis.fixes.admitted``): here nothing is known of rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from math import ceil

from analysis.fixes import lowering
from analysis.fixes.edits import put, remove
from analysis.fixes.steps import Step, StepKind, Steps
from catalog import Catalog
from kube.pod import ANNOTATIONS, DEADLINE, GRACE, NODE_NAME, NODE_SELECTOR, OWNERS, SCHEDULER, TERMS, TOLERATIONS
from kube.quantity import QuantityError, parse
from kube.scheduling import wants
from kube.tree import Path, ReadOnly, maps_in, value_at
from policies.messages import At, Phrase
from policies.pods.annotations import OPT_OUT, SLICE
from policies.pods.permissions import FRACTION_DEVICES, fraction_keys
from policies.pods.queue_systems import SYSTEMS
from policies.verdict import Edit, Violation

_METADATA = (ANNOTATIONS, ("metadata", "labels"))
_SIDES = ("limits", "requests")
MOST_OFFERED = 6
"""Values of one fix that are tried: a label may have hundreds."""


def ways(one: Violation, pod: ReadOnly, catalog: Catalog) -> Iterator[Steps]:
    """Yield what could mend a denial of a pod, the gentlest of each place first.

    ``pod``: as its author wrote it, with the steps that were taken before. What only policies wrote cannot be mended there.
    """
    values = list(dict.fromkeys(_values(one.advice)))[:MOST_OFFERED]
    texts = [value for value in values if isinstance(value, str)]
    numbers = [number for number in dict.fromkeys((*values, *_values(one.found))) if isinstance(number, int) and number > 0]
    advised = list(_paths(one.advice))
    for path in dict.fromkeys((one.path, *_paths(one.found), *advised)):
        yield from _at(path, texts, numbers, advised if path == one.path else (), pod, catalog)
    for key in _keys(one):
        yield from _of_label(key, texts, pod)
    requested = wants(pod).requests
    names = [name for name in _named(one.found) if name in requested]
    for name in names:
        yield from _other_names(name, texts, pod, catalog)
    for name in names if names or one.path else requested:
        yield from _fewer(name, numbers, pod, catalog)


def _values(one: object) -> Iterator[str | int]:
    """Yield the texts and numbers in a phrase."""
    match one:
        case Phrase():
            yield from chain.from_iterable(_values(value) for _, value in one.values)
        case At():
            return
        case tuple():
            yield from chain.from_iterable(map(_values, one))
        case str() | int():
            yield one


def _paths(one: object) -> Iterator[Path]:
    """Yield the paths in a phrase."""
    match one:
        case At():
            yield one.path
        case Phrase():
            yield from chain.from_iterable(_paths(value) for _, value in one.values)
        case tuple():
            yield from chain.from_iterable(map(_paths, one))


def _named(one: object) -> Iterator[str]:
    """Yield what the phrases in one call ``name``, ``whole`` or ``slice``: names of resources, where a pod asks for them."""
    if isinstance(one, Phrase):
        yield from (value for key, value in one.values if key in ("name", "whole", "slice") and isinstance(value, str))
        yield from chain.from_iterable(_named(value) for _, value in one.values)
    elif isinstance(one, tuple) and not isinstance(one, At):
        yield from chain.from_iterable(map(_named, one))


def _keys(one: Violation) -> Iterator[str]:
    """Yield the keys of labels of nodes that the author wrote and the denial is about."""
    found = dict.fromkeys(_labels(one.found))
    if len(one.path) == 2 and one.path[0] not in ("spec", "metadata"):
        found |= dict.fromkeys((str(one.path[1]),))
    yield from found


def _labels(one: object) -> Iterator[str]:
    if isinstance(one, Phrase):
        if isinstance(key := one.value("key"), str):
            yield key
        yield from chain.from_iterable(_labels(value) for _, value in one.values)
    elif isinstance(one, tuple) and not isinstance(one, At):
        yield from chain.from_iterable(map(_labels, one))


def _at(path: Path, texts: list[str], numbers: list[int], advised: Iterable[Path], pod: ReadOnly, catalog: Catalog) -> Iterator[Steps]:
    """Yield the steps at one place."""
    present = value_at(pod, path) is not None if path else False
    if _is_amount(path):
        yield from _amount(path, texts, numbers, advised, pod, catalog)
    elif path[-1:] == ("resources",):
        for name in _devices(pod, path, catalog):
            yield _step(
                "unwrite", [remove((*side, name)) for side, held in lowering.holders(name, pod) if side[:-1] == path and name in held]
            )
    elif path == SCHEDULER or (_names_a_queue(path) and not present):
        for text in texts:
            yield _step("write", [_put(pod, path, text)])
    elif path == OWNERS and present:
        yield _step("unwrite", [remove(path)])
    elif path[:2] in _METADATA and len(path) == 3 and present:
        known = [*texts, *(f"{number}gb" for number in numbers if path[2] == SLICE), *(["grace"] if path[2] == OPT_OUT else [])]
        for text in known:
            yield _step("write", [put(path, text, "replace")])
        yield _step("unwrite", [remove(path)])
    elif path == ANNOTATIONS:
        written = [key for key in (value_at(pod, path) or ()) if key == FRACTION_DEVICES or fraction_keys([key])]
        if written:
            yield _step("unwrite", [remove((*path, key)) for key in written])
    elif (path[:2] == TOLERATIONS and len(path) == 3 and present) or (path == NODE_NAME and present):
        yield _step("unwrite", [remove(path)])
    elif path == TERMS:
        names = [(*path, i, "matchFields", j) for i, term in enumerate(maps_in(value_at(pod, path))) for j, _ in _fields(term)]
        if names:
            yield tuple(Step("unlabel", (), drops=name) for name in names)
    elif path[-1:] in ((GRACE,), (DEADLINE,)):
        for number in numbers:
            yield _step("write", [_put(pod, path, number)])
        if len(path) > 2 and present:
            yield _step("unwrite", [remove(path)])


def _names_a_queue(path: Path) -> bool:
    return any(path == system.path for system in SYSTEMS if system.scheduler)


def _is_amount(path: Path) -> bool:
    return len(path) > 3 and path[-3] == "resources" and path[-2] in _SIDES


def _step(kind: StepKind, edits: Iterable[Edit]) -> Steps:
    return (Step(kind, tuple(edits)),)


def _put(pod: ReadOnly, path: Path, value: object) -> Edit:
    return put(path, value, "add" if value_at(pod, path) is None else "replace")


def _fields(term: ReadOnly) -> Iterator[tuple[int, ReadOnly]]:
    return enumerate(maps_in(term.get("matchFields")))


def _devices(pod: ReadOnly, resources: Path, catalog: Catalog) -> list[str]:
    held = [name for side in _SIDES for name in value_at(pod, (*resources, side)) or ()]
    return [name for name in dict.fromkeys(held) if catalog.resource(name) is not None]


def _amount(path: Path, texts: list[str], numbers: list[int], advised: Iterable[Path], pod: ReadOnly, catalog: Catalog) -> Iterator[Steps]:
    """Yield the ways with one amount: as much as on its other side, a whole number, another number, another name."""
    around, name = path[:-2], path[-1]
    sides = {side: value for side in _SIDES if (value := value_at(pod, (*around, side, name))) is not None}
    for place in filter(_is_amount, advised):
        if place != path or place[-2] not in sides:
            for text in texts:
                yield _step("equal", [_put(pod, place, text)])
    if len(set(map(str, sides.values()))) == 2 or len(sides) == 1:
        for value in dict.fromkeys(sides.values()):
            yield _step("equal", [_put(pod, (*around, side, name), value) for side in _SIDES if sides.get(side) != value])
    for value in dict.fromkeys(map(str, sides.values())):
        if (whole := _whole(value)) is not None and str(whole) != value:
            yield _step("write", [put((*around, side, name), str(whole), "replace") for side in sides])
    if "/" in str(name):
        for number in numbers:
            yield _step("lower", [put((*around, side, name), str(number), "replace") for side in sides])
        yield from _other_names(str(name), texts, pod, catalog)


def _whole(value: str) -> int | None:
    try:
        number = ceil(parse(value))
    except QuantityError:
        return None
    return number if number > 0 else None


def _other_names(name: str, offered: Iterable[str], pod: ReadOnly, catalog: Catalog) -> Iterator[Steps]:
    """Yield the names that the fix gives, and the vendor's whole devices. Where each container asks for the name of the fix beside this
    one, which no device has, this one goes; no other name that a container asks for beside it is taken."""
    if "/" not in name:
        return
    known = catalog.resource(name)
    holders = list(lowering.holders(name, pod))
    beside = {other for _, found in holders for other in found}
    vendor = "" if known is None else known.vendor
    others = [one for one in offered if "/" in one]
    whole = [one for of, one in catalog.whole.items() if of == vendor or not vendor]
    in_each = [{other for at, found in holders if at[:-1] == path[:-1] for other in found} for path, _ in holders]
    if known is None and any(all(other in found for found in in_each) for other in others):
        yield _step("rename", [remove((*path, name)) for path, _ in holders])
    for other in dict.fromkeys((*others, *whole[:MOST_OFFERED])):
        if other not in beside and (edits := tuple(lowering.renamed(pod, name, other))):
            yield _step("rename", edits)


def _fewer(name: str, most: list[int], pod: ReadOnly, catalog: Catalog) -> Iterator[Steps]:
    """Yield the ways to ask for fewer devices of one name."""
    if catalog.resource(name) is None:
        return
    every = wants(pod).requests
    asked = every[name]
    rest = sum(count for other, count in every.items() if other != name and catalog.resource(other) is not None)
    few = [asked - 1, *(asked >> bits for bits in range(1, asked.bit_length()))]
    for number in dict.fromkeys((*(one - rest for one in most), *few)):
        if 0 < number < asked and (lower := lowering.lowered(pod, name, number)):
            yield tuple(Step("lower", edits) for edits in lower)


def _of_label(key: str, texts: list[str], pod: ReadOnly) -> Iterator[Steps]:
    """Yield the ways with one label: a value that the fix names wherever the author wrote it, or none of it."""
    selected = (*NODE_SELECTOR, key) if value_at(pod, (*NODE_SELECTOR, key)) is not None else ()
    terms = enumerate(maps_in(value_at(pod, TERMS)))
    written = [((*TERMS, i, "matchExpressions", j), one) for i, term in terms for j, one in _expressions(term) if one.get("key") == key]
    if not selected and not written:
        return
    listed = [(*path, "values") for path, one in written if one.get("operator") == "In"]
    for text in texts if len(listed) == len(written) else ():
        edits = [*([put(selected, text, "replace")] if selected else []), *(put(path, [text], "replace") for path in listed)]
        yield _step("relabel", edits)
    drops = tuple(Step("unlabel", (), drops=path) for path, _ in written)
    yield (*_step("unlabel", [remove(selected)]), *drops) if selected else drops


def _expressions(term: ReadOnly) -> Iterator[tuple[int, ReadOnly]]:
    return enumerate(maps_in(term.get("matchExpressions")))
