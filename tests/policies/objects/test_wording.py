"""Fields of policies and templates in words: one text for each, wherever it is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given

from analysis.conditions.words import what_template
from analysis.effective.effective import Effective, effective
from analysis.effective.effective_probe import PodKind, request_for
from analysis.effective.effective_rows import rows
from catalog.shapes.scalars import PatternText
from catalog.shapes.structs import Field, Items, Struct
from cli.output import effective_output
from cli.terminal.screen import Terminal
from kube.labels import Expression, LabelSelector
from kube.pod import Pod
from kube.taints import Taint, TolerationPattern
from policies import policy
from policies.objects import definition, wording
from policies.objects import parts as part
from policies.objects.crd import crd
from policies.objects.definition.policy_spec import POLICY
from policies.objects.field_types import Span
from policies.objects.json_schema import json_schema
from policies.objects.reference import reference_markdown
from policies.planning.plan import make_plan, review_pod
from policies.policy import Bounds, InNotIn, LongRuns, Match, MigDefault, NodeTemplate, Policy
from policies.rules.device_counts import merge_limits
from policies.rules.requests_match_limits import merge_equal
from tests.analysis.conditions import found as objects
from tests.analysis.conditions.found import found
from tests.support.generators.random_cluster import NAMESPACES
from tests.support.generators.random_worlds import world
from tests.support.generators.strategies import ENFORCE, examples, randoms
from tests.support.generators.written_objects import written

A, B = "ClusterGPUPolicy/a", "ClusterGPUPolicy/b"


# --- a field that is added to the definition ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Require(policy.Require):
    lifetime: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Default(policy.Default):
    dashboards: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Allow(policy.Allow):
    dashboards: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ByRuntime(policy.Match):
    runtime: str | None = None


DASHBOARDS = Items(of=PatternText(wanted="the name of a dashboard", pattern="^[a-z]+$"))
NEW: dict[str, tuple[Field, Callable[..., Any]]] = {
    "match": (
        Field(
            name="runtime", attribute="match.runtime", words="on {}", shape=part.VALUE, description="Pods by their runtime.", example="kata"
        ),
        lambda exclude=(), **given: (ByRuntime(**given), exclude),
    ),
    "require": (
        Field(name="lifetime", merge="least", shape=Span(), description="A pod may live this long.", example="12h"),
        part.with_grace(part.with_machine(Require)),
    ),
    "default": (
        Field(name="dashboards", shape=DASHBOARDS, description="Dashboards of the pods.", example="[gpu]"),
        part.with_machine(Default),
    ),
    "allow": (
        Field(name="dashboards", merge="union", shape=DASHBOARDS, description="Dashboards that teams may name.", example="[gpu]"),
        Allow,
    ),
}


def extended(field: Field) -> Field:
    """A section of the policy with its new field."""
    if field.name not in NEW:
        return field
    new, build = NEW[field.name]
    assert isinstance(field.shape, Struct)
    return replace(field, shape=replace(field.shape, build=build, fields=(*field.shape.fields, new)))


@pytest.fixture
def _extended(monkeypatch: pytest.MonkeyPatch) -> None:
    """The definition, with a field more in every section of a policy."""
    longer = replace(POLICY, fields=tuple(map(extended, POLICY.fields)))
    specs = {**definition.SPECS, "ClusterGPUPolicy": longer, "GPUPolicy": longer}
    monkeypatch.setattr(definition, "SPECS", MappingProxyType(specs))


def two(**match: Any) -> tuple[objects.Raw, objects.Raw]:
    """Two policies that give the new fields; ``match``: of the second."""
    named: objects.Raw = {"dashboards": ["gpu"]}
    first: objects.Raw = {"require": {"lifetime": "12h"}, "default": named, "allow": {"dashboards": ["mig", "gpu"]}}
    second: objects.Raw = {"require": {"lifetime": "6h"}, "default": {"repair": ["accelerators"]}, "allow": named}
    a = objects.policy("a", match={"namespaceSelector": {}}, **first)
    b = objects.policy("b", match={"namespaceSelector": {}, **match}, **second)
    return a, b


def asked(*given: objects.Raw) -> Effective:
    changes = {objects.key(one): one for one in (*given, objects.namespace("ml"))}
    return effective(objects.new_updater().apply(changes).snapshot.facts_for("ml"), PodKind())


@pytest.mark.usefixtures("_extended")
@pytest.mark.parametrize("section", NEW)
def test_a_new_field_is_in_the_schemas_and_in_the_reference(section: str) -> None:
    """With its meaning, in the JSON schema, in the CustomResourceDefinition and on the reference page."""
    field, _ = NEW[section]
    spec = crd("ClusterGPUPolicy")["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    for schema in (json_schema("ClusterGPUPolicy")["properties"]["spec"], spec):
        assert schema["properties"][section]["properties"][field.name]["description"].startswith(field.description)
    assert f"| `spec.{section}.{field.name}` |" in reference_markdown()


@pytest.mark.usefixtures("_extended")
def test_a_new_field_is_shown_by_effective() -> None:
    """Merged as its definition says, with who gave it and whom it beats; a policy that matches by it says so."""
    rows = {(row.section, row.field): row for row in asked(*two()).look.rows}
    lifetime = rows["require", "lifetime"]
    assert (lifetime.value, lifetime.text, lifetime.by, lifetime.notes) == (21600, "6h", (B,), (f"tighter than 12h from {A}",))
    assert (rows["default", "dashboards"].value, rows["default", "dashboards"].text) == (["gpu"], "[gpu]")
    assert (rows["allow", "dashboards"].value, rows["allow", "dashboards"].by) == ("mig", (A,))
    assert "all namespaces, pods on kata" in effective_output.table(asked(*two(runtime="kata")), (), Terminal(width=200))


@pytest.mark.usefixtures("_extended")
def test_a_new_field_is_in_statuses() -> None:
    """In what a policy does, and in where it does it."""
    statuses = found(*two(runtime="kata"))
    assert statuses["a"].what == "require lifetime 12h; default dashboards [gpu]; allow dashboards [mig, gpu]"
    assert statuses["b"].where == "all namespaces; pods on kata"


@dataclass(frozen=True, slots=True, kw_only=True)
class Racked(policy.NodeTemplate):
    rack: str = "none"


def test_a_new_field_of_a_template_is_in_its_status(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the name and the value that it has."""
    spec = definition.SPECS["GPUNodeTemplate"]
    rack = Field(name="rack", shape=part.VALUE, description="Where these nodes stand.", example="r1")
    longer = {"GPUNodeTemplate": replace(spec, fields=(*spec.fields, rack))}
    monkeypatch.setattr(definition, "SPECS", MappingProxyType({**definition.SPECS, **longer}))
    one = Racked(name="t", rack="r1", vendors=("nvidia",), labels=(("pool", "t"),))
    assert what_template(one) == "gpus vendors [nvidia]; labels pool=t; rack r1"


# --- text, form and label ----------------------------------------------------------------------------------------------

LONG = LongRuns(over=7200, capacity=("spot",), unknown_is_long=False)
LONG_FORM = {"over": 7200, "capacity": ["spot"], "unknownIsLong": False}


@pytest.mark.parametrize(
    ("path", "value", "text", "form"),
    [
        ("spec.require.families", InNotIn(in_=("a",), not_in=("b",)), "in [a] notIn [b]", {"in": ["a"], "notIn": ["b"]}),
        ("spec.require.gpuMemory", Bounds(min=40, max=80), "at least 40 GB and at most 80 GB", {"min": 40, "max": 80}),
        ("spec.gpus.memory", Bounds(min=40), "at least 40 GB", {"min": 40}),
        ("spec.match.gpus", Bounds(min=1, max=1), "1 GPU", {"min": 1, "max": 1}),
        ("spec.require.gracePeriod.min", 600, "10m", 600),
        ("spec.default.protectFor", "Always", "Always", "Always"),
        ("spec.default.mig", MigDefault(slice_gb=10), "slice 10gb", {"slice": 10}),
        ("spec.default.mig", MigDefault(usable_mib=9728), "usableMemory 9728Mi", {"usableMemory": 9728}),
        ("spec.default.longRuns", replace(LONG, unknown_is_long=True), "over 2h capacity [spot]", {**LONG_FORM, "unknownIsLong": True}),
        ("spec.default.longRuns", LONG, "over 2h capacity [spot] unknownIsLong false", LONG_FORM),
        ("spec.allow.tolerations", (TolerationPattern(key="team", value="a"),), "[team=a]", [{"key": "team", "value": "a"}]),
        ("spec.taints", (Taint(key="pool"),), "[pool:NoSchedule]", [{"key": "pool", "value": "", "effect": "NoSchedule"}]),
    ],
    ids=str,
)  # fmt: skip
def test_a_value_has_one_text_and_one_form(path: str, value: Any, text: str, form: Any) -> None:
    """The text is for people, the form for programs: as the object writes it, with durations as seconds."""
    assert (wording.describe_value(path, value), wording.form(path, value)) == (text, form)


def test_a_long_list_is_cut_where_a_line_is_short() -> None:
    """The values that are left out are counted."""
    assert wording.describe_field("spec.match.workloads", tuple("abcdef"), 4) == "of a, b, c and 3 more"
    assert wording.describe_field("spec.allow.nodeTemplates", tuple("abcd"), 4) == "nodeTemplates [a, b, c, d]"


def test_a_selector_is_written_as_kubectl_takes_it() -> None:
    """All four operators."""
    expressions = (
        Expression(key="env", operator="NotIn", values=("dev", "test")),
        Expression(key="env", operator="In", values=("prod",)),
        Expression(key="gpu", operator="Exists"),
        Expression(key="old", operator="DoesNotExist"),
    )
    selector = LabelSelector(match_labels=(("team", "a"),), match_expressions=expressions)
    assert str(selector) == "team=a,env notin (dev, test),env in (prod),gpu,!old"


@pytest.mark.parametrize(
    ("match", "words"),
    [
        (Match(), ""),
        (Match(gpus=Bounds(min=8)), "pods that ask for at least 8 GPUs"),
        (Match(gpus=Bounds(min=2, max=8)), "pods that ask for at least 2 GPUs and at most 8 GPUs"),
        (Match(workloads=("Job", "MPIJob"), gpus=Bounds(max=1)), "pods of Job, MPIJob that ask for at most 1 GPU"),
        (Match(pod_selector=LabelSelector(match_labels=(("tier", "batch"),))), "pods labelled tier=batch"),
        (Match(namespace_selector=LabelSelector()), ""),
    ],
)
def test_a_condition_says_which_pods_a_policy_is_for(match: Match, words: str) -> None:
    """By what it matches but for the namespaces."""
    assert wording.condition(Policy(name="p", match=match)) == words


# --- every field, whatever is given ------------------------------------------------------------------------------------


def leaves(raw: Any, path: str) -> dict[str, Any]:
    """Path -> value of each field that an object writes."""
    inner = [leaf for name, item in raw.items() for leaf in leaves(item, f"{path}.{name}").items()] if isinstance(raw, dict) else []
    return {path: raw, **dict(inner)}


@given(randoms())
@examples(15, 1000)
def test_every_field_that_an_object_writes_is_found_by_its_path(random: Random) -> None:
    """The typed object has a value for exactly those settings that its document has."""
    found = world(random).policy_set
    everything: list[Policy | NodeTemplate] = [*found.policies, *found.templates]
    for one in everything:
        spec = written(one)["spec"]
        for section in spec:
            given = leaves(spec[section], f"spec.{section}")
            for path in wording.paths(f"spec.{section}"):
                assert (wording.value_at(one, path) is not None) == (path in given), path


@given(randoms())
@examples(15, 1000)
def test_limits_merge_as_the_plan_merges_them(random: Random) -> None:
    """The value in effect and who set it, by ``Field.merge``, are those that the rules judge by."""
    facts = world(random, ENFORCE).snapshot.facts_for(random.choice(NAMESPACES))
    request = request_for(PodKind(), facts.namespace, facts.snapshot.catalog)
    description = review_pod(request, facts, Pod(request.pod))
    plan = make_plan(facts, description._replace(matches=frozenset(facts.policies)), facts.policies)
    limits_of_counts = plan.demands.merged(merge_limits)
    limits = {
        "spec.require.gpusPerPod.max": limits_of_counts.most,
        "spec.require.gracePeriod.min": plan.settings.grace_min,
        "spec.require.gracePeriod.max": plan.settings.grace_max,
        "spec.require.protection.max": plan.settings.protect_max,
    }
    for path, limit in limits.items():
        assert [(row.value, row.by) for row in rows(plan, path)] == ([] if limit is None else [(limit.value, limit.policies)])
    counts = [(tuple(row.value), row.by) for row in rows(plan, "spec.require.gpusPerPod.oneOf")]
    assert counts == ([] if limits_of_counts.one_of is None else [(limits_of_counts.one_of, limits_of_counts.one_of_by)])
    assert {row.value: row.by for row in rows(plan, "spec.require.requestsEqualLimits")} == plan.demands.merged(merge_equal)
