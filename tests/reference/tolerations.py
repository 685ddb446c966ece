"""Kubernetes tolerations, as its documentation says they match taints."""

from __future__ import annotations

from typing import Any

from policies.policy import TolerationPattern

Raw = dict[str, Any]


def toleration(key: str, value: str | None, effect: str | None) -> Raw:
    out: Raw = {"key": key, "operator": "Exists" if value is None else "Equal"}
    if value is not None:
        out["value"] = value
    return out | ({"effect": effect} if effect else {})


def covers(standing: Raw, wanted: Raw) -> bool:
    """Whether a standing toleration does all that the wanted one would, for ever."""
    if standing.get("tolerationSeconds") is not None or standing.get("effect") not in (None, "", wanted.get("effect")):
        return False
    if standing.get("operator") == "Exists":
        return standing.get("key") in (None, "", wanted["key"])
    same = standing.get("key") == wanted["key"]
    return bool(same and wanted["operator"] == "Equal" and (standing.get("value") or "") == wanted["value"])


def grants(grant: TolerationPattern, pattern: TolerationPattern) -> bool:
    return grant.key == pattern.key and grant.value in (None, pattern.value) and grant.effect in (None, pattern.effect)


def tolerates(toleration: Raw, taint: TolerationPattern) -> bool:
    """Whether a toleration tolerates some taint of the pattern, None being any."""
    if toleration.get("effect") and taint.effect and toleration["effect"] != taint.effect:
        return False
    key = toleration.get("key") or ""
    if toleration.get("operator") == "Exists":
        return key in ("", taint.key)
    return key == taint.key and taint.value in (None, toleration.get("value") or "")
