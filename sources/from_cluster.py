"""The policies in force in one namespace of a cluster, read once, and the errors of the objects that are not
accepted.

Each kind is read with one GET or LIST, as the user of the kubeconfig; nothing is watched. The objects are
read as the servers read them (``policies.state.updater``), so the last good form of an object with errors is
in force here too.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from analysis.conditions.server_mode import as_served
from catalog import Catalog
from catalog.nearest import hint
from cluster.client.access import Access
from cluster.client.api_client import AccessError, Client, Reply, Unreachable
from cluster.client.in_cluster import MOUNTED
from cluster.watch.kinds import KINDS, Watched
from policies.document import InputError
from policies.facts.offered_devices import STACKS
from policies.state.objects import Change, Key, ObjectEntry
from policies.state.snapshot import Snapshot
from policies.state.updater import Options, Updater

T = TypeVar("T")
ROLE = "berth-guardrails-view"
"""The ClusterRole of deploy/rbac.yaml that may read the cluster-scoped kinds."""
_WATCHED = {watched.kind: watched for watched in KINDS}
_OPTIONAL = ("Node", "NodePool", *STACKS)
"""Kinds that may be unreadable: few users may list nodes, and many clusters have no NodePools and no GPU Operator. Node labels
determine the platforms, a NodePool's terminationGracePeriod limits those of pods, and the operator's objects tell which labels
are maintained."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FromCluster:
    """The state of one namespace of a cluster."""

    snapshot: Snapshot
    namespace: str
    not_accepted: tuple[ObjectEntry, ...]
    """Objects with errors, cluster-scoped and of this namespace, sorted by kind and name."""
    unread: tuple[str, ...]
    """The optional kinds that are forbidden or absent."""


def default_kubeconfig(environ: Mapping[str, str]) -> str | None:
    """Return the path that kubectl uses: $KUBECONFIG, then ~/.kube/config.

    Return None in a pod with a service account where neither exists.
    """
    named = environ.get("KUBECONFIG")
    home = Path(environ.get("HOME", "~")).expanduser() / ".kube" / "config"
    return named or (None if MOUNTED.is_dir() and not home.is_file() else str(home))


def read_namespace(kubeconfig: str | None, context: str | None, namespace: str | None, catalog: Catalog, options: Options) -> FromCluster:
    """Read one namespace of a cluster.

    ``kubeconfig`` None: the one that kubectl finds. ``namespace`` None: the context's. Raises InputError with
    advice what to type next.
    """
    access = Access(kubeconfig or default_kubeconfig(os.environ), context)
    return run_reading(_read(access, namespace, catalog, options))


def run_reading(reading: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that reads a cluster. Raises InputError if there is no answer.

    It is not the result of ``asyncio.run``, which formats that twice: of a large cluster in seconds.
    """
    results: list[T] = []

    async def read() -> None:
        results.append(await reading)

    try:
        asyncio.run(read())
    except (AccessError, Unreachable) as error:
        raise InputError(file="cluster", message=str(error)) from None
    return results[0]


async def _read(access: Access, namespace: str | None, catalog: Catalog, options: Options) -> FromCluster:
    client = await Client.connect(access)
    try:
        name = namespace or client.namespace
        changes, unread = dict([await _namespace(client, name)]), []
        for kind in ("ClusterGPUPolicy", "GPUNodeTemplate", "GPUPolicy", *_OPTIONAL):
            found = await _objects(client, _WATCHED[kind], name)
            changes |= found or {}
            unread += [kind] if found is None else []
    finally:
        await client.close()
    update = Updater(catalog, as_served(options, changes)).apply(changes)
    wrong = tuple(entry for key, entry in sorted(update.entries.items()) if entry.understood.errors)
    return FromCluster(snapshot=update.snapshot, namespace=name, not_accepted=wrong, unread=tuple(unread))


async def _namespace(client: Client, name: str) -> tuple[Key, Change]:
    reply = await client.call("GET", f"/api/v1/namespaces/{name}")
    if reply.status == 404:
        raise InputError(file="cluster", message=f'there is no namespace "{name}"{await _near(client, name)}')
    if not reply.ok:
        raise _denied(reply, f"namespace {name}", f'its labels decide which policies apply there; ask for the role "view" in {name}')
    return ("Namespace", "", name), _WATCHED["Namespace"].trim(reply.body, "v1", "Namespace")


async def _near(client: Client, name: str) -> str:
    """Return a hint at the most similar namespace, if the user may list namespaces."""
    reply = await client.call("GET", "/api/v1/namespaces")
    names = [str(item["metadata"]["name"]) for item in reply.body["items"]] if reply.ok else []
    return hint(name, names) or "; kubectl get namespaces lists them"


async def _objects(client: Client, watched: Watched, namespace: str) -> dict[Key, Change] | None:
    """Read all objects of a kind, or those of the namespace if it is namespaced; None for an unreadable
    optional kind."""
    for version in watched.versions:
        reply = await client.call("GET", watched.path(version, namespace if watched.namespaced else ""), accept=watched.accept("list"))
        if reply.status != 404:
            break
    if not reply.ok and watched.kind in _OPTIONAL:
        return None
    if reply.status == 404:
        sentence = f"the kind {watched.kind} is not installed; install the definitions: berth crds | kubectl apply --server-side -f -"
        raise InputError(file="cluster", message=sentence)
    if not reply.ok:
        advice = f'ask for the role "view" in {namespace}' if watched.namespaced else f'ask for the ClusterRole "{ROLE}"'
        raise _denied(reply, watched.resource, advice)
    objects = [watched.trim(item, watched.api_version(watched.versions[0]), watched.kind) for item in reply.body["items"] or ()]
    return {(watched.kind, _of(item, "namespace"), _of(item, "name")): item for item in objects}


def _of(item: Mapping[str, Any], key: str) -> str:
    return str(item["metadata"].get(key) or "")


def _denied(reply: Reply, what: str, advice: str) -> InputError:
    if reply.status == 403:
        return InputError(file="cluster", message=f"you are not allowed to read {what}; {advice}")
    return InputError(file="cluster", message=f"{what}: the API server answered {reply.status} {reply.message}")
