"""The state of a cluster: objects of some kinds, trimmed, read once of a cluster or of files in place of one.

A cluster is read with the rights of the user of the kubeconfig; kinds that may not be read are named. Files are dumps
of ``kubectl get -o yaml`` or ``-o json``, and manifests.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from analysis.audit.stored_pod import Controller, StoredPod, widest
from catalog import Catalog
from cluster.client.access import Access
from cluster.client.api_client import AccessError, Client, Unreachable
from cluster.client.errors import Garbled
from cluster.client.in_cluster import MOUNTED
from cluster.survey.owners import OWNERS
from cluster.survey.pods import pods
from cluster.survey.survey import Progress, Survey, survey
from cluster.watch.kinds import DECISIVE, Watched, key_of
from documents.files import read_objects
from kube.tree import Raw, map_at, text_of
from kube.well_known import NODE_POOL
from policies.document import InputError
from policies.state.objects import Change, Key
from policies.workloads.controllers import group_of
from sources.sources import Origin

OURS = tuple(kind for kind in DECISIVE if kind.ours)
FACTS = tuple(kind for kind in DECISIVE if not kind.ours)
_EXPECTED = ("Node", "Pod", "NodePool")
"""Kinds of which every cluster has objects, NodePools if nodes tell: a dump without them is incomplete."""
Result = TypeVar("Result")


def access_of(kubeconfig: str | None, context: str | None) -> Access:
    """Return the access to a cluster. ``kubeconfig`` None: the one that kubectl finds."""
    return Access(kubeconfig or default_kubeconfig(os.environ), context)


def default_kubeconfig(environ: Mapping[str, str]) -> str | None:
    """Return the path that kubectl uses: $KUBECONFIG, then ~/.kube/config.

    Return None in a pod with a service account where neither exists.
    """
    named = environ.get("KUBECONFIG")
    home = Path(environ.get("HOME", "~")).expanduser() / ".kube" / "config"
    return named or (None if MOUNTED.is_dir() and not home.is_file() else str(home))


def call_cluster(access: Access, read: Callable[[Client], Awaitable[Result]]) -> Result:
    """Connect to a cluster, read, and disconnect. Raises InputError if the cluster does not answer."""

    async def connected() -> Result:
        client = await Client.connect(access)
        try:
            return await read(client)
        finally:
            await client.close()

    try:
        return asyncio.run(connected())
    except (AccessError, Unreachable, Garbled) as error:
        raise InputError(file="cluster", message=str(error)) from None


def read(origin: Origin, kinds: Sequence[Watched], namespace: str | None, progress: Progress) -> Survey:
    """Read these kinds, in all namespaces or in one, as far as they may be read. Raises InputError if there is no answer."""
    if origin.dumps:
        return of_values(values_of(origin.dumps), kinds, namespace)
    return call_cluster(access_of(origin.kubeconfig, origin.context), lambda client: survey(client, kinds, namespace or "", progress))


def values_of(paths: Sequence[str]) -> list[Raw]:
    """Return the objects of files. Raises InputError for the first that can't be read."""
    return [item.value for item in read_objects(paths) if isinstance(item.value, dict)]


def of_values(values: Sequence[Raw], kinds: Sequence[Watched], namespace: str | None) -> Survey:
    """Return what a cluster with these objects has of the kinds, in all namespaces or in one; other objects, and objects without a
    name, are passed over.

    Kinds without an object are ``absent``, except for those that the cluster must have: nothing is impossible for want of what was
    not dumped.
    """
    wanted = {kind.kind: kind for kind in kinds}
    objects: dict[str, list[Raw]] = {kind: [] for kind in wanted}
    present = set()
    for value in values:
        kind = wanted.get(str(value.get("kind")))
        api_version = text_of(value.get("apiVersion"))
        if kind is None or not _is_named(value, kind) or group_of(api_version) not in ("", kind.group):
            continue
        present.add(kind.kind)
        if not (kind.namespaced and namespace) or value["metadata"].get("namespace") == namespace:
            objects[kind.kind].append(kind.trim(value, api_version, kind.kind))
    absent = wanted.keys() - present
    on_pools = any(NODE_POOL in map_at(node, "metadata", "labels") for node in objects.get("Node", ()))
    reasons = {kind: f"the dump has no {wanted[kind].resource}" for kind in (*_EXPECTED, *wanted) if kind in absent}
    if on_pools and "NodePool" in absent:
        reasons["NodePool"] += f", but nodes with the label {NODE_POOL}"
    lacking = {kind for kind in _EXPECTED if kind != "NodePool" or on_pools}
    return Survey(objects=objects, unread=reasons, absent=frozenset(absent - lacking))


def _is_named(value: Raw, kind: Watched) -> bool:
    metadata = value.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        return False
    if kind.namespaced:
        metadata.setdefault("namespace", "default")
    return True


def unread(found: Survey) -> dict[str, str]:
    """Return the kinds that the cluster has and that could not be read, with the reasons."""
    return {kind: reason for kind, reason in found.unread.items() if kind not in found.absent}


def keyed(found: Survey, kinds: Sequence[Watched]) -> dict[Key, Raw]:
    """Return the objects of these kinds by key, for an ``Updater``."""
    return {key_of(kind.kind, value): value for kind in kinds for value in found.objects[kind.kind]}


def is_installed(found: Survey) -> bool:
    """Return True if the cluster has the definitions of Berth's kinds, or a dump has objects of one of them."""
    return any(found.objects[kind.kind] for kind in OURS) or not any(kind.kind in found.absent for kind in OURS)


def read_with_pods(origin: Origin, kinds: Sequence[Watched], namespace: str | None, progress: Progress, instead: str = "") -> Survey:
    """Read these kinds, of which Pod is one. ``instead``: what else to do where pods may not be read. Raises InputError, with advice what
    to type next, if there is no answer or pods may not be read."""
    found = read(origin, kinds, namespace, progress)
    if "Pod" not in found.unread:
        return found
    if origin.dumps:
        message = "has no Pod; dump them: kubectl get pods,replicasets,jobs -A -o yaml > pods.yaml, and add --from pods.yaml"
        raise InputError(file=", ".join(origin.dumps), message=message)
    advice = f'ask for the role "view" in {namespace}' if namespace else "set a namespace that you can read: --namespace NS"
    raise InputError(file="cluster", message=f"{found.unread['Pod']}; {advice}{instead}")


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeCluster:
    """All that is audited: policies, facts, pods and their owners."""

    policies: Mapping[Key, Change]
    """Berth's own objects; none where its definitions are not installed."""
    facts: Sequence[dict[str, Any]]
    """Namespaces, nodes, NodePools, DeviceClasses, claims, and what the GPU Operator is told to run, trimmed."""
    pods: Sequence[StoredPod]
    """Those that may hold devices."""
    owners: Mapping[str, Controller]
    """uid -> its controller."""
    unread: Mapping[str, str]
    """Kind -> why it could not be read."""
    installed: bool
    """True if the cluster has the definitions of Berth's kinds."""

    @property
    def all_nodes(self) -> bool:
        """True if nodes and NodePools are known as the API server has them."""
        return self.unread.keys().isdisjoint({"Node", "NodePool"})

    def changes(self) -> dict[Key, Change]:
        """Return policies and facts by key, for an ``Updater``."""
        return {**self.policies, **{key_of(value["kind"], value): value for value in self.facts}}


def read_whole(origin: Origin, namespace: str | None, catalog: Catalog, progress: Progress, instead: str = "") -> WholeCluster:
    """Read all namespaces, or one. ``instead``: what else to do where pods may not be read.

    Raises InputError, with advice what to type next, if there is no answer or pods may not be read.
    """
    found = read_with_pods(origin, (*OURS, *FACTS, pods(catalog, widest(catalog)), *OWNERS), namespace, progress, instead)
    return WholeCluster(
        policies=keyed(found, OURS),
        facts=[value for kind in FACTS for value in found.objects[kind.kind]],
        pods=[value["pod"] for value in found.objects["Pod"] if value["pod"] is not None],
        owners=owners_of(found.objects),
        unread=unread(found),
        installed=is_installed(found),
    )


def owners_of(objects: Mapping[str, Sequence[Raw]]) -> dict[str, Controller]:
    """Return uid -> controller of the objects of ``OWNERS``."""
    return {value["uid"]: value["owner"] for kind in OWNERS for value in objects[kind.kind] if value["owner"] is not None}
