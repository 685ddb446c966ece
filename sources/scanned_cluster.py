"""All that is scanned of a cluster, read once with the rights of whoever asks, or from files that hold a dump of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from analysis.audit.stored_pod import widest
from analysis.scan.objects_read import Cluster
from catalog import Catalog
from cluster.watch.kinds import DAEMONS, NODE_CLASSES, OWNERS, PODS, QUEUES, QUOTAS, ROLLING, Watched, with_offers
from cluster.watch.kinds import KINDS as FOLLOWED
from cluster.watch.listing import Progress, Survey
from cluster.watch.trims import PodTrim
from kube.karpenter import describe_removed
from kube.templates import full_kind
from kube.tree import Raw
from policies.document import InputError
from policies.facts.cluster_facts import KINDS, NAMESPACE_LIMITS, ClusterFacts
from policies.facts.device_modes import published
from policies.objects import definition
from sources.sources import Origin
from sources.state import OURS, of_values, owners_of, read_with_pods, unread, values_of


def read_scanned(origin: Origin, namespace: str | None, catalog: Catalog, progress: Progress) -> Cluster:
    """Read all namespaces, or one.

    Raises InputError, with advice what to type next, if there is no answer or pods may not be read, for the first file that can't be
    read, and where files have nothing to scan.
    """
    if origin.dumps:
        return scan_dump(values_of(origin.dumps), ", ".join(origin.dumps), namespace, catalog)
    return cluster_of(read_with_pods(origin, (*OURS, *scanned_kinds(catalog)), namespace, progress), namespace)


def scan_dump(values: Sequence[Raw], file: str, namespace: str | None, catalog: Catalog) -> Cluster:
    """Return the cluster that was dumped; what the dump must lack is named as not read.

    Raises InputError, about ``file``, where there is nothing to scan: no pod, no node, no NodePool and no ResourceQuota.
    """
    if not any(value.get("kind") in ("Pod", "Node", "NodePool", QUOTAS.kind) for value in values):
        message = "has no Pod, Node or NodePool; dump them: kubectl get nodes,pods -A -o yaml > dump.yaml"
        message = "; ".join((message, *describe_removed(map(full_kind, values))))
        raise InputError(file=file, message=message)
    return cluster_of(of_values(values, (*OURS, *scanned_kinds(catalog)), namespace), namespace)


def of_objects(values: Iterable[Raw], namespace: str | None, catalog: Catalog) -> Cluster:
    """Return the cluster that has these objects and no others."""
    return replace(cluster_of(of_values(list(values), scanned_kinds(catalog), namespace), namespace), unread={})


def scanned_kinds(catalog: Catalog) -> tuple[Watched, ...]:
    """Return the kinds that are scanned: facts, nodes and NodePools with what they offer, node classes, DaemonSets, quotas, pods and
    their owners, Deployments."""
    facts = with_offers(kind for kind in FOLLOWED if not kind.ours and kind not in QUEUES)
    return (*facts, NODE_CLASSES, DAEMONS, QUOTAS, replace(PODS, trim=PodTrim(widest(catalog), places=True)), *OWNERS, ROLLING)


def cluster_of(state: Survey, namespace: str | None) -> Cluster:
    """Return the cluster whose ``scanned_kinds`` were read, in all namespaces or in one."""
    objects = state.objects
    facts = ClusterFacts.from_objects([value for kind in (*KINDS, *NAMESPACE_LIMITS) for value in objects.get(kind, ())])
    return Cluster(
        nodes=objects["Node"],
        nodepools=objects["NodePool"],
        node_classes=objects["EC2NodeClass"],
        daemons=objects["DaemonSet"],
        rolling={(value["metadata"]["namespace"], value["metadata"]["name"]): value["rolling"] for value in objects["Deployment"]},
        slices=published(facts),
        facts=facts,
        pods=[pod["pod"] for pod in objects["Pod"] if "pod" in pod],
        waiting={(pod["pod"].namespace, pod["pod"].name): pod["waiting"] for pod in objects["Pod"] if "waiting" in pod},
        occupants=[pod["takes"] for pod in objects["Pod"] if "takes" in pod] if not namespace else None,
        device_classes=objects["DeviceClass"],
        plain=Counter(pod["plain"] for pod in objects["Pod"] if "plain" in pod),
        owners=owners_of(objects),
        policies=[value for kind in OURS for value in objects.get(kind.kind, ())],
        unread={kind: reason for kind, reason in unread(state).items() if kind not in definition.KINDS},
        ignored=state.ignored,
        age=age,
    )


def age(created: str) -> float | None:
    """Return the seconds since a time that the API server wrote; None if it is none."""
    try:
        then = datetime.fromisoformat(created)
    except ValueError:
        return None
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    return max(0.0, (datetime.now(UTC) - then).total_seconds())
