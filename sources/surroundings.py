"""All that is read to explain one pod or workload: itself, its pods, its owners, what is told of them, the places of the
cluster, and the policies of its namespace. With the rights of whoever asks: what they do not reach is named."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import replace

from analysis.why.surroundings import Surroundings
from catalog import Catalog, Workload
from catalog.nearest import hint
from cluster.client.access import Access
from cluster.client.api_client import Client
from cluster.survey.neighbours import Neighbours
from cluster.survey.scanned import with_status
from cluster.survey.survey import Progress, Survey, survey
from cluster.watch.kinds import DECISIVE, QUEUES, Watched, key_of
from cluster.watch.trims import whole_node
from kube.node import occupant
from kube.pod import controlling_owner
from kube.tree import Raw
from policies.document import InputError
from policies.facts import admission_queues
from policies.state.objects import Change, Key
from sources.from_cluster import default_kubeconfig, run_reading

SHORT = {"po": "Pod", "deploy": "Deployment", "rs": "ReplicaSet", "sts": "StatefulSet", "ds": "DaemonSet", "cj": "CronJob"}
"""As kubectl has them."""
_OURS = tuple(kind for kind in DECISIVE if kind.ours)


def kind_of(text: str, catalog: Catalog) -> list[Workload]:
    """Return the catalog's workloads that a TYPE may mean: by kind, name, plural or kubectl's short name, in any case. Raises
    InputError, with the nearest, if there is none."""
    wanted = SHORT.get(text.lower(), text).partition(".")[0].lower()
    named = [
        one
        for one in catalog.workloads
        if one.resource and not one.cluster and wanted in (one.kind.lower(), one.name.lower(), one.resource)
    ]
    if not named:
        kinds = sorted({one.kind.lower() for one in catalog.workloads if one.resource and not one.cluster})
        advice = hint(text.lower(), kinds) or "; write pod, job, deployment or another kind that creates pods"
        raise InputError(file=text, message=f"is not a known type of workload{advice}")
    return named


def read_surroundings(
    kubeconfig: str | None, context: str | None, namespace: str | None, target: tuple[str, str] | None, catalog: Catalog, progress: Progress
) -> Surroundings:
    """Read around TYPE/NAME, or, without a target, the places and policies for an object of a file. Raises InputError."""
    access = Access(kubeconfig or default_kubeconfig(os.environ), context)
    return run_reading(_read(access, namespace, target, catalog, progress))


async def _read(
    access: Access, namespace: str | None, target: tuple[str, str] | None, catalog: Catalog, progress: Progress
) -> Surroundings:
    client = await Client.connect(access)
    try:
        near = Neighbours(client, catalog, namespace or client.namespace)
        found = Surroundings(namespace=near.namespace, value={})
        if target is not None:
            value = await _target(near, *target, catalog)
            found = await _around(near, value)
        return await _with_places(client, near, found, progress)
    finally:
        await client.close()


Kinds = Collection[tuple[str, str]]
"""(API group, plural)"""


async def near(client: Client, namespace: str, target: tuple[str, str], catalog: Catalog, kinds: Kinds) -> Surroundings:
    """Read around TYPE/NAME, without places and policies. ``kinds``: of the kinds that TYPE may mean, those that are looked for.

    Raises InputError if it is not there, and Unreachable.
    """
    around = Neighbours(client, catalog, namespace)
    found = await _around(around, await _target(around, *target, catalog, kinds))
    return replace(found, unread=dict(around.unread))


async def _target(near: Neighbours, type_: str, name: str, catalog: Catalog, kinds: Kinds | None = None) -> Raw:
    denied = ""
    looked_for = [
        (version, one.resource)
        for one in kind_of(type_, catalog)
        for version in one.api_version
        if kinds is None or (version.rpartition("/")[0], one.resource) in kinds
    ]
    for version, plural in looked_for:
        reply = await near.get(version, plural, name)
        if reply.ok and isinstance(reply.body, dict):
            return reply.body
        if reply.status != 404:
            denied = (
                f"you are not allowed to read {plural}"
                if reply.status == 403
                else f"the API server answered {reply.status} {reply.message}"
            )
    if denied:
        message = f'{denied} in namespace {near.namespace}; ask for the role "view" there, or set another namespace: -n NS'
        raise InputError(file=f"{type_}/{name}", message=message)
    names = [one["metadata"]["name"] for version, plural in looked_for for one in await near.listed(version, plural)]
    advice = hint(name, names) or f"; kubectl get {type_} -n {near.namespace} lists them"
    raise InputError(file=f"{type_}/{name}", message=f"is not in namespace {near.namespace}{advice}")


async def _around(near: Neighbours, value: Raw) -> Surroundings:
    pods, between = ([value], []) if value.get("kind") == "Pod" else await _pods_of(near, value)
    owners = await near.owners(value)
    told = [value, *between, *owners, *pods[:20]]
    events: list[Raw] = []
    for uid in dict.fromkeys(str(one["metadata"].get("uid")) for one in told):
        events += await near.events(**{"involvedObject.uid": uid})
    queued = await near.queued()
    return Surroundings(namespace=near.namespace, value=value, pods=pods, owners=owners, events=events, queued=queued)


async def _pods_of(near: Neighbours, value: Raw) -> tuple[list[Raw], list[Raw]]:
    """Return the pods whose controllers lead to an object, and the objects between."""
    uid = value["metadata"].get("uid")
    known: dict[str, list[Raw]] = {}
    found, between = [], {}
    for pod in await near.listed("v1", "pods"):
        owner = controlling_owner(pod["metadata"])
        if not owner:
            continue
        above = str(owner.get("uid"))
        if above not in known:
            known[above] = [] if above == uid else await near.owners(pod)
        if above == uid or any(one["metadata"].get("uid") == uid for one in known[above]):
            found.append(pod)
            between.update({one["metadata"]["uid"]: one for one in known[above] if one["metadata"].get("uid") != uid})
    if not found:  # denied pods were never there: what would have made them is
        for version, plural in (("apps/v1", "replicasets"), ("batch/v1", "jobs")):
            listed = await near.listed(version, plural)
            between |= {one["metadata"]["uid"]: one for one in listed if controlling_owner(one["metadata"]).get("uid") == uid}
    return found, list(between.values())


async def _with_places(client: Client, near: Neighbours, found: Surroundings, progress: Progress) -> Surroundings:
    namespaces = await client.call("GET", f"/api/v1/namespaces/{near.namespace}")
    kinds = {kind.kind: kind for kind in DECISIVE if kind.kind != "Namespace"}
    kinds["Node"] = replace(kinds["Node"], trim=whole_node)
    kinds["NodePool"] = replace(kinds["NodePool"], trim=with_status)
    surveyed = await survey(client, (*kinds.values(), *QUEUES, _PODS), near.namespace, progress)
    objects = [one for kind in (*kinds, *admission_queues.KINDS) for one in surveyed.objects[kind]]
    if namespaces.ok and isinstance(namespaces.body, dict):
        namespace = {**namespaces.body, "apiVersion": "v1", "kind": "Namespace"}
        objects.append({key: namespace[key] for key in ("apiVersion", "kind", "metadata")})
    else:
        near.unread["namespace"] = (
            f"you are not allowed to read namespace {near.namespace}: policies that select it by its labels may be missing"
        )
    unread = {kind: surveyed.unread[kind] for kind in (*kinds, "Pod") if kind in surveyed.unread.keys() - surveyed.absent}
    if "Pod" in unread:
        unread["Pod"] += " of all namespaces, so the free amounts on nodes are unknown"
    return replace(
        found,
        places=[one for kind in ("Node", "NodePool", "DeviceClass") for one in surveyed.objects[kind]],
        occupants=None if "Pod" in surveyed.unread else [one["takes"] for one in surveyed.objects["Pod"] if one["takes"] is not None],
        objects={**{key_of(one["kind"], one): one for one in objects}, **_followed(surveyed)},
        installed=not any(kind.kind in surveyed.absent for kind in _OURS),
        unread={**near.unread, **unread},
    )


def _followed(surveyed: Survey) -> dict[Key, Change]:
    """Return which of Kueue's kinds were read: few users may read ClusterQueues, and what they lack is no more than a reason less."""
    return admission_queues.followed(kind for kind in admission_queues.KINDS if kind not in surveyed.unread)


def _occupies(value: Raw, api_version: str, kind: str) -> Raw:
    return {"metadata": {"name": value["metadata"]["name"]}, "takes": occupant(value)}


_PODS = Watched(kind="Pod", plural="pods", group="", versions=("v1",), trim=_occupies)
"""Of all namespaces: what they take of the nodes."""
