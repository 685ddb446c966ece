"""Which kinds the API server has: one call for all groups, whose answer is a few bytes while nothing has changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cluster.client.api_client import Client
from cluster.client.errors import Failure, Garbled, Rejected
from cluster.watch.connectivity import unauthorized
from kube.tree import map_at, maps_in, text_of

ACCEPT = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
"""Aggregated discovery (KEP-3352), in this version since Kubernetes 1.30. Everybody who is authenticated may read it."""
FOLLOWED = frozenset({"list", "watch"})
Served = Mapping[tuple[str, str], tuple[str, ...]]
"""(API group, plural) -> the versions in which its objects can be listed and watched, in the server's order."""


class Discovery:
    """Asks one API server, and remembers its last answer."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._etag = ""
        self._served: Served = {}

    async def served(self) -> Served:
        """Return what is served now. Raises Rejected, Unreachable and Garbled."""
        reply = await self._client.call("GET", "/apis", accept=ACCEPT, etag=self._etag, seconds=30.0)
        if reply.status == 304:
            return self._served
        if reply.status == 401:
            raise unauthorized(self._client, reply.message)
        if not reply.ok:
            raise Rejected("GET /apis", reply)
        self._served, self._etag = served(reply.body), reply.etag
        return self._served


async def find_absent(client: Client, resources: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return those of (API group, plural) that the API server does not have: it answers 403 about them, as about any resource that a role
    does not name. None where that can't be told."""
    named = {resource for resource in resources if resource[0]}  # discovery of the core group is another call
    if not named:
        return set()
    try:
        return named - (await Discovery(client).served()).keys()
    except Failure:
        return set()


def served(body: Any) -> Served:
    """Read an answer. Raises Garbled if it is another one."""
    if map_at(body).get("kind") != "APIGroupDiscoveryList":
        raise Garbled("the API server answers GET /apis without aggregated discovery, which Kubernetes 1.30 and later have")
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for group in maps_in(body.get("items")):
        name = text_of(map_at(group, "metadata").get("name"))
        for version in maps_in(group.get("versions")):
            for resource in maps_in(version.get("resources")):
                verbs = resource.get("verbs")
                if isinstance(verbs, list) and FOLLOWED.issubset(map(text_of, verbs)):
                    key = name, text_of(resource.get("resource"))
                    found[key] = (*found.get(key, ()), text_of(version.get("version")))
    return found
