"""One status as it is stored, beside what is found: whether they differ, and the merge patch (RFC 7386) that makes it so."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from cluster.kinds import Raw
from policies.findings import Condition, Finding


def differs(finding: Finding, status: Mapping[str, Any]) -> bool:
    """Whether anything but times is not as it is found. A status that others wrote may hold anything."""
    said = status.get("conditions")
    stored = [_without_time(one) for one in said] if isinstance(said, list) else []
    wanted = [_plain(one, finding.generation) for one in finding.conditions]
    return (
        stored != wanted
        or status.get("observedGeneration") != finding.generation
        or status.get("where") != finding.where
        or status.get("what") != finding.what
        or status.get("lastGood") != _without_nulls(finding.last_good)
    )


def patch(finding: Finding, status: Mapping[str, Any], resource_version: str) -> Raw:
    """For the subresource ``status``. A condition whose status stays keeps the time since when it is so."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    since = _since(status)
    conditions = [
        {**_plain(one, finding.generation), "lastTransitionTime": since.get((one.type, one.status), now)} for one in finding.conditions
    ]
    wanted: Raw = {
        "observedGeneration": finding.generation,
        "conditions": conditions,
        "where": finding.where,
        "what": finding.what,
        "lastGood": _replaced(status.get("lastGood"), _without_nulls(finding.last_good)),
    }
    return {"metadata": {"resourceVersion": resource_version}, "status": wanted}


def written(status: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """(status, reason) by type of condition, as stored."""
    said = status.get("conditions")
    conditions = [one for one in said if isinstance(one, dict)] if isinstance(said, list) else []
    return {str(one.get("type")): (str(one.get("status")), str(one.get("reason"))) for one in conditions}


def _plain(condition: Condition, generation: int) -> Raw:
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "observedGeneration": generation,
    }


def _without_time(stored: object) -> object:
    """None of one that lacks it, or is no condition: equal to nothing that is wanted."""
    if not isinstance(stored, dict) or not isinstance(stored.get("lastTransitionTime"), str):
        return None
    return {name: value for name, value in stored.items() if name != "lastTransitionTime"}


def _since(status: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    said = status.get("conditions")
    conditions = [one for one in said if isinstance(one, dict)] if isinstance(said, list) else []
    found = ((str(one.get("type")), str(one.get("status")), one.get("lastTransitionTime")) for one in conditions)
    return {(kind, value): time for kind, value, time in found if isinstance(time, str) and _is_time(time)}


def _is_time(text: str) -> bool:
    """Whether the API server takes it: else no status could ever be written over a broken one."""
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").year > 1
    except ValueError:
        return False


def _without_nulls(value: Any) -> Any:
    """What a merge patch can say: null takes a name away. A field that is null is, for us, not given."""
    if isinstance(value, Mapping):
        return {name: _without_nulls(one) for name, one in value.items() if one is not None}
    return [_without_nulls(one) for one in value] if isinstance(value, list) else value


def _replaced(stored: object, wanted: object) -> Any:
    """``wanted`` in place of ``stored``: a merge patch goes into maps, so what is to go must be named, with null."""
    if not isinstance(stored, dict) or not isinstance(wanted, Mapping):
        return wanted
    gone = dict.fromkeys(stored.keys() - wanted.keys())
    return gone | {name: _replaced(stored.get(name), value) for name, value in wanted.items()}
