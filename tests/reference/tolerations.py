"""Kubernetes tolerations, as its documentation says they match taints."""

from __future__ import annotations

from typing import Any

from kube.taints import TolerationPattern

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
    if standing.get("key") != wanted["key"] or wanted["operator"] != "Equal":
        return False
    return number_in(standing, wanted["value"]) if standing.get("operator") in ("Gt", "Lt") else equal(standing, wanted["value"])


def equal(standing: Raw, value: str) -> bool:
    return standing.get("operator") in (None, "", "Equal") and (standing.get("value") or "") == value


def number_in(standing: Raw, value: str) -> bool:
    """Whether a range holds a taint's value; both are written as an int64 is printed."""
    numbers = [int(v) for v in (standing.get("value"), value) if v and v.lstrip("-").isdecimal() and str(int(v)) == v]
    if len(numbers) < 2 or any(abs(n) >= 2**63 for n in numbers):
        return False
    return numbers[1] > numbers[0] if standing["operator"] == "Gt" else numbers[1] < numbers[0]


def grants(grant: TolerationPattern, pattern: TolerationPattern) -> bool:
    return grant.key == pattern.key and grant.value in (None, pattern.value) and grant.effect in (None, pattern.effect)


def tolerates(toleration: Raw, taint: TolerationPattern) -> bool:
    """Whether a toleration tolerates some taint of the pattern, None being any."""
    if toleration.get("effect") and taint.effect and toleration["effect"] != taint.effect:
        return False
    key = toleration.get("key") or ""
    if toleration.get("operator") == "Exists":
        return key in ("", taint.key)
    if key not in ("", taint.key):
        return False
    if toleration.get("operator") in ("Gt", "Lt"):
        return number_in(
            toleration, (str(2**63 - 1) if toleration["operator"] == "Gt" else str(1 - 2**63)) if taint.value is None else taint.value
        )
    known = toleration.get("operator") in (None, "", "Equal")
    return not known or taint.value is None or equal(toleration, taint.value)
