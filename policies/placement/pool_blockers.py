"""What keeps a NodePool from making a machine for a pod (sigs.k8s.io/karpenter
pkg/controllers/provisioning/scheduling/nodeclaim.go ``CanAdd``).

Preferences do not count: Karpenter gives them up one by one. Of a NodePool whose node class the catalog does not know
only taints, its own requirements and its limits are judged. Sizes in CPU and memory are, where ``new_machines`` has added them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import floor
from typing import NamedTuple

from catalog import Resource
from kube.karpenter import Range, Requirement, requirement
from kube.labels import HOSTNAME, OLDER_NAMES, Expression
from kube.pod import NODE_NAME, TERMS
from kube.requests import PODS
from kube.scheduling import CLAIMS, Blocker, Wants, untolerated
from policies.offers.table import Table
from policies.placement.pools import NewMachine, Pool, selected
from policies.placement.unchecked import Unchecked

_SLICES = ("mig", "shared")
"""Kinds of resource that no machine of Karpenter's clouds has when it is bought (``Platform.makes_slices``)."""
_SIZES = ("cpu", "memory", "ephemeral-storage")


class _PoolFit(NamedTuple):
    """How a pod fits the machines of a NodePool."""

    blockers: tuple[Blocker, ...]
    rows: int
    """The machines of the catalog that it may make for the pod."""
    unchecked: frozenset[Unchecked]


def of_pool(pod: Wants, pool: Pool) -> tuple[Blocker, ...]:
    """Return why the NodePool would not make a machine for the pod; () if it would, as far as is known."""
    return _fit(pod, pool).blockers


def unchecked_of_pool(pod: Wants, pool: Pool) -> frozenset[Unchecked]:
    """Return what was not checked of the machines that the NodePool may make for the pod."""
    return _fit(pod, pool).unchecked


def _fit(pod: Wants, pool: Pool) -> _PoolFit:
    obstacles = [*_usable(pool), *untolerated(pod, pool.taints)]
    if CLAIMS in pod.unjudged:
        obstacles.append(Blocker("claims", path=("spec", CLAIMS), certain=False))
    if pod.node:  # a machine that does not exist has no name yet
        obstacles.append(Blocker("name", "metadata.name", "In", (pod.node,), path=NODE_NAME))
    obstacles += _mismatches(pod, pool)
    table = pool.table
    if table is None:
        return _PoolFit((*obstacles, *_limits_of_any(pod, pool, 0)), 0, pool.unchecked)
    rows = _machines(pod, pool, table, obstacles)
    if not pool.sized:
        return _PoolFit((*obstacles, *_limits_of_any(pod, pool, rows)), rows, frozenset())
    return _sized(pod, pool, table, rows, obstacles)


def accepts(pod: Wants, pool: Pool) -> bool:
    """Return whether taints and labels of the NodePool admit the pod, which may be one of a DaemonSet."""
    return not any(untolerated(pod, pool.taints)) and not _mismatches(pod, pool)


def rows_of(pod: Wants, pool: Pool, table: Table) -> int:
    """Return the machines of the NodePool that have the labels for which the pod asks; 0 if none has."""
    obstacles: list[Blocker] = []
    rows = _selected(pod, pool, table, obstacles)
    return 0 if obstacles else rows


def _mismatches(pod: Wants, pool: Pool) -> list[Blocker]:
    return [*_incompatible(pod.selector, pool), *_best_term(pod, pool)]


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
        obstacles = [*_incompatible((*pod.selector, *term.labels), pool)] if not term.empty else [Blocker("label", path=TERMS)]
        obstacles = [blocker for blocker in obstacles if blocker.path[: len(TERMS)] == TERMS]
        obstacles += [Blocker("name", name.key, name.operator, name.values, path=name.path) for name in term.names if name.operator == "In"]
        failing.append(obstacles)
    return min(failing, key=len, default=[Blocker("label", path=TERMS)])


def _incompatible(expressions: Iterable[Expression], pool: Pool) -> Iterator[Blocker]:
    """Yield the expressions that the requirements of the NodePool contradict, or whose label no machine of it has
    (``Requirements.Compatible``)."""
    combined: dict[str, Requirement] = {}
    for expression in expressions:
        key = OLDER_NAMES.get(expression.key, expression.key)
        wanted = requirement(expression.operator, expression.values)
        if wanted is None or key in pool.unread:
            continue
        combined[key] = combined[key] & wanted if key in combined else wanted
        if not _compatible(key, combined[key], pool):
            certain = key in pool.requirements or pool.table is not None
            shown = _shown(pool, key)
            yield Blocker("label", expression.key, expression.operator, expression.values, shown, path=expression.path, certain=certain)


def _compatible(key: str, wanted: Requirement, pool: Pool) -> bool:
    own = pool.requirements.get(key)
    if key == HOSTNAME and own is None:
        own = Requirement(frozenset({""}))  # a name that is made up, of which nobody knows
    if own is None:
        return wanted.denies or (pool.knows(key) and not wanted.none)
    return own.meets(wanted)


def _shown(pool: Pool, key: str) -> str | None:
    own = pool.requirements.get(key)
    return ",".join(sorted(own.values)) if own is not None and own.values and not own.complement else None


def _machines(pod: Wants, pool: Pool, table: Table, obstacles: list[Blocker]) -> int:
    """Return the machines of the catalog that have the labels and the devices for which the pod asks, and add to ``obstacles`` what leaves
    none. Labels come first: of what they leave the one with most devices is told."""
    rows = _selected(pod, pool, table, obstacles)
    for name, need in pod.requests.items():
        known = table.resource(name)
        if known is None or need <= 0 or name in pod.unreadable or known.kind in ("part", "dra"):
            continue
        left = 0 if _never_made(table, known) or (pool.without_gpus and known.kind != "other") else rows & _fitting(table, known, need)
        certain, unseen = not left, left & pool.uncounted
        left &= ~pool.uncounted
        if not left & ~table.unknown:
            most, machine = _most(table, known, rows & ~pool.uncounted)
            others = () if most or unseen else _others(table, rows)
            machine = machine or (_most(table, known, unseen)[1] if unseen else None)
            path = pod.paths.get(name, ())
            obstacles.append(Blocker("machines", name, values=others, found=machine, need=need, have=most, path=path, certain=certain))
        if left:
            rows = left
    return rows


def _selected(pod: Wants, pool: Pool, table: Table, obstacles: list[Blocker]) -> int:
    """Return the machines of the NodePool with the labels that the pod asks for."""
    blocked = {blocker.path for blocker in obstacles}
    rows = _narrowed(pod.selector, pool, table, pool.rows, obstacles, blocked)
    if not pod.terms:
        return rows
    tried = []
    for term in pod.terms:
        more: list[Blocker] = []
        tried.append((more, _narrowed(term.labels, pool, table, rows, more, blocked)))
    fitting = [left for more, left in tried if not more]
    if not fitting:
        obstacles += tried[0][0]
    together = 0
    for left in fitting:
        together |= left
    return together or rows


def _narrowed(
    expressions: Iterable[Expression], pool: Pool, table: Table, rows: int, obstacles: list[Blocker], blocked: Iterable[object]
) -> int:
    known = {*table.platform.labels, *table.platform.capacity_keys}
    for expression in expressions:
        key = OLDER_NAMES.get(expression.key, expression.key)
        if expression.path in blocked:
            continue
        if key in known:
            left = rows & selected(table, key, expression.operator, expression.values)
        elif (wanted := requirement(expression.operator, expression.values)) is not None:
            left = rows & ~without(pool.machines, key, wanted)
        else:
            continue
        if not left & ~table.unknown and (key in known or left != rows):
            certain = not (left or rows & table.unknown)
            obstacles.append(
                Blocker("machines", expression.key, expression.operator, expression.values, path=expression.path, certain=certain)
            )
        rows = left or rows
    return rows


def without(machines: Iterable[NewMachine], key: str, wanted: Requirement) -> int:
    """Return the machines whose size, by this label, is another than a requirement wants."""
    others = 0
    for machine in machines:
        if key in machine.labels and not wanted.meets(Requirement(frozenset({machine.labels[key]}))):
            others |= machine.rows
    return others


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


def _most(table: Table, known: Resource, rows: int) -> tuple[int, str | None]:
    """Return the most devices that one of these machines has, and the machine's name."""
    offers = [offer for offer in table.offers_in(rows & table.by_resource.get(known.name, 0)) if offer.host.count]
    largest = max(offers, key=lambda offer: offer.host.count or 0, default=None)
    return (0, None) if largest is None else (largest.host.count or 0, largest.host.name)


def _others(table: Table, rows: int) -> tuple[str, ...]:
    """Return the devices that these machines have; () if some may have any."""
    return () if rows & table.unknown else tuple(sorted({offer.resource for offer in table.offers_in(rows)} - {""}))


def _sized(pod: Wants, pool: Pool, table: Table, rows: int, obstacles: list[Blocker]) -> _PoolFit:
    """Narrow the machines by what they have for the pod, and by the limits of the NodePool."""
    needs = {name: need for name in _SIZES if (need := pod.requests.get(name, 0)) > 0 and name not in pod.unreadable}
    sure = blind = unsure = 0
    short: list[Sequence[Blocker]] = []
    close: list[Sequence[Blocker]] = []
    for machine in pool.machines:
        if not (here := machine.rows & rows):
            continue
        lacking = (*_ports(pod, machine), *_short(pod, needs, machine))
        if any(blocker.certain for blocker in lacking):
            short.append(tuple(blocker for blocker in lacking if blocker.certain))
        elif not needs.keys() <= machine.free.keys() or (lacking and "machineSizes" in pool.unchecked):
            blind |= here
        elif lacking:
            unsure |= here
            close.append(lacking)
        else:
            sure |= here
    unknown = rows & table.unknown
    fitting = sure or blind or unsure
    if not fitting and short:
        certain = not unknown and _names_machines(pod, pool, table)
        nearest = min(short, key=_shortfall)
        obstacles += [blocker._replace(certain=certain) for blocker in nearest]
    elif fitting == unsure and close:
        nearest = min(close, key=_shortfall)
        obstacles += nearest
    unchecked = set(pool.unchecked - {"machineSizes"}) if needs else set()
    if needs and fitting == blind:
        unchecked.add("machineSizes")
    if fitting == blind and (needs or not sure) and pool.limits.keys() & set(_SIZES):
        unchecked.add("nodePoolLimits")
    within, over = _within_limits(pod, pool, (fitting or rows) | unknown, table)
    return _PoolFit((*obstacles, *over), within, frozenset(unchecked))


def _names_machines(pod: Wants, pool: Pool, table: Table) -> bool:
    """Return whether the NodePool or the pod names families or types of machines: others may be new, and larger."""
    keys = [key for key, attribute in table.platform.labels.items() if attribute in ("family", "type")]
    named = [pool.requirements[key].complement for key in keys if key in pool.requirements]
    return False in named or any(expression.key in keys and expression.operator == "In" for expression in pod.selector)


def _shortfall(lacking: Sequence[Blocker]) -> tuple[int, float]:
    return len(lacking), -min((blocker.have / blocker.need for blocker in lacking if blocker.need), default=0.0)


def _ports(pod: Wants, machine: NewMachine) -> Iterator[Blocker]:
    for port in pod.ports:
        if any(port.conflicts(taken) for taken in machine.ports):
            yield Blocker("ports", f"{port.number}/{port.protocol}")


def _short(pod: Wants, needs: Mapping[str, int], machine: NewMachine) -> Iterator[Blocker]:
    """Yield what the machine has too little of; not certain where it is enough for the larger estimate."""
    for name, need in {**needs, PODS: 1}.items():
        least, most = machine.free.get(name, (need, need))
        if need > least:
            have = max(0, least or most)
            path = pod.paths.get(name, ())
            yield Blocker("machines", name, found=machine.name, need=need, have=have, path=path, certain=need > most)


def _within_limits(pod: Wants, pool: Pool, rows: int, table: Table) -> tuple[int, list[Blocker]]:
    """Return the machines that break no limit, and what is broken by the one that comes nearest where all break some. A machine counts
    whole (scheduler.go ``filterByRemainingResources``)."""
    if exhausted := list(_limits_of_any(pod, pool, 0)):
        return rows, exhausted
    within, broken = rows & table.unknown, []
    for machine in pool.machines:
        if here := machine.rows & rows:
            over = [limit for name, whole in machine.capacity.items() if (limit := _over(name, whole, pool, machine.name)) is not None]
            within |= 0 if over else here
            broken += [over] if over else []
    if within & ~table.unknown or not broken:
        return within or rows, []
    return rows, [limit._replace(certain=limit.certain and not within) for limit in min(broken, key=len)]


def _over(name: str, whole: Range, pool: Pool, machine: str) -> Blocker | None:
    """Return the limit that a machine breaks which has so much of a resource; None if it breaks none."""
    left = pool.left(name)
    scale = 1000 if name == "cpu" else 1
    if left is None or whole[1] <= left * scale:
        return None
    certain = whole[0] > left * scale
    need = whole[0] if certain else whole[1]
    passing = need <= pool.limits[name] * scale
    return Blocker("limits", name, found=machine, need=need, have=floor(left * scale), passing=passing, certain=certain)


def _limits_of_any(pod: Wants, pool: Pool, rows: int) -> Iterator[Blocker]:
    """Yield the limits that any machine for the pod breaks: it has as much as the pod, some CPU and memory, and as many devices as the
    smallest of these rows."""
    for name in pool.limits:
        scale = 1000 if name == "cpu" else 1
        left = floor((pool.left(name) or 0) * scale)
        least = 1 if name == "nodes" else max(pod.requests.get(name, 0), scale if pool.sized and name in ("cpu", "memory") else 0)
        if least <= 0 or name in pod.unreadable:
            continue
        least = max(least, _least(pool.table, name, rows))
        if least > left:
            path = pod.paths.get(name, ())
            yield Blocker("limits", name, need=least, have=left, path=path, passing=least <= pool.limits[name] * scale)


def _least(table: Table | None, name: str, rows: int) -> int:
    """Return the fewest devices of a machine that fits; 0 if it is not known."""
    if table is None or not rows or rows & table.unknown:
        return 0
    counts = [offer.host.count for offer in table.offers_in(rows & table.by_resource.get(name, 0)) if offer.sharing == "Exclusive"]
    return min((count for count in counts if count is not None), default=0)


def most_devices(pool: Pool) -> dict[str, int]:
    """Return the most devices, by resource, of one machine that the NodePool may make; {} if it is not known."""
    most: dict[str, int] = {}
    table = pool.table
    if table is None or pool.without_gpus:
        return most
    for offer in table.offers_in(pool.rows & table.by_sharing.get("Exclusive", 0)):
        if offer.resource and offer.host.count:
            most[offer.resource] = max(offer.host.count, most.get(offer.resource, 0))
    return most


def machines(pod: Wants, pool: Pool) -> tuple[str, ...]:
    """Return the names of the catalog's machines that the NodePool may make for the pod, each once; () if they are not
    known."""
    rows = _fit(pod, pool).rows
    if pool.table is None or not rows:
        return ()
    names = (offer.host.name for offer in pool.table.offers_in(rows & ~pool.table.unknown) if offer.sharing == "Exclusive")
    return tuple(dict.fromkeys(names))
