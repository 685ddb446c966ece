"""One object with what is around it, by single calls: its owners, its pods, what is told of them. What may not be read is
named, and the rest is there."""

from __future__ import annotations

from catalog import Catalog
from cluster.client.api_client import Client
from cluster.client.errors import Reply
from cluster.watch.discovery import find_absent
from cluster.watch.kinds import EVENTS, KUEUE_WORKLOADS, Watched, path_of
from kube.pod import controlling_owner
from kube.templates import group_of
from kube.tree import Raw, map_at
from policies.workloads.templates import workload_of

MOST = 500
"""Objects of one list: what is told of one workload; a list that is longer is cut, and that is named."""
MOST_OWNERS = 8
"""Owners above an object that are read."""


def resource_of(api_version: str, plural: str) -> str:
    """Return the name that RBAC and kubectl use: ``workloads.kueue.x-k8s.io``, ``pods``."""
    return f"{plural}.{group}" if (group := group_of(api_version)) else plural


class Neighbours:
    """Reads around one namespace with the rights of whoever asks."""

    def __init__(self, client: Client, catalog: Catalog, namespace: str) -> None:
        self._client = client
        self._catalog = catalog
        self.namespace = namespace
        self.unread: dict[str, str] = {}
        """What could not be read -> why, in one sentence."""
        self._known: dict[tuple[str, str], bool] = {}
        """(API group, plural) -> whether the API server has it"""

    async def get(self, api_version: str, plural: str, name: str) -> Reply:
        """Return the answer to a GET of one object of the namespace."""
        return await self._client.call("GET", path_of(api_version, plural, self.namespace, name))

    async def list_kind(self, kind: Watched, **query: str) -> list[Raw]:
        """Return the objects of the namespace in the first version that has any; [] where they may not be read."""
        for version in kind.versions:
            if objects := await self.list_objects(kind.api_version(version), kind.plural, **query):
                return objects
        return []

    async def list_objects(self, api_version: str, plural: str, **query: str) -> list[Raw]:
        """Return the objects of the namespace; [] where they may not be read."""
        path = path_of(api_version, plural, self.namespace)
        reply = await self._client.call("GET", path, query={"limit": str(MOST), **query}, seconds=30.0)
        if reply.ok and isinstance(reply.body, dict):
            if reply.body.get("metadata", {}).get("continue"):
                self.unread[plural] = f"of {plural} in namespace {self.namespace} only the first {MOST} are read"
            kind = str(reply.body.get("kind") or "").removesuffix("List")
            items = reply.body.get("items") or ()
            return [{"apiVersion": api_version, "kind": kind, **item} for item in items if isinstance(item, dict)]
        resource = resource_of(api_version, plural)
        if reply.status == 403:
            if await self.has(api_version, plural):
                self.unread[plural] = f"you may not list {resource} in namespace {self.namespace}"
        elif reply.status != 404:
            self.unread[plural] = f"{resource}: the API server answers {reply.status} {reply.message}"
        return []

    async def has(self, api_version: str, plural: str) -> bool:
        """Return False if the API server does not have this kind, of which it says 403 to whoever has no right to it."""
        kind = group_of(api_version), plural
        if kind not in self._known:
            self._known[kind] = not await find_absent(self._client, [kind])
        return self._known[kind]

    async def owners(self, value: Raw) -> list[Raw]:
        """Return the controllers above an object, the nearest first, as far as they may be read and the catalog knows their
        kinds."""
        owners: list[Raw] = []
        while (reference := controlling_owner(map_at(value, "metadata"))) and len(owners) < MOST_OWNERS:
            api_version, kind, name = (str(reference.get(field)) for field in ("apiVersion", "kind", "name"))
            workload = workload_of(self._catalog, api_version, kind)
            if workload is None or workload.cluster or not workload.resource:
                break
            reply = await self.get(api_version, workload.resource, name)
            if not reply.ok or not isinstance(reply.body, dict):
                if reply.status == 403:
                    resource = resource_of(api_version, workload.resource)
                    self.unread[workload.resource] = f"you may not read {resource} in namespace {self.namespace}"
                break
            value = reply.body
            owners.append(value)
        return owners

    async def events(self, uid: str) -> list[Raw]:
        """Return the events about the object with this uid."""
        return await self.list_kind(EVENTS, fieldSelector=f"involvedObject.uid={uid}")

    async def queued(self) -> list[Raw]:
        """Return Kueue's Workloads of the namespace."""
        return await self.list_kind(KUEUE_WORKLOADS)
