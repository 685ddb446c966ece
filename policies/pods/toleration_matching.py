"""Which taints a toleration tolerates, as kube-scheduler and the kubelet read it (v1.Toleration.ToleratesTaint)."""

from __future__ import annotations

import re
from functools import lru_cache

from policies.pods.view import Raw
from policies.policy import TolerationPattern


def covers(kept_tolerations: Raw, wanted: Raw) -> bool:
    """Return whether an existing toleration tolerates all that ``wanted`` does
    (v1.Toleration.ToleratesTaint).

    ``wanted`` is one that Berth writes. A toleration with tolerationSeconds applies only for a while and does
    not cover; nor does one with an unknown operator.
    """
    if kept_tolerations.get("tolerationSeconds") is not None:
        return False
    key, effect = kept_tolerations.get("key") or "", kept_tolerations.get("effect") or ""
    if effect and effect != wanted.get("effect"):
        return False
    if kept_tolerations.get("operator") == "Exists":
        return key in ("", wanted["key"])
    return key == wanted["key"] and wanted["operator"] == "Equal" and _matches_value(kept_tolerations, wanted["value"], unknown=False)


def _matches_value(toleration: Raw, value: str | None, *, unknown: bool) -> bool:
    """Return whether a toleration that is not Exists tolerates a taint's value, or any value if it is None.

    ``unknown`` is the answer for an unknown operator.
    """
    operator, own = toleration.get("operator") or "Equal", toleration.get("value") or ""
    if operator == "Equal":
        return value in (None, own)
    return _compares(operator, own, value) if operator in _RANGES else unknown


_RANGES = ("Gt", "Lt")
"""KEP-5471: the taint's value is compared with the toleration's, both as int64 (k8s.io/api core/v1
toleration.go, 1.36)"""
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}", re.ASCII)
"""the integers that content.IsDecimalInteger of k8s.io/apimachinery accepts, no longer than an int64"""
_INT64 = range(-(2**63), 2**63)


def _compares(operator: str, own: str, value: str | None) -> bool:
    """Return whether the comparison holds. It never does for a value that is no int64; None means the most
    extreme value."""
    bound = _int64(own)
    farthest = _INT64[-1] if operator == "Gt" else _INT64[0]
    found = farthest if value is None else _int64(value)
    if bound is None or found is None:
        return False
    return found > bound if operator == "Gt" else found < bound


@lru_cache(maxsize=4096)
def _int64(text: str) -> int | None:
    return int(text) if _INTEGER.fullmatch(text) and int(text) in _INT64 else None


def tolerates(toleration: Raw, taint: TolerationPattern) -> bool:
    """Return whether a toleration tolerates any taint of the pattern (v1.Toleration.ToleratesTaint).

    An unset value or effect stands for any. A toleration with an unknown operator may tolerate all values.
    """
    key, effect = toleration.get("key") or "", toleration.get("effect") or ""
    if effect and taint.effect and effect != taint.effect:
        return False
    if key not in ("", taint.key):
        return False
    return toleration.get("operator") == "Exists" or _matches_value(toleration, taint.value, unknown=True)
