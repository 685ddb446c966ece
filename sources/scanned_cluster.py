"""All that is scanned of a cluster, read once with the rights of whoever asks, or from files that hold a dump of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from analysis.audit.stored_pod import Controller, widest
from analysis.scan.objects_read import Cluster
from catalog import Catalog
from cluster.survey.owners import OWNERS
from cluster.survey.scanned import kinds
from cluster.survey.survey import Progress
from cluster.watch.kinds import Watched
from documents.files import read_objects
from kube.labels import NODE_POOL
from kube.tree import Raw
from policies.document import InputError
from policies.facts.cluster_facts import KINDS, ClusterFacts
from policies.facts.device_modes import published
from sources.whole_cluster import surveyed, unread


def read_scanned(kubeconfig: str | None, context: str | None, namespace: str | None, catalog: Catalog, progress: Progress) -> Cluster:
    """Read all namespaces, or one.

    Raises InputError, with advice what to type next, if there is no answer or pods may not be read.
    """
    found = surveyed(kubeconfig, context, namespace, (*kinds(catalog, widest(catalog)), *OWNERS), progress)
    return cluster_of(found.objects, unread(found), everything=not namespace)


def recorded(paths: Sequence[str], namespace: str | None, catalog: Catalog) -> Cluster:
    """Read dumps of ``kubectl get -o yaml`` or ``-o json`` in place of a cluster.

    Raises InputError for the first file that can't be read, and where there is no pod, no node and no NodePool in any.
    """
    return scan_dump(values_of(paths), ", ".join(paths), namespace, catalog)


def values_of(paths: Sequence[str]) -> list[Raw]:
    """Return the objects of files. Raises InputError for the first that can't be read."""
    return [item.value for item in read_objects(paths) if isinstance(item.value, dict)]


def scan_dump(values: Sequence[Raw], file: str, namespace: str | None, catalog: Catalog) -> Cluster:
    """Return the cluster that was dumped; what the dump must lack is named as not read.

    Raises InputError, about ``file``, where there is no pod, no node and no NodePool.
    """
    if not any(value.get("kind") in ("Pod", "Node", "NodePool") for value in values):
        message = "has no Pod, Node or NodePool; dump them: kubectl get nodes,pods -A -o yaml > dump.yaml"
        raise InputError(file=file, message=message)
    cluster = of_objects(values, namespace, catalog)
    return replace(cluster, unread=dict(_left_out(values, cluster)))


def _left_out(values: Sequence[Raw], cluster: Cluster) -> Iterator[tuple[str, str]]:
    """Yield kinds that a dump lacks although the cluster must have some: nothing is impossible for want of what was not dumped."""
    for kind, plural in (("Node", "nodes"), ("Pod", "pods")):
        if not any(value.get("kind") == kind for value in values):
            yield kind, f"the dump has no {plural}"
    if not cluster.nodepools and any(NODE_POOL in labels for labels in cluster.facts.nodes.values()):
        yield "NodePool", f"the dump has no nodepools.karpenter.sh, but nodes with the label {NODE_POOL}"


def of_objects(values: Iterable[Raw], namespace: str | None, catalog: Catalog) -> Cluster:
    """Return the cluster that has these objects; other kinds, and objects without a name, are passed over."""
    wanted = {kind.kind: kind for kind in (*kinds(catalog, widest(catalog)), *OWNERS)}
    found: dict[str, list[Raw]] = {kind: [] for kind in wanted}
    for value in values:
        kind = wanted.get(str(value.get("kind")))
        if kind is None or not _named(value, kind):
            continue
        if kind.namespaced and namespace and value["metadata"].get("namespace") != namespace:
            continue
        found[kind.kind].append(kind.trim(value, str(value.get("apiVersion") or ""), kind.kind))
    return cluster_of(found, {}, everything=not namespace)


def _named(value: Raw, kind: Watched) -> bool:
    metadata = value.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        return False
    if kind.namespaced:
        metadata.setdefault("namespace", "default")
    return True


def cluster_of(found: Mapping[str, Sequence[Raw]], unread: Mapping[str, str], *, everything: bool) -> Cluster:
    """Return the cluster of trimmed objects by kind, of ``cluster.survey.scanned.kinds`` and ``OWNERS``. ``everything``: pods of all
    namespaces are among them."""
    facts = ClusterFacts.from_objects([one for kind in KINDS for one in found.get(kind, ())])
    return Cluster(
        nodes=found["Node"],
        nodepools=found["NodePool"],
        node_classes=found["EC2NodeClass"],
        slices=published(facts),
        facts=facts,
        pods=[one["pod"] for one in found["Pod"] if "pod" in one],
        waiting={(one["pod"].namespace, one["pod"].name): one["waiting"] for one in found["Pod"] if "waiting" in one},
        occupants=[one["takes"] for one in found["Pod"] if "takes" in one] if everything else None,
        device_classes=found["DeviceClass"],
        plain=Counter(one["plain"] for one in found["Pod"] if "plain" in one),
        owners=_owners(one for kind in OWNERS for one in found[kind.kind]),
        unread=unread,
        age=age,
    )


def _owners(found: Iterable[Raw]) -> dict[str, Controller]:
    return {one["uid"]: one["owner"] for one in found if one["owner"] is not None}


def age(created: str) -> float | None:
    """Return the seconds since a time that the API server wrote; None if it is none."""
    try:
        then = datetime.fromisoformat(created)
    except ValueError:
        return None
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    return max(0.0, (datetime.now(UTC) - then).total_seconds())
