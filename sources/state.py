"""The state of a cluster: objects of some kinds, trimmed, read once of a cluster or of files in place of one.

A cluster is read with the rights of the user of the kubeconfig; kinds that may not be read are named. Files are dumps
of ``kubectl get -o yaml`` or ``-o json``, and manifests.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from analysis.audit.stored_pod import Controller, StoredPod, widest
from analysis.conditions.server_options import as_served
from catalog import Catalog
from catalog.nearest import hint
from cluster.client.access import Access
from cluster.client.api_client import AccessError, Client, Unreachable
from cluster.client.errors import Garbled
from cluster.client.in_cluster import MOUNTED
from cluster.watch.kinds import DECISIVE, OWNERS, PODS, ROWS, Watched, key_of
from cluster.watch.listing import Progress, Survey, survey
from cluster.watch.trims import PodTrim
from documents.files import read_objects
from kube.labels import NODE_POOL
from kube.templates import full_kind, group_of
from kube.tree import Raw, map_at, text_of
from policies.document import InputError
from policies.facts.offered_devices import STACKS
from policies.objects import definition
from policies.state.objects import Key
from policies.state.updater import Options, Update, Updater
from sources.sources import Origin

OURS = tuple(kind for kind in DECISIVE if kind.ours)
FACTS = tuple(kind for kind in DECISIVE if not kind.ours)
_EXPECTED = ("Node", "Pod", "NodePool")
"""Kinds of which every cluster has objects, NodePools if nodes tell: a dump without them is incomplete."""
NAMESPACE = ROWS["Namespace"]
ROLE = "berth-guardrails-view"
"""The ClusterRole of deploy/rbac.yaml that may read the cluster-scoped kinds."""
_OPTIONAL = tuple(ROWS[kind] for kind in ("Node", "NodePool", *STACKS))
"""Kinds that may be unreadable: few users may list nodes, and many clusters have no NodePools and no GPU Operator. Node labels
determine the platforms, a NodePool's terminationGracePeriod limits those of pods, and the operator's objects tell which labels
are maintained."""
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

    results: list[Result] = []  # not what asyncio.run returns, which it formats twice: of a large cluster in seconds

    async def connected() -> None:
        client = await Client.connect(access)
        try:
            results.append(await read(client))
        finally:
            await client.close()

    try:
        asyncio.run(connected())
    except (AccessError, Unreachable, Garbled) as error:
        raise InputError(file="cluster", message=str(error)) from None
    return results[0]


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
    ignored: Counter[str] = Counter()
    objects: dict[str, list[Raw]] = {kind: [] for kind in wanted}
    present = set()
    for value in values:
        kind = wanted.get(str(value.get("kind")))
        api_version = text_of(value.get("apiVersion"))
        if kind is None or not _is_named(value, kind) or group_of(api_version) not in ("", kind.group):
            ignored[full_kind(value)] += 1
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
    return Survey(objects=objects, unread=reasons, absent=frozenset(absent - lacking), ignored=ignored)


def _is_named(value: Raw, kind: Watched) -> bool:
    metadata = value.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        return False
    if kind.namespaced:
        metadata.setdefault("namespace", "default")
    return True


def unread(state: Survey) -> dict[str, str]:
    """Return the kinds that the cluster has and that could not be read, with the reasons."""
    return {kind: reason for kind, reason in state.unread.items() if kind not in state.absent}


def keyed(state: Survey, kinds: Sequence[Watched]) -> dict[Key, Raw]:
    """Return the objects of these kinds by key, for an ``Updater``."""
    return {key_of(kind.kind, value): value for kind in kinds for value in state.objects[kind.kind]}


def is_installed(state: Survey) -> bool:
    """Return True if the cluster has the definitions of Berth's kinds, or a dump has objects of one of them."""
    return any(state.objects[kind.kind] for kind in OURS) or not any(kind.kind in state.absent for kind in OURS)


def read_with_pods(origin: Origin, kinds: Sequence[Watched], namespace: str | None, progress: Progress, instead: str = "") -> Survey:
    """Read these kinds, of which Pod is one. ``instead``: what else to do where pods may not be read. Raises InputError, with advice what
    to type next, if there is no answer or pods may not be read."""
    state = read(origin, kinds, namespace, progress)
    if "Pod" not in state.unread:
        return state
    if origin.dumps:
        message = "has no Pod; dump them: kubectl get pods,replicasets,jobs -A -o yaml > pods.yaml, and add --from pods.yaml"
        raise InputError(file=", ".join(origin.dumps), message=message)
    advice = f'ask for the role "view" in {namespace}' if namespace else "set a namespace that you can read: --namespace NS"
    raise InputError(file="cluster", message=f"{state.unread['Pod']}; {advice}{instead}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterState:
    """What was read of all namespaces, or of one."""

    objects: Mapping[Key, Raw]
    """Berth's own objects, none where its definitions are not installed, and the facts: Namespaces, Nodes, NodePools, DeviceClasses,
    claims, and what the GPU Operator is told to run. All are trimmed."""
    unread: Mapping[str, str]
    """Kind -> why it could not be read."""
    ignored: Mapping[str, int] = field(default_factory=dict)
    """Kinds of the files of which nothing is read -> how many objects."""
    installed: bool
    """True if the cluster has the definitions of Berth's kinds, or files have a policy."""
    namespace: str = ""
    """The one that was read; "" for all."""
    pods: Sequence[StoredPod] = ()
    """Those that may hold devices."""
    owners: Mapping[str, Controller] = field(default_factory=dict)
    """uid -> its controller."""

    @property
    def all_nodes(self) -> bool:
        """True if nodes and NodePools are known as the API server has them."""
        return self.unread.keys().isdisjoint({"Node", "NodePool"})

    @property
    def facts(self) -> list[Raw]:
        """The objects that are not Berth's own."""
        return [value for (kind, _, _), value in self.objects.items() if kind not in definition.KINDS]

    def update(self, catalog: Catalog, options: Options) -> Update:
        """Return the policies in force, understood as the cluster's server understands them: the last good form of an object with errors
        is in force here too."""
        return Updater(catalog, as_served(options, self.objects, catalog)).apply(self.objects)


def read_whole(origin: Origin, namespace: str | None, catalog: Catalog, progress: Progress, instead: str = "") -> ClusterState:
    """Read all namespaces, or one. ``instead``: what else to do where pods may not be read.

    Raises InputError, with advice what to type next, if there is no answer or pods may not be read.
    """
    pods = replace(PODS, trim=PodTrim(widest(catalog), places=False))
    state = read_with_pods(origin, (*OURS, *FACTS, pods, *OWNERS), namespace, progress, instead)
    return ClusterState(
        namespace=namespace or "",
        objects=keyed(state, (*OURS, *FACTS)),
        pods=[value["pod"] for value in state.objects["Pod"] if value["pod"] is not None],
        owners=owners_of(state.objects),
        unread=unread(state),
        ignored=state.ignored,
        installed=is_installed(state),
    )


def owners_of(objects: Mapping[str, Sequence[Raw]]) -> dict[str, Controller]:
    """Return uid -> controller of the objects of ``OWNERS``."""
    return {value["uid"]: value["owner"] for kind in OWNERS for value in objects[kind.kind] if value["owner"] is not None}


def read_namespace(origin: Origin, namespace: str | None) -> ClusterState:
    """Read one namespace. ``namespace`` None: that of the kubeconfig context, of files ``default``.

    Raises InputError with advice what to type next.
    """
    if origin.dumps:
        name = namespace or "default"
        state = of_values(values_of(origin.dumps), (NAMESPACE, *OURS, *_OPTIONAL), name)
    else:
        name, state = call_cluster(access_of(origin.kubeconfig, origin.context), lambda client: _namespace_state(client, namespace))
    objects = keyed(state, (NAMESPACE, *OURS, *_OPTIONAL))
    return ClusterState(namespace=name, objects=objects, unread=unread(state), ignored=state.ignored, installed=is_installed(state))


async def _namespace_state(client: Client, namespace: str | None) -> tuple[str, Survey]:
    name = namespace or client.namespace
    value = await _namespace(client, name)
    state = await survey(client, (*OURS, *_OPTIONAL), name)
    for kind in OURS:
        if kind.kind in state.absent:
            advice = "install the definitions: berth crds | kubectl apply --server-side -f -"
            raise InputError(file="cluster", message=f"the kind {kind.kind} is not installed; {advice}")
        if kind.kind in state.unread:
            advice = f'ask for the role "view" in {name}' if kind.namespaced else f'ask for the ClusterRole "{ROLE}"'
            raise InputError(file="cluster", message=f"{state.unread[kind.kind]}; {advice}")
    return name, replace(state, objects={**state.objects, "Namespace": [value]})


async def _namespace(client: Client, name: str) -> Raw:
    reply = await client.call("GET", NAMESPACE.path("v1", name=name))
    if reply.status == 404:
        raise InputError(file="cluster", message=f'there is no namespace "{name}"{await _near(client, name)}')
    if not reply.ok:
        reason = f"you may not read namespace {name}" if reply.status == 403 else f"the API server answered {reply.status} {reply.message}"
        advice = f'its labels decide which policies apply there; ask for the role "view" in {name}'
        raise InputError(file="cluster", message=f"{reason}; {advice}")
    return NAMESPACE.trim(reply.body, "v1", "Namespace")


async def _near(client: Client, name: str) -> str:
    """Return a hint at the most similar namespace, if the user may list namespaces."""
    reply = await client.call("GET", NAMESPACE.path("v1"))
    names = [str(item["metadata"]["name"]) for item in reply.body["items"]] if reply.ok else []
    return hint(name, names) or "; kubectl get namespaces lists them"
