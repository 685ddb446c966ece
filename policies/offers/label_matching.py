"""Labels against node selector expressions, where a label may have several possible values
(``catalog.Possible``).

An expression matches if it matches one of the possible values, so that no node that could exist is excluded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from catalog import Possible

ABSENT: Possible = (None,)
NEW: Possible = ("?",)
ANY: Possible = ("*",)


def may_match(possible: Possible, operator: str, values: Sequence[str], known: frozenset[str]) -> bool:
    """Return whether a label with these possible values can satisfy the expression, as kube-scheduler
    evaluates it.

    A missing key satisfies NotIn and DoesNotExist (k8s.io/component-helpers nodeaffinity;
    labels.Requirement).
    """
    match operator:
        case "In":
            return any(
                v in values or v == "*" or (v == "?" and not known.issuperset(values)) or any(_is_one_of(value, v) for value in values)
                for v in possible
                if v is not None
            )
        case "NotIn":
            return any(v is None or v in ("*", "?") or v not in values for v in possible)
        case "Exists":
            return possible != ABSENT
        case "DoesNotExist":
            return None in possible
        case "Gt" | "Lt":
            return any(_compares(v, operator, values) for v in possible if v is not None)
    return False


def covered(value: str, classes: Iterable[Possible]) -> bool:
    """Return whether the value matches a possible value that ends in ``*``, as ``n1-standard-8`` matches
    ``n1-*``."""
    return any(_is_one_of(value, one) for possible in classes for one in possible if one is not None)


def _is_one_of(value: str, many: str) -> bool:
    return len(many) > 1 and many.endswith("*") and value.startswith(many[:-1])


def _compares(value: str, operator: str, values: Sequence[str]) -> bool:
    if value in ("*", "?"):
        return True
    try:
        label, bound = int(value), int(values[0])
    except (ValueError, IndexError):
        return False
    return label > bound if operator == "Gt" else label < bound
