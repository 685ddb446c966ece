"""policies.objects.crd: what the three CRDs hold, as far as it can be told without an API server (tests/e2e/crds/test_crds.py has one)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from catalog.shapes.structs import Field, Items, Shape, Struct
from documents.files import read_documents
from kube.labels import LabelSelector
from policies.objects import definition, validation
from policies.objects.crd import NAMES, crd
from policies.objects.crd_schema import described, rules, spec_schema, strip_backticks
from policies.objects.field_types import Kind
from policies.policy import Match, Policy, Require

Raw = dict[str, Any]
HERE = Path(__file__).parent
SHIPPED = [str(HERE.parents[2] / "policies" / "library"), str(HERE / "example.yaml")]
STRUCTURAL = {
    "type", "description", "required", "properties", "items", "additionalProperties", "enum", "minLength", "maxLength", "minItems",
    "maxItems", "minProperties", "maxProperties", "minimum", "maximum", "default", "format", "x-kubernetes-validations",
    "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-preserve-unknown-fields",
}  # fmt: skip
BOUND = {"string": "maxLength", "array": "maxItems"}
KINDS = pytest.mark.parametrize("kind", definition.KINDS)


@cache
def version(kind: Kind) -> Raw:
    found: Raw = crd(kind)["spec"]["versions"][0]
    return found


def schemas(schema: Raw, path: str = "") -> Iterator[tuple[str, Raw]]:
    """Each schema in a schema, with its path."""
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from schemas(inner, f"{path}.{name}")
    for name in ("items", "additionalProperties"):
        if name in schema:
            yield from schemas(schema[name], f"{path}[]")


def structs(shape: Shape) -> Iterator[Struct]:
    of = shape.of if isinstance(shape, Items) else shape
    if isinstance(of, Struct):
        yield of
        for field in of.fields:
            yield from structs(field.shape)


@KINDS
def test_names(kind: Kind) -> None:
    """Found by plural, singular, a short name and the category; in a namespace or not, as the definition has it."""
    made = crd(kind)
    names = made["spec"]["names"]
    assert made["metadata"]["name"] == f"{names['plural']}.berth.dev"
    assert (names["kind"], names["singular"], names["categories"]) == (kind, kind.lower(), ["gpu"])
    assert made["spec"]["scope"] == ("Namespaced" if kind == "GPUPolicy" else "Cluster")
    assert len({NAMES[one].short for one in definition.KINDS}) == 3


@KINDS
def test_one_version_is_served_and_stored(kind: Kind) -> None:
    """v1alpha1, whose status is written apart."""
    assert len(crd(kind)["spec"]["versions"]) == 1
    assert (version(kind)["name"], version(kind)["served"], version(kind)["storage"]) == ("v1alpha1", True, True)
    assert version(kind)["subresources"] == {"status": {}}


COUNTED = ("Would Change", "Would Deny")


@pytest.mark.parametrize(
    ("kind", "columns"),
    [
        ("ClusterGPUPolicy", ["Mode", "Accepted", "Conflicted", *COUNTED, "Where", "What", "Age"]),
        ("GPUPolicy", ["Mode", "Accepted", "Conflicted", *COUNTED, "What", "Age"]),
        ("GPUNodeTemplate", ["Accepted", "What", "Age"]),
    ],
)
def test_columns(kind: Kind, columns: list[str]) -> None:
    """What kubectl get shows of each kind."""
    assert [column["name"] for column in version(kind)["additionalPrinterColumns"]] == columns


@KINDS
def test_the_schema_is_structural(kind: Kind) -> None:
    """Only keywords that a structural schema may hold, each with a type; no pattern, anyOf or oneOf, whose messages help nobody."""
    for path, schema in schemas(version(kind)["schema"]["openAPIV3Schema"]):
        assert set(schema) <= STRUCTURAL, path
        assert "type" in schema, path


@KINDS
def test_what_a_rule_reads_is_bounded(kind: Kind) -> None:
    """Every text, list and map of a spec has a most, from which the API server estimates what a rule costs."""
    for path, schema in schemas(spec_schema(kind)):
        if (bound := BOUND.get(schema["type"])) and "enum" not in schema:
            assert bound in schema, path
        if "additionalProperties" in schema:
            assert "maxProperties" in schema, path


@KINDS
def test_every_field_is_described(kind: Kind) -> None:
    """With an example of its own at the end, and no backticks, which a terminal shows as they are."""
    assert "`" not in str(crd(kind))
    for path, schema in schemas(spec_schema(kind)):
        for name, field in schema.get("properties", {}).items():
            assert f"\nExample: {name}: " in field["description"], f"{path}.{name}"


@KINDS
def test_every_rule_of_the_definition_is_said_in_cel(kind: Kind) -> None:
    """A rule between fields that is added to the definition and not to IN_CEL is noticed here; each message fits one line."""
    for struct in structs(definition.SPECS[kind]):
        assert set(struct.rules) <= set(validation.IN_CEL)
        for rule in rules(struct, kind):
            assert "\n" not in rule.rule + rule.message
    written = [entry for _, schema in schemas(spec_schema(kind)) for entry in schema.get("x-kubernetes-validations", ())]
    assert len(written) > 10
    assert all(set(entry) <= {"rule", "message", "messageExpression", "fieldPath", "reason"} for entry in written)


def test_what_a_kind_lacks_has_no_rule() -> None:
    """In a GPUPolicy, which is a namespace's own, authors may be matched by what they write."""
    messages = [entry["message"] for _, one in schemas(spec_schema("GPUPolicy")) for entry in one.get("x-kubernetes-validations", ())]
    assert not [message for message in messages if "authors" in message]
    assert "allow" not in spec_schema("GPUPolicy")["properties"]


def test_cel_says_what_the_parser_says() -> None:
    """Where both speak of the same mistake, the sentence is the same."""
    given = {"require": Require(sharing=("MIG",)), "match": (Match(pod_selector=LabelSelector(), workloads=("Job",)), ())}
    messages = [message for _, message in validation.authors_do_not_choose(given, "ClusterGPUPolicy")]
    assert messages == [cel.message for cel in validation.IN_CEL[validation.authors_do_not_choose]]
    for rule, wrong in [
        (validation.something_is_left, {"in_": ("a",), "not_in": ("a",)}),
        (validation.profiles_need_mig, {"mig_profiles": ("1g.10gb",)}),
    ]:
        assert [message for _, message in rule(wrong, "GPUNodeTemplate")] == [cel.message for cel in validation.IN_CEL[rule]]


def test_a_policy_is_in_audit_by_default() -> None:
    """The API server's default is the parser's."""
    assert spec_schema("GPUPolicy")["properties"]["mode"]["default"] == Policy(name="x", namespace="y").mode == "Audit"


@pytest.mark.parametrize(
    "value", [document.value for document in read_documents(SHIPPED)[0]], ids=lambda value: str(value["metadata"]["name"])
)
def test_what_is_shipped_fits(value: Raw) -> None:
    """The plain part of each schema takes the library and the documentation's example."""
    jsonschema.Draft202012Validator(version(value["kind"])["schema"]["openAPIV3Schema"]).validate(value)


def test_markdown_is_made_plain() -> None:
    """Code loses its backticks; a command keeps together."""
    assert strip_backticks("`berth gpus` lists `A100` and `sku=gpu`.") == "'berth gpus' lists A100 and sku=gpu."


def test_a_description_says_the_form() -> None:
    """Where kubectl explain shows none: the words of a list, durations, a default."""
    policy = {field.name: field for field in definition.SPECS["GPUPolicy"].fields}
    inner = {field.name: field for top in ("require", "default") for field in fields_of(policy[top])}
    assert re.search(r"Values: Exclusive, MIG, TimeSliced\.\n", described(inner["sharing"]))
    assert "A duration such as 2h, 90s or 1h30m, or Always.\n" in described(inner["protectFor"])
    assert "Default: Audit.\n" in described(policy["mode"])


def fields_of(field: Field) -> tuple[Field, ...]:
    assert isinstance(field.shape, Struct)
    return field.shape.fields
