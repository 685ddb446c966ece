"""Where a workload stands in Kueue, by the conditions of its Workload."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from analysis.kueue.waiting import AdmissionCheck, State, newest_workload, read_position
from tests.support.counts import count

Raw = dict[str, Any]


def condition(type_: str, *, status: bool = True, reason: str = "R", message: str = "m") -> Raw:
    return {"type": type_, "status": str(status), "reason": reason, "message": message}


def workload(*conditions: Raw, active: bool = True, uid: str = "u", created: str = "2026-11-25T12:00:00Z", **status: Any) -> Raw:
    metadata = {"name": "job-train-1", "creationTimestamp": created, "ownerReferences": [{"uid": uid}]}
    return {"metadata": metadata, "spec": {"queueName": "team-a", "active": active}, "status": {"conditions": list(conditions), **status}}


@pytest.mark.parametrize(
    ("value", "state", "reason"),
    [
        (workload(), "pending", ""),
        (workload(condition("QuotaReserved", status=False, reason="NoMatchingFlavor")), "pending", "NoMatchingFlavor"),
        (workload(condition("QuotaReserved"), condition("Admitted", status=False, reason="NoReservation")), "reserved", "NoReservation"),
        (workload(condition("QuotaReserved")), "reserved", ""),
        (workload(condition("QuotaReserved"), condition("Admitted", reason="Admitted")), "admitted", "Admitted"),
        (workload(condition("Admitted"), condition("Finished", reason="Succeeded")), "finished", "Succeeded"),
        (workload(condition("Evicted", reason="Deactivated"), active=False), "inactive", "Deactivated"),
        (workload(condition("Evicted", reason="Preempted")), "pending", "Preempted"),
        (workload(condition("QuotaReserved", status=False, reason="Pending"), condition("Evicted", status=False)), "pending", "Pending"),
    ],
)
def test_standings(value: Raw, state: State, reason: str) -> None:
    """The condition that decides has the reason."""
    found = read_position(value)
    assert (found.state, found.reason, found.queue) == (state, reason, "team-a")


def test_an_eviction_is_told_beside_what_it_waits_for() -> None:
    """It holds until the workload is admitted once more."""
    found = read_position(
        workload(condition("QuotaReserved", status=False, reason="WaitingForQuota"), condition("Evicted", reason="Preempted"))
    )
    assert (found.state, found.reason, found.evicted) == ("pending", "WaitingForQuota", "Preempted")


def test_what_an_admission_gives() -> None:
    """ClusterQueue and flavors, each flavor once; checks matter until then, and pods from then on."""
    assigned = [{"flavors": {"cpu": "any", "nvidia.com/gpu": "hopper"}}, {"flavors": {"nvidia.com/gpu": "hopper"}}]
    checks = [{"name": "capacity", "state": "Pending", "message": "m"}, {"name": "quota", "state": "Ready"}]
    given: Raw = {"admission": {"clusterQueue": "gpus", "podSetAssignments": assigned}, "admissionChecks": checks}
    reserved = read_position(workload(condition("QuotaReserved"), **given))
    assert (reserved.cluster_queue, reserved.flavors) == ("gpus", ("any", "hopper"))
    assert reserved.checks == (AdmissionCheck("capacity", "Pending", "m"),)
    admitted = read_position(workload(condition("Admitted"), condition("PodsReady", status=False), **given))
    assert (admitted.ready, admitted.checks) == (False, ())


def test_the_newest_that_is_not_done_counts() -> None:
    """Of several Workloads of one object; others' are not looked at."""
    done = workload(condition("Finished"), created="2026-11-25T12:09:00Z")
    first, second = (workload(created=f"2026-11-25T12:0{minute}:00Z") for minute in (1, 2))
    assert newest_workload([first, done, second], ["u"]) is second
    assert newest_workload([done], ["u"]) is done
    assert newest_workload([first], ["v", "", None]) is None


def test_no_content_makes_it_raise() -> None:
    """Whatever stands in a Workload."""
    random = Random(244)
    odd: tuple[Any, ...] = (None, "x", 3, [], {}, [{}], [None], [{"type": "Admitted", "status": "True", "reason": 5}], {"flavors": 3})
    for _ in range(count(200, 5000)):
        names = ("conditions", "admission", "admissionChecks")
        value = {"metadata": random.choice(odd), "spec": random.choice(odd), "status": {name: random.choice(odd) for name in names}}
        assert isinstance(read_position(value).state, str)
        assert newest_workload([value], ["u"]) is None
