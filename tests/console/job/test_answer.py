"""The diff with the policy beside each line: every line of it stands where the writer of YAML puts it."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from analysis.admission.manifest_results import admit_manifest
from analysis.admission.manifests import read_manifest
from analysis.admission_preview import Admission
from console.job.answer import changes, paths
from console.world.scope import ALL, EVERYTHING, Scope
from documents.yaml_writer import yaml_lines
from policies.document import Document
from sources.inputs import Inputs
from tests.support import snapshots
from tests.support.cases.golden import catalog_with, policies_of
from tests.support.console.asked import asked
from tests.support.console.worlds import world
from tests.support.counts import count
from tests.support.generators.written_claims import claim, exactly
from tests.support.recorded import eks

EXAMPLES = sorted((Path(__file__).parents[3] / "docs" / "examples").glob("*.yaml"))


def _value(random: Random, depth: int = 0) -> Any:
    kind = random.choice(("text", "map", "list", "empty", "block", "number")) if depth < 4 else "text"
    match kind:
        case "map":
            return {random.choice(("a", "b", "c d", "x/y", "1")): _value(random, depth + 1) for _ in range(random.randint(0, 3))}
        case "list":
            return [_value(random, depth + 1) for _ in range(random.randint(0, 3))]
        case "empty":
            return random.choice(({}, [], None, ""))
        case "block":
            return "one\ntwo\n"
    return random.choice(("x", "yes", 1, 2.5, True))


@pytest.mark.parametrize("seed", range(count(50, 1000)))
def test_each_line_has_its_place(seed: int) -> None:
    """As many places as lines, and a line with a key names the end of its place."""
    value = _value(Random(seed))
    written, places = yaml_lines(value), list(paths(value))
    assert len(written) == len(places)
    for line, place in zip(written, places, strict=True):
        key = place[-1] if place else None
        if isinstance(key, str) and ":" in line:
            assert key in line


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_every_line_that_is_written_has_its_policies(file: Path) -> None:
    """Those of an edit at that place or above it, of the shipped manifests."""
    at = world(eks.objects())
    for document in Inputs.of_text(file.read_text(), "manifest", "research").found:
        if not isinstance(document, Document) or str(document.value.get("apiVersion")).startswith("berth.dev/"):
            continue
        outcome = admit_manifest(read_manifest(document, at.snapshot.catalog, "research"), Admission(at.snapshot))
        found = changes(outcome)
        assert bool(found) == bool(outcome.edits)
        known = {(policy, edit.rule) for pod in outcome.pods for edit in pod.edits for policy in edit.policies}
        for line in found:
            assert bool(line.policies) == (line.mark in "+-")
            assert all(any((policy, rule) in known for rule in line.rules) for policy in line.policies)
        json.dumps([line._asdict() for line in found])


def test_a_policy_that_may_not_be_listed_is_not_named_beside_its_lines() -> None:
    """The line itself is shown, since the pod will have it."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "team"},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
    }
    spec = {"mode": "Enforce", "default": {"gracePeriod": "5m"}}
    guard = {"apiVersion": "berth.dev/v1alpha1", "kind": "ClusterGPUPolicy", "metadata": {"name": "guard-of-others"}, "spec": spec}
    found = world([pod], [guard])
    for scope, named in ((EVERYTHING, True), (Scope(who="ada", pods=ALL), False)):
        text = asked(found, "/job", scope, pod="team/p").text
        assert "terminationGracePeriodSeconds: 300" in text
        assert ("guard-of-others" in text) == named


def test_a_selector_of_a_claim_has_its_policy() -> None:
    """Each line of it, and no other."""
    spec = {"mode": "Enforce", "require": {"families": {"in": ["hopper"]}}}
    policies = policies_of([{"kind": "ClusterGPUPolicy", "metadata": {"name": "hopper-alone"}, "spec": spec}], catalog_with())
    snapshot = snapshots.build(policies, catalog_with(), platforms=("gfd",))
    made = claim(exactly(), template=True)
    outcome = admit_manifest(read_manifest(Document(file="f", value=made), snapshot.catalog, "research"), Admission(snapshot))
    found = changes(outcome)
    assert [line.policies for line in found if line.mark == "+"] == [("ClusterGPUPolicy/hopper-alone",)] * 3
    assert [line for line in found if line.policies and line.mark != "+"] == []
