"""The steps that could fix what keeps a pod off one place, for each blocker the alternatives, the gentlest first; and those of the
fixes of a violation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from typing import Literal, NamedTuple

from analysis.fixes.edits import changed, holders, lower_amount, put, remove, rename_resource
from catalog import Catalog
from catalog.names import CatalogNames
from kube.pod import NODE_SELECTOR, TERMS, TOLERATIONS, containers_of
from kube.requests import PODS, is_native, to_units
from kube.scheduling import Blocker
from kube.tree import Path, ReadOnly, map_at, maps_in, value_at
from policies.fixes import Fix, FixKind
from policies.verdict import Edit

StepKind = FixKind | Literal["tolerate", "unport"]
WEIGHTS: Mapping[StepKind, int] = {
    "tolerate": 0,
    "equal": 0,
    "respell": 0,
    "relabel": 1,
    "write": 1,
    "rename": 2,
    "unlabel": 3,
    "unwrite": 3,
    "lower": 4,
    "unport": 5,
}
"""Among changes of as many steps the gentler ones come first: a toleration takes nothing back, a label that is left out may
have had a reason, a smaller amount is another program."""


AMOUNTS = ("resource", "capacity", "machines", "limits")
PLACED: tuple[Path, ...] = (NODE_SELECTOR, ("spec", "affinity"))
"""Where labels stand, of which a NodePool has ``machines`` too."""


class Step(NamedTuple):
    """One step, in one word of the author's."""

    kind: StepKind
    edits: tuple[Edit, ...]


Steps = tuple[Step, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """What is known of the place: its labels, and what it has of each resource for this pod."""

    labels: Mapping[str, tuple[str, ...]]
    amounts: Mapping[str, int]
    shared: bool = False
    """True if others take an unknown part of its CPU, memory and storage: how much to ask for is not known then."""


def alternatives(found: Sequence[Blocker], pod: ReadOnly, offered: Offered, catalog: Catalog) -> list[tuple[Steps, ...]] | None:
    """Return for each blocker the ways to fix it, each of one step or more; None if one of them cannot be fixed in the pod.

    ``pod``: as its author wrote it. What stands in it only because a policy wrote it cannot be fixed there.
    """
    result: list[tuple[Steps, ...]] = []
    taints: dict[str, list[Blocker]] = {}
    short = [blocker for blocker in found if blocker.kind in AMOUNTS and blocker.path[:2] not in PLACED]
    for blocker in dict.fromkeys(found):  # two containers may take one port
        if blocker.kind == "taint":
            taints.setdefault(blocker.key, []).append(blocker)
        elif blocker in short:
            continue
        elif steps := tuple(_steps(blocker, pod, offered)):
            result.append(steps)
        else:
            return None
    if short:
        if offered.shared and any(is_native(blocker.key) for blocker in short):
            return None
        result.append(tuple(_amounts(short, pod, offered, catalog)))
    names = CatalogNames(catalog)
    if any(names.never_tolerated(key) or any(one.passing for one in same) for key, same in taints.items()):
        return None
    return [((_toleration(same),),) for same in taints.values()] + result


def _toleration(same: Sequence[Blocker]) -> Step:
    """Return the narrowest toleration of these taints with one key."""
    values = {blocker.found or "" for blocker in same}
    effects = {blocker.operator for blocker in same}
    value: dict[str, str] = {"key": same[0].key, "operator": "Exists"}
    if len(values) == 1 and (one := values.pop()):
        value |= {"operator": "Equal", "value": one}
    if len(effects) == 1:
        value["effect"] = effects.pop()
    return Step("tolerate", (put((*TOLERATIONS, "-"), value),))


def _steps(blocker: Blocker, pod: ReadOnly, offered: Offered) -> Iterator[Steps]:
    match blocker.kind:
        case "label" | "machines" if blocker.path[: len(NODE_SELECTOR)] == NODE_SELECTOR:
            yield from _selector(blocker, pod, offered)
        case "label" | "machines" | "name" if blocker.path[: len(TERMS)] == TERMS:
            yield from _expression(blocker, pod, offered)
        case "ports":
            yield from _ports(blocker, pod)


def _selector(blocker: Blocker, pod: ReadOnly, offered: Offered) -> Iterator[Steps]:
    if value_at(pod, blocker.path) is None:
        return
    for value in offered.labels.get(blocker.key, ()):
        yield (Step("relabel", (put(blocker.path, value, "replace"),)),)
    yield (Step("unlabel", (remove(blocker.path),)),)


def _expression(blocker: Blocker, pod: ReadOnly, offered: Offered) -> Iterator[Steps]:
    written = value_at(pod, blocker.path)
    if not isinstance(written, Mapping) or written.get("key") != blocker.key:
        return
    values = written.get("values")
    if blocker.operator == "In" and isinstance(values, list) and blocker.kind != "name":
        for value in offered.labels.get(blocker.key, ()):
            if value not in values:
                yield (Step("relabel", (put((*blocker.path, "values"), [*values, value], "replace"),)),)
    yield (Step("unlabel", (remove(blocker.path),)),)


def _amounts(short: Sequence[Blocker], pod: ReadOnly, offered: Offered, catalog: Catalog) -> Iterator[Steps]:
    """Yield the ways to fix all amounts at once: other names under which the place has devices of the same vendor, and then
    less where there is still not enough."""
    most = {**offered.amounts, **{one.key: min(one.have, offered.amounts.get(one.key, one.have)) for one in short}}
    for names in product(*([one.key, *_others(one.key, pod, most, catalog)] for one in short)):
        renames = [(one.key, name) for one, name in zip(short, names, strict=True) if name != one.key]
        edits = [tuple(rename_resource(pod, old, new)) for old, new in renames]
        then = changed(pod, chain.from_iterable(edits))
        lower = [lower_amount(then, name, here) for name, here in most.items() if name != PODS]
        if None not in lower:
            yield *(Step("rename", one) for one in edits), *(Step("lower", one) for steps in lower for one in steps or ())


def _others(name: str, pod: ReadOnly, most: Mapping[str, int], catalog: Catalog) -> Iterator[str]:
    """Yield the other names of devices of one vendor that the place has, whole devices first. A container that requests several whole
    devices gets no parts in their place: one program cannot use several parts as it uses several devices."""
    asked = catalog.resource(name)
    held = [found for _, found in holders(name, pod)]
    is_several = any((to_units(name, found[name]) or 0) > 1 for found in held)
    for one in sorted(most, key=lambda one: (one not in catalog.whole.values(), one)) if asked is not None and held else ():
        other = catalog.resource(one)
        if other is None or asked is None or other.vendor != asked.vendor or other.kind in ("part", "dra"):
            continue
        if is_several and asked.kind == "gpu" and other.kind != "gpu":
            continue
        if one != name and most[one] > 0 and not any(one in found for found in held):
            yield one


def _ports(blocker: Blocker, pod: ReadOnly) -> Iterator[Steps]:
    if value_at(pod, ("spec", "hostNetwork")) is True:
        return
    edits = []
    for path, container in containers_of(map_at(pod, "spec")):
        for j, port in enumerate(maps_in(container.get("ports"))):
            if blocker.key == f"{port.get('hostPort')}/{port.get('protocol') or 'TCP'}":
                edits += [remove((*path, "ports", j, name)) for name in ("hostPort", "hostIP") if name in port]
    if edits:
        yield (Step("unport", tuple(edits)),)


def steps_of(fix: Fix, pod: ReadOnly) -> Steps:
    """Return the steps of a violation's fix; () if it changes nothing in the pod as its author wrote it."""
    match fix.kind:
        case "lower" if fix.name:
            return tuple(Step("lower", edits) for edits in lower_amount(pod, fix.name, fix.value) or ())
        case "unlabel":
            paths = fix.paths or _selecting(fix.name, pod)
            return tuple(Step("unlabel", (remove(path),)) for path in paths if value_at(pod, path) is not None)
        case "rename":
            edits = tuple(rename_resource(pod, fix.name, fix.value))
        case "respell":
            unknown, near = fix.value
            edits = tuple(_respelt(_selecting(fix.name, pod), unknown, near, pod))
        case "relabel":
            edits = _relabelled(_selecting(fix.name, pod), fix.value, pod)
        case _:
            edits = tuple(edit for path in fix.paths for edit in _written(path, value_at(pod, path), fix.value))
    return (Step(fix.kind, edits),) if edits else ()


def _selecting(key: str, pod: ReadOnly) -> list[Path]:
    """Return the paths where the pod selects nodes by a label."""
    terms = enumerate(maps_in(value_at(pod, TERMS)))
    every = (((*TERMS, i, "matchExpressions", j), one) for i, term in terms for j, one in enumerate(maps_in(term.get("matchExpressions"))))
    selector = (*NODE_SELECTOR, key)
    return [*([selector] if value_at(pod, selector) is not None else []), *(path for path, one in every if one.get("key") == key)]


def _relabelled(paths: Iterable[Path], value: object, pod: ReadOnly) -> tuple[Edit, ...]:
    """Return the edits that select a value of a label at each path; () if an expression there lists no values."""
    expressions = [path for path in paths if path[:-1] != NODE_SELECTOR]
    if any(value_at(pod, (*path, "operator")) != "In" for path in expressions):
        return ()
    return tuple(put((*path, "values"), [value], "replace") if path in expressions else put(path, value, "replace") for path in paths)


def _respelt(paths: Iterable[Path], value: str, near: str, pod: ReadOnly) -> Iterator[Edit]:
    """Yield the edits that write the nearest value in place of an unknown one, and leave the other values of an expression."""
    for path in paths:
        written = value_at(pod, path)
        if written == value:
            yield put(path, near, "replace")
        elif isinstance(written, Mapping) and isinstance(values := written.get("values"), list) and value in values:
            yield put((*path, "values"), list(dict.fromkeys(near if item == value else item for item in values)), "replace")


def _written(path: Path, now: object, value: object) -> Iterator[Edit]:
    if value != now:
        yield remove(path) if value is None else put(path, value, "add" if now is None else "replace")


def edits_of(steps: Iterable[Step], pod: ReadOnly) -> tuple[Edit, ...]:
    """Return the edits of all steps together. Expressions of one term go together, from the last on; a term without any would
    match no node, so that with the last one the required affinity goes."""
    edits = list(chain.from_iterable(step.edits for step in steps))
    expressions = {edit.path for edit in edits if edit.op == "remove" and edit.path[: len(TERMS)] == TERMS}
    drops = sorted(expressions, key=lambda path: [str(part).rjust(9) for part in path], reverse=True)
    others = [edit for edit in edits if edit.path not in expressions]
    terms = {path[: len(TERMS) + 1] for path in drops}
    for term in terms:
        written = value_at(pod, term)
        every = sum(len(written.get(field) or ()) for field in ("matchExpressions", "matchFields"))
        if every == sum(path[: len(term)] == term for path in drops):
            return (*[edit for edit in others if edit.path[: len(TERMS)] != TERMS], remove(_emptied(pod)))
    return (*others, *map(remove, drops))


def _emptied(pod: ReadOnly) -> Path:
    """Return the largest part of the affinity that holds nothing but the required terms."""
    path: Path = TERMS[:-1]
    while len(path) > 2 and len(value_at(pod, path[:-1]) or ()) == 1:
        path = path[:-1]
    return path
