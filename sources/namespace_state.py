"""The state of one namespace, read with rights in that namespace alone, for the policies in force there.

Objects are understood as the servers understand them (``policies.state.updater``): the last good form of an object with errors is in
force here too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from analysis.conditions.server_mode import as_served
from catalog import Catalog
from catalog.nearest import hint
from cluster.client.api_client import Client
from cluster.survey.survey import Survey, survey
from cluster.watch.kinds import KINDS
from kube.tree import Raw
from policies.document import InputError
from policies.facts.offered_devices import STACKS
from policies.state.objects import Change, Key
from policies.state.updater import Options, Update, Updater
from sources.sources import Origin
from sources.state import OURS, access_of, call_cluster, is_installed, keyed, of_values, values_of

ROLE = "berth-guardrails-view"
"""The ClusterRole of deploy/rbac.yaml that may read the cluster-scoped kinds."""
_FACTS = tuple(kind for kind in KINDS if kind.kind in ("Node", "NodePool", *STACKS))
"""Kinds that may be unreadable: few users may list nodes, and many clusters have no NodePools and no GPU Operator. Node labels
determine the platforms, a NodePool's terminationGracePeriod limits those of pods, and the operator's objects tell which labels
are maintained."""
_NAMESPACE = next(kind for kind in KINDS if kind.kind == "Namespace")


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceState:
    """The objects of which the policies of one namespace are made."""

    namespace: str
    objects: Mapping[Key, Change]
    """Policies and facts."""
    installed: bool
    """True if the cluster has the definitions of Berth's kinds, or files have a policy."""
    nodes_unread: bool

    def update(self, catalog: Catalog, options: Options) -> Update:
        """Return the policies in force, as the cluster's server has them."""
        return Updater(catalog, as_served(options, self.objects)).apply(self.objects)


def read_namespace(origin: Origin, namespace: str | None) -> NamespaceState:
    """Read one namespace. ``namespace`` None: that of the kubeconfig context, of files ``default``.

    Raises InputError with advice what to type next.
    """
    if origin.dumps:
        name = namespace or "default"
        found = of_values(values_of(origin.dumps), (_NAMESPACE, *OURS, *_FACTS), name)
    else:
        name, found = call_cluster(access_of(origin.kubeconfig, origin.context), lambda client: _read(client, namespace))
    objects = keyed(found, (_NAMESPACE, *OURS, *_FACTS))
    return NamespaceState(namespace=name, objects=objects, installed=is_installed(found), nodes_unread="Node" in found.unread)


async def _read(client: Client, namespace: str | None) -> tuple[str, Survey]:
    name = namespace or client.namespace
    value = await _namespace(client, name)
    found = await survey(client, (*OURS, *_FACTS), name)
    for kind in OURS:
        if kind.kind in found.absent:
            advice = "install the definitions: berth crds | kubectl apply --server-side -f -"
            raise InputError(file="cluster", message=f"the kind {kind.kind} is not installed; {advice}")
        if kind.kind in found.unread:
            advice = f'ask for the role "view" in {name}' if kind.namespaced else f'ask for the ClusterRole "{ROLE}"'
            raise InputError(file="cluster", message=f"{found.unread[kind.kind]}; {advice}")
    return name, replace(found, objects={**found.objects, "Namespace": [value]})


async def _namespace(client: Client, name: str) -> Raw:
    reply = await client.call("GET", f"/api/v1/namespaces/{name}")
    if reply.status == 404:
        raise InputError(file="cluster", message=f'there is no namespace "{name}"{await _near(client, name)}')
    if not reply.ok:
        reason = f"you may not read namespace {name}" if reply.status == 403 else f"the API server answered {reply.status} {reply.message}"
        advice = f'its labels decide which policies apply there; ask for the role "view" in {name}'
        raise InputError(file="cluster", message=f"{reason}; {advice}")
    return _NAMESPACE.trim(reply.body, "v1", "Namespace")


async def _near(client: Client, name: str) -> str:
    """Return a hint at the most similar namespace, if the user may list namespaces."""
    reply = await client.call("GET", "/api/v1/namespaces")
    names = [str(item["metadata"]["name"]) for item in reply.body["items"]] if reply.ok else []
    return hint(name, names) or "; kubectl get namespaces lists them"
