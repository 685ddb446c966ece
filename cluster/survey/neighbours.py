"""One object with what is around it, by single calls: its owners, its pods, what is told of them. What may not be read is
named, and the rest is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from catalog import Catalog
from cluster.client.api_client import Client
from cluster.client.errors import Reply
from kube.pod import controlling_owner
from kube.tree import Raw, map_at
from policies.workloads.templates import workload_of

MOST = 500
"""Objects of one list: what is told of one workload; a list that is longer is cut, and that is named."""
KUEUE = ("v1beta2", "v1beta1")
"""Versions of kueue.x-k8s.io, the newest first."""


class Neighbours:
    """Reads around one namespace with the rights of whoever asks."""

    def __init__(self, client: Client, catalog: Catalog, namespace: str) -> None:
        self._client = client
        self._catalog = catalog
        self.namespace = namespace
        self.unread: dict[str, str] = {}
        """What could not be read -> why, in one sentence."""
        self.now = ""
        """The API server's clock, as in an HTTP Date."""

    async def get(self, api_version: str, plural: str, name: str) -> Reply:
        """Return the answer to a GET of one object of the namespace."""
        reply = await self._client.call("GET", f"{self._base(api_version)}/{plural}/{quote(name, safe='')}")
        self.now = reply.date or self.now
        return reply

    async def listed(self, api_version: str, plural: str, **query: str) -> list[Raw]:
        """Return the objects of the namespace; [] where they may not be read."""
        reply = await self._client.call("GET", f"{self._base(api_version)}/{plural}", query={"limit": str(MOST), **query}, seconds=30.0)
        self.now = reply.date or self.now
        if reply.ok and isinstance(reply.body, dict):
            if reply.body.get("metadata", {}).get("continue"):
                self.unread[plural] = f"of {plural} in namespace {self.namespace} only the first {MOST} are read"
            kind = str(reply.body.get("kind") or "").removesuffix("List")
            items = reply.body.get("items") or ()
            return [{"apiVersion": api_version, "kind": kind, **one} for one in items if isinstance(one, dict)]
        if reply.status == 403:
            self.unread[plural] = f"you may not list {plural} in namespace {self.namespace}"
        elif reply.status != 404:
            self.unread[plural] = f"{plural}: the API server answers {reply.status} {reply.message}"
        return []

    async def owners(self, value: Raw) -> list[Raw]:
        """Return the controllers above an object, the nearest first, as far as they may be read and the catalog knows their
        kinds."""
        found: list[Raw] = []
        while (reference := controlling_owner(map_at(value, "metadata"))) and len(found) < 8:
            plural = self.plural(reference)
            if plural is None:
                break
            reply = await self.get(str(reference.get("apiVersion")), plural, str(reference.get("name")))
            if not reply.ok or not isinstance(reply.body, dict):
                if reply.status == 403:
                    self.unread[plural] = f"you may not read {plural} in namespace {self.namespace}"
                break
            value = reply.body
            found.append(value)
        return found

    async def events(self, **fields: str) -> list[Raw]:
        """Return the events about objects with these fields of ``involvedObject``, or of the event."""
        return await self.listed("v1", "events", fieldSelector=",".join(f"{key}={one}" for key, one in fields.items()))

    async def queued(self) -> list[Raw]:
        """Return Kueue's Workloads of the namespace."""
        for version in KUEUE:
            if found := await self.listed(f"kueue.x-k8s.io/{version}", "workloads"):
                return found
        return []

    def plural(self, value: Mapping[str, Any]) -> str | None:
        """Return the name of a kind in the API's paths, where the catalog knows it."""
        workload = workload_of(self._catalog, str(value.get("apiVersion")), str(value.get("kind")))
        return (workload.resource or None) if workload is not None and not workload.cluster else None

    def _base(self, api_version: str) -> str:
        path = quote(api_version)  # of an owner reference it is what the author of a pod wrote
        group = f"/apis/{path}" if "/" in api_version else f"/api/{path}"
        return f"{group}/namespaces/{quote(self.namespace, safe='')}"
