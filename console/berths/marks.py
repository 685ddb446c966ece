"""Findings of `berth scan` at the group of nodes, or the NodePool, that each is about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from analysis.scan import wording
from analysis.scan.finding import Finding, Kind
from console.world.view import View

Named = tuple[str, str]
"""What a group of nodes is called, and its name."""
POOL = "NodePool"
MOST = 10
"""Findings of one kind that a page shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """The findings of one kind at one group."""

    kind: Kind
    title: str
    why: str
    advice: str
    """What to type next, of the first of them."""
    facts: Sequence[str]
    """Each: where, what hangs on it, what is so."""
    more: int
    count: int


def marks(view: View) -> Mapping[Named, Sequence[Mark]]:
    """Return the marks of every group that has some, in the order of the report."""
    found: dict[Named, dict[Kind, list[Finding]]] = {}
    for finding in view.findings():
        for group in dict.fromkeys(_about(finding, view)):
            found.setdefault(group, {}).setdefault(finding.kind, []).append(finding)
    return {group: [_mark(kind, each) for kind, each in kinds.items()] for group, kinds in found.items()}


def _about(finding: Finding, view: View) -> Iterator[Named]:
    values = finding.values
    if finding.where.kind == "EC2NodeClass":
        pools = values.get("pools", ())
        yield from ((POOL, str(pool)) for pool in (pools if isinstance(pools, tuple) else ()))
    elif finding.where.kind == "resource":
        offered = view.world.snapshot.cluster.resources
        nodes = view.world.seen.nodes
        yield from (nodes[node].group for node, names in offered.items() if finding.where.name in names and node in nodes)
    elif finding.where.namespace:
        group = values.get("group")
        if isinstance(group, tuple) and len(group) == 2:
            yield str(group[0]), str(group[1])
    else:
        yield finding.where.kind, finding.where.name


def _mark(kind: Kind, findings: Sequence[Finding]) -> Mark:
    return Mark(
        kind=kind,
        title=wording.title(kind),
        why=wording.why(kind),
        advice=wording.advice(findings[0]),
        facts=[f"{wording.describe_subject(one)}{wording.describe_weight(one)}: {wording.fact(one)}" for one in findings[:MOST]],
        more=max(0, len(findings) - MOST),
        count=len(findings),
    )
