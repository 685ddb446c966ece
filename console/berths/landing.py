"""Whether a pod of a namespace that says nothing but asks for one device may land on a group, under the policies in force.

The pod goes through the engine as it would through the webhooks, and is then held against the group's nodes as they are made: empty,
healthy and open to pods. What is not so now passes, and who may land does not change with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Literal

from analysis.admission_preview import Admission, AdmittedPod
from analysis.fixes.edits import changed
from analysis.fixes.smallest import Admit, smallest
from analysis.scan.seen import GROUP_KEYS
from analysis.world.world import World
from catalog.prices import MODEL_KEYS
from console.berths.groups import ModelGroup
from console.world.derived import Derived
from kube.labels import INSTANCE_TYPE, NODE_POOL
from kube.node import Node, group_nodes
from kube.scheduling import Blocker, wants
from kube.taints import passes
from kube.tree import Raw
from policies.lru import LruCache
from policies.placement.fleet import Fleet, Place, blockers
from policies.placement.pools import Pool
from policies.request import Request
from policies.state.snapshot import NamespaceFacts
from policies.verdict import Violation

Outcome = Literal["itself", "asks", "denied", "never"]
OUTCOMES: tuple[Outcome, ...] = ("itself", "asks", "denied", "never")
MOST_SORTS = 6
"""Sorts of nodes of one group that are tried: zones, and machines of more than one size."""
MOST_ANSWERS = 2**22
"""Bytes of remembered answers of one world, of 2 KiB each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LandingResult:
    """What becomes of such a pod."""

    outcome: Outcome
    spec: Mapping[str, Any]
    """What its author must write into ``spec`` besides the device; {} if nothing."""
    wrote: Sequence[str] = ()
    """The policies that wrote something into it."""
    violations: Sequence[Violation] = ()
    """Why it is denied; of ``asks``, why the pod that says nothing is."""
    blockers: Sequence[Blocker] = ()
    """What keeps it off, where no policy denies it."""
    excluded: bool = False
    """True if Berth is not asked about pods of this namespace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """Where pods are to land: one group's nodes as they are made, or one NodePool."""

    id: tuple[str, ...]
    resource: str
    asks: Sequence[Mapping[str, str]]
    """Node selectors by which a pod asks for it, the shortest first."""
    fleet: Fleet


def of_group(group: ModelGroup, resource: str, fleet: Fleet) -> Landing:
    """Return the landing on the nodes of a group that have devices of this name."""
    names = {one.node for line in group.lines if line.resource == resource for one in line.uses}
    found: dict[Any, Node] = {}
    for nodes in fleet.groups:
        for node in nodes.nodes:
            if node.name in names:
                made = _as_made(node, fleet.startup)
                found.setdefault((tuple(sorted(nodes.labels.items())), made.taints, made.allocatable.get(resource)), made)
                break
    places = replace(fleet, groups=(), pools=())
    return Landing(id=(*group.key, resource), resource=resource, asks=_asks(group), fleet=_with(places, list(found.values())[:MOST_SORTS]))


def of_pool(pool: Pool, resource: str, fleet: Fleet) -> Landing:
    """Return the landing on machines that a NodePool may make."""
    places = replace(fleet, groups=(), pools=(replace(pool, made={}, ready=True),), open_ended=False)
    return Landing(id=("NodePool", pool.name, "", resource), resource=resource, asks=({NODE_POOL: pool.name},), fleet=places)


def selector(group: ModelGroup) -> dict[str, str]:
    """Return the labels that pick the group: its name, else what is on its nodes; {} if no label tells."""
    keys = [key for what, key in GROUP_KEYS if what == group.key.what] or (*MODEL_KEYS, INSTANCE_TYPE)
    return next(({key: group.labels[key]} for key in keys if key in group.labels), {})


def _asks(group: ModelGroup) -> tuple[dict[str, str], ...]:
    """Return the selectors to try: its name, and with it the model. A policy that keeps pods off a model says so of a pod that names it."""
    name, model = selector(group), next(({key: group.labels[key]} for key in (*MODEL_KEYS, INSTANCE_TYPE) if key in group.labels), {})
    return tuple(one for one in (name, {**name, **model}) if one)


def _as_made(node: Node, startup: frozenset[str]) -> Node:
    taints = tuple(taint for taint in node.taints if not passes(taint.key, startup))
    allocatable = {name: node.offered(name) for name in (*node.allocatable, *node.capacity)}
    return replace(node, taints=taints, cordoned=False, ready=True, settled=True, allocatable=allocatable, used={}, ports=())


def _with(fleet: Fleet, nodes: Iterable[Node]) -> Fleet:
    return replace(fleet, groups=group_nodes(nodes), open_ended=False)


class _LandingWorld:
    """Answers for one world."""

    def __init__(self, world: World) -> None:
        self._snapshot = world.snapshot.with_policies(one for one in world.snapshot.policies if one.mode == "Enforce")
        self._none = world.snapshot.with_policies(())
        self._known: LruCache[LandingResult] = LruCache(MOST_ANSWERS)
        self._lock = Lock()

    def of(self, namespace: str, landing: Landing) -> LandingResult:
        """Return the answer for a namespace; those with the same policies share it."""
        excluded = namespace in self._snapshot.catalog.excluded_namespaces
        facts = (self._none if excluded else self._snapshot).facts_for(namespace)
        key = excluded, facts.scope, landing.id
        with self._lock:
            found = self._known.get(key)
        if found is None:
            found = replace(_answered(facts, landing), excluded=excluded)
            with self._lock:
                self._known.keep(key, found, 2048)
        return found


_JUDGES: Derived[World, _LandingWorld] = Derived(_LandingWorld)


def find_landing(world: World, namespace: str, landing: Landing) -> LandingResult:
    """Return what becomes of a pod of this namespace."""
    return _JUDGES.of(world).of(namespace, landing)


def _answered(facts: NamespaceFacts, landing: Landing) -> LandingResult:
    pod = _pod(facts.namespace, landing.resource)
    admit = Admission(facts.snapshot).changes_of(Request(namespace=facts.namespace, pod=pod))
    silent = admit(pod)
    if not silent.violations and any(not blockers(wants(silent.pod), place, landing.fleet) for place in _places(landing.fleet)):
        return LandingResult(outcome="itself", spec={}, wrote=_wrote(silent))
    return _asking(facts, landing, pod, silent.violations, admit)


def _asking(facts: NamespaceFacts, landing: Landing, pod: Raw, silent: Sequence[Violation], admit: Admit) -> LandingResult:
    """Return whether a pod that says where it wants to be may land, and what it must write."""
    denied: Sequence[Violation] = ()
    nearest: Sequence[Blocker] = ()
    wrote: Sequence[str] = ()
    for chosen in ({}, *landing.asks):
        asking: Raw = {**pod, "spec": {**pod["spec"], **({"nodeSelector": dict(chosen)} if chosen else {})}}
        found = smallest(asking, landing.fleet, facts.snapshot.catalog, admit)
        if found.fix is not None:
            written = changed(asking, found.fix.edits)["spec"]
            spec = {key: value for key, value in written.items() if value != pod["spec"].get(key)}
            if spec and "containers" not in spec:
                return LandingResult(outcome="asks", spec=spec, violations=silent)
        denied = found.forbidden or denied
        admitted = admit(asking)
        if not admitted.violations:
            wanted = wants(admitted.pod)
            nearest = min((blockers(wanted, place, landing.fleet) for place in _places(landing.fleet)), key=len, default=())
            wrote = _wrote(admitted)
    if denied:
        return LandingResult(outcome="denied", spec={}, violations=denied)
    return LandingResult(outcome="never", spec={}, blockers=nearest, wrote=wrote)


def _wrote(admitted: AdmittedPod) -> tuple[str, ...]:
    """Return the policies that wrote something into the pod."""
    return tuple(dict.fromkeys(policy for edit in admitted.edits for policy in edit.policies))


def _places(fleet: Fleet) -> Sequence[Place]:
    return (*fleet.nodes, *fleet.pools)


def _pod(namespace: str, resource: str) -> Raw:
    amounts = {resource: "1"}
    container = {"name": "main", "image": "image", "resources": {"limits": amounts, "requests": dict(amounts)}}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 30}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod", "namespace": namespace}, "spec": spec}
