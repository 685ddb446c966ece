"""Parts that several fields of ``definition`` share: selectors, name lists, bounds, tolerations, taints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from catalog.shapes.scalars import Flag, Name, PatternText, Whole, WordChoice
from catalog.shapes.structs import Field, Items, Mapped, Struct
from kube import labels as label_selector
from kube.taints import Taint, TolerationPattern
from policies import policy
from policies.objects import validation as between
from policies.objects.field_types import Span, TaintKey, sorted_pairs

_DNS = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
DNS_LABEL = rf"^{_DNS}$"
DNS_SUBDOMAIN = rf"^{_DNS}(\.{_DNS})*$"
LABEL_KEY = rf"^({_DNS}(\.{_DNS})*/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
LABEL_VALUE = r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"
"""Grammars of k8s.io/apimachinery pkg/util/validation."""

KEY = PatternText(wanted="a label key", pattern=LABEL_KEY, most=317)  # 253 for the prefix, 63 for the name
TAINT_KEY = TaintKey(wanted="a taint key", pattern=LABEL_KEY, most=317)
VALUE = PatternText(wanted="a label value", pattern=LABEL_VALUE, most=63)
_EFFECT = WordChoice(values=("NoSchedule", "PreferNoSchedule", "NoExecute"))
CAPACITY = WordChoice(values=("spot", "on-demand", "reserved"))
SHARING = WordChoice(values=("Exclusive", "MIG", "TimeSliced"))


def labels(least: int = 0) -> Mapped:
    """Return the shape of a map of labels, stored as sorted pairs."""
    return Mapped(keys=KEY, of=VALUE, least=least, noun="label", build=sorted_pairs)


_EXPRESSION = Struct(
    build=label_selector.Expression,
    rules=(between.values_fit_operator,),
    fields=(
        Field(name="key", shape=KEY, description="The label key.", example="team", required=True),
        Field(
            name="operator",
            shape=WordChoice(values=("In", "NotIn", "Exists", "DoesNotExist")),
            description="NotIn and DoesNotExist also match objects without the label.",
            example="In",
            required=True,
        ),
        Field(name="values", shape=Items(of=VALUE, least=0), description="The values for In and NotIn.", example="[research]"),
    ),
)
SELECTOR = Struct(
    build=label_selector.LabelSelector,
    text=str,
    fields=(
        Field(
            name="matchLabels", store="match_labels", shape=labels(), description="Labels with these values.", example="{team: research}"
        ),
        Field(
            name="matchExpressions",
            store="match_expressions",
            shape=Items(of=_EXPRESSION, least=0),
            description="All expressions must match.",
            example="[{key: team, operator: In, values: [research]}]",
        ),
    ),
)


def names(name: Name, example: str) -> Struct:
    """Return the shape of ``{in: [...], notIn: [...]}`` of catalog names."""
    lists = Items(of=name)
    return Struct(
        build=policy.InNotIn,
        any_of=("in", "notIn"),
        rules=(between.something_is_left,),
        fields=(
            Field(name="in", store="in_", shape=lists, description="Only these.", example=f"[{example}]"),
            Field(name="notIn", store="not_in", shape=lists, description="All except these.", example=f"[{example}]"),
        ),
    )


def gigabytes(bounds: policy.Bounds) -> str:
    """Return bounds of memory in words: ``at least 40 GB and at most 80 GB``."""
    return _ends(bounds, lambda number: f"{number} GB")


def devices(bounds: policy.Bounds) -> str:
    """Return bounds of a number of GPUs in words: ``8 GPUs``, ``at least 8 GPUs``."""
    return _gpus(bounds.min) if bounds.min is not None and bounds.min == bounds.max else _ends(bounds, _gpus)


def _ends(bounds: policy.Bounds, amount: Callable[[int], str]) -> str:
    ends = (("at least", bounds.min), ("at most", bounds.max))
    return " and ".join(f"{word} {amount(number)}" for word, number in ends if number is not None)


def _gpus(number: int) -> str:
    return f"{number} GPU{'' if number == 1 else 's'}"


def bounds(least: int, unit: str, example: tuple[int, int], text: Callable[[policy.Bounds], str]) -> Struct:
    """Return the shape of ``{min: 40, max: 80}``.

    ``text``: renders the two bounds for a sentence.
    """
    number = Whole(least=least, unit=unit)
    return Struct(
        build=policy.Bounds,
        text=text,
        any_of=("min", "max"),
        rules=(between.min_below_max,),
        fields=(
            Field(name="min", shape=number, description=f"At least this many {unit}.", example=str(example[0])),
            Field(name="max", shape=number, description=f"At most this many {unit}.", example=str(example[1])),
        ),
    )


_FAMILIES = names(Name(noun="GPU family", known="families"), "hopper")
_MODELS = names(Name(noun="GPU model", known="models"), "L4")
_INSTANCE_FAMILIES = names(Name(noun="instance family", known="instanceFamilies", open=True), "p4d")
_GPU_MEMORY = bounds(1, "GB", (40, 80), gigabytes)

_ABOUT_FAMILIES = (
    "GPU architectures, as in the label `nvidia.com/gpu.family`. `berth gpus` lists them. Without a family label, a model that is newer "
    "than the catalog passes a default, but not a requirement."
)
_ABOUT_MODELS = "GPU models by catalog name (`A100-40GB`) or group (`A100`). `berth gpus` lists them."
_ABOUT_INSTANCES = (
    "Instance families of the cloud, by exact name, with or without HyperPod's `ml.`. An unknown name causes a warning. In a GPUPolicy "
    "it matches no machine until a ClusterGPUPolicy, a template or the catalog has it."
)


def machine(memory: str) -> tuple[Field, ...]:
    """Return the machine fields; in a template ``memory`` is the short name."""
    return (
        Field(name="families", attribute="machine.families", shape=_FAMILIES, description=_ABOUT_FAMILIES, example="{in: [hopper]}"),
        Field(name="models", attribute="machine.models", shape=_MODELS, description=_ABOUT_MODELS, example="{notIn: [A100-40GB]}"),
        Field(
            name="instanceFamilies",
            store="instance_families",
            attribute="machine.instance_families",
            shape=_INSTANCE_FAMILIES,
            description=_ABOUT_INSTANCES,
            example="{notIn: [p4d]}",
        ),
        Field(
            name=memory,
            store="gpu_memory",
            attribute="machine.gpu_memory",
            shape=_GPU_MEMORY,
            description="Nominal memory of one GPU in GB, from the catalog.",
            example="{min: 40}",
        ),
    )


def with_machine(build: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``build`` so that the machine fields, which are written beside the others, become one Machine."""
    names = [field.argument for field in machine("gpuMemory")]

    def made(**given: Any) -> Any:
        machine = policy.MachineFields(**{name: given.pop(name) for name in names if name in given})
        return build(machine=machine, **given)

    return made


def toleration(key: PatternText) -> Struct:
    return Struct(
        build=TolerationPattern,
        text=str,
        fields=(
            Field(name="key", shape=key, description="The key of the taint.", example="team", required=True),
            Field(name="value", shape=VALUE, description="The value of the taint. If not set: any.", example="research"),
            Field(name="effect", shape=_EFFECT, description="The effect of the taint. If not set: any.", example="NoSchedule"),
        ),
        not_here={"operator": "leave it out: a value means Equal, no value means Exists"},
    )


TAINT = Struct(
    build=Taint,
    text=str,
    fields=(
        Field(name="key", shape=TAINT_KEY, description="The key of the taint.", example="pool", required=True),
        Field(name="value", shape=VALUE, description="The value of the taint.", example="a100"),
        Field(name="effect", shape=_EFFECT, description="The effect of the taint.", example="NoSchedule", default="NoSchedule"),
    ),
)
LONG_RUNS = Struct(
    build=policy.LongRuns,
    fields=(
        Field(name="over", shape=Span(), description="Runs longer than this are long.", example="2h", required=True),
        Field(
            name="capacity",
            shape=Items(of=CAPACITY),
            description="Capacity types for long runs.",
            example="[on-demand]",
            required=True,
        ),
        Field(
            name="unknownIsLong",
            store="unknown_is_long",
            shape=Flag(),
            description="Whether a pod counts as long if it has neither `berth.dev/expected-duration` nor `activeDeadlineSeconds`.",
            example="true",
            default=True,
        ),
    ),
)


GRANTED = "Never more than the platform grants (600 s with Cluster Autoscaler)."
_UNBOUNDED = policy.Bounds()
GRACE = Struct(
    build=policy.Bounds,
    any_of=("max", "min"),
    rules=(between.shortest_below_longest,),
    fields=(
        Field(
            name="min", attribute="grace_min", merge="most", shape=Span(), example="10m",
            description="At least this long. Berth raises a shorter period, even the author's. Services can opt out "
            "(`berth.dev/opt-out: grace`); pods of DaemonSets keep theirs.",
        ),
        Field(name="max", attribute="grace_max", merge="least", shape=Span(), description="At most this long.", example="1h"),
    ),
)  # fmt: skip


def with_grace(build: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``build`` so that the two bounds of ``gracePeriod`` are split: a minimum is written into pods,
    a maximum only judged."""

    def made(grace: policy.Bounds = _UNBOUNDED, **given: Any) -> Any:
        return build(grace_min=grace.min, grace_max=grace.max, **given)

    return made


def capacity(description: str) -> Field:
    return Field(name="capacity", shape=Items(of=CAPACITY), description=description, example="[spot, on-demand]")


def long_runs(description: str) -> Field:
    return Field(name="longRuns", store="long_runs", shape=LONG_RUNS, description=description, example="{over: 2h, capacity: [on-demand]}")


TOLERATIONS = Items(of=toleration(KEY))
