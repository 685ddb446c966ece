"""The sentences of `berth why`: made last, of data; nothing here decides."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from analysis.scan.obstacles import lack
from analysis.why.explanation import Explanation, PlaceKind, Remedy
from catalog.nearest import list_known
from documents import yaml_writer
from documents.printable import counted
from kube.scheduling import Blocker
from kube.tree import dotted, pointer
from policies.verdict import Edit

UNJUDGED = {
    "podAffinity": "affinity to other pods",
    "podAntiAffinity": "anti-affinity to other pods",
    "topologySpreadConstraints": "topology spread",
    "volumes": "volumes",
    "resourceClaims": "resource claims",
    "schedulingGates": "scheduling gates",
}
THEN = {
    "later": "It then waits until a node is free: all nodes that can run it are full now.",
    "never": "It still can never be scheduled as written: this change only fixes what policies deny.",
    "unknown": "It is unknown whether it can be scheduled then.",
}
"""What becomes of a pod that policies admit with a change."""
MOST_NAMES = 3
_MOST_VALUE = 160
_FLOW = frozenset("{}[],#\n")
"""Characters that end a plain text within a map on one line."""


def blocker(one: Blocker) -> str:
    """Return why a place does not take the pod."""
    match one.kind:
        case "taint":
            value = f"={one.found}" if one.found else ""
            ends = ", which may be removed automatically" if one.passing else ""
            return f"taint {one.key}{value}:{one.operator} is not tolerated{ends}"
        case "label" if not one.key:
            return "none of its required node affinity terms can match"
        case "label":
            has = "has no such label" if one.found is None else f"has {one.found}"
            return f"label {condition(one)} is required; it {has}"
        case "name":
            return "the pod names another node"
        case "resource" if one.found:
            parts = f"{counted(one.have, 'device')} in {one.found} parts"
            return f"{format_amount(one.key, one.need)} requested by one container; the node has {parts}"
        case "resource":
            broken = "; its devices are unhealthy or not ready yet" if one.passing else ""
            return f"{format_amount(one.key, one.need)} requested; it has {_bare(one.key, one.have)}{broken}"
        case "capacity":
            return f"{format_amount(one.key, one.need)} requested; {_bare(one.key, max(0, one.have))} free now"
        case "missing":
            return f"{format_amount(one.key, one.need)} requested; it offers {_bare(one.key, one.have)}{lack(one)}"
        case "in-flight":
            return f"Karpenter counts on node {one.key}, which is not initialized, and creates no other node for this pod"
        case "ports":
            return f"host port {one.key} is in use"
        case "unschedulable":
            return "cordoned"
        case "machines" if one.operator:
            return f"creates no machine with {condition(one)}{'' if one.certain else ' that Berth knows'}"
        case "machines":
            most = f"; its largest has {one.have}" if one.have else ""
            return f"creates no machine with {format_amount(one.key, one.need)}{'' if one.certain else ' that Berth knows'}{most}"
        case "limits":
            return f"its limits leave {_bare(one.key, max(0, one.have))} {one.key}; a machine needs {_bare(one.key, one.need)}"
        case "static":
            return "has a fixed number of nodes and creates none for pods"
        case "not-ready":
            return "Karpenter does not use it now: it is not ready or is being deleted"


def lacking_node(explanation: Explanation) -> str:
    """Return the first node that only lacks devices which it should have; "" if there is none."""
    lacking = (
        place
        for place in explanation.where
        if not place.pool and place.blockers and all(blocker.kind == "missing" for blocker, _ in place.blockers)
    )
    return next((place.names[0] for place in lacking), "")


def condition(one: Blocker) -> str:
    """Return an expression, as ``kubectl -l`` writes it."""
    values = ", ".join(one.values)
    match one.operator:
        case "In":
            return f"{one.key}={values}" if len(one.values) == 1 else f"{one.key} in ({values})"
        case "NotIn":
            return f"{one.key} notin ({values})"
        case "DoesNotExist":
            return f"!{one.key}"
        case "Gt" | "Lt":
            return f"{one.key} {'>' if one.operator == 'Gt' else '<'} {values}"
    return one.key


def format_amount(name: str, value: int) -> str:
    """Return ``8 nvidia.com/gpu``, ``16 cpu``, ``32Gi memory``."""
    return f"{_bare(name, value)} {name}"


def _bare(name: str, value: int) -> str:
    if name == "cpu":
        return str(value // 1000) if value % 1000 == 0 else f"{value}m"
    if name in ("memory", "ephemeral-storage") or name.startswith("hugepages-"):
        for unit, size in (("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10)):
            if value and value % size == 0:
                return f"{value // size}{unit}"
            if value >= 10 * size:
                return f"{value / size:.1f}{unit}"
    return str(value)


def edit(change: Edit) -> str:
    """Return one change."""
    path = dotted(change.path[:-1] if change.path[-1] == "-" else change.path)
    if change.op == "remove":
        return f"- {path}"
    return f"{'+' if change.op == 'add' else '~'} {path}: {show_value(change.value)}"


def show_value(value: Any) -> str:
    """Return a value on one line, as YAML writes it in one."""
    if isinstance(value, Mapping):
        text = "{" + ", ".join(f"{key}: {show_value(one)}" for key, one in value.items()) + "}"
    elif isinstance(value, list):
        text = "[" + ", ".join(map(show_value, value)) + "]"
    elif isinstance(value, str) and not _FLOW.isdisjoint(value):
        text = json.dumps(value)
    else:
        text = yaml_writer.scalar(value)
    return text if len(text) <= _MOST_VALUE else text[: _MOST_VALUE - 3] + "..."


def patch(edits: tuple[Edit, ...]) -> list[dict[str, Any]]:
    """Return edits as RFC 6902 operations."""
    return [{"op": edit.op, "path": pointer(edit.path)} | ({} if edit.op == "remove" else {"value": edit.value}) for edit in edits]


def state(explanation: Explanation, now: datetime) -> str:
    """Return what it is, where, and since when, in one sentence."""
    about = f" ({explanation.pod})" if explanation.pod and not explanation.title.endswith(f"/{explanation.pod}") else ""
    pods = f"; its pods: {_counted(explanation.phases)}" if sum(explanation.phases.values()) > 1 else ""
    match explanation.state:
        case "pending":
            gates = f", gated by {list_some(explanation.gates)}" if explanation.gates else ""
            is_ = f"Pending, created {since(explanation.since, now)}{gates}"
        case "denied":
            is_ = "its pods are denied"
        case "admitted":
            phase = f", {next(iter(explanation.phases))}" if len(explanation.phases) == 1 else ""
            is_ = f"on node {explanation.node}{phase}" if explanation.node else f"has finished{phase}"
        case "waiting":
            is_ = (
                "is suspended and creates no pods until it is resumed" if explanation.suspended else "has no pods yet, and none was denied"
            )
        case _:
            is_ = "not created"
    return f"{explanation.title} in namespace {explanation.namespace}: {is_}{about}{pods}."


def comes_to(remedy: Remedy, pods: int = 1) -> Iterator[str]:
    """Yield what policies and places do with the change, and what Karpenter may buy for it. ``pods``: how many such pods there are."""
    if remedy.admits:
        yield "Policies then admit it."
        if remedy.found.then is not None and (words := THEN.get(remedy.found.then)):
            yield words
    if remedy.runs_on:
        yield f"It then fits {list_some(remedy.runs_on)}."
    fix = remedy.found.fix
    if not (remedy.runs_on or remedy.buys or remedy.admits) and fix is not None and fix.place is not None:
        yield "It then waits for a node that lacks its devices now. To find the cause: berth scan"
    for pool, machines in remedy.buys.items():
        name, usd = machines[0] if machines else ("a machine", None)
        price = "" if usd is None else f" ({usd:.2f} USD per hour on demand)"
        others = f", the cheapest known of {len(machines)}" if len(machines) > 1 else ""
        yield f"Karpenter may then create {name}{price}{others}, by NodePool {pool}."
        if pods > 1 and usd is not None:
            yield f"With a machine for each of its {pods} pods that is {usd * pods:.2f} USD per hour."


def describe_place(place: PlaceKind) -> str:
    """Return what a place is called."""
    if place.pool:
        return f"NodePool {place.title}"
    kind = f" ({place.title})" if place.title else ""
    return f"{counted(len(place.names), 'node')} {list_some(place.names)}{kind}"


def since(text_: str, now: datetime) -> str:
    """Return how long ago a time of the API server was: ``14m ago``."""
    try:
        then = datetime.fromisoformat(text_)
    except ValueError:
        return text_ or "an unknown time"
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    seconds = max(0, int((now - then).total_seconds()))
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit} ago"
    return f"{seconds}s ago"


def _counted(phases: dict[str, int] | Counter[str] | object) -> str:
    counted = Counter(phases) if isinstance(phases, dict) else Counter()
    return ", ".join(f"{count} {phase}" for phase, count in sorted(counted.items()))


def list_some(names: Iterable[str]) -> str:
    """Return three or four names, and how many more there are: never ``and 1 more``."""
    every = list(names)
    return list_known(every, MOST_NAMES if len(every) > MOST_NAMES + 1 else len(every))
