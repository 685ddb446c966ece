"""The comparison of a stored status with a finding, and the merge patch (RFC 7386) from one to the other."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from analysis.conditions import ObjectStatus
from analysis.conditions.conditions import Condition
from cluster.client.errors import Reply
from kube.tree import Raw, map_at, maps_in


def stored_version(reply: Reply) -> str:
    """Return the resourceVersion of the object in an answer."""
    return str(map_at(reply.body, "metadata").get("resourceVersion", ""))


def differs(finding: ObjectStatus, status: Mapping[str, Any]) -> bool:
    """Return whether the stored status differs from the finding in anything but times.

    A status that others wrote may hold anything.
    """
    given = status.get("conditions")
    stored = [_without_time(one) for one in given] if isinstance(given, list) else []
    wanted = [_plain(one, finding.generation) for one in finding.conditions]
    return (
        stored != wanted
        or status.get("observedGeneration") != finding.generation
        or status.get("mode") != finding.mode
        or status.get("server") != finding.server
        or status.get("where") != finding.where
        or status.get("what") != finding.what
        or status.get("lastGood") != _without_nulls(finding.last_good)
    )


def patch(finding: ObjectStatus, status: Mapping[str, Any], resource_version: str) -> Raw:
    """Return the merge patch of the ``status`` subresource.

    A condition whose status stays the same keeps its lastTransitionTime.
    """
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    since = _since(status)
    conditions = [
        {**_plain(one, finding.generation), "lastTransitionTime": since.get((one.type, one.status), now)} for one in finding.conditions
    ]
    wanted: Raw = {
        "observedGeneration": finding.generation,
        "conditions": conditions,
        "mode": finding.mode,
        "server": finding.server,
        "where": finding.where,
        "what": finding.what,
        "lastGood": _replaced(status.get("lastGood"), _without_nulls(finding.last_good)),
    }
    return {"metadata": {"resourceVersion": resource_version}, "status": wanted}


def stored_conditions(status: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return (status, reason) of each stored condition, by type."""
    conditions = maps_in(status.get("conditions"))
    return {str(stored.get("type")): (str(stored.get("status")), str(stored.get("reason"))) for stored in conditions}


def _plain(condition: Condition, generation: int) -> Raw:
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "observedGeneration": generation,
    }


def _without_time(stored: object) -> object:
    """Return a condition without lastTransitionTime; None, which equals no wanted condition, if it has
    none."""
    if not isinstance(stored, dict) or not isinstance(stored.get("lastTransitionTime"), str):
        return None
    return {name: value for name, value in stored.items() if name != "lastTransitionTime"}


def _since(status: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    conditions = maps_in(status.get("conditions"))
    times = ((str(stored.get("type")), str(stored.get("status")), stored.get("lastTransitionTime")) for stored in conditions)
    return {(kind, value): time for kind, value, time in times if isinstance(time, str) and _is_time(time)}


def _is_time(text: str) -> bool:
    """Return whether the API server accepts the time; a malformed one must not prevent all later writes."""
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").year > 1
    except ValueError:
        return False


def _without_nulls(value: Any) -> Any:
    """Return the value without null fields, which Berth reads as absent and a merge patch would remove."""
    if isinstance(value, Mapping):
        return {name: _without_nulls(one) for name, one in value.items() if one is not None}
    return [_without_nulls(one) for one in value] if isinstance(value, list) else value


def _replaced(stored: object, wanted: object) -> Any:
    """Return the merge patch from ``stored`` to ``wanted``: maps are merged, so fields to remove are given as
    null."""
    if not isinstance(stored, dict) or not isinstance(wanted, Mapping):
        return wanted
    gone = dict.fromkeys(stored.keys() - wanted.keys())
    return gone | {name: _replaced(stored.get(name), value) for name, value in wanted.items()}
