"""Where a workload stands in Kueue, as its Workload says: by types, statuses and reasons of conditions, which are constants
(kueue apis/kueue/v1beta2/workload_types.go). What Kueue says in words is passed on as it stands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

from kube.tree import map_at, maps_in, text_of

State = Literal["unseen", "pending", "reserved", "admitted", "inactive", "finished"]
"""``unseen``: Kueue has made no Workload of it. ``pending``: it waits for quota, or for anything before that. ``reserved``: it has
quota, and waits for admission checks. ``inactive``: Kueue has given it up, or somebody has stopped it."""


class AdmissionCheck(NamedTuple):
    """An admission check that is not ready."""

    name: str
    state: str
    """``Pending``, ``Retry`` or ``Rejected``."""
    message: str


class QueuePosition(NamedTuple):
    """Where one workload stands."""

    state: State
    queue: str
    """The LocalQueue."""
    workload: str = ""
    """The name of Kueue's Workload."""
    cluster_queue: str = ""
    """"" before it has quota."""
    flavors: tuple[str, ...] = ()
    """Those that it has got, sorted."""
    reason: str = ""
    """Of the condition that decides: ``WaitingForQuota``, ``NoMatchingFlavor``, ``Preempted`` ..."""
    message: str = ""
    """What Kueue says of that."""
    evicted: str = ""
    """Why it had to give its quota up, if it had some before: ``Preempted``, ``PodsReadyTimeout`` ..."""
    ready: bool | None = None
    """Whether its pods are ready, as far as Kueue looks at that."""
    checks: tuple[AdmissionCheck, ...] = ()


def read_position(workload: Mapping[str, Any]) -> QueuePosition:
    """Return what a Workload says of itself."""
    spec, status = map_at(workload, "spec"), map_at(workload, "status")
    conditions = {text_of(one.get("type")): one for one in maps_in(status.get("conditions"))}
    evicted = conditions.get("Evicted", {}) if _holds(conditions, "Evicted") else {}
    state, decides = _state(spec, conditions, evicted)
    ready = conditions.get("PodsReady")
    admission = map_at(status, "admission")
    return QueuePosition(
        state=state,
        queue=text_of(spec.get("queueName")),
        workload=text_of(map_at(workload, "metadata").get("name")),
        cluster_queue=text_of(admission.get("clusterQueue")),
        flavors=_flavors(admission),
        reason=text_of(decides.get("reason")),
        message=text_of(decides.get("message")),
        evicted=text_of(evicted.get("reason")),
        ready=None if ready is None else ready.get("status") == "True",
        checks=tuple(_checks(status)) if state in ("pending", "reserved") else (),
    )


def _state(
    spec: Mapping[Any, Any], conditions: Mapping[str, Mapping[Any, Any]], evicted: Mapping[Any, Any]
) -> tuple[State, Mapping[Any, Any]]:
    """Return the state, and the condition that says so."""
    if _holds(conditions, "Finished"):
        return "finished", conditions["Finished"]
    if spec.get("active") is False:
        return "inactive", evicted
    if _holds(conditions, "Admitted"):
        return "admitted", conditions["Admitted"]
    if _holds(conditions, "QuotaReserved"):
        return "reserved", conditions.get("Admitted", {})
    return "pending", conditions.get("QuotaReserved") or evicted


def newest_workload(workloads: Iterable[Mapping[str, Any]], uids: Iterable[object]) -> Mapping[str, Any] | None:
    """Return the Workload of one of these objects: the newest that has not finished, else the newest."""
    wanted = frozenset(uid for uid in uids if isinstance(uid, str) and uid)
    found = [one for one in workloads if any(ref.get("uid") in wanted for ref in maps_in(map_at(one, "metadata").get("ownerReferences")))]
    return max(found, key=_order, default=None)


def _order(workload: Mapping[str, Any]) -> tuple[bool, str]:
    return read_position(workload).state != "finished", text_of(map_at(workload, "metadata").get("creationTimestamp"))


def _holds(conditions: Mapping[str, Mapping[Any, Any]], type_: str) -> bool:
    return conditions.get(type_, {}).get("status") == "True"


def _flavors(admission: Mapping[Any, Any]) -> tuple[str, ...]:
    every = {text_of(name) for one in maps_in(admission.get("podSetAssignments")) for name in map_at(one, "flavors").values()}
    return tuple(sorted(every - {""}))


def _checks(status: Mapping[Any, Any]) -> Iterable[AdmissionCheck]:
    for one in maps_in(status.get("admissionChecks")):
        if (state := text_of(one.get("state"))) != "Ready":
            yield AdmissionCheck(text_of(one.get("name")), state, text_of(one.get("message")))
