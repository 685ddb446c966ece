"""The sentences of `berth why`: made last, of data; nothing here decides."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from analysis.fixes.smallest import SearchResult
from analysis.scan.obstacles import lack
from analysis.why.explanation import Explanation, PlaceKind, Remedy, RolloutWait
from analysis.why.gates import describe_gates
from catalog.nearest import list_known
from documents import yaml_writer
from documents.printable import counted
from kube.pod import ANNOTATIONS
from kube.requests import COMPUTE, PODS
from kube.scheduling import Blocker
from kube.tree import dotted, pointer
from policies.messages.row import Place
from policies.placement.fleet import Outlook
from policies.verdict import Edit

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
        case "resource" if one.path[:2] == ANNOTATIONS:
            return f"{dotted(one.path)} asks for a part of a GPU; it has no {one.key}"
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
            amount = "room for another pod" if one.key == PODS else format_amount(one.key, one.need)
            return f"creates no machine with {amount}{'' if one.certain else ' that Berth knows'}{_largest(one)}"
        case "limits" if one.have <= 0:
            return f"its limit of {one.key} (spec.limits) is used up, so it creates no machine"
        case "limits":
            machine = f"its smallest machine that fits, {one.found}," if one.found else "a machine"
            return f"its limit leaves {format_amount(one.key, one.have)}; {machine} needs {_bare(one.key, one.need)}"
        case "node-class":
            of_group = f" ({one.key})" if one.key else ""
            return f"Berth does not know which machines its node class{of_group} creates"
        case "static":
            return "has a fixed number of nodes and creates none for pods"
        case "not-ready":
            return "Karpenter does not use it now: it is not ready or is being deleted"
        case "claims":
            return "Karpenter creates no node for a pod with resource claims, unless its support for them (DRA) is switched on"


def _largest(blocker: Blocker) -> str:
    """Return what the machine has that comes nearest."""
    if blocker.key in COMPUTE or blocker.key in ("ephemeral-storage", PODS):
        room = "has no room beside DaemonSets" if blocker.have <= 0 else f"has at most {_bare(blocker.key, blocker.have)} for pods"
        return f"; {blocker.found or 'the nearest'} {room}"
    if blocker.have:
        largest = f"the largest that it may use, {blocker.found}," if blocker.found else "its largest"
        return f"; {largest} has {blocker.have}"
    if blocker.found:
        return f": its cloud reports no {blocker.key} of {blocker.found}"
    return f"; its machines have {', '.join(blocker.values)}" if blocker.values else ""


def blocker_of(explanation: Explanation, place_blocker: Blocker) -> str:
    """Return why a place does not take the pod, with the policies that wrote what is in the way."""
    policies = explanation.requiring(place_blocker)
    return f"{blocker(place_blocker)}{f' (required by {list_some(policies)})' if policies else ''}"


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


def edit(change: Edit, place: Place = dotted) -> str:
    """Return one change. ``place``: how to print its path."""
    path = place(change.path[:-1] if change.path[-1] == "-" else change.path)
    if change.op == "remove":
        return f"- {path}"
    return f"{'+' if change.op == 'add' else '~'} {path}: {show_value(change.value)}"


def steps(remedy: Remedy) -> Iterator[str]:
    """Yield each change of a remedy."""
    yield from (edit(change, remedy.place) for change in remedy.edits)
    yield from map(edit, remedy.edits_beside)


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
            gates = f", gated by {list_some(describe_gates(explanation.gates))}" if explanation.gates else ""
            is_ = f"Pending, created {since(explanation.since, now)}{gates}"
        case "denied":
            is_ = "it is denied" if explanation.is_pod else "its pods are denied"
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
    if remedy.new_nodes:
        yield f"It then fits new nodes of NodePool {list_some(remedy.new_nodes)}; Karpenter creates none for a DaemonSet."
    fix = remedy.found.fix
    if not (remedy.runs_on or remedy.new_nodes or remedy.buys or remedy.admits) and fix is not None and fix.place is not None:
        yield "It then waits for a node that lacks its devices now. To find the cause: berth scan"
    for pool, machines in remedy.buys.items():
        name, usd = machines[0] if machines else ("a machine", None)
        price = "" if usd is None else f" ({usd:.2f} USD per hour on demand)"
        cheapest = f", the cheapest known of {len(machines)}" if usd is not None else f" or {counted(len(machines) - 1, 'other machine')}"
        others = cheapest if len(machines) > 1 else ""
        yield f"Karpenter may then create {name}{price}{others}, by NodePool {pool}."
        if pods > 1 and usd is not None:
            yield f"With a machine for each of its {pods} pods that is {usd * pods:.2f} USD per hour."


def rollout_lines(wait: RolloutWait, namespace: str, file: str) -> Iterator[str]:
    """Yield why a new pod of a rolling update waits, and what to type. ``file``: where the Deployment is not applied yet."""
    hold = "holds" if len(wait.holders) == 1 else "hold"
    begin = "It starts" if file else "It is a new pod of"
    yield (
        f"{begin} a rolling update: Deployment {wait.deployment} ends no old pod before a new one is ready (maxSurge "
        f"{wait.surge}, maxUnavailable 0), and {list_some(wait.holders)} of the same Deployment {hold} the {wait.resource} that "
        "it waits for."
    )
    if wait.owner or file:
        where = f"{wait.owner}, which writes the Deployment" if wait.owner else file
        yield f"To end an old pod first: set spec.strategy.rollingUpdate to maxSurge: 0 and maxUnavailable: 1 in {where}."
    else:
        change = '{"spec":{"strategy":{"rollingUpdate":{"maxSurge":0,"maxUnavailable":1}}}}'
        yield f"To end an old pod first: kubectl patch deployment {wait.deployment} -n {namespace} -p '{change}'"


def no_change(outlook: Outlook | None, result: SearchResult) -> str:
    """Return what it means that no change of a pod was found."""
    if result.refused:
        return "A change by which a node takes it exists, but a LimitRange or ResourceQuota of its namespace then denies it."
    if outlook == "unknown":
        return "No change to it is known to fix that: what is unknown decides."
    return "No change to it fixes that: no toleration, and no other label, resource name or smaller amount helps."


def absent_resources(remedy: Remedy) -> str:
    """Return which resources alone keep the pod off a node that does not offer them; "" if none do."""
    if not remedy.absent:
        return ""
    node, names = remedy.absent
    return f"Node {node} lacks only {' and '.join(names)}: a pod that does not request it would fit there."


def template_lines(explanation: Explanation) -> Iterator[str]:
    """Yield which of several pod templates is explained, and which others cannot run either."""
    if not explanation.template:
        return
    yield f"This is about the pods of {dotted(explanation.template)}: of its templates, they are the hardest to place."
    if explanation.other_templates:
        others = list_some(map(dotted, explanation.other_templates))
        yield f"Pods of {others} can never be scheduled as written either; after this fix, run the command again."


OUTCOMES: Mapping[str | None, str] = {
    None: "nodes are unknown",
    "now": "no blocker found",
    "later": "waits",
    "unknown": "unknown",
    "never": "can never be scheduled as written",
    "denied": "denied",
}
"""What comes of another workload of a file, in short."""


def other_workloads(explanation: Explanation, command: str) -> Iterator[str]:
    """Yield the other workloads of the file, and what to type for each. ``command``: Berth's name."""
    if not explanation.beside:
        return
    yield f"Other workloads in {explanation.file}, each checked as if it were alone:"
    for title, outcome in explanation.beside.items():
        typed = "" if " " in title else f"; {command} why {title} -f {explanation.file}"
        yield f"  {title}: {OUTCOMES[outcome]}{typed}"


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
