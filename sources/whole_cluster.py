"""All that is audited of a cluster, read once with the rights of whoever asks: policies, facts, pods and their
owners."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.audit.stored_pod import Controller, StoredPod, widest
from catalog import Catalog
from cluster.client.access import Access
from cluster.client.api_client import Client
from cluster.survey.owners import OWNERS
from cluster.survey.pods import pods
from cluster.survey.survey import Progress, Survey, survey
from cluster.watch.kinds import DECISIVE, Watched, key_of
from policies.document import InputError
from policies.state.objects import Change, Key
from sources.from_cluster import default_kubeconfig, run_reading

OURS = tuple(kind for kind in DECISIVE if kind.ours)
FACTS = tuple(kind for kind in DECISIVE if not kind.ours)


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeCluster:
    """What was read."""

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
        return {**self.policies, **{key_of(one["kind"], one): one for one in self.facts}}


def read_whole(
    kubeconfig: str | None, context: str | None, namespace: str | None, catalog: Catalog, progress: Progress, instead: str = ""
) -> WholeCluster:
    """Read all namespaces, or one. ``instead``: what else to do where pods may not be read.

    Raises InputError, with advice what to type next, if there is no answer or pods may not be read.
    """
    kinds = (*OURS, *FACTS, pods(catalog, widest(catalog)), *OWNERS)
    found = surveyed(kubeconfig, context, namespace, kinds, progress, instead)
    ours = {key_of(kind.kind, one): one for kind in OURS for one in found.objects[kind.kind]}
    owned = [one for kind in OWNERS for one in found.objects[kind.kind]]
    return WholeCluster(
        policies=ours,
        facts=[one for kind in FACTS for one in found.objects[kind.kind]],
        pods=[one["pod"] for one in found.objects["Pod"] if one["pod"] is not None],
        owners={one["uid"]: one["owner"] for one in owned if one["owner"] is not None},
        unread=unread(found),
        installed=not any(kind.kind in found.absent for kind in OURS),
    )


def surveyed(
    kubeconfig: str | None, context: str | None, namespace: str | None, kinds: Sequence[Watched], progress: Progress, instead: str = ""
) -> Survey:
    """Read these kinds, of which Pod is one, in all namespaces or in one. ``instead``: what else to do where pods may not be read.
    Raises InputError as ``read_whole`` does."""
    found = lists(kubeconfig, context, namespace, kinds, progress)
    if "Pod" in found.unread:
        advice = f'ask for the role "view" in {namespace}' if namespace else "set a namespace that you can read: --namespace NS"
        raise InputError(file="cluster", message=f"{found.unread['Pod']}; {advice}{instead}")
    return found


def lists(kubeconfig: str | None, context: str | None, namespace: str | None, kinds: Sequence[Watched], progress: Progress) -> Survey:
    """Read these kinds, as far as they may be read. Raises InputError if there is no answer."""
    access = Access(kubeconfig or default_kubeconfig(os.environ), context)
    return run_reading(_surveyed(access, kinds, namespace or "", progress))


def unread(found: Survey) -> dict[str, str]:
    """Return the kinds that the cluster has and that could not be read, with the reasons."""
    return {kind: reason for kind, reason in found.unread.items() if kind not in found.absent}


async def _surveyed(access: Access, kinds: Sequence[Watched], namespace: str, progress: Progress) -> Survey:
    client = await Client.connect(access)
    try:
        return await survey(client, kinds, namespace, progress)
    finally:
        await client.close()
