"""Cases for the functions of ``kube``, random and hostile, as the program ``kube`` reads them (tests/testcluster/modules/kube).

A generator leaves out what the API server denies before anybody else computes with it; a comment names the validation.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from kube.labels import integer as read_integer
from tests.support.scheduling import random_places

Raw = dict[str, Any]
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
KEYS = ("a", "b", "example.com/tier", "kubernetes.io/hostname")
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
SUFFIXES = ("", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
INT64 = 2**63
ODD_QUANTITIES = (
    *("", " ", "  1 ", "+", "-", ".", "+.", "-.", "Ki", "Ei", "m", "E", "e", "e1", "E+1", "1e", "1e+", "1 Gi", "1K", "1mi", "0x1", "1_0"),
    *("\u0661", "\uff11", "1\u2009", "1e4294967296", "1e4294967297", "1e-4294967297", "1e9223372036854775808", "0e5000", "-0", "1e-10"),
    *("9Ei", "8Ei", "9E", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "7.9999999Ei"),
    *("0.0000000001", "-0.0000000001", "0.00000000049Ki", "1e18", "1e19", "one", "$GPUS", "NaN", "inf", "Infinity", "1E1E1", "1ee3"),
    *("1M5", "1\\n", "--1", "1.5Ei", "1e-9"),
)
LARGE_EXPONENT = re.compile("[eE][+-]?[0-9]{4}")
UNITS = ("h", "m", "s", "ms", "us", "\u00b5s", "\u03bcs", "ns", "d")
LONG_DURATIONS = (
    *("-9223372036854775808ns", "9223372036854775808ns", "9223372036854775808ns9223372036854775808ns2h", "2562047h", "2562048h"),
    *("0.00000000000000000000000000001h", "0.99999999999999999999s", "0" * 900 + "1h"),
)
ODD_DURATIONS = ("", "0", "-0", "+", ".", "s", ".s", "1", "1 h", " 1h", "1h ", "1H", "--1h", "1e3s", "\u0661h", *LONG_DURATIONS)
INTEGERS = (
    *("", "0", "-0", "+0", "1", "5", "+5", "-5", "05", "-05", "00", "1_0", "0x5", "1e1", "5.0", " 5", "5 ", "--5", "+-5", "+", "-", "a"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "99999999999999999999"),
    *("\u0665", "\uff15", "0" * 30 + "7", "10", "100", "4", "6"),
)
NUMBERS = tuple(text for text in INTEGERS if (number := read_integer(text)) is not None and number > -INT64)
BOUNDS = tuple(text for text in INTEGERS if not text.startswith(("+", "-")))
"""Label values: a requirement of another one is denied (labels.NewRequirement)"""
LABEL_VALUES = ("", "x", "y", "5", "05", "10", "9223372036854775807", "9223372036854775808", "A.b_c-d")


def _digits(random: Random, most: int) -> str:
    return "".join(random.choice("00123456789") for _ in range(random.randint(0, random.choice((2, most)))))


def _mutated(random: Random, text: str) -> str:
    """Change, drop or double one character, now and then."""
    if not text or random.random() < 0.9:
        return text
    place = random.randrange(len(text))
    changed: str = random.choice(("", text[place] * 2, *"+-.eEi0 _xKm\u0661"))
    return text[:place] + changed + text[place + 1 :]


def quantity(random: Random) -> Any:
    """Return a JSON value. Exponents of more than 999, for which Go computes that many digits, are left out (kube.quantity), as is
    null, which Go reads as zero: the API server sends none."""
    chosen = random.random()
    if chosen < 0.1:
        return random.choice(ODD_QUANTITIES)
    if chosen < 0.2:
        return random.choice((random.randint(-20, 20), random.randint(-(2**70), 2**70), random.random() * 10 ** random.randint(-12, 30)))
    if chosen < 0.21:
        return random.choice((True, False, [], {}, ["1"]))
    number = random.choice(("", "", "", "+", "-")) + _digits(random, 40) + random.choice(("", "", ".")) + _digits(random, 25)
    exponent = random.choice(("e", "E", "e+", "e-", "E-")) + str(random.choice((random.randint(0, 40), random.randint(0, 99))))
    text = _mutated(random, number + random.choice((*SUFFIXES, *(exponent,) * 6)))
    return text if not LARGE_EXPONENT.search(text) else number


def size(random: Random) -> int:
    """Return a number of bytes, so many that a quantity has no decimal suffix (CanonicalizeBytes)."""
    return 1024 + random.choice((random.randrange(INT64 - 1024), random.randrange(5000), random.randrange(2**20) << random.randrange(43)))


def duration(random: Random) -> str:
    """Return a text of at most 1,000 characters, beyond which kube.duration reads none."""
    if random.random() < 0.05:
        return random.choice(ODD_DURATIONS)
    units = UNITS[: random.choice((3, 8, 8, 9))]
    count = random.choice((1, 1, 2, 3))
    parts = (_digits(random, 20) + random.choice(("", "", ".")) + _digits(random, 25) + random.choice(units) for _ in range(count))
    return _mutated(random, random.choice(("", "", "", "+", "-")) + "".join(parts))


def integer(random: Random) -> str:
    """Return a text that may be a number."""
    if random.random() < 0.3:
        return random.choice(INTEGERS)
    near = random.choice((0, INT64, -INT64, 2**32, 10**30)) + random.randint(-3, 3)
    return _mutated(random, random.choice(("", "", "+", "0")) + str(near))


def _expression(random: Random, operators: Sequence[str] = (*OPERATORS, "Near", "", "in")) -> Raw:
    """Return an expression with as many values as ValidateNodeSelectorRequirement and ValidateLabelSelectorRequirement want: some for
    In and NotIn, none for Exists and DoesNotExist. Bounds come in any number: they make a term that nobody can read."""
    operator = random.choice(operators)
    if operator in ("Gt", "Lt"):
        values = random.choices(BOUNDS, k=random.choice((1, 1, 1, 1, 0, 2)))
    else:
        values = random.choices(LABEL_VALUES, k=random.randint(1, 3)) if operator in ("In", "NotIn") else []
    return {"key": random.choice(KEYS), "operator": operator, **({"values": values} if values or random.random() < 0.5 else {})}


def _labels(random: Random, values: Sequence[str] = (*LABEL_VALUES, *INTEGERS)) -> Raw:
    return {key: random.choice(values) for key in KEYS if random.random() < 0.6}


def selector(random: Random) -> Raw:
    """Return a label selector and labels. An operator of another kind than these four is denied (LabelSelectorAsSelector)."""
    expressions = [_expression(random, OPERATORS[:4]) for _ in range(random.choice((0, 1, 1, 2)))]
    equal = {key: random.choice(LABEL_VALUES) for key in KEYS if random.random() < 0.2}
    return {"selector": {"matchLabels": equal, "matchExpressions": expressions}, "labels": _labels(random, LABEL_VALUES)}


def toleration(random: Random) -> Raw:
    """Return tolerations and a taint. None of the tolerations is null, which is one of an empty key (ValidateTolerations)."""
    fields: Mapping[str, Sequence[Any]] = {
        "key": ("", "a", "a", "b", None),
        "operator": ("", "Equal", "Exists", "Gt", "Lt", "Gt", "Lt", "Near", None),
        "value": (*INTEGERS, "x", "", None),
        "effect": ("", *EFFECTS, None),
        "tolerationSeconds": (0, 60, None),
    }
    count = random.choice((0, 1, 1, 2))
    tolerations = [{name: random.choice(values) for name, values in fields.items() if random.random() < 0.7} for _ in range(count)]
    taint = {"key": random.choice(("a", "a", "b")), "value": random.choice((*INTEGERS, "x")), "effect": random.choice(EFFECTS)}
    return {"tolerations": tolerations, "taint": taint}


def affinity(random: Random) -> Raw:
    """Return a pod's spec and a node. Fields have the key metadata.name, the only one that ValidateNodeFieldSelectorRequirement admits."""
    if random.random() < 0.3:
        fields = random_places.pod(random, "p", ["n", "m"])["spec"]
        spec: Raw = {name: fields[name] for name in ("nodeSelector", "affinity") if name in fields}
        return {"spec": spec, "node": {"metadata": random_places.node(random, "n")["metadata"]}}
    spec = {}
    if random.random() < 0.3:
        spec["nodeSelector"] = {key: random.choice((*LABEL_VALUES, None)) for key in KEYS if random.random() < 0.3}
    if random.random() < 0.9:
        terms = [_term(random) for _ in range(random.choice((0, 1, 1, 1, 2, 3)))]
        required: Raw | None = random.choice(({"nodeSelectorTerms": terms},) * 20 + ({}, None))
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return {"spec": spec, "node": {"metadata": {"name": random.choice(("n", "m")), "labels": _labels(random)}}}


def _term(random: Random) -> Raw | None:
    if random.random() < 0.1:
        return random.choice((None, {}, {"matchExpressions": []}, {"matchExpressions": None, "matchFields": []}))
    term: Raw = {}
    if random.random() < 0.9:
        term["matchExpressions"] = [_expression(random) for _ in range(random.randint(1, 2))]
    if random.random() < 0.3:
        values = random.choices(("n", "m", ""), k=random.choice((1, 1, 1, 0, 2)))
        term["matchFields"] = [{"key": "metadata.name", "operator": random.choice(OPERATORS), "values": values}]
    return term


WHOLE, FINE = ("1", "0", "2", "500m", "64Mi", 3, 0.5, "1e3", "4T"), ("1500u", "1n")
"""Amounts in thousandths, and finer ones, which are rounded when a pod is stored"""


def pod(random: Random) -> Raw:
    """Return a pod. Hugepages come in whole pages, and are requested by their limits (validateContainerResourceRequirements). A pod
    with resources of its own has no finer amounts: until 1.37 they are added up before they are rounded (SetDefaults_Pod)."""
    created = random_places.pod(random, "p", ["n", "m"])
    created["metadata"]["namespace"] = "default"
    spec = created["spec"]
    if random.random() < 0.3:
        spec["resources"] = _resources(random, WHOLE)
    amounts = WHOLE if "resources" in spec else WHOLE + FINE
    if random.random() < 0.3:
        spec["overhead"] = _amounts(random, amounts)
    if random.random() < 0.1:
        spec["hostNetwork"] = True
    is_guaranteed = random.random() < 0.3
    if is_guaranteed and "resources" in spec:
        spec["resources"] = {"limits": {"cpu": random.choice(("1", "2")), "memory": "1Gi"}}
    for container in (*spec["containers"], *spec["initContainers"]):
        if random.random() < 0.1:
            container["ports"] = [{"containerPort": 81}, {"containerPort": 82, "hostPort": random.choice((0, None))}]
        if is_guaranteed:
            cpu = random.choice(("1", "2", *amounts[-5:]))
            limits = {**_amounts(random, amounts[:3]), "cpu": cpu, "memory": "1Gi"}
            requests = random.choice((None, limits, limits, {"cpu": "2m"}))
            container["resources"] = {"limits": limits, **({} if requests is None else {"requests": dict(requests)})}
        elif random.random() < 0.4:
            container["resources"] = _resources(random, amounts)
        elif random.random() < 0.1:
            container["resources"] = random.choice(({}, {"limits": None}, {"requests": {}, "limits": {}}))
    return created


def _resources(random: Random, amounts: Sequence[Any]) -> Raw:
    resources = {side: _amounts(random, amounts) for side in ("requests", "limits") if random.random() < 0.7}
    if random.random() < 0.2:
        resources.setdefault("limits", {})["hugepages-2Mi"] = random.choice(("32Mi", "64Mi", "0"))
    return resources


def _amounts(random: Random, amounts: Sequence[Any]) -> Raw:
    names = ("cpu", "memory", "ephemeral-storage", "nvidia.com/gpu", "pods", "storage", "x", "attachable-volumes-y")
    return {name: random.choice(amounts) for name in random.sample(names, random.randint(0, 3))}


def merge(random: Random) -> list[Raw]:
    """Return a pod's spec and one to lay over it. Items of one list have different keys (ValidatePodSpec)."""
    return [_spec(random, nulls=()), _spec(random, nulls=(None,))]


def _spec(random: Random, nulls: tuple[None, ...]) -> Raw:
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": _some(random)}}
    spec: Raw = {
        "containers": [_container(random, name, nulls) for name in _some(random)],
        "initContainers": [_container(random, name, nulls) for name in _some(random)],
        "resourceClaims": [{"name": name, "resourceClaimName": random.choice("xy")} for name in _some(random)],
        "volumes": [{"name": name, "emptyDir": {}} for name in _some(random)],
        "topologySpreadConstraints": [{"topologyKey": key, "maxSkew": random.randint(1, 2)} for key in _some(random)],
        "nodeSelector": {key: random.choice(("1", "2", *nulls)) for key in ("env", "ports", *_some(random))},
        "tolerations": [{"key": key, "operator": "Exists"} for key in _some(random)],
        "schedulerName": random.choice(("default-scheduler", "kai")),
        "affinity": {"nodeAffinity": random.choice(({}, terms))},
        "overhead": {"cpu": "1"},
    }
    return _thinned(random, spec, nulls)


def _container(random: Random, name: str, nulls: tuple[None, ...]) -> Raw:
    sides = ({key: random.choice(("1", 2, *nulls)) for key in ("cpu", "nvidia.com/gpu") if random.random() < 0.6} for _ in range(2))
    fields: Raw = {
        "image": random.choice("ij"),
        "command": _some(random),
        "env": [{"name": key, "value": random.choice("xy")} for key in _some(random)],
        "ports": [{"containerPort": number, "protocol": random.choice(("TCP", "UDP"))} for number in random.sample((80, 81, 82), 2)],
        "volumeMounts": [{"mountPath": f"/{key}", "name": random.choice("vw")} for key in _some(random)],
        "resources": dict(zip(random.sample(("limits", "requests"), 2), sides, strict=True)),
        "restartPolicy": "Always",
    }
    return {"name": name, **_thinned(random, fields, nulls)}


def _some(random: Random) -> list[str]:
    return random.sample("abcd", random.randint(0, 3))


def _thinned(random: Random, fields: Raw, nulls: tuple[None, ...]) -> Raw:
    """Return some of the fields, a few of them null."""
    return {key: None if nulls and random.random() < 0.1 else value for key, value in fields.items() if random.random() < 0.6}


PARTS = ("a", "b", "0", "1", "-", "a/b", "a~b", "~1", "", "\u00e9")


def _tree(random: Random, depth: int) -> Any:
    chosen = random.random()
    if depth == 0 or chosen < 0.2:
        return random.choice((None, True, 1, 1.5, "x", "", {}, []))
    if chosen < 0.5:
        return [_tree(random, depth - 1) for _ in range(random.randint(0, 3))]
    return {random.choice(PARTS): _tree(random, depth - 1) for _ in range(random.randint(0, 4))}


def patch(random: Random) -> list[Any]:
    """Return a map and operations on it."""
    tree = {key: _tree(random, 3) for key in PARTS if random.random() < 0.5}
    return [tree, [_operation(random, tree) for _ in range(random.choice((1, 1, 2, 3)))]]


def _operation(random: Random, tree: Any) -> Raw:
    path, value = "", copy.copy(tree)
    while True:
        if isinstance(value, list):
            part: Any = random.choice((*range(len(value) + 1), "-"))
            value = value[part] if isinstance(part, int) and part < len(value) else None
        else:
            part = random.choice((*value, random.choice(PARTS))) if isinstance(value, dict) else random.choice(PARTS)
            value = value.get(part) if isinstance(value, dict) else None
        path += "/" + str(part).replace("~", "~0").replace("/", "~1")
        if not isinstance(value, dict | list) or random.random() < 0.3:
            break
    operation = random.choice(("add", "replace", "remove"))
    return {"op": operation, "path": path, **({} if operation == "remove" else {"value": _tree(random, 1)})}


def requirement(random: Random) -> Raw:
    """Return what a NodePool has of a label, what a pod wants of it, and values to try. Bounds are one number each, as the API server
    and Karpenter's CRD have them validated; without the least int64 at Lt, below which Karpenter wraps around (requirement.go:
    ``value--``)."""
    key = random.choice(("example.com/x", "beta.kubernetes.io/arch", "topology.kubernetes.io/zone"))
    has, wants = ({"key": key, **_requirement(random)} for _ in range(2))
    return {"has": has, "wants": wants, "tried": random.sample(INTEGERS, 4)}


def _requirement(random: Random) -> Raw:
    operator = random.choice((*OPERATORS, "Gte", "Lte"))
    if operator[0] in "GL":
        return {"operator": operator, "values": [random.choice(NUMBERS)]}
    values = random.sample((*LABEL_VALUES, *INTEGERS[:12]), random.randint(0, 4)) if operator in ("In", "NotIn") else []
    return {"operator": operator, "values": values}


CASES: Mapping[str, Callable[[Random], Any]] = {
    "quantity": quantity,
    "bytes": size,
    "duration": duration,
    "integer": integer,
    "selector": selector,
    "toleration": toleration,
    "affinity": affinity,
    "pod": pod,
    "merge": merge,
    "patch": patch,
    "requirement": requirement,
}
"""Kind, as the program names it -> what makes a case"""
