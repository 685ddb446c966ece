"""The namespaces of a cluster, and its resources that may be accelerators but are not in the catalog, for
webhook configurations."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from catalog import Catalog
from cluster.client.access import Access
from cluster.client.api_client import AccessError, Client, Rejected, Unreachable
from cluster.client.errors import Garbled
from cluster.watch.kinds import KINDS, Watched
from cluster.watch.listing import Listing
from policies.document import InputError
from policies.facts.cluster_facts import ClusterFacts
from policies.pods.unlisted_accelerators import overlooked

_WATCHED = {watched.kind: watched for watched in KINDS}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterNames:
    """The names found in one cluster at one moment."""

    namespaces: frozenset[str]
    names: tuple[str, ...]
    """Extended resources for which the webhooks are to be called, besides those of the catalog."""
    unread: tuple[str, ...]
    """The reasons why nodes or DeviceClasses could not be read, a sentence for each."""


def read_names(kubeconfig: str | None, context: str | None, catalog: Catalog) -> ClusterNames:
    """Read the names of a cluster. ``kubeconfig`` None: with the service account of the pod that this runs
    in.

    Raises InputError if the cluster is unreachable, or namespaces may not be read.
    """
    try:
        return asyncio.run(_read(Access(kubeconfig, context), catalog))
    except (AccessError, Unreachable, Garbled) as error:
        raise InputError(file="cluster", message=str(error)) from None


async def _read(access: Access, catalog: Catalog) -> ClusterNames:
    client = await Client.connect(access)
    try:
        try:
            namespaces = await _objects(client, _WATCHED["Namespace"])
        except Rejected as error:
            raise InputError(file="cluster", message=f"cannot list namespaces ({error}); ask for permission to list them") from None
        objects, unread = [], []
        for kind in ("Node", "DeviceClass"):
            try:
                objects += await _objects(client, _WATCHED[kind])
            except Rejected as error:
                if error.reply.status != 404:
                    unread.append(f"{_WATCHED[kind].resource} cannot be listed, so their resource names are unknown: {error}")
    finally:
        await client.close()
    names = overlooked(ClusterFacts.from_objects(objects, frozenset()), catalog)
    return ClusterNames(namespaces=frozenset(one["metadata"]["name"] for one in namespaces), names=names, unread=tuple(unread))


async def _objects(client: Client, watched: Watched) -> list[Mapping[str, Any]]:
    objects, _ = await Listing(client, replace(watched, most=0)).all()
    return [*objects]
