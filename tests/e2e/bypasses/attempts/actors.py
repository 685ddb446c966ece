"""Class 1 and 0f: who the pod is, said by its author. Every row of the actor table, put on by hand or made for real, for every guardrail.

Counts, equality, caps and forbidden tolerations hold for every row. Places hold for those that the table does not spare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.e2e.actors.pods_by_actor import GROUP, MIRROR, PODSET, pinned
from tests.e2e.bypasses.guardrails import CAPS, COUNTS, EQUALITY, H100_NODE, PLACED, PLACES, Guardrail, marked, with_
from tests.e2e.bypasses.way import GATE, Attempt, Way, controlled, creates
from tests.e2e.workloads import TOLERATION, pod
from tests.testcluster.controlplane.api import Raw

Dress = Callable[[Raw], Raw]


def owned(api_version: str, kind: str) -> Dress:
    """By something that is not there."""
    owner = {"apiVersion": api_version, "kind": kind, "name": "forged", "uid": "0a1b2c3d-0000-4000-8000-00000000f0f0", "controller": True}
    return lambda made: marked(made, ownerReferences=[owner])


def labelled(**labels: str) -> Dress:
    return lambda made: marked(made, labels={key.replace("__", "/").replace("_", "-"): value for key, value in labels.items()})


def saying(**annotations: str) -> Dress:
    return lambda made: marked(made, annotations={key.replace("__", "/").replace("_", "-"): value for key, value in annotations.items()})


def scheduled_by(name: str) -> Dress:
    return lambda made: with_(made, schedulerName=name)


def on(node: str) -> Dress:
    return lambda made: with_(made, nodeName=node)


def pinned_to(node: str) -> Dress:
    return lambda made: with_(made, affinity=pinned(node))


def both(*dresses: Dress) -> Dress:
    def dressed(made: Raw) -> Raw:
        for dress in dresses:
            made = dress(made)
        return made

    return dressed


OWNERS: dict[str, Dress] = {
    "a Job's by hand": owned("batch/v1", "Job"),
    "a ReplicaSet's by hand": owned("apps/v1", "ReplicaSet"),
    "a StatefulSet's by hand": owned("apps/v1", "StatefulSet"),
    "a DaemonSet's by hand": owned("apps/v1", "DaemonSet"),
    "a Node's by hand": owned("v1", "Node"),
}
QUEUES: dict[str, Dress] = {
    "KAI": scheduled_by("kai-scheduler"),
    "Run:ai": scheduled_by("runai-scheduler"),
    "Volcano": scheduled_by("volcano"),
    "a Job that Kueue admitted": both(owned("batch/v1", "Job"), lambda made: marked(made, labels=PODSET)),
    "a Kueue pod group": both(
        lambda made: marked(made, labels={**GROUP, "kueue.x-k8s.io/managed": "true"}), lambda made: with_(made, schedulingGates=[GATE])
    ),
    "Slurm bridge": scheduled_by("slurm-bridge-scheduler"),
}
FRACTIONS: dict[str, Dress] = {
    "KAI's fraction beside devices": saying(gpu_fraction="0.5"),
    "KAI's memory beside devices": both(saying(gpu_memory="4000"), scheduled_by("kai-scheduler")),
    "Run:ai's number of devices": both(saying(gpu_fraction="0.5", gpu_fraction_num_devices="1"), scheduled_by("runai-scheduler")),
}
NODES: dict[str, Dress] = {
    "spec.nodeName": on(H100_NODE),
    "spec.nodeName of no node": on("ways-nowhere"),
    "matchFields": pinned_to(H100_NODE),
    "matchFields of no node": pinned_to("ways-nowhere"),
    "matchFields and a DaemonSet's by hand": both(pinned_to(H100_NODE), owned("apps/v1", "DaemonSet")),
}
ROWS: dict[str, Dress] = {
    "bare": lambda made: made,
    **OWNERS,
    **QUEUES,
    **FRACTIONS,
    **NODES,
    "a mirror by hand on a node": lambda made: with_(marked(made, annotations=MIRROR), nodeName=H100_NODE),
    "every row at once": both(
        *(OWNERS[name] for name in ("a DaemonSet's by hand",)),
        QUEUES["KAI"],
        lambda made: marked(made, labels={**PODSET, **GROUP}),
        FRACTIONS["KAI's fraction beside devices"],
        NODES["matchFields"],
    ),
}
REAL = ("Job", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController")


def _held() -> Iterator[Way]:
    """What no row relaxes."""
    for guardrail in (*COUNTS, *CAPS, *EQUALITY):
        for name, dress in ROWS.items():
            yield Way(name=name, guard=guardrail.name, attack=creates(dress(guardrail.wrong)), twin=creates(dress(guardrail.right)))


def _real() -> Iterator[Way]:
    """Made by the controllers of the cluster: a DaemonSet's author is a tenant like any other."""
    for guardrail in (*COUNTS, *CAPS, *EQUALITY):
        for kind in REAL:
            attack, twin = _controlled(kind, guardrail.wrong), _controlled(kind, guardrail.right)
            yield Way(name=f"a real {kind}", guard=guardrail.name, attack=attack, twin=twin)


def _controlled(kind: str, made: Raw) -> Attempt:
    """A DaemonSet's on one node, and with the toleration without which its controller makes no pod."""
    if kind != "DaemonSet":
        return controlled(kind, made)
    tolerations = [TOLERATION, *(one for one in made["spec"].get("tolerations", ()) if one != TOLERATION)]
    on_one = {**made["spec"].get("nodeSelector", {}), "kubernetes.io/hostname": H100_NODE}
    return controlled(kind, with_(made, tolerations=tolerations, nodeSelector=on_one))


def _places() -> Iterator[Way]:
    """Who is not spared places: by what the pod selects, and by the node that it names."""
    rows = {"bare": ROWS["bare"], **OWNERS, **QUEUES, "KAI's fraction beside devices": FRACTIONS["KAI's fraction beside devices"]}
    for guardrail in PLACED:
        for name, dress in rows.items():
            if name not in FRACTIONS or guardrail.name != "sharing":  # where no fraction is honest
                yield Way(name=name, guard=guardrail.name, attack=creates(dress(guardrail.wrong)), twin=creates(dress(guardrail.right)))
        yield from _on_nodes(guardrail)


def _on_nodes(guardrail: Guardrail) -> Iterator[Way]:
    honest = with_(guardrail.right, nodeSelector={})
    for name, put in (("spec.nodeName", on), ("matchFields", pinned_to)):
        attack, twin = creates(put(guardrail.outside)(pod())), creates(put(guardrail.inside)(honest))
        yield Way(name=f"{name} outside", guard=guardrail.name, attack=attack, twin=twin, codes=PLACES)


WAYS = (*_held(), *_real(), *_places())
