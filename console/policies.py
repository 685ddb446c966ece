"""The pages "Policies": the list, one policy, and the effective policy of one namespace."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from analysis.audit.ledger import PolicyTotals
from analysis.conditions import ObjectStatus
from analysis.conditions.conditions import Condition
from analysis.conditions.words import acting_instead
from analysis.effective.effective import Effective, effective, reach
from analysis.effective.effective_probe import PodKind, known_as, workload_named
from catalog.nearest import hint
from console.server.page import NotShown, Page, Visit
from console.server.query import LONGEST_NAME, QueryError, paged
from console.world.derived import Derived
from console.world.view import View
from documents import yaml_writer
from policies.lru import LruCache
from policies.policy import API_VERSION
from policies.state.objects import ObjectEntry, id_of
from policies.state.snapshot import Snapshot

TOLD = ("Conflicted", "Clipped", "Inexpressible", "QuotaNotCovered", "AdvertisedTwice", "Stalled")
"""Conditions that name a problem while they are True."""
MOST_GPUS = 4096
BYTES = 64 * 2**10
"""Of one answer: some hundred rows."""
_ANSWERS: Derived[Snapshot, LruCache[Effective]] = Derived(lambda _snapshot: LruCache(128 * BYTES))
SECTIONS = (
    ("require", "Required for every pod"),
    ("default", "Defaults for fields that a pod does not set"),
    ("allow", "Choices allowed to teams and authors"),
)


def policies(visit: Visit) -> Page:
    """All policies and node templates: those with problems first."""
    view = visit.view
    totals = view.world.ledger.totals() if view.scope.pods.every else {}
    lines = []
    for entry in view.entries():
        id_, status = id_of(entry.key), view.world.conditions.get(entry.key)
        pods = None if entry.kind == "GPUNodeTemplate" else _pods(id_, totals, view)
        lines.append((id_, status, problems(status), pods))
    lines.sort(key=lambda line: (not line[2], line[0]))
    shown = paged(lines, visit.query, "/policies")
    values = {"paged": shown, "namespaces": _namespaces(view), "hidden": len(view.world.entries) - len(lines)}
    return Page(template="policies.html", title="Policies", values=values)


def _pods(id_: str, totals: Mapping[str, PolicyTotals], view: View) -> int:
    """Return the pods that a policy is for, of those that may be listed."""
    if view.scope.pods.every:
        return totals[id_].pods if id_ in totals else 0
    return sum(count.pods for count in view.counted(id_).values())


def problems(finding: ObjectStatus | None) -> Sequence[Condition]:
    """Return the conditions of which somebody should know."""
    if finding is None:
        return ()
    return [one for one in finding.conditions if (one.type in TOLD) == (one.status == "True") and one.type in (*TOLD, "Accepted")]


def policy(visit: Visit) -> Page:
    """One policy or node template."""
    view, name = visit.view, visit.query.text("name")
    entry = next((one for one in view.entries() if id_of(one.key) == name), None)
    if entry is None:
        raise NotShown("This policy does not exist, or you may not list it. See the page Policies.")
    finding = view.world.conditions.get(entry.key)
    total = view.world.ledger.totals().get(name)
    values = {
        "entry": entry,
        "id": name,
        "mode_name": view.world.modes.get(name, ""),
        "finding": finding,
        "problems": problems(finding),
        "instead": acting_instead(entry) if entry.understood.errors else "",
        "total": total if view.scope.pods.every else None,
        "text": _manifest(entry),
        "namespaces": [entry.namespace] if entry.namespace else _namespaces(view),
    }
    return Page(template="policy.html", title=name, values=values)


def _manifest(entry: ObjectEntry) -> str:
    metadata = {"name": entry.name, **({"namespace": entry.namespace} if entry.namespace else {})}
    spec = json.loads(entry.spec) if entry.spec else None
    return yaml_writer.write_yaml({"apiVersion": API_VERSION, "kind": entry.kind, "metadata": metadata, "spec": spec})


def _namespaces(view: View) -> Sequence[str]:
    """Return the namespaces of which the answer may be seen, those with pods."""
    return [one for one in view.namespaces() if one in view.scope.own_policies] if view.scope.cluster_policies else []


def namespace(visit: Visit) -> Page:
    """What all policies make of GPU pods of one namespace, field by field."""
    view, query = visit.view, visit.query
    name = query.name("namespace")
    known = view.world.snapshot.cluster.namespaces
    if not view.scope.cluster_policies or name not in view.scope.own_policies:
        raise NotShown(
            'To see the effective policy of a namespace, ask for the ClusterRole berth-guardrails-view and the role "view" there.'
        )
    if known and name not in known:
        raise NotShown(f'Namespace "{name}" does not exist{hint(name, known)}.')
    kind = PodKind(workload=_workload(visit), gpus=_gpus(query.text("gpus")))
    answer = _effective(view.world.snapshot, name, kind)
    by_section = {section: [row for row in answer.look.rows if row.section == section] for section, _ in SECTIONS}
    values = {
        "answer": answer,
        "name": name,
        "sections": [(title, by_section[section]) for section, title in SECTIONS if by_section[section]],
        "reach": {one.policy.id: reach(one) for one in answer.policies},
        "workload": query.text("workload"),
        "gpus": query.text("gpus"),
    }
    return Page(template="policies_namespace.html", title=f"Effective policy in {name}", values=values)


def _effective(snapshot: Snapshot, name: str, kind: PodKind) -> Effective:
    """Return the answer, which takes some milliseconds for each policy in Audit."""
    known = _ANSWERS.of(snapshot)
    found = known.get((name, kind))
    if found is None:
        found = effective(snapshot.facts_for(name), kind)
        known.keep((name, kind), found, BYTES)
    return found


def _workload(visit: Visit) -> str | None:
    name, catalog = visit.query.text("workload").strip(), visit.view.world.snapshot.catalog
    if not name:
        return None
    if len(name) > LONGEST_NAME or workload_named(name, catalog) is None:
        raise QueryError(f"workload must be a kind such as Job{hint(name[:LONGEST_NAME], [w.name for w in catalog.workloads])}")
    return name if name in known_as(name, catalog) or not known_as(name, catalog) else known_as(name, catalog)[0]


def _gpus(text: str) -> int | None:
    text = text.strip()
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 6 and 1 <= int(text) <= MOST_GPUS):
        raise QueryError(f"gpus must be a whole number from 1 to {MOST_GPUS}")
    return int(text)
