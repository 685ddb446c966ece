"""Berth's kinds under kubectl: what explain, get and apply print, and how a status is written."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

import pytest

from catalog.shapes.structs import Field, Struct
from cli import crds
from policies.objects import definition
from policies.objects.crd_schema import strip_backticks
from policies.objects.field_types import Kind
from policies.policy import API_VERSION as VERSION
from tests.e2e.crds.denials import SPAN
from tests.e2e.crds.specs import made
from tests.testcluster.controlplane.api import Kind as Where
from tests.testcluster.controlplane.api import Raw, Reply
from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.controlplane.starting import apply_crds

C, G, T = definition.KINDS


@pytest.fixture(scope="module", autouse=True)
def served(cluster: Cluster) -> None:
    """The kinds; they stay for other tests."""
    apply_crds(cluster.api, sorted(crds.FOLDER.glob("*.yaml")), cluster.processes)


def kubectl(cluster: Cluster, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(cluster.kubectl(*words), input=given, capture_output=True, text=True, check=False)


def explained(cluster: Cluster, *words: str) -> str:
    """Once the API server's OpenAPI document has the kinds: it follows a CRD some moments later."""

    def explanation() -> str | None:
        done = kubectl(cluster, "explain", *words)
        return done.stdout if done.returncode == 0 else None

    return cluster.wait_for(explanation, f"kubectl explain {' '.join(words)} to know the kind")


def fields(kind: Kind, name: str) -> tuple[Field, ...]:
    """What a map of the spec holds."""
    shape = next(field.shape for field in definition.SPECS[kind].fields if field.name == name)
    assert isinstance(shape, Struct)
    return shape.fields


def flat(text: str) -> str:
    return " ".join(text.split())


def test_kubectl_explain_reads_like_documentation(cluster: Cluster) -> None:
    """Each field with a sentence, the words of its list, and an example on a line of its own."""
    require = explained(cluster, "gpupolicy.spec.require")
    assert "Requirements for pods. A pod that violates them is denied." in flat(require)
    for field in fields("GPUPolicy", "require"):
        assert f"    Example: {field.written()}\n" in require
        assert strip_backticks(field.description) in flat(require)
    assert "Values: Exclusive, MIG, TimeSliced." in flat(require)
    families = explained(cluster, "gpupolicy.spec.require.families")
    assert "as in the label nvidia.com/gpu.family. 'berth gpus' lists them." in flat(families)
    assert "Example: families: {in: [hopper]}" in flat(families)
    assert "    Only these.\n    Example: in: [hopper]\n" in families
    assert "`" not in require + families


def test_kubectl_explain_shows_every_field(cluster: Cluster) -> None:
    """--recursive: the tree, with what is required and what may be chosen."""
    tree = explained(cluster, "gpup.spec.require", "--recursive").partition("FIELDS:")[2]
    top = [line.split("\t")[0].strip() for line in tree.splitlines() if line.startswith("  ") and line[2] != " "]
    assert top == sorted(field.name for field in fields("GPUPolicy", "require"))
    assert "over\t<string> -required-" in tree
    assert "enum: NoSchedule, PreferNoSchedule, NoExecute" in tree


def test_kubectl_tells_the_mistake(cluster: Cluster) -> None:
    """As it is typed: apply -f prints the field and the wanted form, and fails."""
    value = made("GPUPolicy", {"default": {"gracePeriod": "30d"}})
    done = kubectl(cluster, "apply", "-f", "-", given=json.dumps(value))
    assert done.returncode == 1
    assert f'The GPUPolicy "tried" is invalid: spec.default.gracePeriod: Invalid value: "30d": {SPAN}' in done.stderr
    misspelt = kubectl(cluster, "apply", "-f", "-", given=json.dumps(made("GPUPolicy", {"requires": {}})))
    assert 'unknown field "spec.requires"' in misspelt.stderr


@pytest.fixture
def stored(cluster: Cluster) -> Iterator[dict[Kind, Raw]]:
    """One object of each kind, by kind."""
    specs: dict[Kind, Raw] = {C: {"mode": "Warn"}, G: {"require": {"capacity": ["on-demand"]}}, T: {"labels": {"pool": "a"}}}
    found = {kind: cluster.api.create(made(kind, spec, f"crds-{kind.lower()}")) for kind, spec in specs.items()}
    yield found
    for value in found.values():
        cluster.api.delete(value)


def condition(kind: str, status: str) -> Raw:
    return {"type": kind, "status": status, "reason": "Tried", "message": "said", "lastTransitionTime": "2026-01-02T03:04:05Z"}


def test_kubectl_get_gpu_says_what_is_enforced_where(cluster: Cluster, stored: dict[Kind, Raw]) -> None:
    """All kinds at once, each with its columns, filled from the status; what may be long is shown by ``-o wide`` alone."""
    for value in stored.values():
        conditions = [condition("Accepted", "True"), condition("Conflicted", "False")]
        mode = {"GPUPolicy": {"mode": "Audit"}, "ClusterGPUPolicy": {"mode": "Audit"}}.get(value["kind"], {})
        status = {"conditions": conditions, **mode, "where": "all namespaces", "what": "require nothing", "observedGeneration": 1}
        cluster.api.patch(value, {"status": status}, subresource="status")
    narrow = [flat(line).rpartition(" ")[0] for line in kubectl(cluster, "get", "gpu", "-A").stdout.splitlines()]
    assert {
        "NAME MODE ACCEPTED CONFLICTED WOULD CHANGE WOULD DENY",
        "NAMESPACE NAME MODE ACCEPTED CONFLICTED WOULD CHANGE WOULD DENY",
        "NAME ACCEPTED",
        "clustergpupolicy.berth.dev/crds-clustergpupolicy Audit True False",
        "gpunodetemplate.berth.dev/crds-gpunodetemplate True",
    } <= set(narrow), "MODE is what acts: the spec of the first says Warn"
    listed = kubectl(cluster, "get", "gpu", "-A", "-o", "wide").stdout
    rows = [line.rpartition(" ")[0] for line in map(flat, listed.splitlines())]
    assert {
        "NAME MODE ACCEPTED CONFLICTED WOULD CHANGE WOULD DENY WHERE WHAT",
        "NAMESPACE NAME MODE ACCEPTED CONFLICTED WOULD CHANGE WOULD DENY WHAT",
        "NAME ACCEPTED WHAT",
    } <= set(rows)
    assert "clustergpupolicy.berth.dev/crds-clustergpupolicy Audit True False all namespaces require nothing" in rows
    assert "default gpupolicy.berth.dev/crds-gpupolicy Audit True False require nothing" in rows
    assert "gpunodetemplate.berth.dev/crds-gpunodetemplate True require nothing" in rows
    for short in ("cgpup", "gpup", "gpunt"):
        assert kubectl(cluster, "get", short).stdout.count("crds-") == 1


def test_a_status_is_written_apart(cluster: Cluster, stored: dict[Kind, Raw]) -> None:
    """A write of the spec leaves the status, a write of the status leaves the spec; the last good spec keeps whatever was in it."""
    value = stored["GPUPolicy"]
    good = {"generation": 1, "spec": {"once": {"upon": ["a", 1]}}}
    written = cluster.api.patch(value, {"status": {"lastGood": good}, "spec": {"mode": "Enforce"}}, subresource="status")
    status = written["status"]
    assert (status, written["spec"]["mode"]) == ({"lastGood": good, "observedGeneration": -1}, "Audit")
    written = cluster.api.patch(value, {"status": {"what": "x"}, "spec": {"mode": "Enforce"}})
    assert (written["status"], written["spec"]["mode"], written["metadata"]["generation"]) == (status, "Enforce", 2)


def test_conditions_are_told_apart_by_type(cluster: Cluster, stored: dict[Kind, Raw]) -> None:
    """Two of one type are rejected, as is a status that is none: what the columns show is what was written."""
    path = cluster.api.path_of(stored["GPUPolicy"]) + "/status"

    def answered(*conditions: Raw) -> Reply:
        change = {"status": {"conditions": list(conditions)}}
        return cluster.api.call("PATCH", path, change, content="application/merge-patch+json")

    assert answered(condition("Accepted", "True"), condition("Clipped", "Unknown")).ok
    assert "Duplicate value" in answered(condition("Accepted", "True"), condition("Accepted", "False")).message
    assert "Unsupported value" in answered(condition("Accepted", "true")).message
    assert "Required value" in answered({"type": "Accepted", "status": "True"}).message


def test_kinds_are_where_the_definition_says(cluster: Cluster) -> None:
    """Discovery agrees with policies.objects.crd about plural and scope."""
    found = {kind: cluster.api.kind(VERSION, kind) for kind in definition.KINDS}
    assert found == {
        "ClusterGPUPolicy": Where(api_version=VERSION, plural="clustergpupolicies", namespaced=False),
        "GPUPolicy": Where(api_version=VERSION, plural="gpupolicies", namespaced=True),
        "GPUNodeTemplate": Where(api_version=VERSION, plural="gpunodetemplates", namespaced=False),
    }
