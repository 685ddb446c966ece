"""What a pod of each row of the actor table may be denied for, and for what else it is only warned.

The API server itself denies requests that are not limits, but only after Berth has spoken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.actors.pods_by_actor import (
    CLAIMED,
    GROUP,
    MIRROR,
    PODSET,
    as_a_kubelet,
    claim_template,
    claiming,
    devices,
    of_a_node,
    owned,
    pinned,
)
from tests.e2e.judged import KNOWN, Judged, judged
from tests.e2e.workloads import NVIDIA, TOLERATION, gpus, node_of, pod, pod_of, tolerations, workload
from tests.testcluster.controlplane.api import ApiError, Raw
from tests.testcluster.controlplane.cluster import Cluster

T4 = {"nvidia.com/gpu.product": "Tesla-T4"}
SKIP_DRAIN = "nvidia.com/gpu-driver-upgrade-drain.skip"
OTHER_TEAM: Raw = {"key": "team", "operator": "Equal", "value": "other"}
UNEVEN: Raw = {"requests": {NVIDIA: "1"}, "limits": {NVIDIA: "2"}}
NONE: Raw = {"limits": {"cpu": "1"}}
CAPS = {"BERTH-131", "BERTH-141", "BERTH-142"}
HELD = {"BERTH-101", "BERTH-111", *CAPS}
"""what holds whoever writes the pod"""
EVERYTHING = {*HELD, "BERTH-121"}


def wrong(resources: Raw | None = None, labels: Raw | None = None, annotations: Raw | None = None, **spec: Any) -> Raw:
    """A pod that is wrong in all that the policy bounds: place, counts, grace, protection, tolerations."""
    metadata = {"labels": {SKIP_DRAIN: "true", **(labels or {})}, "annotations": annotations or {}}
    tolerated = [OTHER_TEAM, TOLERATION]
    return pod(
        UNEVEN if resources is None else resources,
        metadata,
        **{"tolerations": tolerated, "terminationGracePeriodSeconds": 3600, "nodeSelector": T4, **spec},
    )


DENIED = {
    "bare": (wrong(), EVERYTHING),
    "service": (wrong(labels={"serving.kserve.io/inferenceservice": "llm"}), EVERYTHING),
    "matchFields": (wrong(affinity=pinned("t4")), {*HELD, "BERTH-124"}),
    "nodeName": (wrong(nodeName="t4"), {*HELD, "BERTH-124"}),
    "KAI": (wrong(schedulerName="kai-scheduler"), EVERYTHING),
    "Run:ai": (wrong(schedulerName="runai-scheduler"), EVERYTHING),
    "Volcano": (wrong(schedulerName="volcano"), EVERYTHING),
    "Kueue pod group": (wrong(labels=GROUP), EVERYTHING),
    "Slurm bridge": (wrong(schedulerName="slurm-bridge-scheduler"), EVERYTHING),
    "claims only": (wrong(CLAIMED, **claiming()), {"BERTH-111", *CAPS}),
}
OF_A_JOB = {"Job": {}, "Job admitted by Kueue": PODSET}


@pytest.fixture(scope="module")
def world(cluster: Cluster) -> Iterator[Judged]:
    known = f"{KNOWN},deviceclasses,resourceclaimtemplates"
    queues = ("--queues", "kueue,slurm-bridge")
    with (
        devices(cluster),
        judged(
            cluster, "actor-denials", *queues, namespaces={"strict": {"actor": "strict"}}, known=known, objects=[claim_template()]
        ) as found,
    ):
        yield found


@pytest.fixture(autouse=True)
def cleared(world: Judged) -> Iterator[None]:
    yield
    world.clear("Job", "DaemonSet")


def codes(world: Judged, made: Raw) -> set[str]:
    """Of the denial by Berth's first call."""
    reply = world.cluster.api.try_create(made, world["strict"])
    assert reply.status == 403, reply.message
    return set(re.findall(r"BERTH-\d+(?=: )", reply.message))


@pytest.mark.parametrize("row", DENIED)
def test_each_actor_is_denied_for_what_its_row_says(world: Judged, row: str) -> None:
    """A pod that is wrong in everything is told these things and no others."""
    made, wanted = DENIED[row]
    assert codes(world, made) == wanted


@pytest.mark.parametrize("row", OF_A_JOB)
def test_the_pod_of_a_job_is_denied_for_everything(world: Judged, row: str) -> None:
    """Whether Kueue admitted its Job or not."""
    job = world.cluster.api.create(workload("Job", pod(NONE), parallelism=0), world["strict"])
    made = wrong(labels=OF_A_JOB[row])
    assert codes(world, {**made, "metadata": {**made["metadata"], **owned(job)}}) == EVERYTHING


def test_a_fraction_by_annotation_is_judged_by_its_place_too(world: Judged) -> None:
    """It asks for no resource, so nothing is said of counts and equality; its caps and its place hold."""
    assert codes(world, wrong(NONE, annotations={"gpu-fraction": "0.5"})) == {"BERTH-121", *CAPS}


def test_what_the_kubelet_already_runs_is_not_denied(world: Judged) -> None:
    """A mirror pod is stored as it is, without a warning; a pod that only names its node as owner, which anyone may write, is denied."""
    mirror = wrong(gpus(2), annotations=MIRROR, nodeName="t4")
    reply = as_a_kubelet(world.cluster).try_create(mirror, world["strict"])
    assert (reply.status, reply.warnings) == (201, ()), reply.message
    assert codes(world, mirror) == {*HELD, "BERTH-124"} - {"BERTH-101"}, "anybody can write the annotation"
    assert tolerations(reply.body) == [OTHER_TEAM, TOLERATION]
    with pytest.raises(ApiError, match=r"BERTH-124: the node in .* has .*NVIDIA-A10G"):
        of_a_node(world, world["strict"])


def test_a_daemon_set_reads_in_its_events_why_it_has_no_pod(world: Judged) -> None:
    """On a node outside what is required its pods are denied; without Berth they run there."""
    made = pod(nodeSelector={"kubernetes.io/hostname": "t4"}, tolerations=[TOLERATION])
    for namespace in ("plain", "strict"):
        world.cluster.api.create(workload("DaemonSet", made), world[namespace])

    def denial() -> str | None:
        events = world.cluster.api.list("v1", "Event", world["strict"], fieldSelector="involvedObject.kind=DaemonSet,reason=FailedCreate")
        return next((str(event["message"]) for event in events), None)

    message = world.cluster.wait_for(denial, "an event of the DaemonSet")
    assert "BERTH-124: the node in matchFields metadata.name has nvidia.com/gpu.product=Tesla-T4, which violates models" in message
    assert node_of(world.cluster, pod_of(world.cluster, world["plain"])) == "t4"
