"""All that is read to explain one pod or workload: itself, its pods, its owners, what is told of them, the places of the
cluster, and the policies of its namespace. With the rights of whoever asks: what they do not reach is named."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from analysis.why.surroundings import Surroundings
from catalog import Catalog, Workload
from catalog.nearest import hint
from cluster.client.api_client import Client
from cluster.watch.kinds import (
    DAEMONS,
    DECISIVE,
    EVENTS,
    KUEUE_WORKLOADS,
    NAMESPACE_LIMITS,
    NODE_CLASSES,
    OWNERS,
    PODS,
    QUEUES,
    SLICES,
    with_offers,
)
from cluster.watch.listing import Progress, Survey, survey
from cluster.watch.trims import PodTrim
from kube.pod import controlling_owner
from kube.tree import Raw, map_at, text_of
from policies.document import InputError
from policies.facts import admission_queues
from policies.facts.scheduler_queues import KIND, queue_key
from policies.placement import fleet
from policies.pods.actors import QUEUE_NAME
from policies.state.objects import Key
from sources.neighbours import MOST_OWNERS, Neighbours, resource_of
from sources.sources import Origin
from sources.state import NAMESPACE, access_of, call_cluster, is_installed, keyed, of_values, unread, values_of

SHORT = {
    "po": "Pod", "deploy": "Deployment", "rs": "ReplicaSet", "sts": "StatefulSet", "ds": "DaemonSet", "cj": "CronJob",
    "rc": "ReplicationController", "isvc": "InferenceService", "ksvc": "Service", "lws": "LeaderWorkerSet", "wf": "Workflow",
    "vcjob": "VolcanoJob", "vj": "VolcanoJob", "sparkapp": "SparkApplication", "pcs": "PodCliqueSet",
}  # fmt: skip
"""As kubectl has them, and the definitions of these kinds."""


def kind_of(text: str, catalog: Catalog) -> list[Workload]:
    """Return the catalog's workloads that a TYPE may mean: by kind, name, plural or kubectl's short name, in any case. Raises
    InputError, with the nearest, if there is none."""
    text = text.partition(".")[0]
    wanted = SHORT.get(text.lower(), text).lower()
    named = [
        workload
        for workload in catalog.workloads
        if workload.resource and not workload.cluster and wanted in (workload.kind.lower(), workload.name.lower(), workload.resource)
    ]
    if not named:
        kinds = sorted({workload.kind.lower() for workload in catalog.workloads if workload.resource and not workload.cluster})
        advice = hint(text.lower(), kinds) or "; write pod, job, deployment or another kind that creates pods"
        raise InputError(file=text, message=f"is not a known type of workload{advice}")
    return named


DEPLOYMENT = SHORT["deploy"]
Target = tuple[str, str] | None
"""(TYPE, NAME); None: only the places and policies are read, for an object of a file."""


def read_surroundings(
    origin: Origin, namespace: str | None, target: Target, catalog: Catalog, progress: Progress, *, may_lack: bool = False
) -> Surroundings:
    """Read around a target. Files are read in place of a cluster; if a cluster is named too, they add what it does not have, or what may
    not be read there. ``may_lack``: a target that is not there is none. Raises InputError."""
    values = values_of(origin.dumps)
    if origin.dumps and not origin.is_cluster:
        try:
            return _of_dump(values, ", ".join(origin.dumps), namespace or "default", target, catalog)
        except InputError:
            if not may_lack:
                raise
            return _of_dump(values, ", ".join(origin.dumps), namespace or "default", None, catalog)
    access = access_of(origin.kubeconfig, origin.context)
    surroundings = call_cluster(access, lambda client: _read(client, namespace, target, catalog, progress, may_lack=may_lack))
    added = _of_dump(values, "", surroundings.namespace, None, catalog)
    places, objects = [*surroundings.places, *added.places], {**added.objects, **surroundings.objects}
    return replace(surroundings, places=places, objects=objects, ignored=added.ignored)


async def _read(
    client: Client, namespace: str | None, target: Target, catalog: Catalog, progress: Progress, *, may_lack: bool
) -> Surroundings:
    near = Neighbours(client, catalog, namespace or client.namespace)
    surroundings = Surroundings(namespace=near.namespace, value={})
    try:
        surroundings = surroundings if target is None else await _around(near, await _target(near, *target, catalog))
    except InputError:
        if not may_lack:
            raise
    reply = await client.call("GET", NAMESPACE.path("v1", name=near.namespace))
    if not reply.ok:
        near.unread["namespace"] = (
            f"you are not allowed to read namespace {near.namespace}: policies that select it by its labels may be missing"
        )
    state = await survey(client, (*_KINDS, *_NEW_NODES, _PODS), near.namespace, progress)
    labels = [NAMESPACE.trim(reply.body, "v1", "Namespace")] if reply.ok else []
    surroundings = _with_places(surroundings, replace(state, objects={**state.objects, "Namespace": labels}), " of all namespaces")
    names = (*admission_queues.KINDS, *(kind.kind for kind in NAMESPACE_LIMITS))
    known = admission_queues.followed((name for name in names if name not in state.unread), names)
    return replace(surroundings, objects={**surroundings.objects, **known}, unread={**near.unread, **surroundings.unread})


def _of_dump(values: Sequence[Raw], file: str, namespace: str, target: Target, catalog: Catalog) -> Surroundings:
    """Return what a dump has around a target. Raises InputError, which names ``file``, if the target is not there."""
    around = Surroundings(namespace=namespace, value={}) if target is None else _in_dump(values, file, namespace, target, catalog)
    read = _with_places(around, of_values(values, (NAMESPACE, *_KINDS, *_NEW_NODES, _PODS), namespace))
    queues = ((key, value) for value in values if value.get("kind") == KIND and (key := queue_key(value)) is not None)
    of_targets = {EVENTS.kind, KUEUE_WORKLOADS.kind, *(workload.kind for workload in catalog.workloads)} if target is not None else set()
    used = {KIND, *of_targets}
    ignored = {kind: count for kind, count in read.ignored.items() if kind.partition(".")[0] not in used}
    return replace(read, objects={**read.objects, **{(KIND, *key): value for key, value in queues}}, ignored=ignored)


def _in_dump(values: Sequence[Raw], file: str, namespace: str, target: tuple[str, str], catalog: Catalog) -> Surroundings:
    type_, name = target
    keys = ((key, value) for value in values if (key := dumped_key(value)) is not None)
    objects = {(kind, where or "default", named): value for (kind, where, named), value in keys}
    around = Dump(objects).near(namespace, type_, name, catalog)
    if around is not None:
        queued = any(QUEUE_NAME in map_at(value, "metadata", "labels") for value in (around.value, *around.owners))
        unread = {KUEUE_WORKLOADS.plural: f"the dump has no {KUEUE_WORKLOADS.resource}"} if queued and not around.queued else {}
        return replace(around, unread=unread)
    kinds = {workload.kind for workload in kind_of(type_, catalog)}
    names = [named for kind, where, named in objects if kind in kinds and where == namespace]
    advice = hint(name, names) or "; set its namespace (-n NS), or add --kubeconfig FILE to read it from the cluster"
    raise InputError(file=f"{type_}/{name}", message=f"is not in namespace {namespace} of {file}{advice}")


Kinds = Collection[tuple[str, str]]
"""(API group, plural)"""


async def near(client: Client, namespace: str, target: tuple[str, str], catalog: Catalog, kinds: Kinds) -> Surroundings:
    """Read around TYPE/NAME, without places and policies. ``kinds``: of the kinds that TYPE may mean, those that are looked for.

    Raises InputError if it is not there, and Unreachable.
    """
    around = Neighbours(client, catalog, namespace)
    surroundings = await _around(around, await _target(around, *target, catalog, kinds))
    return replace(surroundings, unread=dict(around.unread))


async def _target(near: Neighbours, type_: str, name: str, catalog: Catalog, kinds: Kinds | None = None) -> Raw:
    looked_for = [
        (version, workload.resource)
        for workload in kind_of(type_, catalog)
        for version in workload.api_version
        if kinds is None or (version.rpartition("/")[0], workload.resource) in kinds
    ]
    denied: dict[str, str] = {}
    missing = False
    for version, plural in looked_for:
        reply = await near.get(version, plural, name)
        if reply.ok and isinstance(reply.body, dict):
            return reply.body
        if reply.status == 404 or (reply.status == 403 and not await near.has(version, plural)):
            missing = missing or reply.status == 404
            continue
        resource = resource_of(version, plural)
        if reply.status == 403:
            denied[resource] = f"you may not read {resource}"
        else:
            denied[resource] = f"of {resource} the API server answered {reply.status} {reply.message}"
    reasons = f"{' and '.join(denied.values())} in namespace {near.namespace}" if denied else ""
    if denied and not missing:
        message = f'{reasons}; ask for the role "view" there, or set another namespace: -n NS'
        raise InputError(file=f"{type_}/{name}", message=message)
    names = [value["metadata"]["name"] for version, plural in looked_for for value in await near.list_objects(version, plural)]
    advice = hint(name, names) or f"; kubectl get {type_} -n {near.namespace} lists them"
    raise InputError(file=f"{type_}/{name}", message=f"is not in namespace {near.namespace}{advice}{reasons and f' ({reasons})'}")


async def _around(near: Neighbours, value: Raw) -> Surroundings:
    pods, between = ([value], []) if value.get("kind") == "Pod" else await _pods_of(near, value)
    owners = await near.owners(value)
    deployment = next((owner for owner in owners if owner.get("kind") == DEPLOYMENT), None)
    siblings = [] if deployment is None or value.get("kind") != "Pod" else (await _pods_of(near, deployment))[0]
    told = [value, *between, *owners, *pods[:20]]
    events: list[Raw] = []
    for uid in dict.fromkeys(str(one["metadata"].get("uid")) for one in told):
        events += await near.events(uid)
    queued = await near.queued()
    return Surroundings(namespace=near.namespace, value=value, pods=pods, owners=owners, siblings=siblings, events=events, queued=queued)


async def _pods_of(near: Neighbours, value: Raw) -> tuple[list[Raw], list[Raw]]:
    """Return the pods whose controllers lead to an object, and the objects between."""
    uid = value["metadata"].get("uid")
    known: dict[str, list[Raw]] = {}
    pods, between = [], {}
    for pod in await near.list_kind(PODS):
        controller = controlling_owner(pod["metadata"])
        if not controller:
            continue
        above = str(controller.get("uid"))
        if above not in known:
            known[above] = [] if above == uid else await near.owners(pod)
        if above == uid or any(owner["metadata"].get("uid") == uid for owner in known[above]):
            pods.append(pod)
            between.update({owner["metadata"]["uid"]: owner for owner in known[above] if owner["metadata"].get("uid") != uid})
    if not pods:  # denied pods were never there: what would have made them is
        for kind in OWNERS:
            listed = await near.list_kind(kind)
            between |= {one["metadata"]["uid"]: one for one in listed if controlling_owner(one["metadata"]).get("uid") == uid}
    return pods, list(between.values())


def _with_places(surroundings: Surroundings, state: Survey, which: str = "") -> Surroundings:
    """Return the surroundings with the places, policies and facts that were read of the cluster. ``which`` pods were read."""
    named = (*admission_queues.KINDS, *(kind.kind for kind in NAMESPACE_LIMITS))  # by what is not checked
    missing = {kind: reason for kind, reason in unread(state).items() if kind not in (*named, SLICES.kind)}
    if "Pod" in missing:
        missing["Pod"] += f"{which}, so the free amounts on nodes are unknown"
    return replace(
        surroundings,
        places=[value for kind in fleet.KINDS for value in state.objects[kind]],
        occupants=None if "Pod" in state.unread else [pod["takes"] for pod in state.objects["Pod"] if "takes" in pod],
        objects=keyed(state, (*_KINDS, NAMESPACE)),
        installed=is_installed(state),
        ignored=state.ignored,
        unread={**surroundings.unread, **missing},
    )


_KINDS = (*with_offers(kind for kind in (*DECISIVE, *QUEUES, SLICES) if kind.kind != "Namespace"), *NAMESPACE_LIMITS)
"""Policies and facts."""
_NEW_NODES = (NODE_CLASSES, DAEMONS)
"""What the size of new nodes depends on."""
_PODS = replace(PODS, namespaced=False, trim=PodTrim(None, places=True))
"""Of all namespaces: what they take of the nodes."""


def dumped_key(value: Raw) -> Key | None:
    """Return the key of an object of a file; None if it has no kind or no name."""
    metadata = map_at(value, "metadata")
    kind, name, namespace = value.get("kind"), metadata.get("name"), metadata.get("namespace")
    if not isinstance(kind, str) or not isinstance(name, str):
        return None
    return kind, namespace if isinstance(namespace, str) else "", name


MOST_PODS = 500
"""Pods of one workload that are looked at."""


class Dump:
    """The objects of a dump, by what leads to them: their uids, or the names of those that were written by hand and have none."""

    def __init__(self, objects: Mapping[Key, Raw]) -> None:
        self._objects = objects
        self._by_uid: dict[str, Raw] = {}
        self._owned: dict[str, list[Raw]] = defaultdict(list)
        self._events: dict[str, list[Raw]] = defaultdict(list)
        self._queued: dict[str, list[Raw]] = defaultdict(list)
        for (kind, namespace, _), value in self._objects.items():
            if kind == "Event":
                self._events[_about(value)].append(value)
                continue
            metadata = map_at(value, "metadata")
            self._by_uid[text_of(metadata.get("uid")) or _place(kind, metadata)] = value
            if owner := controlling_owner(metadata):
                uid, name = text_of(owner.get("uid")), _place(owner.get("kind"), {"namespace": namespace, "name": owner.get("name")})
                self._owned[uid].append(value)
                self._owned[name].append(value)
            if text_of(value.get("apiVersion")).startswith("kueue.x-k8s.io/"):
                self._queued[namespace].append(value)
        self._by_uid.pop("", None)
        self._owned.pop("", None)

    def near(self, namespace: str, type_: str, name: str, catalog: Catalog) -> Surroundings | None:
        """Return TYPE/NAME with its pods, owners, events and Kueue's Workloads; None if the dump does not have it. Raises InputError
        for a type that nobody knows."""
        keys = [(workload.kind, namespace, name) for workload in kind_of(type_, catalog)]
        value = next((self._objects[key] for key in keys if key in self._objects), None)
        if value is None:
            return None
        below = [] if value.get("kind") == "Pod" else list(self._below(value))
        pods = [value] if value.get("kind") == "Pod" else [owned for owned in below if owned.get("kind") == "Pod"][:MOST_PODS]
        owners = list(self._owners(value))
        metadata = [(named.get("kind"), map_at(named, "metadata")) for named in (value, *below, *owners)]
        about = [key for kind, names in metadata for key in (text_of(names.get("uid")), _place(kind, names))]
        events = [event for key in about for event in self._events.get(key, ())]
        deployment = next((owner for owner in owners if owner.get("kind") == DEPLOYMENT), None)
        siblings = [] if deployment is None else [owned for owned in self._below(deployment) if owned.get("kind") == "Pod"][:MOST_PODS]
        queued = self._queued.get(namespace, [])
        return Surroundings(namespace=namespace, value=value, pods=pods, owners=owners, siblings=siblings, events=events, queued=queued)

    def _owners(self, value: Raw) -> Iterator[Raw]:
        for _ in range(MOST_OWNERS):
            metadata = map_at(value, "metadata")
            owner = controlling_owner(metadata)
            name = _place(owner.get("kind"), {"namespace": metadata.get("namespace"), "name": owner.get("name")})
            above = self._by_uid.get(text_of(owner.get("uid")), self._by_uid.get(name))
            if above is None:
                return
            yield above
            value = above

    def _below(self, value: Raw, depth: int = MOST_OWNERS) -> Iterator[Raw]:
        metadata = map_at(value, "metadata")
        for owned in self._owned.get(text_of(metadata.get("uid")) or _place(value.get("kind"), metadata), ()) if depth else ():
            yield owned
            yield from self._below(owned, depth - 1)


def _about(event: Raw) -> str:
    """Return the uid of an event's object; without one, its kind and name, which an earlier object may have had too."""
    regarding = map_at(event, "involvedObject") or map_at(event, "regarding")
    return text_of(regarding.get("uid")) or _place(regarding.get("kind"), regarding)


def _place(kind: object, names: Mapping[str, object]) -> str:
    return f"{kind}/{text_of(names.get('namespace')) or 'default'}/{text_of(names.get('name'))}"
