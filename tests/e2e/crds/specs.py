"""Random objects of our kinds, drawn from the definition: mostly right, with a mistake of any sort here and there.

Names that only the catalog knows are always right, and forms that the CRD alone rejects are left out: ``test_crds`` has those apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from catalog.shapes.scalars import Flag, Name, PatternText, Scalar, Whole, WordChoice
from catalog.shapes.structs import Items, Mapped, Shape, Struct
from policies.objects import definition
from policies.objects.field_types import Kind, Memory, SliceSize, Span, TemplateName, UsableMemory
from policies.policy import API_VERSION

Raw = dict[str, Any]
MISTAKE = 0.02
"""of a value to be none of its kind; a spec has some thirty values, so about half have no mistake"""
ODD: tuple[Any, ...] = (None, True, 3, -1, 8.0, 2.5, 10**7, "", "x y", "a" * 400, "\x0b", "ä", [], {}, [None], {"x": 1}, ["a", 3])
ODD_NAMES = tuple(value for value in ODD if not isinstance(value, str))
"""any text may be a name that the catalog, or the cluster, comes to have"""
KNOWN = {
    "families": ("hopper", "ampere"),
    "vendors": ("nvidia", "amd"),
    "models": ("L4", "A100", "A100-40GB"),
    "instanceFamilies": ("p4d", "p5"),
    "workloads": ("Job", "PyTorchJob"),
    "migProfiles": ("1g.10gb", "2g.20gb"),
}
KEYS = ("team", "example.com/team", "a.b-c/D_e.f", "x" * 63)
WRONG_KEYS = ("a b", "-a", "a/b/c", "/a", "A.b/c", "", "team\n", "x\x0b", "ä", "a" * 318)
VALUES = ("", "research", "A.b_c-9", "x" * 63)
WRONG_VALUES = ("a b", "-a", "x" * 64, "a\n", "ä", ".")
NAMES = ("nvidia", "a.b-c", "0")
WRONG_NAMES = ("NVIDIA", "a b", "-a", "a.", "a_b", "", "a\n", "ä")
USERS = ("anna", "system:serviceaccount:ci:runner", "ä@example.com")
WRONG_USERS = ("", "a b", "a\x0b", "a\n", "\t")
SPANS = ("2h", "90s", "1h30m", "1.5h", "0.5m", "8784h", "1s", "0002h", "1h0m0s")
WRONG_SPANS = (
    "",
    "0s",
    "0.5s",
    "1.5s",
    "0.001h",
    "8785h",
    "8784h1s",
    "30d",
    "1h 3m",
    "2H",
    "5",
    "-2h",
    "+2h",
    ".5h",
    "2h\n",
    "Always ",
    "1e3s",
    "9999999999h",
    "2h" * 17,
)
WRONG_SIZES = ("10GB", "1g.10gb", "10", "gb", "10gb ", "99999gb", "10gib")
WRONG_AMOUNTS = ("0", "0Gi", "lots", "9.5 Gi", "-1Gi", "9,5Gi", "9Gib", "Gi", "")
NUMBERS = (-1, 0, 1, 8.0, 1_000_000, 1_000_001, 2**53, 2**63, 1e300, 1.5)
FORMS: dict[str, tuple[Callable[[Any], Raw], tuple[Any, ...]]] = {
    "a duration": (lambda value: {"default": {"gracePeriod": value}}, SPANS + WRONG_SPANS + ODD),
    "a duration or Always": (
        lambda value: {"default": {"protectFor": value}},
        (*SPANS, "Always", "always", "Always2h", *WRONG_SPANS, *ODD),
    ),
    "a size": (lambda value: {"default": {"mig": {"slice": value}}}, ("10gb", *WRONG_SIZES, *ODD)),
    "an amount": (lambda value: {"default": {"mig": {"usableMemory": value}}}, ("9Gi", "4.5Gi", "5000M", *WRONG_AMOUNTS, *ODD)),
    "a taint key": (lambda value: {"default": {"tolerate": [{"key": value}]}}, KEYS + WRONG_KEYS + ODD),
    "a taint value": (lambda value: {"default": {"tolerate": [{"key": "a", "value": value}]}}, VALUES + WRONG_VALUES + ODD),
    "a label key": (lambda value: {"match": {"podSelector": {"matchLabels": {str(value): "a"}}}}, KEYS + WRONG_KEYS),
    "a label value": (lambda value: {"match": {"podSelector": {"matchLabels": {"a": value}}}}, VALUES + WRONG_VALUES + ODD),
    "a user": (lambda value: {"match": {"exclude": {"users": [value]}}}, USERS + WRONG_USERS + ODD),
    "a number from 0": (lambda value: {"match": {"gpus": {"min": value}}}, NUMBERS + ODD),
    "a number from 1": (lambda value: {"require": {"gpuMemory": {"min": value}}}, NUMBERS + ODD),
    "true or false": (lambda value: {"require": {"longRuns": {"over": "2h", "capacity": ["spot"], "unknownIsLong": value}}}, (False, *ODD)),
}
"""Each form of a value: the spec of a ClusterGPUPolicy around it, and values that have it or nearly have it."""


def made(kind: Kind, spec: Any, name: str = "tried") -> Raw:
    """An object; in the namespace default, where the kind has one."""
    namespace = {"namespace": "default"} if kind in definition.NAMESPACED else {}
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name, **namespace}, "spec": spec}


@dataclass(kw_only=True)
class Drawing:
    """One object on its way."""

    random: Random
    kind: Kind

    def object(self) -> Raw:
        """Whole, of the name drawn."""
        spec = self.value(definition.SPECS[self.kind])
        if isinstance(spec, dict) and spec.get("require") == {}:
            del spec["require"]
        return made(self.kind, spec, "drawn")

    def value(self, shape: Shape) -> Any:
        """Of this shape, or by mistake of none."""
        if self.chance(MISTAKE):
            return self.random.choice(ODD_NAMES if isinstance(shape, Name | TemplateName) else ODD)
        match shape:
            case Struct():
                return self.struct(shape)
            case Items():
                count = self.random.choice((1, 1, 2, 3)) if not self.chance(0.05) else 0
                return [self.value(shape.of) for _ in range(count)]
            case Mapped():
                return {self.text(KEYS, WRONG_KEYS): self.text(VALUES, WRONG_VALUES) for _ in range(self.random.choice((0, 1, 1, 2)))}
            case Whole():
                most = shape.most or 8
                return self.random.choice((1, 2, 4, 8, shape.least, most) + ((shape.least - 1, most + 1) if self.mistaken else ()))
            case Flag():
                return self.chance(0.5)
            case WordChoice():
                return self.text(shape.values, tuple(value.swapcase() for value in shape.values))
        return self.word(shape)

    def word(self, shape: Scalar) -> str:
        match shape:
            case Name():
                return self.random.choice(KNOWN[shape.known])
            case TemplateName():
                return "a100-training"
            case Span(word=word):
                return self.text((*SPANS, word) if word else SPANS, WRONG_SPANS)
            case SliceSize():
                return self.text(("10gb", "20gb"), WRONG_SIZES)
            case UsableMemory():
                return self.text(("9Gi", "4.5Gi", "5000M"), WRONG_AMOUNTS)
            case Memory():
                return self.text(("8Gi", "1.5Gi", "64000M"), (*WRONG_AMOUNTS, "1k", "2Ti"))
        assert isinstance(shape, PatternText)
        right, wrong = {
            "a user name": (USERS, WRONG_USERS),
            "a label value": (VALUES, WRONG_VALUES),
            "the name of a class": (NAMES, WRONG_NAMES),
            "the name of a scheduler": (NAMES, WRONG_NAMES),
            "the name of a queue": (NAMES, WRONG_NAMES),
            "the name of a queue, or *": ((*NAMES, "*"), (*WRONG_NAMES, "**")),
            "the name of a partition": (("gpu", "Long_Runs.1", "0"), WRONG_VALUES),
            "the name of a partition, or *": (("gpu", "*"), WRONG_VALUES),
        }.get(shape.wanted, (KEYS, WRONG_KEYS))
        return self.text(right, wrong)

    def struct(self, shape: Struct) -> Raw:
        """Some of its fields; a required one is seldom left out, one of another kind or of none seldom put in."""
        given = {
            field.name: self.value(field.shape)
            for field in shape.fields
            if self.chance((0.98 if field.required else 0.4) if field.of(self.kind) else 0.02)
        }
        if not given and shape.any_of + shape.one_of and not self.mistaken:
            name = self.random.choice(shape.any_of + shape.one_of)
            given = {name: self.value(next(field.shape for field in shape.fields if field.name == name))}
        return given | ({"unheardOf": 1} if self.chance(MISTAKE / 4) else {})

    def text(self, right: tuple[str, ...], wrong: tuple[str, ...]) -> str:
        return self.random.choice(wrong if self.mistaken else right)

    @property
    def mistaken(self) -> bool:
        return self.chance(MISTAKE)

    def chance(self, of: float) -> bool:
        return self.random.random() < of
