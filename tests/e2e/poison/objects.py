"""Objects of our kinds that no good comes of: past the schema, under it and around it, by the API server or straight into etcd.

Those in a namespace may be understood by chance, and then act there. Those of the cluster never are, or they pick poisoned namespaces
alone: whoever may write them may change what happens elsewhere, so that would be no poison.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Any

from policies.objects import definition
from policies.objects.field_types import Kind
from policies.policy import API_VERSION, GROUP
from tests.e2e.crds.specs import Drawing

Raw = dict[str, Any]
PLURALS: dict[str, str] = {"ClusterGPUPolicy": "clustergpupolicies", "GPUPolicy": "gpupolicies", "GPUNodeTemplate": "gpunodetemplates"}
CLUSTER, OWN, TEMPLATE = definition.KINDS
LABEL = "tests.berth.dev/poisoned"
NAMESPACES = tuple(f"poisoned-{number}" for number in range(5))
FORGED = '{"time":"2026-01-01T00:00:00Z","level":"error","event":"failed","phase":"forged"}'
"""what a reader of the log would take for a crash, had it a line of its own"""
LONE = "\ud800"
"""half of a pair, which is no text: Go makes U+FFFD of it"""
EVIL = (
    f"x\n{FORGED}\n",
    "\x1b[31mred\x1b[0m\x07",
    "a\r\nb\x00c\x7f",
    "\x85\u2028\u2029\x9b",
    "\u202egnp.exe\u200b",
    "\U0001f680" * 40,
    LONE,
)
HUGE = 1_000_000
"""Characters: etcd takes objects of 1.5 MiB"""
NESTED = 300
"""levels; more are in ``test_poison`` by themselves"""
WITHOUT = object()
"""in place of a value: the field is left out"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Poison:
    """One object. ``sure``: if it is stored it can't be understood; else that is the parser's to say."""

    value: Raw
    straight: bool
    """into etcd"""
    sure: bool

    @property
    def key(self) -> str:
        metadata = self.value["metadata"]
        where = f"{metadata['namespace']}/" if self.value["kind"] == OWN else ""
        return f"/registry/{GROUP}/{PLURALS[self.value['kind']]}/{where}{metadata['name']}"


def poison(random: Random, number: int) -> Poison:
    """The number-th object, of a name that no other has."""
    way = random.choice((_unknown, _mutated, _mutated, _straight, _straight))
    return way(random, f"poison-{number}")


def _object(random: Random, kind: Kind, name: str, spec: Any) -> Raw:
    metadata = {"name": name, **({"namespace": random.choice(NAMESPACES)} if kind == OWN else {})}
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}


# --- accepted by the schema, and unknown to Berth ---


def _unknown(random: Random, name: str) -> Poison:
    """A name that the catalog does not have, where it must."""
    word = random.choice(("hoper", "H9000", "x" * 200, "hopper\n", "", *EVIL))
    specs: list[tuple[Kind, Raw]] = [
        (kind, {"mode": "Enforce", **spec})
        for kind in (CLUSTER, OWN)
        for spec in (
            {"require": {"families": {"in": [word]}}},
            {"require": {"models": {"notIn": ["A100", word]}}},
            {"default": {"families": {"in": ["ampere", word]}, "gracePeriod": "24h"}},
            {"match": {"workloads": [word]}, "default": {"gracePeriod": "24h"}},
        )
    ]
    specs += [(TEMPLATE, {"labels": {"a": "b"}, "gpus": gpus}) for gpus in ({"vendors": [word]}, {"families": {"in": [word]}})]
    specs += [(TEMPLATE, {"labels": {"a": "b"}, "gpus": {"sharing": ["MIG"], "migProfiles": [word]}})]
    kind, spec = random.choice(specs)
    return Poison(value=_object(random, kind, name, spec), straight=False, sure=True)


# --- random ones with what nobody expects somewhere in them ---


def _nested(levels: int, of: str) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value] if of == "list" else {"a": value}
    return value


def _odd(random: Random) -> Any:
    return random.choice(
        (
            *(None, True, "", -1, 2**63, 2**63 - 1, -(2**63), 2**200, 1e300, -0.0, 0.1, [], {}, [[]], [None], {"": None}),
            *EVIL,
            *({word: word} for word in EVIL),
            *([word] for word in EVIL),
            random.choice(("x", "\U0001f6a2", "\n")) * 5000,
            [random.choice(("a", 1, None, {}))] * 3000,
            {f"k{i}": i for i in range(1000)},
            _nested(NESTED, random.choice(("list", "map"))),
        )
    )


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """(container, its key or index) of everything inside."""
    for key in value if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], (dict, list)):
            yield from _places(value[key])


def _spoilt(random: Random, spec: Any) -> Any:
    """With one to three values that are others, are gone, or are new."""
    spec = copy.deepcopy(spec)
    for _ in range(random.randint(1, 3)):
        places = list(_places(spec)) if isinstance(spec, (dict, list)) else []
        if not places or random.random() < 0.03:
            return _odd(random)
        container, key = random.choice(places)
        change = random.choice(("other", "other", "other", "new", "gone"))
        if change == "other":
            container[key] = _odd(random)
        elif change == "gone":
            del container[key]
        elif isinstance(container, dict):
            container[random.choice(("what", "allow", "exclude", "in", *EVIL))] = _odd(random)
        else:
            container.append(_odd(random))
    return spec


def _mutated(random: Random, name: str) -> Poison:
    """Much of it is denied by the API server."""
    kind: Kind = random.choice((OWN, OWN, CLUSTER, TEMPLATE))
    spec = _spoilt(random, Drawing(random=random, kind=kind).object()["spec"])
    value = _confined(_object(random, kind, name, spec))
    return Poison(value=value, straight=False, sure=kind == TEMPLATE)


def _confined(value: Raw) -> Raw:
    """Of the cluster's kinds: for poisoned namespaces, if it is for any; no template."""
    spec = value["spec"]
    if not isinstance(spec, dict):
        return value
    if value["kind"] == CLUSTER:
        match = spec.get("match")
        spec["match"] = {**(match if isinstance(match, dict) else {}), "namespaceSelector": {"matchLabels": {LABEL: "true"}}}
    elif value["kind"] == TEMPLATE:
        spec["gpus"] = {"families": {"in": ["hoper"]}}
    return value


# --- straight into etcd ---

JSON_TYPES: tuple[Any, ...] = (WITHOUT, None, "x", "", 3, 2.5, True, [], ["x"], [[{}]], 1e300, 2**63)


def _straight(random: Random, name: str) -> Poison:
    kind: Kind = random.choice((OWN, OWN, CLUSTER, TEMPLATE))
    way = random.choice(
        (_of_a_type, _of_another_kind, _past_the_schema, _without_metadata, _huge if random.random() < 0.02 else _evil_name)
    )
    value, sure = way(random, kind, name)
    value["metadata"].setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
    for field, usual in (("uid", f"uid-of-{name}"), ("generation", 1)):
        if value["metadata"].setdefault(field, usual) is WITHOUT:
            del value["metadata"][field]
    return Poison(value=value, straight=True, sure=sure)


def _of_a_type(random: Random, kind: Kind, name: str) -> tuple[Raw, bool]:
    """A spec of any JSON type, or none."""
    value = _object(random, kind, name, random.choice(JSON_TYPES))
    if value["spec"] is WITHOUT:
        del value["spec"]
    return value, True


def _of_another_kind(random: Random, kind: Kind, name: str) -> tuple[Raw, bool]:
    """A pod's spec, or that of another of our kinds."""
    other = random.choice([one for one in definition.KINDS if one != kind])
    spec = Drawing(random=random, kind=other).object()["spec"] if random.random() < 0.8 else {"containers": [{"name": "c", "image": "x"}]}
    if not isinstance(spec, dict):
        spec = {}
    return _object(random, kind, name, spec | ({"labels": 3} if kind == TEMPLATE else {"mode": "Enforce\n"})), True


def _past_the_schema(random: Random, kind: Kind, name: str) -> tuple[Raw, bool]:
    """Types and values that the schema would not have taken; the API server drops what no field is."""
    spec = _spoilt(random, Drawing(random=random, kind=kind).object()["spec"])
    value = _confined(_object(random, kind, name, spec))
    return value, kind == TEMPLATE


def _without_metadata(random: Random, kind: Kind, name: str) -> tuple[Raw, bool]:
    """Parts of the metadata are gone or of another type, or say another name, or another namespace, than the key."""
    value = _object(random, kind, name, {"mode": "Enfoce", "labels": {"a": 3}, "default": {"gracePeriod": 24}})
    odd: list[Callable[[], Raw]] = [
        lambda: {"uid": WITHOUT},
        lambda: {"generation": WITHOUT},
        lambda: {"generation": "many"},
        lambda: {"labels": ["x"], "annotations": {"a": 3}},
        lambda: {"resourceVersion": "99999999999"},
        lambda: {"deletionTimestamp": "soon", "finalizers": "none"},
        lambda: {"managedFields": "x", "ownerReferences": {}},
        lambda: {"creationTimestamp": 3},
    ]
    value["metadata"] |= random.choice(odd)()
    return value, True


def _evil_name(random: Random, kind: Kind, name: str) -> tuple[Raw, bool]:
    """Names that end lines or steer terminals."""
    evil = random.choice([one for one in EVIL if one != LONE]).replace("/", "-")
    return _object(random, kind, f"{name}-{evil}", {"mode": evil, "labels": evil}), True


def _huge(random: Random, kind: Kind, name: str) -> tuple[Raw, bool]:
    """About a megabyte."""
    specs: tuple[Any, ...] = (
        "x" * HUGE,
        ["\n"] * (HUGE // 5),
        {"mode": EVIL[0] * (HUGE // 200), "labels": 3},
        {"require": {"families": {"in": [f"f{i}" for i in range(HUGE // 12)]}}, "labels": 3},
        {"match": {"podSelector": {"matchLabels": {f"a b{i}": [] for i in range(HUGE // 20)}}}, "labels": 3},
    )
    return _object(random, kind, name, random.choice(specs)), True


def poisons(seed: int, most: int) -> Iterator[Poison]:
    """So many, the same for a seed."""
    random = Random(seed)
    for number in count():
        if number == most:
            return
        yield poison(random, number)


def stored_form(one: Poison) -> bytes:
    """As etcd has it."""
    return json.dumps(one.value).encode()
