"""The page of one group: its nodes, its labels and taints to copy, its traps, and who may land there."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.audit.ledger import AuditedPod
from analysis.why import sentences
from console.berths.drawing import Drawing, drawing
from console.berths.groups import DeviceLine, ModelGroup, State, Use, groups
from console.berths.landing import OUTCOMES, Landing, LandingResult, find_landing, of_group, of_pool, selector
from console.berths.pages import POOL, marks, no_nodes, pool_names, taint_text
from console.berths.pools import EmptyPool, empty, limits
from console.server.page import NotShown, Page, Visit
from console.server.query import paged
from console.world.view import View
from documents import yaml_writer
from kube.labels import ARCH, INSTANCE_TYPE, NODE_POOL, REGION, ZONE
from kube.taints import HARD, Taint
from policies.messages import TABLE, Phrase
from policies.placement.fleet import Fleet
from policies.placement.pool_blockers import most_devices
from policies.placement.pools import Pool
from policies.verdict import Violation

NODES = 20
NAMESPACES = 20
"""Namespaces of a page: each is judged."""
MOST_PODS = 4
"""Pods of a node that are named."""
MOST_LABELS = 24
OF_DEVICES = ("nvidia.com/", "amd.com/", "gpu.intel.com/", "karpenter.", "eks.amazonaws.com/", "cloud.google.com/", "kubernetes.azure.com/")
"""Beginnings of keys by which nodes are picked for their devices."""
PICKED = (INSTANCE_TYPE, ZONE, REGION, ARCH)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """One node."""

    name: str
    state: State | None
    """None of one without devices."""
    uses: Sequence[tuple[str, Use]]
    """(resource, what is held of it)"""
    pods: Sequence[tuple[str, str]]
    """(namespace/name, address)"""
    more: int
    others: int
    """Pods with devices that this person may not list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LandingRow:
    """Namespaces with the same answer."""

    namespaces: Sequence[str]
    outcome: str
    yaml: str
    denials: Sequence[str]
    obstacles: Sequence[str]
    wrote: Sequence[str]
    """Policies that wrote something, as far as they may be listed."""
    wrote_more: int
    excluded: bool


def group(visit: Visit) -> Page:
    """One group, or one NodePool without nodes. Raises NotShown where there is none."""
    view, query = visit.view, visit.query
    fleet = view.fleet
    if fleet is None:
        return no_nodes(view)
    what, name, model = query.name("kind"), query.name("name"), query.name("model")
    pool = next((one for one in fleet.pools if what == POOL and one.name == name), None)
    found = next((one for one in groups(view.world) if one.key == (what, name, model)), None)
    if found is not None:
        return _page(visit, fleet, found, None, pool)
    without = next((one for one in empty([pool] if pool is not None else [], pool_names(view), view.world.prices)), None)
    if without is None:
        raise NotShown("This node group does not exist. See the page Berths.")
    return _page(visit, fleet, None, without, pool)


def _page(visit: Visit, fleet: Fleet, found: ModelGroup | None, without: EmptyPool | None, pool: Pool | None) -> Page:
    view, query = visit.view, visit.query
    what, name, model = (query.name(field) for field in ("kind", "name", "model"))
    names = (
        [line.resource for line in found.lines if line.total]
        if found is not None
        else sorted(most_devices(without.pool) if without else ())
    )
    resource = query.choice("resource", names, names[0]) if names else ""
    landing = _landing(found, without, resource, fleet)
    namespaces = paged(view.named_namespaces(), query, "/berths/group", field="namespaces", size=NAMESPACES)
    nodes = paged(found.nodes if found is not None else (), query, "/berths/group", field="nodes", size=NODES)
    taints = [taint for taint, _ in found.taints] if found is not None else list(without.pool.taints) if without is not None else []
    picks = selector(found) if found is not None else {NODE_POOL: name}
    values = {
        "heading": f"{what} {name}",
        "model": model,
        "group": found,
        "without": without,
        "lines": _drawn(found),
        "labels": _labels(found.labels) if found is not None else {},
        "taints": [(taint_text(taint), count) for taint, count in found.taints]
        if found is not None
        else [(taint_text(one), 0) for one in taints],
        "yaml": yaml_writer.write_yaml({"spec": _asking(picks, taints)}) if picks or taints else "",
        "limits": limits(pool, view.world.snapshot.catalog) if pool is not None else [],
        "pool": pool,
        "ask_pools": what == POOL and not view.scope.node_pools,
        "marks": marks(view).get((what, name), ()),
        "resource": resource,
        "resources": [(one, query.link("/berths/group", resource=one, namespaces="")) for one in names],
        "landing": _rows(view, landing, namespaces.rows) if landing is not None else [],
        "namespaces": namespaces,
        "nodes": _nodes(view, found, nodes.rows),
        "paged": nodes,
    }
    return Page(template="berths_group.html", title=f"{what} {name}", values=values)


def _landing(found: ModelGroup | None, without: EmptyPool | None, resource: str, fleet: Fleet) -> Landing | None:
    if not resource:
        return None
    if found is not None:
        return of_group(found, resource, fleet)
    return of_pool(without.pool, resource, fleet) if without is not None else None


def _drawn(found: ModelGroup | None) -> list[tuple[DeviceLine, Drawing]]:
    return [(line, drawing(line.uses)) for line in found.lines] if found is not None else []


def _labels(shared: Mapping[str, str]) -> dict[str, str]:
    """Return the labels by which pods pick such nodes."""
    found = {key: value for key, value in shared.items() if key in PICKED or key.startswith(OF_DEVICES)}
    return dict(list(found.items())[:MOST_LABELS])


def _asking(picks: Mapping[str, str], taints: Sequence[Taint]) -> dict[str, Any]:
    """Return what a pod writes to land on the group, whatever policies do."""
    tolerations = []
    for taint in taints:
        if taint.effect in HARD:
            value = {"operator": "Equal", "value": taint.value} if taint.value else {"operator": "Exists"}
            tolerations.append({"key": taint.key, **value, "effect": taint.effect})
    return {**({"nodeSelector": dict(picks)} if picks else {}), **({"tolerations": tolerations} if tolerations else {})}


def _rows(view: View, landing: Landing, namespaces: Sequence[str]) -> list[LandingRow]:
    found: dict[int, tuple[LandingResult, list[str]]] = {}
    alike: dict[Any, int] = {}
    for namespace in namespaces:
        one = find_landing(view.world, namespace, landing)
        key = (
            one.outcome,
            yaml_writer.write_yaml(dict(one.spec)),
            tuple(one.violations),
            tuple(one.blockers),
            tuple(one.wrote),
            one.excluded,
        )
        number = alike.setdefault(key, len(alike))
        found.setdefault(number, (one, []))[1].append(namespace)
    rows = sorted(found.values(), key=lambda one: OUTCOMES.index(one[0].outcome))
    return [_row(view, one, names) for one, names in rows]


def _row(view: View, one: LandingResult, namespaces: Sequence[str]) -> LandingRow:
    wrote = [policy for policy in one.wrote if view.shows_policy(policy)]
    return LandingRow(
        namespaces=namespaces,
        outcome=one.outcome,
        yaml=yaml_writer.write_yaml({"spec": dict(one.spec)}) if one.spec else "",
        denials=[words(violation, view) for violation in one.violations],
        obstacles=list(dict.fromkeys(sentences.blocker(blocker) for blocker in one.blockers)),
        wrote=wrote,
        wrote_more=len(one.wrote) - len(wrote),
        excluded=one.excluded,
    )


def _nodes(view: View, found: ModelGroup | None, names: Sequence[str]) -> list[NodeRow]:
    if found is None:
        return []
    uses: dict[str, list[tuple[str, Use]]] = {name: [] for name in names}
    for line in found.lines:
        for one in line.uses:
            if one.node in uses:
                uses[one.node].append((line.resource, one))
    shown: dict[str, list[AuditedPod]] = {name: [] for name in names}
    every = dict.fromkeys(names, 0)
    for pod in view.pods():
        if pod.stored.node in shown and not pod.stored.finished:
            shown[pod.stored.node].append(pod)
    for seen in view.world.seen.pods:
        if seen.stored.node in every and not seen.stored.finished:
            every[seen.stored.node] += 1
    return [_node(name, uses[name], shown[name], every[name]) for name in names]


def _node(name: str, uses: Sequence[tuple[str, Use]], pods: Sequence[AuditedPod], every: int) -> NodeRow:
    ordered = sorted(f"{pod.stored.namespace}/{pod.stored.name}" for pod in pods)
    return NodeRow(
        name=name,
        state=uses[0][1].state if uses else None,
        uses=uses,
        pods=[(one, f"/job?pod={one}") for one in ordered[:MOST_PODS]],
        more=max(0, len(ordered) - MOST_PODS),
        others=max(0, every - len(ordered)),
    )


def words(violation: Violation, view: View) -> str:
    """Return the denial as its author reads it; names of policies that may not be listed are left out, with the parts that have them."""
    hidden = {one for one in view.world.policies if not view.shows_policy(one)}
    if not _names(hidden, (violation.policies, violation.fields, violation.found, violation.advice, violation.more)):
        return str(violation)
    if _names(hidden, (violation.found, violation.advice)):
        return f"{violation.code}: {TABLE[violation.code].title}. You may not list the policies that require this."
    return f"{violation.code}: {violation.fact}; {violation.fix}. (required by policies that you may not list)"


def _names(policies: Collection[str], parts: object) -> bool:
    """Return whether a part of a denial has one of these names."""
    return any(one in text for text in _texts(parts) for one in policies)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Phrase):
        for _, one in value.values:
            yield from _texts(one)
    elif isinstance(value, tuple):
        for one in value:
            yield from _texts(one)
