"""Every row of the actor table for real: what is edited, what is denied, and where the pod then runs.

Controllers of Kubernetes are the real ones; operators and queue systems are played (``tests/e2e/actors/pods_by_actor.py``). kwok plays the
kubelets: that a pod with ``spec.nodeName`` passes a kubelet's own admission, and that a kubelet makes mirror pods, is not shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from tests.e2e.actors.pods_by_actor import (
    A10G,
    CLAIMED,
    GROUP,
    MIRROR,
    Made,
    as_a_kubelet,
    bare,
    claim_template,
    claiming,
    devices,
    foreign_scheduler,
    mirrored,
    of,
    of_a_cron_job,
    of_a_daemon_set,
    of_a_node,
    of_a_pod_group,
    of_an_admitted_job,
    of_an_operator,
    pinned,
    pytorch_jobs,
)
from tests.e2e.judged import KNOWN, Judged, judged
from tests.e2e.workloads import (
    APPLIED,
    NVIDIA,
    TOLERATION,
    affinity,
    amounts,
    created,
    expression,
    node_of,
    pod,
    terms,
    tolerations,
    waiting,
)
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster

SLICE = "nvidia.com/mig-1g.10gb"
SKIP_DRAIN = "nvidia.com/gpu-driver-upgrade-drain.skip"
FAMILY = "nvidia.com/gpu.family"
FRACTION = {"gpu-fraction": "0.5"}
SERVED = {"labels": {"serving.kserve.io/inferenceservice": "llm"}}
NO_GPU: Raw = {"limits": {"cpu": "1"}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """What policy ``rich`` leaves of a pod with one GPU: one row of the table, and the node."""

    tolerated: tuple[str, ...] = (NVIDIA, "team")
    affinity: bool = True
    resource: str | None = SLICE
    grace: int = 300
    protected: bool = True
    node: str = "a100-mig"


ALL = Cells()
SERVICE = replace(ALL, grace=30, protected=False)
UNTOUCHED = Cells(tolerated=(), affinity=False, resource=NVIDIA, grace=30, protected=False, node="a10g")
PINNED = replace(UNTOUCHED, tolerated=(NVIDIA, "team"))
QUEUED = replace(ALL, resource=NVIDIA, node="a10g")
A_MIRROR = pod(metadata={"annotations": MIRROR}, nodeName="a10g")
ROWS: dict[str, tuple[Made, Cells]] = {
    "bare": (bare(), ALL),
    "Job": (of("Job"), ALL),
    "CronJob": (of_a_cron_job, ALL),
    "ReplicationController": (of("ReplicationController"), SERVICE),
    "PyTorchJob": (of_an_operator, ALL),
    "Deployment": (of("Deployment"), SERVICE),
    "ReplicaSet": (of("ReplicaSet"), SERVICE),
    "StatefulSet": (of("StatefulSet"), SERVICE),
    "Notebook": (of("StatefulSet", pod(metadata={"labels": {"notebook-name": "mine"}})), SERVICE),
    "InferenceService": (bare(metadata=SERVED), SERVICE),
    "DaemonSet": (of_a_daemon_set("a10g"), PINNED),
    "matchFields": (bare(affinity=pinned("a10g")), replace(PINNED, grace=300, protected=True)),
    "nodeName": (bare(nodeName="a10g"), UNTOUCHED),
    "mirror": (mirrored(A_MIRROR), UNTOUCHED),
    "owned by a Node": (of_a_node, UNTOUCHED),
    "KAI": (bare(schedulerName="kai-scheduler"), QUEUED),
    "Run:ai": (bare(schedulerName="runai-scheduler"), QUEUED),
    "Volcano": (bare(schedulerName="volcano"), QUEUED),
    "Job admitted by Kueue": (of_an_admitted_job, QUEUED),
    "Kueue pod group": (of_a_pod_group, replace(QUEUED, affinity=False)),
    "Slurm bridge": (bare(schedulerName="slurm-bridge-scheduler", nodeSelector=A10G), replace(QUEUED, affinity=False)),
    "fraction": (
        bare(NO_GPU, {"annotations": FRACTION}, schedulerName="kai-scheduler", nodeSelector={"kubernetes.io/hostname": "a10g"}),
        replace(ALL, resource=None, node="a10g"),
    ),
    "claims only": (bare(CLAIMED, **claiming()), replace(ALL, affinity=False, resource=None, node="a10g")),
}


@pytest.fixture(scope="module")
def world(cluster: Cluster) -> Iterator[Judged]:
    known = f"{KNOWN},deviceclasses,resourceclaimtemplates"
    namespaces = {actor: {"actor": actor} for actor in ("rich", "parts", "named")}
    with (
        foreign_scheduler(cluster),
        pytorch_jobs(cluster),
        devices(cluster),
        judged(
            cluster, "actors", "--queues", "kueue,slurm-bridge", namespaces=namespaces, known=known, objects=[claim_template()]
        ) as found,
    ):
        yield found


@pytest.fixture(autouse=True)
def cleared(world: Judged) -> Iterator[None]:
    yield
    world.clear()


def written(stored: Raw) -> bool:
    """Whether node affinity on a label of GPUs stands in every term."""
    keys = [{one["key"] for one in term.get("matchExpressions", ())} for term in terms(stored)]
    return bool(keys) and all(FAMILY in found for found in keys)


def cells(stored: Raw, node: str) -> Cells:
    """The row that this pod shows."""
    requests, limits = amounts(stored)
    asked = {name for name in (*requests, *limits) if name.startswith("nvidia.com/")}
    assert {name: requests.get(name) for name in asked} == {name: limits.get(name) for name in asked}
    return Cells(
        tolerated=tuple(str(one["key"]) for one in tolerations(stored)),
        affinity=written(stored),
        resource=next(iter(asked), None),
        grace=stored["spec"]["terminationGracePeriodSeconds"],
        protected=stored["metadata"].get("labels", {}).get(SKIP_DRAIN) == "true",
        node=node,
    )


@pytest.mark.parametrize("row", ROWS)
def test_each_actor_gets_the_edits_of_its_row(world: Judged, row: str) -> None:
    """The stored pod has these and no others, says so in berth.dev/applied where there are any, and runs on the node that they lead to."""
    made, wanted = ROWS[row]
    stored = made(world, world["parts" if row == "fraction" else "rich"])  # no part of a GPU is a whole one
    assert cells(stored, node_of(world.cluster, stored)) == wanted
    assert (APPLIED in stored["metadata"].get("annotations", {})) == (wanted != UNTOUCHED)


@pytest.mark.parametrize("row", ["bare", "Job", "StatefulSet", "KAI", "claims only"])
def test_the_same_pod_waits_without_berth(world: Judged, row: str) -> None:
    """Nobody tolerates the taint for it."""
    stored = ROWS[row][0](world, world["plain"])
    assert "untolerated taint" in waiting(world.cluster, stored)


def test_affinity_on_a_pinned_pod_would_keep_it_from_its_node(world: Judged) -> None:
    """Why that cell says no: what policies require, written beside matchFields of a node outside it, leaves the pod Pending for ever."""
    term = {"matchFields": [expression("metadata.name", "t4")], "matchExpressions": [expression(FAMILY, "ampere")]}
    stored = world.cluster.api.create(pod(tolerations=[TOLERATION], affinity=affinity(term)), world["plain"])
    assert "didn't match" in waiting(world.cluster, stored)


def test_a_mirror_pod_never_reaches_berth(world: Judged) -> None:
    """Neither path is called for it; both are for the very same pod where somebody else makes it."""
    before = world.calls()
    mirrored(A_MIRROR)(world, world["rich"])
    assert world.calls() == before
    world.cluster.api.create(A_MIRROR, world["rich"])
    assert world.calls() == before + 2


@pytest.mark.parametrize(("kind", "wanted"), [("Deployment", (600, "true")), ("StatefulSet", (30, None)), ("Job", (300, None))])
def test_a_service_is_calmed_only_by_a_policy_that_names_it(world: Judged, kind: str, wanted: tuple[int, str | None]) -> None:
    """One policy names Deployments, another names nobody: the Deployment gets the first's grace and label, the others what is theirs."""
    stored = created(world.cluster, world["named"], kind, pod())
    assert (stored["spec"]["terminationGracePeriodSeconds"], stored["metadata"]["labels"].get(SKIP_DRAIN)) == wanted


UNEVEN: Raw = {"requests": {NVIDIA: "1"}, "limits": {NVIDIA: "2"}}
REPAIRED = {
    "bare": pod(UNEVEN),
    "service": pod(UNEVEN, SERVED),
    "nodeName": pod(UNEVEN, nodeName="a10g"),
    "KAI": pod(UNEVEN, schedulerName="kai-scheduler"),
    "Kueue pod group": pod(UNEVEN, {"labels": GROUP}, nodeSelector=A10G),
}
LEFT = {"matchFields": pod(UNEVEN, affinity=pinned("a10g")), "mirror": pod(UNEVEN, {"annotations": MIRROR}, nodeName="a10g")}
"""the second made by a kubelet"""


@pytest.mark.parametrize("row", REPAIRED)
def test_requests_are_mended_where_the_row_says_so(world: Judged, row: str) -> None:
    """The API server alone denies such a pod; with Berth it runs, on two whole GPUs."""
    assert world.cluster.api.try_create(REPAIRED[row], world["plain"]).status == 422
    stored = world.cluster.api.create(REPAIRED[row], world["rich"])
    assert amounts(stored) == ({NVIDIA: "2"}, {NVIDIA: "2"})
    assert node_of(world.cluster, stored) == "a10g"


@pytest.mark.parametrize("row", LEFT)
def test_requests_are_left_alone_where_the_row_says_so(world: Judged, row: str) -> None:
    """The API server denies the pod as it does without Berth."""
    api = as_a_kubelet(world.cluster) if row == "mirror" else world.cluster.api
    replies = [api.try_create(LEFT[row], world[namespace]) for namespace in ("plain", "rich")]
    assert [reply.status for reply in replies] == [422, 422]
    assert all("must be equal to" in reply.message for reply in replies)
