"""Remarks on the labels that an author wrote: an unknown value, a label that nodes get too late,
preferences that no longer count."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from catalog.nearest import nearest, of_model
from policies.messages import Phrase, phrase
from policies.planning import requirement_words
from policies.planning.expressible import sayable
from policies.planning.feasibility import AuthorExpression, Cell, list_bracketed
from policies.planning.plan import Plan
from policies.rules.node_affinity import denials
from policies.verdict import Remark

RULE = "node_affinity"
MOST_UNKNOWN = 20
"""The most unknown values of one pod that are reported, each with the nearest known one: an answer holds
some twenty warnings."""
MOST_KNOWN = 20
"""The most values of a key of which some are shown if none is near: names of GPUs, and not the hundreds of
types and products."""


def unknown(plan: Plan) -> Iterator[Remark]:
    """Yield a remark for every value that no table knows, as far as an answer holds them."""
    undecided = ((cell, authored) for cell in plan.space.cells for authored in cell.undecided)
    for cell, authored in islice(undecided, MOST_UNKNOWN):
        yield Remark(code="BERTH-201", found=_unknown(plan, cell, authored), rule=RULE, path=requirement_words.place_of_label(authored))


def _unknown(plan: Plan, cell: Cell, authored: AuthorExpression) -> Phrase:
    """With, where a machine is new to everybody, by what its nodes will be known to be what is required."""
    platform, unknown = cell.table.platform, unknown_value(plan, cell, authored)
    if platform.labels.get(authored.key) != "type" or plan.actor.affinity != "write" or not plan.snapshot.placed:
        return unknown
    key = next((e.key for e in sayable(plan, cell, "machine").rendering.expressions if e.key in platform.after_boot), None)
    if key is None:
        return unknown
    asked = denials.join_phrases([c for c in plan.constraints if c.axis == "machine"])
    return phrase("held", unknown=unknown, demands=asked, label=key)


def unknown_value(plan: Plan, cell: Cell, authored: AuthorExpression) -> Phrase:
    """Return the value that no table knows, with the nearest known one: of the vendors asked for, and of
    no other model."""
    value = next(v for v in authored.values if not cell.table.knows(authored.key, v))
    author: dict[str, object] = {"where": requirement_words.author_path(authored), "key": authored.written, "value": value}
    cloud = next((m.cloud for m in plan.snapshot.catalog.machines if m.type is not None and m.type == value), None)
    if cloud is not None and cloud not in {table.platform.cloud for table in plan.snapshot.tables.values()}:
        return phrase("cloud", **author, cloud=cloud, platforms=tuple(plan.snapshot.tables))
    known, codes = _offered_values(plan, authored.key), plan.snapshot.catalog.codes
    near = nearest(value, known, codes)
    if near:
        return phrase("near", **author, near=near)
    shown = of_model(value, known, codes) or sorted(known if len(known) <= MOST_KNOWN else ())
    return phrase("known", **author, known=list_bracketed(shown, 8)) if shown else phrase("new", **author)


def _offered_values(plan: Plan, key: str) -> frozenset[str]:
    """Return the label values that nodes with devices of the pod's vendors may have, whole and unshared."""
    schemes = plan.snapshot.catalog.schemes.values()
    suffixes = {v.suffix.partition("{profile}")[0] for scheme in schemes for v in scheme.variants} - {""}
    found: set[str] = set()
    for table in plan.snapshot.tables.values():
        rows = table.of_vendors(tuple(plan.space.wanted)) or table.all
        found.update(v for possible, of_value in table.values.get(key, {}).items() if of_value & rows for v in possible if v)
    return frozenset(v for v in found if v != "?" and not v.endswith("*") and not any(suffix in v for suffix in suffixes))


def preferred(plan: Plan) -> Iterator[Remark]:
    """Yield a warning if no preferred term is inside what is required. Preferred terms are never edited."""
    for table in plan.snapshot.tables.values():
        for term in plan.pod.preferred:
            rows = table.all
            for e in (term.get("preference") or {}).get("matchExpressions") or ():
                key = str(e.get("key", ""))
                key = plan.snapshot.catalog.label_aliases.get(key, key)
                rows &= table.select(key, str(e.get("operator", "")), tuple(str(v) for v in e.get("values") or ()))[0]
            if rows & plan.required:
                return
    yield Remark(code="BERTH-214", found=phrase("text"), rule=RULE)


def after_boot(plan: Plan) -> Iterator[Remark]:
    """Yield a remark for a label that a platform's nodes get only once they run, so that no node is
    created for it."""
    for cell in plan.space.cells:
        platform = cell.table.platform
        new = any(
            platform.labels.get(authored.key) == "type" for authored in cell.undecided
        )  # of a machine that nobody knows it is the only word
        for authored in cell.term.expressions:
            if (
                not new
                and authored.key in platform.after_boot
                and authored.operator in ("In", "Exists", "Gt", "Lt")
                and platform.creates_nodes
                and plan.snapshot.placed
            ):
                other = platform.machine_keys[0][0]
                found = phrase("text", where=requirement_words.author_path(authored), key=authored.key, platform=platform.name, other=other)
                yield Remark(code="BERTH-206", found=found, rule=RULE)
