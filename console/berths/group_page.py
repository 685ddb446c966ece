"""The page of one group: its nodes, its labels and taints to copy, its traps, and who may land there."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from analysis.scan import wording
from analysis.why import sentences
from console.berths.drawing import drawing
from console.berths.groups import ModelGroup, Use, groups
from console.berths.landing import OUTCOMES, Landing, LandingResult, find_landing, of_group, of_pool, selector
from console.berths.pages import marks, no_nodes, pool_names
from console.berths.pools import POOL, EmptyPool, empty, limits
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
MOST_LABELS = 24
OF_DEVICES = ("nvidia.com/", "amd.com/", "gpu.intel.com/", "karpenter.", "eks.amazonaws.com/", "cloud.google.com/", "kubernetes.azure.com/")
"""Beginnings of keys by which nodes are picked for their devices."""
PICKED = (INSTANCE_TYPE, ZONE, REGION, ARCH)


def group(visit: Visit) -> Page:
    """One group, or one NodePool without nodes. Raises NotShown where there is none."""
    view, query = visit.view, visit.query
    fleet = view.fleet
    if fleet is None:
        return no_nodes(view)
    what, name, model = query.name("kind"), query.name("name"), query.name("model")
    pool = next((one for one in fleet.pools if what == POOL and one.name == name), None)
    found = next((one for one in groups(view.world) if one.key == (what, name, model)), None)
    without = empty([pool], pool_names(view), view.world.prices) if pool is not None and found is None else []
    if found is None and not without:
        raise NotShown("This node group does not exist. See the page Berths.")
    return _page(visit, fleet, found or without[0], pool)


def _page(visit: Visit, fleet: Fleet, found: ModelGroup | EmptyPool, pool: Pool | None) -> Page:
    view, query = visit.view, visit.query
    what, name, model = (query.name(field) for field in ("kind", "name", "model"))
    landing: Landing | None = None
    nodes: Sequence[str] = ()
    labels: Mapping[str, str] = {}
    resource = ""
    if isinstance(found, EmptyPool):
        names, picks = sorted(most_devices(found.pool)), {NODE_POOL: name}
    else:
        names = [line.resource for line in found.lines if line.total]
        picks, nodes, labels = selector(found), found.nodes, found.labels
    if names:
        resource = query.choice("resource", names, names[0])
        landing = of_pool(found.pool, resource, fleet) if isinstance(found, EmptyPool) else of_group(found, resource, fleet)
    namespaces = paged(view.named_namespaces(), query, "/berths/group", field="namespaces", size=NAMESPACES)
    shown = paged(nodes, query, "/berths/group", field="nodes", size=NODES)
    values = {
        "heading": f"{what} {name}",
        "model": model,
        "found": found,
        "drawing": drawing,
        "labels": _labels(labels),
        "yaml": yaml_writer.write_yaml({"spec": _asking(picks, found.taints)}) if picks or found.taints else "",
        "limits": limits(pool, view.world.snapshot.catalog) if pool is not None else [],
        "pool": pool,
        "ask_pools": what == POOL and not view.scope.node_pools,
        "marks": marks(view).get((what, name), {}),
        "wording": wording,
        "resource": resource,
        "resources": [(one, query.link("/berths/group", resource=one, namespaces="")) for one in names],
        "landing": _rows(view, landing, namespaces.rows) if landing is not None else [],
        "namespaces": namespaces,
        "nodes": [] if isinstance(found, EmptyPool) else _nodes(view, found, shown.rows),
        "paged": shown,
    }
    return Page(template="berths_group.html", title=f"{what} {name}", values=values)


def _labels(shared: Mapping[str, str]) -> dict[str, str]:
    """Return the labels by which pods pick such nodes."""
    found = {key: value for key, value in shared.items() if key in PICKED or key.startswith(OF_DEVICES)}
    return dict(list(found.items())[:MOST_LABELS])


def _asking(picks: Mapping[str, str], taints: Sequence[tuple[Taint, int]]) -> dict[str, Any]:
    """Return what a pod writes to land on the group, whatever policies do."""
    tolerations = []
    for taint, _ in taints:
        if taint.effect in HARD:
            value = {"operator": "Equal", "value": taint.value} if taint.value else {"operator": "Exists"}
            tolerations.append({"key": taint.key, **value, "effect": taint.effect})
    return {**({"nodeSelector": dict(picks)} if picks else {}), **({"tolerations": tolerations} if tolerations else {})}


def _rows(view: View, landing: Landing, namespaces: Sequence[str]) -> list[Mapping[str, Any]]:
    """Return the results with the namespaces that have each; ``wrote``: the policies that may be listed."""
    found: dict[Any, tuple[LandingResult, list[str]]] = {}
    for namespace in namespaces:
        result = find_landing(view.world, namespace, landing)
        spec = yaml_writer.write_yaml(dict(result.spec))
        key = result.outcome, spec, tuple(result.violations), tuple(result.blockers), tuple(result.wrote), result.excluded
        found.setdefault(key, (result, []))[1].append(namespace)
    return [
        {
            "namespaces": names,
            "result": result,
            "yaml": yaml_writer.write_yaml({"spec": dict(result.spec)}) if result.spec else "",
            "denials": [words(violation, view) for violation in result.violations],
            "obstacles": list(dict.fromkeys(sentences.blocker(blocker) for blocker in result.blockers)),
            "wrote": [policy for policy in result.wrote if view.shows_policy(policy)],
        }
        for result, names in sorted(found.values(), key=lambda row: OUTCOMES.index(row[0].outcome))
    ]


def _nodes(view: View, found: ModelGroup, names: Sequence[str]) -> list[Mapping[str, Any]]:
    """Return the nodes with (resource, what is used of it), pods, and the number of pods with devices that may not be listed."""
    uses: dict[str, list[tuple[str, Use]]] = {name: [] for name in names}
    for line in found.lines:
        for use in line.uses:
            if use.node in uses:
                uses[use.node].append((line.resource, use))
    shown: dict[str, list[str]] = {name: [] for name in names}
    every = dict.fromkeys(names, 0)
    for pod in view.pods():
        if pod.stored.node in shown and not pod.stored.finished:
            shown[pod.stored.node].append(f"{pod.stored.namespace}/{pod.stored.name}")
    for seen in view.world.seen.pods:
        if seen.stored.node in every and not seen.stored.finished:
            every[seen.stored.node] += 1
    return [
        {"name": name, "uses": uses[name], "pods": sorted(shown[name]), "others": max(0, every[name] - len(shown[name]))} for name in names
    ]


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
