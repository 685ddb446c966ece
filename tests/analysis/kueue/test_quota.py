"""Whether the quota of a queue is ever large enough, and whether it is now."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.kueue.places import knows_queue, queue_outlook, remarks
from policies.workloads.pods import Owner
from policies.workloads.templates import workload_of
from tests.analysis.kueue.test_places import CATALOG, GPU, KUEUE, LABEL, flavor, local_queue, template, told, world

Raw = dict[str, Any]


def _queue(name: str = "gpus", *, cohort: str = "", reserved: int | None = None, version: str = "v1beta2", **flavors: Raw) -> Raw:
    """One that covers GPUs and CPU. ``flavors``: name -> quota of GPUs; CPU is plenty."""
    every = [{"name": of, "resources": [{"name": GPU, **quota}, {"name": "cpu", "nominalQuota": 10}]} for of, quota in flavors.items()]
    field = {"v1beta2": "cohortName", "v1beta1": "cohort"}[version]
    spec = {"resourceGroups": [{"coveredResources": [GPU, "cpu"], "flavors": every}], "namespaceSelector": {}}
    usage = [{"name": of, "resources": [{"name": GPU, "total": reserved}]} for of in flavors]
    return {
        "apiVersion": KUEUE,
        "kind": "ClusterQueue",
        "metadata": {"name": name},
        "spec": spec | ({field: cohort} if cohort else {}),
        **({} if reserved is None else {"status": {"flavorsReservation": usage}}),
    }


def _job(gpus: int, parallelism: int = 1, cpu: str = "1", **annotations: str) -> Raw:
    inner = template(GPU)
    inner["spec"]["containers"][0]["resources"] = {"limits": {GPU: gpus}, "requests": {"cpu": cpu}}
    metadata = {"name": "train", "labels": {LABEL: "team-a"}, "annotations": annotations}
    spec = {"parallelism": parallelism, "template": inner}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def _told(value: Raw, *queues: Raw, followed: bool = True) -> tuple[str, ...]:
    names = {one["name"] for queue in queues for one in queue["spec"]["resourceGroups"][0]["flavors"]}
    return told(value, world(local_queue(), *queues, *map(flavor, sorted(names)), followed=followed))


EIGHT = {"nominalQuota": 8}


@pytest.mark.parametrize(("gpus", "parallelism", "fits"), [(8, 1, True), (16, 1, False), (2, 4, True), (2, 5, False)])
def test_all_pods_of_a_template_need_quota_in_one_flavor(gpus: int, parallelism: int, *, fits: bool) -> None:
    """Of two flavors the larger one decides."""
    found = _told(_job(gpus, parallelism), _queue(hopper=EIGHT, ampere={"nominalQuota": 4}))
    need = gpus * parallelism
    text = f"queue team-a (gpus) has at most 8 {GPU}, and spec.template requests {need}: it waits forever"
    assert (found == ()) is fits
    assert fits or text in found[0]


def test_a_job_may_run_with_fewer_pods() -> None:
    """Kueue then admits some of them."""
    least = {"kueue.x-k8s.io/job-min-parallelism": "4"}
    assert _told(_job(2, 8, **least), _queue(hopper=EIGHT)) == ()
    assert _told(_job(4, 8, **least), _queue(hopper=EIGHT)) != ()


def test_cpu_and_memory_count_where_they_are_covered() -> None:
    """Amounts are written as authors write them."""
    (text,) = _told(_job(1, cpu="10500m"), _queue(hopper=EIGHT))
    assert "at most 10 cpu, and spec.template requests 10500m" in text


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_a_queue_borrows_from_its_cohort(version: str) -> None:
    """Up to its borrowing limit, and what others lend; of the same flavor."""
    options: Any = {"cohort": "shared", "version": version}
    other = _queue("other", hopper={"nominalQuota": 8, "lendingLimit": 4}, **options)
    elsewhere = _queue("elsewhere", ampere=EIGHT, **options)
    assert _told(_job(12), _queue(hopper=EIGHT, **options), other, elsewhere) == ()
    (text,) = _told(_job(13), _queue(hopper=EIGHT, **options), other, elsewhere)
    assert f"has at most 12 {GPU} with cohort shared" in text
    assert "unless a Cohort object adds quota" in text
    limited = _queue(hopper={"nominalQuota": 8, "borrowingLimit": 2}, **options)
    (text,) = _told(_job(11), limited, other)
    assert f"has at most 10 {GPU}, and" in text


def test_a_cohort_that_is_not_wholly_known_has_no_bound() -> None:
    """Another queue may lend any amount."""
    assert _told(_job(100), _queue(hopper=EIGHT, cohort="shared"), followed=False) == ()


def test_a_queue_that_is_full_now_has_room_later() -> None:
    """Only where it is known what is reserved."""
    (text,) = _told(_job(4), _queue(hopper=EIGHT, reserved=6))
    assert f"has 2 of 8 {GPU} free, and spec.template requests 4: it waits until others end" in text
    assert _told(_job(2), _queue(hopper=EIGHT, reserved=6)) == ()


def test_amounts_that_are_not_known_are_not_judged() -> None:
    """A quota that is no quantity, or none."""
    assert _told(_job(16), _queue(hopper={})) == ()
    assert _told(_job(16), _queue(hopper={"nominalQuota": "many"})) == ()


OUTLOOKS = [(4, 0, "now"), (4, 6, "later"), (16, 0, "never")]


@pytest.mark.parametrize(("gpus", "reserved", "outlook"), OUTLOOKS)
def test_the_outlook_follows_from_the_warnings(gpus: int, reserved: int, outlook: str) -> None:
    """Also whether all of the queue is known."""
    snapshot = world(local_queue(), _queue(hopper=EIGHT, reserved=reserved), flavor("hopper"))
    known = workload_of(CATALOG, "batch/v1", "Job")
    assert known is not None
    owner = Owner(api_version="batch/v1", kind="Job", name="train", namespace="ml", workload=known)
    assert queue_outlook(remarks(_job(gpus), owner, snapshot.facts_for("ml"))) == outlook
    assert knows_queue(_job(gpus), "ml", snapshot.cluster)
    assert not knows_queue(_job(gpus), "other", snapshot.cluster)
