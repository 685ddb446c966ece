"""The CRDs on a real API server: what it rejects and how, and that it agrees with the parser."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml
from hypothesis import given

from catalog.names import CatalogNames
from cli import crds
from documents.files import read_documents
from policies.objects import definition
from policies.objects.field_types import Kind
from policies.objects.parse import Understood, understand
from tests.e2e.crds.denials import BAD
from tests.e2e.crds.specs import FORMS, Drawing, made
from tests.support.counts import count
from tests.support.generators.random_worlds import catalog
from tests.support.generators.strategies import examples, randoms
from tests.testcluster.controlplane.api import Raw, Reply
from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.controlplane.starting import apply_crds

ROOT = Path(__file__).parents[3]
SHIPPED = [str(ROOT / "policies" / "library"), str(ROOT / "tests" / "policies" / "objects" / "example.yaml")]
C, G, T = definition.KINDS
NARROWER: list[tuple[Kind, Any]] = [
    (G, {"default": {"gracePeriod": "30m1h"}}),
    (G, {"default": {"gracePeriod": "2000ms"}}),
    (G, {"default": {"gracePeriod": "0.0125h"}}),
    (G, {"default": {"mig": {"usableMemory": "5e9"}}}),
    (C, {"match": {"podSelector": {}}, "require": {}}),
    (G, {"match": {"podSelector": {"matchLabels": {f"a{number}": "b" for number in range(257)}}}}),
    (G, {"match": {"podSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}] * 65}}}),
]
"""What the parser takes from a file and the API server does not: other spellings, and more than anyone writes."""


@cache
def names() -> CatalogNames:
    return CatalogNames(catalog())


@pytest.fixture(scope="module", autouse=True)
def served(cluster: Cluster) -> None:
    """The kinds; they stay for other tests."""
    apply_crds(cluster.api, sorted(crds.FOLDER.glob("*.yaml")), cluster.processes)


def tried(cluster: Cluster, value: Raw, validation: str = "Strict") -> Reply:
    """Created on dry run, as kubectl asks for it."""
    return cluster.api.call("POST", cluster.api.path_of(value, named=False), value, dryRun="All", fieldValidation=validation)


def understood(value: Raw) -> Understood:
    return understand(value, value["kind"], names())


@pytest.mark.parametrize(
    "value", [document.value for document in read_documents(SHIPPED)[0]], ids=lambda value: str(value["metadata"]["name"])
)
def test_what_is_shipped_is_accepted(cluster: Cluster, value: Raw) -> None:
    """The library and the documentation's example, and it means what it meant once defaults are filled in."""
    namespace = {"namespace": "default"} if value["kind"] in definition.NAMESPACED else {}
    value = {**value, "metadata": {**value["metadata"], **namespace}}
    reply = tried(cluster, value)
    assert reply.status == 201, reply.message
    before, after = understood(value), understood(reply.body)
    assert (after.acting, after.errors) == (before.acting, ())


@pytest.mark.parametrize(("kind", "spec", "message"), BAD, ids=[spec for _, spec, _ in BAD])
def test_a_bad_object_is_denied(cluster: Cluster, kind: Kind, spec: str, message: str) -> None:
    """By the API server alone, with the field and the wanted form; Berth's parser rejects it too."""
    value = made(kind, yaml.safe_load(spec))
    reply = tried(cluster, value)
    assert reply.status in (400, 422)
    assert message in reply.message
    assert understood(value).errors


@pytest.mark.parametrize(("kind", "spec"), NARROWER, ids=lambda value: str(value)[:60])
def test_the_schema_is_narrower(cluster: Cluster, kind: Kind, spec: Raw) -> None:
    """Exactly these spellings and sizes are rejected by the API server and understood from a file."""
    value = made(kind, spec)
    assert tried(cluster, value).status == 422
    assert understood(value).errors == ()


def agree(cluster: Cluster, value: Raw) -> None:
    """What the API server stores, the parser understands, with the same meaning as it was written; what it rejects, the parser rejects."""
    reply = tried(cluster, value)
    before = understood(value)
    if not reply.ok:
        assert reply.status in (400, 422), reply.message
        assert before.errors, (reply.message, value)
        return
    after = understood(reply.body)
    assert after.errors == (), value
    if not before.errors:
        assert after.acting == before.acting


@given(random=randoms())
@examples(150, 20_000)
def test_api_server_and_parser_agree(cluster: Cluster, random: Random) -> None:
    """On random objects of every kind, with a mistake in about half of them."""
    agree(cluster, Drawing(random=random, kind=random.choice(definition.KINDS)).object())


@pytest.mark.parametrize("form", FORMS)
def test_api_server_and_parser_agree_on_a_form(cluster: Cluster, form: str) -> None:
    """On each value that has the form, and each that nearly has it."""
    around, values = FORMS[form]
    for value in values:
        agree(cluster, made("ClusterGPUPolicy", around(value)))


def test_the_drawn_objects_reach_both_answers(cluster: Cluster) -> None:
    """Neither side of the law above is empty, for any kind."""
    for kind in definition.KINDS:
        answers = [tried(cluster, Drawing(random=Random(seed), kind=kind).object()).ok for seed in range(count(30, 300))]
        assert 0.15 < sum(answers) / len(answers) < 0.85, kind


def test_names_of_the_catalog_are_the_parsers_business(cluster: Cluster) -> None:
    """The API server takes an unknown family, or the catalog could not grow without a new CRD; Berth says it in the status."""
    value = made("GPUPolicy", {"require": {"families": {"in": ["hoper"]}}})
    assert tried(cluster, value).ok
    assert understood(value).errors == ('spec.require.families.in[0]: unknown GPU family "hoper"; did you mean "hopper"?',)


def test_the_largest_lists_are_judged(cluster: Cluster) -> None:
    """256 long names in both lists, all but the last in both: what the rule costs is within what the API server spends on one."""
    long = [f"{number:04}".rjust(253, "x") for number in range(256)]
    spec = {"require": {"models": {"in": long, "notIn": [*long[1:], "y"][::-1]}}}
    reply = tried(cluster, made("GPUPolicy", spec))
    assert reply.ok, reply.message
    spec["require"]["models"]["notIn"] = long[::-1]
    assert "no name is left" in tried(cluster, made("GPUPolicy", spec)).message


def test_unknown_fields_without_validation(cluster: Cluster) -> None:
    """A client that asks for none is warned and the field is dropped, so that a misspelt constraint is no constraint: use kubectl's way."""
    value = made("GPUPolicy", {"requires": {"families": {"in": ["hopper"]}}})
    assert tried(cluster, value).status == 400
    reply = tried(cluster, value, "Warn")
    assert reply.ok
    assert "requires" not in reply.body["spec"]
    assert reply.warnings == ('unknown field "spec.requires"',)


def test_defaults_are_stored(cluster: Cluster) -> None:
    """Mode Audit, and what else the definition fills in, is there to be seen."""
    reply = tried(cluster, made("GPUPolicy", {"require": {"longRuns": {"over": "2h", "capacity": ["on-demand"]}}}))
    assert reply.body["spec"] == {
        "mode": "Audit",
        "require": {"longRuns": {"over": "2h", "capacity": ["on-demand"], "unknownIsLong": True}},
    }
    template = tried(cluster, made("GPUNodeTemplate", {"labels": {"a": "b"}, "taints": [{"key": "c"}]}))
    assert template.body["spec"]["taints"] == [{"key": "c", "effect": "NoSchedule"}]
