"""All that is scanned of a cluster, read once with the rights of whoever asks, or from files that hold a dump of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from analysis.audit.stored_pod import widest
from analysis.scan.objects_read import Cluster
from catalog import Catalog
from cluster.survey.owners import OWNERS
from cluster.survey.scanned import kinds
from cluster.survey.survey import Progress
from kube.tree import Raw
from policies.document import InputError
from policies.facts.cluster_facts import KINDS, ClusterFacts
from policies.facts.device_modes import published
from sources.sources import Origin
from sources.state import of_values, owners_of, read_with_pods, unread, values_of


def read_scanned(origin: Origin, namespace: str | None, catalog: Catalog, progress: Progress) -> Cluster:
    """Read all namespaces, or one.

    Raises InputError, with advice what to type next, if there is no answer or pods may not be read, for the first file that can't be
    read, and where files have no pod, no node and no NodePool.
    """
    if origin.dumps:
        return scan_dump(values_of(origin.dumps), ", ".join(origin.dumps), namespace, catalog)
    state = read_with_pods(origin, (*kinds(catalog, widest(catalog)), *OWNERS), namespace, progress)
    return cluster_of(state.objects, unread(state), everything=not namespace)


def scan_dump(values: Sequence[Raw], file: str, namespace: str | None, catalog: Catalog) -> Cluster:
    """Return the cluster that was dumped; what the dump must lack is named as not read.

    Raises InputError, about ``file``, where there is no pod, no node and no NodePool.
    """
    if not any(value.get("kind") in ("Pod", "Node", "NodePool") for value in values):
        message = "has no Pod, Node or NodePool; dump them: kubectl get nodes,pods -A -o yaml > dump.yaml"
        raise InputError(file=file, message=message)
    state = of_values(values, (*kinds(catalog, widest(catalog)), *OWNERS), namespace)
    return cluster_of(state.objects, unread(state), everything=not namespace)


def of_objects(values: Iterable[Raw], namespace: str | None, catalog: Catalog) -> Cluster:
    """Return the cluster that has these objects and no others."""
    state = of_values(list(values), (*kinds(catalog, widest(catalog)), *OWNERS), namespace)
    return cluster_of(state.objects, {}, everything=not namespace)


def cluster_of(objects: Mapping[str, Sequence[Raw]], unread: Mapping[str, str], *, everything: bool) -> Cluster:
    """Return the cluster of trimmed objects by kind, of ``cluster.survey.scanned.kinds`` and ``OWNERS``. ``everything``: pods of all
    namespaces are among them."""
    facts = ClusterFacts.from_objects([value for kind in KINDS for value in objects.get(kind, ())])
    return Cluster(
        nodes=objects["Node"],
        nodepools=objects["NodePool"],
        node_classes=objects["EC2NodeClass"],
        slices=published(facts),
        facts=facts,
        pods=[pod["pod"] for pod in objects["Pod"] if "pod" in pod],
        waiting={(pod["pod"].namespace, pod["pod"].name): pod["waiting"] for pod in objects["Pod"] if "waiting" in pod},
        occupants=[pod["takes"] for pod in objects["Pod"] if "takes" in pod] if everything else None,
        device_classes=objects["DeviceClass"],
        plain=Counter(pod["plain"] for pod in objects["Pod"] if "plain" in pod),
        owners=owners_of(objects),
        unread=unread,
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
