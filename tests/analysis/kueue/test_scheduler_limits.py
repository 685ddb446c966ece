"""The limits of Volcano's and KAI's queues, against what a workload needs before it starts."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.kueue.scheduler_limits import QueuedTemplate, knows_limits, limit_remarks
from policies.facts.cluster_facts import ClusterFacts
from policies.facts.scheduler_queues import scheduler_queue

Raw = dict[str, Any]
GPU = "nvidia.com/gpu"


def _volcano(name: str = "team", capability: Raw | None = None, parent: str = "", allocated: Raw | None = None) -> Raw:
    spec = {"capability": capability or {}, **({"parent": parent} if parent else {})}
    status = {} if allocated is None else {"status": {"allocated": allocated}}
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}, "spec": spec, **status}


def _kai(name: str = "team", parent: str = "", **resources: Any) -> Raw:
    spec = {"resources": {field: {"quota": 0, "limit": limit} for field, limit in resources.items()}, "parentQueue": parent}
    return {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def _pod(gpus: int, scheduler: str = "volcano", **metadata: Any) -> Raw:
    containers = [{"name": "c", "resources": {"limits": {GPU: gpus}, "requests": {"cpu": 2, "memory": "1G"}}}]
    return {"metadata": metadata, "spec": {"schedulerName": scheduler, "containers": containers}}


def _annotated(gpus: int) -> Raw:
    return _pod(gpus, annotations={"scheduling.volcano.sh/queue-name": "team"})


def _said(value: Raw, pods: list[QueuedTemplate], *queues: Raw) -> list[str]:
    return [str(remark) for remark in limit_remarks(value, pods, ClusterFacts.from_objects(queues))]


def _alone(pod: Raw) -> list[QueuedTemplate]:
    return [QueuedTemplate((), pod)]


POD: Raw = {"apiVersion": "v1", "kind": "Pod"}


def test_a_pod_larger_than_the_capability_waits_forever() -> None:
    """Of its queue, or of one above it."""
    (text,) = _said(POD, _alone(_annotated(6)), _volcano(capability={GPU: 4}))
    assert text.startswith(f"BERTH-244: spec.capability of queue team of Volcano allows at most 4 {GPU}, and ")
    assert "requests 6 before it starts: it waits forever" in text
    (text,) = _said(POD, _alone(_annotated(6)), _volcano(capability={GPU: 8}, parent="root"), _volcano("root", {GPU: 4}))
    assert "queue root of Volcano allows at most 4" in text
    assert _said(POD, _alone(_annotated(4)), _volcano(capability={GPU: 4})) == []


def test_what_others_have_is_free_later() -> None:
    """Where the status says it."""
    (text,) = _said(POD, _alone(_annotated(4)), _volcano(capability={GPU: 8}, allocated={GPU: 6}))
    assert f"has 2 of 8 {GPU} free" in text
    assert _said(POD, _alone(_annotated(2)), _volcano(capability={GPU: 8}, allocated={GPU: 6})) == []


@pytest.mark.parametrize(("least", "said"), [(None, 1), (4, 1), (2, 0), (1, 0)])
def test_a_job_needs_its_least_number_of_pods(least: int | None, said: int) -> None:
    """Those that need least count first: of 4 workers with 2 GPUs and a master with none, two members need 2."""
    tasks = [{"replicas": 1, "template": {}}, {"replicas": 4, "template": {}}]
    spec = {"tasks": tasks, **({} if least is None else {"minAvailable": least})}
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "spec": spec}
    annotations = {"volcano.sh/queue-name": "team"}
    pods = [QueuedTemplate(("spec", "tasks", n, "template"), _pod(gpus, annotations=annotations)) for n, gpus in enumerate((0, 2))]
    assert len(_said(job, pods, _volcano(capability={GPU: 4}))) == said


def test_kai_reads_the_label_of_the_workload_first() -> None:
    """Its units are GPUs, thousandths of CPU and 10^6 bytes; -1 is no limit."""
    job = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"labels": {"kai.scheduler/queue": "team"}}}
    group = {"replicas": 3, "minReplicas": 3, "template": {}}
    value = {**job, "spec": {"workerGroupSpecs": [group]}}
    pods = [QueuedTemplate(("spec", "workerGroupSpecs", 0, "template"), _pod(1, "kai-scheduler", labels={"kai.scheduler/queue": "other"}))]
    (text,) = _said(value, pods, _kai(gpu=2, cpu=-1, memory=-1))
    assert f"spec.resources.gpu.limit of queue team of KAI allows at most 2 {GPU}, and spec.workerGroupSpecs[0].template requests 3" in text
    assert len(_said(value, pods, _kai(gpu=3, cpu=5999, memory=2999))) == 2
    assert _said(value, pods, _kai(gpu=3, cpu=6000, memory=3000)) == []
    fewer = {**value, "spec": {"workerGroupSpecs": [{**group, "minReplicas": 2}]}}
    assert _said(fewer, pods, _kai(gpu=2)) == []


def test_pods_of_other_schedulers_are_not_limited() -> None:
    """Nor those of a queue that is not known, or above which a circle is."""
    queues = [_volcano(capability={GPU: 1}, parent="team")]
    assert _said(POD, _alone(_pod(4, "default-scheduler", annotations={"scheduling.volcano.sh/queue-name": "team"})), *queues) == []
    assert _said(POD, _alone(_pod(4, annotations={"scheduling.volcano.sh/queue-name": "else"})), *queues) == []
    assert len(_said(POD, _alone(_annotated(4)), *queues)) == 1


def test_what_is_known_of_a_queue() -> None:
    """All of it only where the status says what others have, or nothing is limited."""
    for queue, known in ((_volcano(capability={GPU: 4}), False), (_volcano(capability={GPU: 4}, allocated={}), True), (_volcano(), True)):
        assert knows_limits(POD, _annotated(1), ClusterFacts.from_objects([queue])) is known
    assert not knows_limits(POD, _annotated(1), ClusterFacts())
    assert not knows_limits(POD, _pod(1), ClusterFacts()), "it waits in Volcano's default queue"
    assert knows_limits(POD, _pod(1, "default-scheduler"), ClusterFacts())


@pytest.mark.parametrize("spec", [None, [], {"capability": 3}, {"resources": {"gpu": {"limit": "many"}}}, {"resources": []}])
@pytest.mark.parametrize("api_version", ["scheduling.volcano.sh/v1beta1", "scheduling.run.ai/v2"])
def test_no_content_makes_the_reader_raise(api_version: str, spec: Any) -> None:
    """What can't be read limits nothing."""
    assert scheduler_queue({"apiVersion": api_version, "spec": spec}).limits == {}
