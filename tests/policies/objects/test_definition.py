"""policies.objects.definition: parser, JSON schema, reference page and shipped library all say the same."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from catalog.shapes.structs import Field, Items, Struct
from documents.files import read_documents, read_policies
from documents.yaml_reader import documents
from policies.objects import definition
from policies.objects import json_schema as policy_schema
from policies.objects.field_types import Kind
from policies.objects.parse import parse_objects
from policies.policy import PolicySet
from tests.support.generators.random_worlds import catalog

ROOT = Path(__file__).parents[3]
LIBRARY = ROOT / "policies" / "library"
EXAMPLE = Path(__file__).parent / "example.yaml"
"""every field of a ClusterGPUPolicy and a GPUNodeTemplate, as the documentation explains them"""

NEEDS_MORE = re.compile("unknown node template|write sharing: .MIG.")
"""what an example alone lacks: the template that it names, the field beside it"""
STRUCTURAL = {
    "type", "description", "required", "properties", "items", "additionalProperties", "enum", "pattern", "minLength", "maxLength",
    "minItems", "maxItems", "minProperties", "minimum", "maximum", "default", "anyOf", "oneOf",
}  # fmt: skip
"""keywords that a CRD's structural schema may hold and that we use"""


def shipped() -> list[dict[str, Any]]:
    found, errors = read_documents([str(LIBRARY), str(EXAMPLE)])
    assert errors == []
    return [document.value for document in found]


def validate(value: object, kind: Kind) -> None:
    jsonschema.Draft202012Validator(policy_schema.json_schema(kind)).validate(value)


@pytest.mark.parametrize("value", shipped(), ids=lambda value: str(value["metadata"]["name"]))
def test_schema_accepts_what_is_shipped(value: dict[str, Any]) -> None:
    """The library and the documentation's example are valid by the JSON schema of their kind."""
    validate(value, value["kind"])


@pytest.mark.parametrize("kind", definition.KINDS)
def test_schema_is_a_schema(kind: Kind) -> None:
    """Each schema is valid draft 2020-12 and holds only what a CRD may hold."""
    schema = policy_schema.json_schema(kind)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert {keyword for inner in schemas(schema) for keyword in inner} <= STRUCTURAL


def schemas(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield schema
    inner = [*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")]
    for one in (one for one in inner if one):
        yield from schemas(one)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("mode",), "audit"),
        (("require", "families"), {}),
        (("require", "families"), {"in": []}),
        (("require", "families"), {"in": "hopper"}),
        (("require", "gpuMemory"), {"min": "40Gi"}),
        (("require", "capacity"), ["spott"]),
        (("require", "longRuns"), {"over": "2h"}),
        (("require", "gracePeriod"), {"max": 3600}),
        (("default", "mig"), {"slice": "10gb", "usableMemory": "9Gi"}),
        (("default", "mig"), {"slice": "1g.10gb"}),
        (("default", "protectFor"), "always"),
        (("default", "tolerate"), [{"key": "a b"}]),
        (("default", "acceleratorTaints"), True),
        (("match", "gpus"), {"min": -1}),
    ],
)
def test_schema_and_parser_deny_alike(path: tuple[str, str], value: object) -> None:
    """What the schema can say of a mistake, it says: the API server denies it as the parser does."""
    whole = copy.deepcopy(next(one for one in shipped() if one["metadata"]["name"] == "everything"))
    inner = whole["spec"]
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        validate(whole, "ClusterGPUPolicy")
    found, _ = documents(json.dumps(whole), "f")
    assert parse_objects(found, catalog())[1] != []


def test_namespaced_schema_lacks_what_the_cluster_decides() -> None:
    """A GPUPolicy's schema has no namespaceSelector, exclude and allow, and wants a namespace."""
    schema = policy_schema.json_schema("GPUPolicy")["properties"]
    assert "allow" not in schema["spec"]["properties"]
    assert set(schema["spec"]["properties"]["match"]["properties"]) == {"podSelector", "workloads", "gpus"}
    assert schema["metadata"]["required"] == ["name", "namespace"]


@pytest.mark.parametrize("kind", definition.KINDS)
def test_examples_of_the_reference_are_right(kind: Kind) -> None:
    """Each field's example, typed where it belongs, is understood."""
    for path, field in fields(definition.SPECS[kind], ("spec",)):
        if field.of(kind) and isinstance(field.shape, Struct | Items):
            text = written_at(kind, path, field)
            found, errors = documents(text, "example")
            _, mistakes, _ = parse_objects(found, catalog())
            here = [mistake for mistake in mistakes if ".".join(path) in str(mistake) and not NEEDS_MORE.search(str(mistake))]
            assert (errors, here) == ([], []), text


def fields(shape: Struct, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Field]]:
    for field in shape.fields:
        yield (*path, field.name), field
        if isinstance(field.shape, Struct):
            yield from fields(field.shape, (*path, field.name))


def written_at(kind: Kind, path: tuple[str, ...], field: Field) -> str:
    lines = [f"{'  ' * level}{step}:" for level, step in enumerate(path)]
    lines[-1] += f" {field.example}"
    namespace = ", namespace: ml" if kind in definition.NAMESPACED else ""
    return f"apiVersion: berth.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: x{namespace}}}\n" + "\n".join(lines)


def test_everything_is_in_the_example() -> None:
    """The documentation's example has every field of the policy's spec, two levels deep."""
    whole = next(one for one in shipped() if one["metadata"]["name"] == "everything")["spec"]
    described = {name for name, value in whole.items()} | {inner for value in whole.values() if isinstance(value, dict) for inner in value}
    wanted = {path[-1] for path, _ in fields(definition.SPECS["ClusterGPUPolicy"], ("spec",)) if len(path) <= 3}
    assert wanted - described <= {"podSelector", "workloads"}


def library() -> PolicySet:
    policy_set, errors, warnings = read_policies([str(LIBRARY)], catalog())
    assert (errors, warnings) == ([], [])
    return policy_set


def test_library_is_understood() -> None:
    """The whole library parses without an error or a warning, and every policy in it is enforced."""
    policy_set = library()
    assert [policy.name for policy in policy_set.policies] == [
        "batch-on-spot", "berth-default", "inference", "notebooks", "several-gpus-are-whole", "training",
    ]  # fmt: skip
    assert {policy.mode for policy in policy_set.policies} == {"Enforce"}


@pytest.mark.parametrize("file", sorted(LIBRARY.glob("*.yaml")), ids=lambda file: file.name)
def test_each_file_stands_alone(file: Path) -> None:
    """One file of the library can be applied without the others, and says at its head whom it is for and what to change."""
    assert read_policies([str(file)], catalog())[1:] == ([], [])
    head = file.read_text(encoding="utf-8").partition("\napiVersion")[0]
    assert re.search(r"\bFor\b|\bfor\b", head)
    assert "To change it:" in head


def test_library_does_not_empty_the_training_machines() -> None:
    """The families and the excluded instance families of training leave machines on AWS with eight GPUs."""
    machine = next(policy for policy in library().policies if policy.name == "training").default.machine
    assert machine.families is not None
    assert machine.instance_families is not None
    left = {
        one.family
        for one in catalog().machines
        if one.cloud == "aws"
        and one.count == 8
        and catalog().models(one.model)[0].family in machine.families.in_
        and one.family not in machine.instance_families.not_in
    }
    assert {"p4de", "p5", "p5e", "p5en"} <= left
    assert not left & set(machine.instance_families.not_in)
    assert set(machine.instance_families.not_in) <= catalog().machine_families()
