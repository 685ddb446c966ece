"""Golden cases: one YAML file is one pod under some policies, and what must come of it, written out.

A case file has two parts. Above ``expect:`` is the input, all of it optional but ``why``, ``policies`` and ``pod`` (or
``review``); ``GIVEN`` holds what stands for the rest. Under ``expect:`` is the outcome; empty parts are left out:

    edits       what /mutate writes: op, path (JSON pointer, as a patch has it), value, rule, by (the policies)
    patch       the whole patch, where a case is about that
    violations  why it is refused: the sentences as the author reads them
    remarks     what is said beside
    would       per Audit or Warn policy, what Enforce would add: edits, violations, remarks
    validate    what /validate refuses on the pod as edited, where it is not admitted
    unmatched   true where no policy is for the pod
    uncounted   Audit and Warn policies past the sixteenth
    unjudged    true for a pod that Berth has nothing to do with
    bad         the sentence for a review that can't be judged
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import jsonpatch
import yaml

from documents.files import SHIPPED_CATALOG, read_documents, read_policies
from policies.catalog import Catalog
from policies.catalog.parse import from_mappings
from policies.document import Document
from policies.engine import evaluate
from policies.messages import OF_EDITS
from policies.objects.parse import parse_objects
from policies.patch.json_patch import pointer
from policies.policy import API_VERSION, PolicySet
from policies.request import Request
from policies.state.cluster_facts import ClusterFacts
from policies.state.snapshot import Facts
from policies.verdict import Edit, Verdict
from tests.support import snapshots
from webhook.admission.review import ReviewError, from_document

TESTS = Path(__file__).parents[2]
CASES = TESTS / "cases"
REVIEWS = TESTS / "reviews"
LIBRARY = TESTS.parent / "policies" / "library"
MARK = "\nexpect:"
GIVEN: Mapping[str, Any] = {
    "platforms": ["karpenter-aws"], "migStrategy": "mixed", "queues": [], "maxMode": "Enforce", "catalog": [], "facts": [],
    "namespace": "ml", "user": "alice", "groups": [], "subresource": "",
    "phase": "mutate", "operation": "CREATE", "oldPod": None, "pod": None, "review": None,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One file, read."""

    path: Path
    given: Mapping[str, Any]
    expected: Mapping[str, Any]

    @property
    def name(self) -> str:
        """``node_affinity/an-empty-term-is-left-alone``."""
        return str(self.path.relative_to(CASES).with_suffix(""))

    def facts(self, namespace: str) -> Facts:
        given = self.given
        catalog = catalog_with(json.dumps(given["catalog"]))
        built = snapshots.build(
            policies_of(given["policies"], catalog),
            catalog,
            platforms=given["platforms"],
            mig_strategy=given["migStrategy"],
            queues=given["queues"],
            max_mode=given["maxMode"],
            cluster=ClusterFacts.from_objects(given["facts"]),
        )
        return built.facts_for(namespace)

    def request(self) -> Request:
        """The request; raises ReviewError where the recorded review is none that can be judged."""
        given = self.given
        if given["review"] is not None:
            return from_document(json.loads((REVIEWS / given["review"]).read_text())).request(given["phase"])
        return Request(
            operation=given["operation"],
            namespace=given["namespace"],
            user=given["user"],
            groups=tuple(given["groups"]),
            subresource=given["subresource"],
            pod=given["pod"],
            old_pod=given["oldPod"],
            phase=given["phase"],
        )


def load(path: Path) -> Case:
    """The case in a file. An unknown or missing key is an error: a misspelt one would test something else."""
    document = yaml.safe_load(path.read_text())
    unknown = document.keys() - GIVEN.keys() - {"why", "policies", "expect"}
    assert not unknown, f"{path}: unknown {sorted(unknown)}"
    assert document["why"], path
    assert (document.get("pod") is None) != (document.get("review") is None), f"{path}: wants a pod or a review"
    return Case(path=path, given={**GIVEN, **document}, expected=document.get("expect") or {})


@cache
def cases() -> tuple[Case, ...]:
    """Every case, by path."""
    return tuple(load(path) for path in sorted(CASES.rglob("*.yaml")))


@cache
def catalog_with(overlays: str = "[]") -> Catalog:
    """The shipped catalog with overlays (a JSON list of maps) laid over it."""
    shipped, _ = read_documents([str(SHIPPED_CATALOG)])
    return from_mappings(shipped[0].value, *json.loads(overlays))


def policies_of(objects: Any, catalog: Catalog) -> PolicySet:
    """``library``, or objects inline, whose apiVersion may be left out. A mistake in one is an error of the case."""
    if objects == "library":
        found, errors, warnings = read_policies([str(LIBRARY)], catalog)
    else:
        documents = [Document(file="case", index=i, value={"apiVersion": API_VERSION, **one}) for i, one in enumerate(objects)]
        found, errors, warnings = parse_objects(documents, catalog)
    assert not errors, "\n".join(map(str, errors))
    assert not [w for w in warnings if "instance" not in w.message], warnings
    return found


# --- outcomes as plain data --------------------------------------------------------------------------------------------


def outcome(case: Case) -> tuple[dict[str, Any], list[str]]:
    """What comes of a case, and every law that it broke on the way."""
    try:
        request = case.request()
    except ReviewError as error:
        return {"bad": error.sentence}, []
    facts = case.facts(request.namespace)
    verdict = evaluate(request, facts)
    found = _plain(verdict)
    if "patch" in case.expected:
        found["patch"] = list(verdict.patch)
    if request.phase == "validate" or request.operation != "CREATE" or verdict.violations or not verdict.judged:
        return found, []
    edited = jsonpatch.apply_patch(request.pod, list(verdict.patch))
    refused = evaluate(replace(request, pod=edited, phase="validate"), facts).violations
    if refused:
        found["validate"] = [str(v) for v in refused]
    return found, broken(request, facts, verdict, edited)


def broken(request: Request, facts: Facts, verdict: Verdict, edited: dict[str, Any]) -> list[str]:
    """A second call on the edited pod must change nothing, refuse nothing, and tell nothing again of what was edited."""
    again = evaluate(replace(request, pod=edited), facts)
    changes = [f"a second mutate would {op['op']} {op['path']}" for op in again.patch]
    changes += [f"a second mutate says again: {r}" for r in again.remarks if r.code in OF_EDITS]
    return changes + [f"a second mutate refuses: {v}" for v in again.violations]


def _plain(verdict: Verdict) -> dict[str, Any]:
    if not verdict.judged:
        return {"unjudged": True}
    parts = {
        **_outcome(verdict.edits, verdict.violations, verdict.remarks),
        "would": [
            {"policy": w.policy, "mode": w.mode, **_outcome(w.edits, w.violations, w.remarks)} for w in verdict.would
        ],
    }  # fmt: skip
    unmatched = {} if verdict.matched else {"unmatched": True}
    uncounted = {"uncounted": verdict.uncounted} if verdict.uncounted else {}
    return {**{name: part for name, part in parts.items() if part}, **unmatched, **uncounted}


def _outcome(edits: Sequence[Edit], violations: Iterable[object], remarks: Iterable[object]) -> dict[str, Any]:
    parts = {
        "edits": [_edit(e) for e in edits],
        "violations": [str(v) for v in violations],
        "remarks": [str(r) for r in remarks],
    }
    return {name: part for name, part in parts.items() if part}


def _edit(edit: Edit) -> dict[str, Any]:
    value = {} if edit.op == "remove" else {"value": edit.value}
    return {"op": edit.op, "path": pointer(edit.path), **value, "rule": edit.rule, "by": ", ".join(edit.policies)}


# --- rewriting ---------------------------------------------------------------------------------------------------------


class _Row(dict[str, Any]):
    """A map that is written on one line."""


class _Dumper(yaml.SafeDumper):
    """Lists indented, sentences and edits on one line."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, indentless=False)

    def ignore_aliases(self, data: object) -> bool:
        return True


_Dumper.add_representer(_Row, lambda dumper, row: dumper.represent_mapping("tag:yaml.org,2002:map", row, flow_style=True))


def _rows(value: Any) -> Any:
    """Edits and operations as rows, wherever they stand."""
    if isinstance(value, dict):
        return _Row(value) if "op" in value else {key: _rows(item) for key, item in value.items()}
    return [_rows(item) for item in value] if isinstance(value, list) else value


def rewrite(case: Case, found: Mapping[str, Any]) -> None:
    """Put ``found`` under ``expect:``; what stands above is kept to the byte."""
    above = case.path.read_text().partition(MARK)[0].rstrip("\n")
    below = yaml.dump({"expect": _rows(found)}, Dumper=_Dumper, sort_keys=False, width=10_000) if found else "expect: {}\n"
    case.path.write_text(f"{above}\n{below}")
