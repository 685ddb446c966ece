"""The words for what keeps a pod off places: made last, of the data that ``of_pods.pending`` gives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from analysis.scan.finding import Obstacle, PlaceReason, Value
from catalog.nearest import list_known
from documents.printable import counted
from kube.scheduling import Blocker

MOST_REASONS = 3
"""Reasons that a sentence has; JSON has all."""
MOST_PLACES = 3
_WANTED: Mapping[str, str] = {
    "In": "is not {values}",
    "NotIn": "is {found}",
    "Exists": "is missing",
    "DoesNotExist": "is present",
    "Gt": "is not above {values}",
    "Lt": "is not below {values}",
}
_UNJUDGED: Mapping[str, str] = {
    "podAffinity": "pod affinity",
    "podAntiAffinity": "pod anti-affinity",
    "topologySpreadConstraints": "topology spread",
    "volumes": "volumes",
    "resourceClaims": "resource claims",
    "schedulingGates": "scheduling gates (a queue may set them)",
    "nodes": "nodes, which were not read",
}


def describe_obstacles(values: Mapping[str, Value]) -> str:
    """Return all reasons as a part of a sentence."""
    reasons = [one for one in values.get("reasons", ()) if isinstance(one, PlaceReason)]  # type: ignore[union-attr]
    shown = [reason(one) for one in reasons[:MOST_REASONS]]
    if len(reasons) > MOST_REASONS:
        shown.append(f"and {len(reasons) - MOST_REASONS} more")
    unjudged = values.get("unjudged", ())
    if isinstance(unjudged, tuple) and unjudged:
        shown.append(f"not checked here: {', '.join(_UNJUDGED.get(str(one), str(one)) for one in unjudged)}")
    return "; ".join(shown) or "no node and no NodePool found"


def reason(one: PlaceReason) -> str:
    """Return one reason: ``NodePool gpu (4 nodes): taint team=ml:NoSchedule is not tolerated``."""
    shown = list_known(one.places, MOST_PLACES)
    nodes = f" ({counted(one.nodes, 'node')})" if one.nodes else ""
    blocked = " and ".join(_each(one.obstacles, there=bool(one.nodes))) or "no blocker found"
    return f"{shown}{nodes}: {blocked}" if shown else blocked


def _each(found: Iterable[Obstacle], *, there: bool) -> list[str]:
    return list(dict.fromkeys(obstacle(one, there=there) for one in found))


def obstacle(one: Obstacle, *, there: bool = True) -> str:
    """Return one obstacle. ``there``: of nodes that exist, not of those that a NodePool may make."""
    need, have = _amount(one.key, one.need), _amount(one.key, one.have)
    match one.kind:
        case "taint":
            value = f"={one.found}" if one.found else ""
            return f"taint {one.key}{value}:{one.operator} is not tolerated"
        case "label":
            if one.found is None and one.operator in ("In", "Gt", "Lt"):
                lacks = "is missing" if there else "is unknown before a node exists"
                return f"label {one.key} {lacks}, required: {' or '.join(one.values)}"
            found = f" ({one.found})" if one.found is not None and one.operator not in ("NotIn", "DoesNotExist") else ""
            wanted = _WANTED.get(one.operator, "is another").format(values=" or ".join(one.values), found=one.found or "missing")
            return f"label {one.key}{found} {wanted}" if one.key else "no required term matches any node"
        case "resource" if one.found:
            return f"one container requests {need} {one.key}, a node has {counted(one.have, 'device')} in {one.found} parts"
        case "resource":
            return f"requests {need} {one.key}, a node has at most {have}" if one.have else f"no node has {one.key}"
        case "capacity":
            return f"requests {need} {one.key}, at most {have} free"
        case "machines":
            if one.values:
                return f"cannot create a node with {one.key} {' or '.join(one.values)}"
            return f"cannot create a node with {need} {one.key}" + (f" (at most {have})" if one.have else "")
        case "limits":
            return f"its limit leaves {have} {one.key}, requested: {need}"
        case "ports":
            return f"host port {one.key} is in use"
        case "missing":
            return f"requests {need} {one.key}, a node offers {have}{lack(one)}"
        case "in-flight":
            return f"Karpenter counts on node {one.key}, which is not initialized, and creates no other"
        case "name":
            return f"requires the node {' or '.join(one.values)}"
    return {"unschedulable": "cordoned", "static": "static, creates no nodes for pods", "not-ready": "not ready"}.get(one.kind, one.kind)


def lack(blocker: Obstacle | Blocker) -> str:
    """Return that a node should have more, and by which label."""
    number = blocker.values[0] if blocker.values else "some"
    return f", although its label {blocker.operator}={blocker.found} says {number} (its device plugin, driver or device fails)"


def _amount(name: str, number: int) -> str:
    if name == "cpu":
        return f"{number / 1000:g}"
    return f"{number / 2**30:.1f}Gi" if name in ("memory", "ephemeral-storage") else str(number)
