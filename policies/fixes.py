"""The fixes of violations, as plain data: what an author may change in a pod so that a rule no longer denies it.

The rule that denies a pod knows them. ``analysis.fixes`` applies them to the pod as its author wrote it, and evaluates the pod again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import ceil, floor
from typing import Any, Literal, NamedTuple

from catalog import Catalog, Resource
from kube.pod import Container
from kube.quantity import QuantityError, parse
from kube.tree import LARGEST, Path

FixKind = Literal["equal", "respell", "relabel", "write", "rename", "unlabel", "unwrite", "lower"]
MOST_VALUES = 6
"""The most values of one field that are offered: a label may have hundreds."""
MOST_HALVED = 1024
"""The largest number of devices that is halved: no machine has as many."""


class Fix(NamedTuple):
    """One fix. It is about paths of the pod, or about a name: a resource, or a node label, wherever the pod has it."""

    kind: FixKind
    paths: tuple[Path, ...] = ()
    name: str = ""
    value: Any = None
    """What to write at each path, or for the name; None: leave it out."""


def write(path: Path, *values: int | str | None) -> tuple[Fix, ...]:
    """Return the fixes that write one of these values at a path; None is no value."""
    return tuple(Fix("write", (path,), value=value) for value in values[:MOST_VALUES] if value is not None)


def leave_out(*paths: Path) -> tuple[Fix, ...]:
    """Return the fix that leaves out everything at these paths; none without a path."""
    return (Fix("unwrite", paths),) if paths else ()


def write_or_leave_out(path: Path, *values: int | str | None) -> tuple[Fix, ...]:
    """Return the fixes that write one of these values at a path, then the one that leaves it out."""
    return (*write(path, *values), *leave_out(path))


def choose_label(key: str, values: Iterable[str] = ()) -> tuple[Fix, ...]:
    """Return the fixes that select one of these values of a node label, then the one that does not select by it."""
    return (*(Fix("relabel", name=key, value=value) for value in list(values)[:MOST_VALUES]), Fix("unlabel", name=key))


def respell_label(key: str, value: str, near: str) -> tuple[Fix, ...]:
    """Return the fix that writes the nearest known value of a node label wherever the pod selects by an unknown one."""
    return (Fix("respell", name=key, value=(value, near)),)


def rename(name: str, others: Iterable[str]) -> tuple[Fix, ...]:
    """Return the fixes that request one of these resources in place of another."""
    return tuple(Fix("rename", name=name, value=other) for other in list(others)[:MOST_VALUES] if other != name)


def request_whole(resource: Resource, catalog: Catalog) -> tuple[Fix, ...]:
    """Return the fixes that request the vendor's whole devices in place of a resource; of each vendor if none is known."""
    return rename(resource.name, (whole for vendor, whole in catalog.whole.items() if resource.vendor in ("", "any", vendor)))


def request_fewer(name: str, count: int, *targets: int) -> tuple[Fix, ...]:
    """Return the fixes that request fewer than ``count`` devices of a name: one of the targets, or if none will do one fewer, or half."""
    halves = (min(count, MOST_HALVED) >> bits for bits in range(1, MOST_HALVED.bit_length()))
    numbers = [number for number in targets if 0 < number < count] or [count - 1, *halves]
    return tuple(Fix("lower", name=name, value=number) for number in dict.fromkeys(numbers) if number > 0)


def equalize(resources: Path, name: str, *, limit: Any, request: Any) -> tuple[Fix, ...]:
    """Return the fixes that write the limit as request, or the request as limit; none for a value of None."""
    sides = {"requests": limit, "limits": request}
    return tuple(Fix("equal", ((*resources, side, name),), value=value) for side, value in sides.items() if value is not None)


def round_amounts(container: Container, name: str) -> Iterator[Fix]:
    """Yield the fixes that write a whole number as all of a container's amounts of a device: one of them rounded up, or down."""
    for amount in (container.limits.get(name), container.requests.get(name)):
        try:
            number = parse(amount)
        except QuantityError:
            continue
        for whole in dict.fromkeys((ceil(number), floor(number))):
            if 0 < whole < LARGEST:
                yield Fix("write", amount_paths(container, name), value=str(whole))


def amount_paths(container: Container, name: str) -> tuple[Path, ...]:
    """Return the paths of a container's amounts of a resource."""
    sides = (("limits", container.limits), ("requests", container.requests))
    return tuple((*container.path, "resources", side, name) for side, amounts in sides if name in amounts)
