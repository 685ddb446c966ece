"""The namespaces of a cluster, and its resources that may be accelerators but are not in the catalog, for
webhook configurations."""

from __future__ import annotations

from dataclasses import dataclass

from catalog import Catalog
from cluster.client.access import Access
from cluster.survey.survey import survey
from cluster.watch.kinds import KINDS
from policies.document import InputError
from policies.facts.cluster_facts import ClusterFacts
from policies.pods.unlisted_accelerators import overlooked
from sources.state import call_cluster, unread

_KINDS = tuple(kind for kind in KINDS if kind.kind in ("Namespace", "Node", "DeviceClass"))


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
    found = call_cluster(Access(kubeconfig, context), lambda client: survey(client, _KINDS))
    if "Namespace" in found.unread:
        message = f"cannot list namespaces ({found.unread['Namespace']}); ask for permission to list them"
        raise InputError(file="cluster", message=message)
    resources = {kind.kind: kind.resource for kind in _KINDS}
    reasons = (f"{resources[kind]} cannot be listed, so their resource names are unknown: {why}" for kind, why in unread(found).items())
    facts = ClusterFacts.from_objects([*found.objects["Node"], *found.objects["DeviceClass"]], frozenset())
    namespaces = frozenset(value["metadata"]["name"] for value in found.objects["Namespace"])
    return ClusterNames(namespaces=namespaces, names=overlooked(facts, catalog), unread=tuple(reasons))
