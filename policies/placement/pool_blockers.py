"""What keeps a NodePool from making a machine for a pod (sigs.k8s.io/karpenter
pkg/controllers/provisioning/scheduling/nodeclaim.go ``CanAdd``).

Preferences do not count: Karpenter gives them up one by one. Of a NodePool whose node class the catalog does not know
only taints, its own requirements and its limits are judged. Sizes in CPU and memory are not: the catalog has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import floor

from catalog import Resource
from kube.karpenter import Requirement, requirement
from kube.labels import HOSTNAME, OLDER_NAMES, Expression
from kube.pod import NODE_NAME, TERMS
from kube.scheduling import Blocker, Wants, untolerated
from policies.offers.table import Table
from policies.placement.pools import Pool, selected

_SLICES = ("mig", "shared")
"""Kinds of resource that no machine of Karpenter's clouds has when it is bought (``Platform.makes_slices``)."""


def of_pool(pod: Wants, pool: Pool) -> tuple[Blocker, ...]:
    """Return why the NodePool would not make a machine for the pod; () if it would, as far as is known."""
    found = [*_usable(pool), *untolerated(pod, pool.taints)]
    if pod.node:  # a machine that does not exist has no name yet
        found.append(Blocker("name", "metadata.name", "In", (pod.node,), path=NODE_NAME))
    own = [*_incompatible(pod.selector, pool)]
    term = _best_term(pod, pool)
    found += own + term
    rows = _machines(pod, pool, found)
    found += _over_limits(pod, pool, rows)
    return tuple(found)


def _usable(pool: Pool) -> Iterator[Blocker]:
    if pool.static:
        yield Blocker("static")
    if not pool.ready:
        yield Blocker("not-ready", passing=True)


def _best_term(pod: Wants, pool: Pool) -> list[Blocker]:
    """Return the blockers of the required term that comes nearest; Karpenter tries one after the other."""
    if pod.terms is None:
        return []
    failing = []
    for term in pod.terms:
        found = [*_incompatible((*pod.selector, *term.labels), pool)] if not term.empty else [Blocker("label", path=TERMS)]
        found = [blocker for blocker in found if blocker.path[: len(TERMS)] == TERMS]
        found += [Blocker("name", one.key, one.operator, one.values, path=one.path) for one in term.names if one.operator == "In"]
        failing.append(found)
    return min(failing, key=len, default=[Blocker("label", path=TERMS)])


def _incompatible(expressions: Iterable[Expression], pool: Pool) -> Iterator[Blocker]:
    """Yield the expressions that the requirements of the NodePool contradict, or whose label no machine of it has
    (``Requirements.Compatible``)."""
    asked: dict[str, Requirement] = {}
    for one in expressions:
        key = OLDER_NAMES.get(one.key, one.key)
        wanted = requirement(one.operator, one.values)
        if wanted is None or key in pool.unread:
            continue
        asked[key] = asked[key] & wanted if key in asked else wanted
        if not _compatible(key, asked[key], pool):
            certain = key in pool.requirements or pool.table is not None
            yield Blocker("label", one.key, one.operator, one.values, _shown(pool, key), path=one.path, certain=certain)


def _compatible(key: str, asked: Requirement, pool: Pool) -> bool:
    own = pool.requirements.get(key)
    if key == HOSTNAME and own is None:
        own = Requirement(frozenset({""}))  # a name that is made up, of which nobody knows
    if own is None:
        return asked.denies or (pool.knows(key) and not asked.none)
    return own.meets(asked)


def _shown(pool: Pool, key: str) -> str | None:
    own = pool.requirements.get(key)
    return ",".join(sorted(own.values)) if own is not None and own.values and not own.complement else None


def _machines(pod: Wants, pool: Pool, found: list[Blocker]) -> int | None:
    """Return the machines of the catalog on which the pod fits, and add to ``found`` what leaves none; None if that is
    not known."""
    table = pool.table
    if table is None:
        return None
    rows = pool.rows
    for name, need in pod.requests.items():
        known = table.resource(name)
        if known is None or need <= 0 or name in pod.unreadable or known.kind in ("part", "dra"):
            continue
        left = 0 if _never_made(table, known) or (pool.without_gpus and known.kind != "other") else rows & _fitting(table, known, need)
        if not left & ~table.unknown:
            most = _most(table, known, pool.rows)
            certain = not left
            found.append(Blocker("machines", name, need=need, have=most, path=pod.paths.get(name, ()), certain=certain))
        if left:
            rows = left
    blocked = {blocker.path for blocker in found}
    return _selected(pod, table, rows, found, blocked)


def _selected(pod: Wants, table: Table, rows: int, found: list[Blocker], blocked: Iterable[object]) -> int:
    """Narrow the machines by the labels that the pod asks for."""
    rows = _narrowed(pod.selector, table, rows, found, blocked)
    if not pod.terms:
        return rows
    tried = []
    for term in pod.terms:
        more: list[Blocker] = []
        tried.append((more, _narrowed(term.labels, table, rows, more, blocked)))
    fitting = [left for more, left in tried if not more]
    if not fitting:
        found += tried[0][0]
    together = 0
    for left in fitting:
        together |= left
    return together or rows


def _narrowed(expressions: Iterable[Expression], table: Table, rows: int, found: list[Blocker], blocked: Iterable[object]) -> int:
    known = {*table.platform.labels, *table.platform.capacity_keys}
    for one in expressions:
        key = OLDER_NAMES.get(one.key, one.key)
        if key not in known or one.path in blocked:
            continue
        left = rows & selected(table, key, one.operator, one.values)
        if not left & ~table.unknown:
            certain = not (left or rows & table.unknown)
            found.append(Blocker("machines", one.key, one.operator, one.values, path=one.path, certain=certain))
        rows = left or rows
    return rows


def _never_made(table: Table, known: Resource) -> bool:
    return known.kind in _SLICES and not table.platform.makes_slices and known.name not in table.platform.slices


def _fitting(table: Table, known: Resource, need: int) -> int:
    """Return the machines with so many devices. Of an accelerator that no table lists any machine may have some.

    Karpenter counts the devices that the cloud sells, however their nodes share them.
    """
    if known.name not in table.by_resource:
        return table.of_resource(known.name) or table.all
    rows = table.enough(known.name, need)
    return rows if table.platform.makes_slices or known.name in table.platform.slices else rows & table.by_sharing.get("Exclusive", 0)


def _most(table: Table, known: Resource, rows: int) -> int:
    return max((offer.host.count or 0 for offer in table.offers_in(rows & table.by_resource.get(known.name, 0))), default=0)


def _over_limits(pod: Wants, pool: Pool, rows: int | None) -> Iterator[Blocker]:
    """Yield the limits that a machine for the pod would break (scheduler.go ``filterByRemainingResources``): it counts
    whole, and is at least as large as the pod, and as the smallest machine that fits."""
    left = pool.left("nodes")
    if left is not None and left <= 0:
        yield Blocker("limits", "nodes", need=1, have=floor(left), passing=pool.limits["nodes"] > 0)
    for name, need in pod.requests.items():
        left = pool.left(name)
        if left is None or need <= 0 or name in pod.unreadable:
            continue
        scale = 1000 if name == "cpu" else 1
        least = max(need, _least(pool.table, name, rows))
        if least > left * scale:
            yield Blocker(
                "limits",
                name,
                need=least,
                have=floor(left * scale),
                path=pod.paths.get(name, ()),
                passing=least <= pool.limits[name] * scale,
            )


def _least(table: Table | None, name: str, rows: int | None) -> int:
    """Return the fewest devices of a machine that fits; 0 if it is not known."""
    if table is None or not rows or rows & table.unknown:
        return 0
    counts = [offer.host.count for offer in table.offers_in(rows & table.by_resource.get(name, 0)) if offer.sharing == "Exclusive"]
    return min((count for count in counts if count is not None), default=0)


def most_devices(pool: Pool) -> dict[str, int]:
    """Return the most devices, by resource, of one machine that the NodePool may make; {} if it is not known."""
    found: dict[str, int] = {}
    table = pool.table
    if table is None or pool.without_gpus:
        return found
    for offer in table.offers_in(pool.rows & table.by_sharing.get("Exclusive", 0)):
        if offer.resource and offer.host.count:
            found[offer.resource] = max(offer.host.count, found.get(offer.resource, 0))
    return found


def machines(pod: Wants, pool: Pool) -> tuple[str, ...]:
    """Return the names of the catalog's machines that the NodePool may make for the pod, each once; () if they are not
    known."""
    rows = _machines(pod, pool, [])
    if pool.table is None or not rows:
        return ()
    names = (offer.host.name for offer in pool.table.offers_in(rows & ~pool.table.unknown) if offer.sharing == "Exclusive")
    return tuple(dict.fromkeys(names))
