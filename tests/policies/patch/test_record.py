"""``berth.dev/applied``: what is recorded, what is kept of it, and that it never blames a policy that did not write."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random
from typing import Any

import jsonpatch
import pytest

from kube.tree import Path, pointer
from policies.engine import evaluate
from policies.patch.build import build_patch
from policies.patch.record import APPLIED, Entry, digest
from policies.verdict import MODES, Edit, Verdict
from tests.support.counts import count
from tests.support.generators.strategies import Case, case_of


def edit(op: Any, path: Path, value: Any = None) -> Edit:
    return Edit(op=op, path=path, value=value, rule="tolerations", policies=("ClusterGPUPolicy/a",))


def entries(patch: tuple[dict[str, Any], ...]) -> Any:
    text = next(op["value"][APPLIED] if op["path"].endswith("annotations") else op["value"] for op in patch if "annotations" in op["path"])
    return json.loads(text)


def test_the_record_names_the_index_that_an_append_got() -> None:
    """``-`` in the patch, a number in the record, whether or not the list was there."""
    there = {"metadata": {"annotations": {}}, "spec": {"tolerations": [0]}}
    assert entries(build_patch(there, [edit("add", ("spec", "tolerations", "-"), 1)], []))[0]["path"] == "/spec/tolerations/1"
    assert entries(build_patch({"metadata": {}}, [edit("add", ("spec", "tolerations", "-"), 1)], []))[0]["path"] == "/spec/tolerations/0"
    assert entries(build_patch({"metadata": {}}, [edit("add", ("spec", "grace"), 1)], []))[0]["path"] == "/spec/grace"


@pytest.mark.parametrize(
    "standing",
    [
        "mine",
        "[" * 100_000,
        "7",
        "[1]",
        '[{"by":[],"rule":"r"}]',
        '[{"by":[1],"rule":"r","path":"/a","is":"x"}]',
        '[{"by":"a","rule":"r","path":"/a","is":"x"}]',
        7,
    ],
    ids=["text", "too deep", "a number", "no entry", "half an entry", "a wrong name", "a wrong list", "no text"],
)
def test_what_is_no_record_is_never_read(standing: object) -> None:
    """An author's text under our key is dropped, whatever it is."""
    pod = {"metadata": {"annotations": {APPLIED: standing}}, "a": 1}
    assert len(entries(build_patch(pod, [edit("replace", ("a",), 2)], []))) == 1


def test_a_record_is_kept_while_it_is_true() -> None:
    """The value unchanged; then nothing is written at all."""
    entry = {"by": ["ClusterGPUPolicy/a"], "rule": "r", "path": "/a", "is": digest(1)}
    text = json.dumps([entry], separators=(",", ":"))
    pod = {"metadata": {"annotations": {APPLIED: text}}, "a": 1}
    assert build_patch(pod, [], [entry]) == ()
    assert build_patch({**pod, "a": 2}, [], [entry]) == ({"op": "remove", "path": f"/metadata/annotations/{APPLIED.replace('/', '~1')}"},)
    assert len(build_patch(pod, [], [])) == 1


def test_a_long_record_becomes_a_count_and_stays_one() -> None:
    """Past one KiB; a second call without edits leaves it alone, one with edits counts on."""
    pod: dict[str, Any] = {"metadata": {"annotations": {}}}
    many = [edit("add", ("spec", f"key-{i}"), i) for i in range(20)]
    patch = build_patch(pod, many, [])
    summary = entries(patch)
    assert summary["edits"] == 20
    edited = jsonpatch.apply_patch(pod, list(patch))
    standing = edited["metadata"]["annotations"][APPLIED]
    assert len(standing) < 120
    assert build_patch(edited, [], []) == ()
    assert entries(build_patch(edited, [edit("add", ("spec", "more"), 1)], []))["edits"] == 21


# --- what an author wrote -----------------------------------------------------------------------------------------------


def applied_of(pod: dict[str, Any]) -> list[Entry]:
    text = pod["metadata"].get("annotations", {}).get(APPLIED)
    found = json.loads(text) if text is not None else []
    return found if isinstance(found, list) else []


def mutated(case: Case, pod: dict[str, Any]) -> tuple[Verdict, dict[str, Any]]:
    """At /mutate, and the pod as the patch leaves it."""
    verdict = evaluate(replace(case.request, pod=pod, phase="mutate"), case.world.snapshot.facts_for(case.request.namespace))
    return verdict, jsonpatch.apply_patch(pod, [dict(op) for op in verdict.patch])


def claims(pod: Any, by: list[str], path: Path = ()) -> list[Entry]:
    """That all of it was written by this policy: an entry with the true digest of each value that there is."""
    found = []
    for key, value in pod.items() if isinstance(pod, dict) else enumerate(pod) if isinstance(pod, list) else ():
        here = (*path, key)
        found += [{"by": by, "rule": rule, "path": pointer(here), "is": digest(value)} for rule in ("tolerations", "node_affinity")]
        found += claims(value, by, here)
    return found


def test_a_forged_entry_blames_nobody() -> None:
    """Random pods, and an author who claims of a random value of his own that a policy wrote it: the entry stays only where that policy
    writes that value by that rule into the pod without it. No edit depends on what he says."""
    tried = 0
    for seed in range(count(60, 10_000)):
        random = Random(seed)
        case = case_of(random, MODES)
        pod, ids = case.request.pod, [c.id for c in case.world.snapshot.policies]
        everything = claims({k: v for k, v in pod.items() if k == "spec"}, [random.choice(ids)]) if ids else []
        if not everything or not isinstance(pod.get("metadata"), dict):
            continue
        forged = random.choice(everything)
        annotations = {**(pod["metadata"].get("annotations") or {}), APPLIED: json.dumps([forged])}
        verdict, after = mutated(case, {**pod, "metadata": {**pod["metadata"], "annotations": annotations}})
        assert verdict.edits == mutated(case, pod)[0].edits, "it is never read for a decision"
        if not verdict.violations and verdict.is_evaluated:
            tried += 1
            assert forged not in applied_of(after) or _writes(case, pod, forged), f"Random({seed}): {forged}"
    assert tried > count(60, 10_000) // 10


def _writes(case: Case, pod: dict[str, Any], entry: Entry) -> bool:
    """Whether that policy writes this value, were it not there."""
    undo = {"op": "replace", "value": 30} if entry["path"] == "/spec/terminationGracePeriodSeconds" else {"op": "remove"}
    verdict, _ = mutated(case, jsonpatch.apply_patch(pod, [{**undo, "path": entry["path"]}]))
    return any((e.rule, digest(e.value), list(e.policies)) == (entry["rule"], entry["is"], entry["by"]) for e in verdict.edits)


def test_what_a_mutated_pod_says_stays() -> None:
    """Called again on its own result, as where another webhook came in between, Berth keeps every entry: most random pods have some."""
    kept = 0
    for seed in range(count(60, 5_000)):
        case = case_of(Random(seed), MODES)
        verdict, pod = mutated(case, case.request.pod)
        if verdict.violations or not verdict.patch:
            continue
        again, twice = mutated(case, pod)
        assert again.patch == (), f"Random({seed})"
        kept += len(applied_of(twice))
    assert kept > count(60, 5_000) // 10
