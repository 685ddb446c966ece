"""Holds one verdict of the engine against the reference, part by part."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any

import jsonpatch

from policies.engine import evaluate
from policies.request import Request
from policies.state.snapshot import NamespaceFacts
from policies.verdict import Verdict
from tests.reference import pods
from tests.reference.case import PLACEMENT, Expected
from tests.reference.evaluator import Reference
from tests.reference.nodes import Node, terms_of

Raw = dict[str, Any]


@dataclass(frozen=True)
class Difference:
    phase: str
    part: str
    engine: object
    reference: object

    def __str__(self) -> str:
        return f"{self.phase} {self.part}:\n  engine    {self.engine}\n  reference {self.reference}"


@dataclass(frozen=True)
class Compared:
    """What came out, so that a test can also see that something happened at all."""

    mutated: Verdict
    validated: Verdict
    """of the patched pod, or of a denied one as it came"""
    differences: tuple[Difference, ...]


def patched(pod: Raw, verdict: Verdict) -> Raw:
    """The pod with the verdict's patch, by a library that knows nothing of ours."""
    result: Raw = jsonpatch.apply_patch(copy.deepcopy(pod), copy.deepcopy(list(verdict.patch)))
    return result


def compare(request: Request, facts: NamespaceFacts, reference: Reference) -> Compared:
    """The mutating call, then the validating one on the pod as patched; on a denied pod, the validating one as it came."""
    mutated, expected = evaluate(request, facts), reference.evaluate(request)
    found = list(_codes("mutate", mutated, expected))
    if not found and mutated.is_evaluated and not mutated.violations:
        found += _edits(request, mutated, expected, reference)
    final = patched(request.pod, mutated)
    again = replace(request, phase="validate", pod=final)
    validated = evaluate(again, facts)
    if not found:
        found += _codes("validate", validated, reference.evaluate(again))
    return Compared(mutated, validated, tuple(found))


def _codes(phase: str, verdict: Verdict, expected: Expected) -> Iterator[Difference]:
    if verdict.is_evaluated != expected.judged:
        yield Difference(phase, "judged", verdict.is_evaluated, expected.judged)
    elif verdict.matched != expected.matched:
        yield Difference(phase, "matched", verdict.matched, expected.matched)
    else:
        codes = {_code(v.code, expected) for v in verdict.violations} - {""}
        if codes != expected.codes:
            yield Difference(phase, "denied for", sorted(codes), sorted(expected.codes))


def _code(code: str, expected: Expected) -> str:
    """121, 122 are one; 125 is the engine's right where the reference finds that nobody knows."""
    if code == "BERTH-125" and expected.undecided:
        return ""
    return PLACEMENT if code in ("BERTH-121", "BERTH-122", "BERTH-125") else code


def _edits(request: Request, verdict: Verdict, expected: Expected, reference: Reference) -> Iterator[Difference]:
    final = patched(request.pod, verdict)
    graces = [e.value for e in verdict.edits if e.rule == "checkpoint_grace" and len(e.path) == 2]
    parts: dict[str, tuple[object, object]] = {
        "tolerations": (_added_tolerations(request.pod, final), expected.tolerations),
        "deadline": (next((e.value for e in verdict.edits if e.rule == "max_runtime"), None), expected.deadline),
        "queue": (
            {"scheduler" if e.path[-1] == "schedulerName" else e.path[-1]: e.value for e in verdict.edits if e.rule == "queue"},
            expected.queue,
        ),
        "grace": (graces[0] if graces else None, expected.grace),
        "probes": (sum(e.rule == "checkpoint_grace" and len(e.path) > 2 for e in verdict.edits), expected.probes),
        "protection": ({e.path[-1]: e.value for e in verdict.edits if e.rule == "disruption"}, expected.marks),
    }
    if expected.resources:
        network = {str(e.path[-1]) for e in verdict.edits if e.rule == "network_devices"}  # no pod that is drawn names one itself
        parts["resources"] = (_resources(final, without=network), expected.resources)
    for part, (got, wanted) in parts.items():
        if got != wanted:
            yield Difference("mutate", part, got, wanted)
    for name in expected.inside:
        yield from _lands(name, final, expected, reference)


def _added_tolerations(before: Raw, after: Raw) -> set[tuple[str, str, str | None, str | None]]:
    old = before["spec"].get("tolerations") or []
    new = (after["spec"].get("tolerations") or [])[len(old) :]
    return {(t["key"], t["operator"], t.get("value"), t.get("effect")) for t in new}


def _resources(pod: Raw, without: AbstractSet[str]) -> dict[tuple[str, int, str], Raw]:
    return {
        (field, i, side): {n: v for n, v in pods.Container(raw=container, init=False, sidecar=False).side(side).items() if n not in without}
        for field in ("initContainers", "containers")
        for i, container in enumerate(pod["spec"].get(field) or ())
        for side in pods.SIDES
    }


def _lands(name: str, final: Raw, expected: Expected, reference: Reference) -> Iterator[Difference]:
    count = expected.counts[name]
    selected = reference.world.atlas.selected([term for term in terms_of(final) if not _closed(term)])
    lands = selected.intersection(reference.world.offers(name, count))
    if beyond := lands - expected.at_most[name]:
        yield Difference("mutate", f"{name} may land outside", _shown(beyond), "nothing")
    if short := expected.inside[name] - lands:
        yield Difference("mutate", f"{name} can't land inside", "nothing", _shown(short))


def _closed(term: list[Raw]) -> bool:
    """A term that selects nothing: the same key must be there and must not."""
    there, missing = ({e["key"] for e in term if e["operator"] == operator} for operator in ("Exists", "DoesNotExist"))
    return not there.isdisjoint(missing)


def _shown(nodes: set[Node]) -> object:
    """A few of them."""
    rows = ((n.platform, n.machine_family, n.gpu and n.gpu.model, n.capacity, n.sharing, n.profile) for n in nodes)
    return sorted(rows, key=str)[:4]
