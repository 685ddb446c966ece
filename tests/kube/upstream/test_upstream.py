"""``kube`` computes what the code of Kubernetes and Karpenter computes, which a program in Go runs (tests/testcluster/modules/kube).

``make prove`` compares a million cases, ``make test`` some thousands, and ``make check`` those of results.jsonl, with the results that
the program gave. BERTH_WRITE_UPSTREAM=1 python -m pytest tests/kube/upstream writes that file.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from kube import karpenter
from kube.duration import DurationError, parse_duration, seconds
from kube.labels import OLDER_NAMES, Expression, LabelSelector, integer
from kube.node import nodes
from kube.pod import Pod
from kube.quantity import QuantityError, binary, parse
from kube.requests import host_ports, requests, shortfalls
from kube.scheduling import of_node, wants
from kube.taints import Taint, is_tolerated
from kube.templates import merge_strategic
from kube.tree import apply_patch
from tests.kube.upstream.cases import CASES
from tests.support import go_tools
from tests.support.cases import golden
from tests.support.counts import count

Pair = tuple[Any, Any]
"""What ``kube`` computes, and what the code of Kubernetes computes, in the same form"""
RESULTS = Path(__file__).with_name("results.jsonl")
LIVE = count(1_000, 91_000)
"""Cases of each kind"""
RECORDED = {
    "quantity": 200,
    "bytes": 30,
    "duration": 130,
    "integer": 100,
    "selector": 80,
    "toleration": 150,
    "affinity": 90,
    "pod": 80,
    "merge": 25,
    "patch": 50,
    "requirement": 80,
}
A_LINE = 1_000
"""Cases of one line for the program"""


def _quantity(value: Any, result: Any) -> Pair:
    try:
        ours = parse(value)
    except QuantityError:
        return None, result
    if result is None:
        return ours, None
    number, _, exponent = result.partition("e")
    return ours, Fraction(int(number)) * (Fraction(10) ** int(exponent) if number != "0" else 1)


def _duration(text: str, result: Any) -> Pair:
    try:
        whole = seconds(text)
    except DurationError:
        whole = None
    theirs = None if result is None else Fraction(result, 10**9)
    return (parse_duration(text), whole), (theirs, whole if whole is None else theirs)


def _selector(case: Any, result: Any) -> Pair:
    selector = case["selector"]
    expressions = tuple(Expression(item["key"], item["operator"], tuple(item.get("values", ()))) for item in selector["matchExpressions"])
    return LabelSelector(match_labels=tuple(selector["matchLabels"].items()), match_expressions=expressions).matches(case["labels"]), result


def _toleration(case: Any, result: Any) -> Pair:
    return is_tolerated(Taint(**case["taint"]), case["tolerations"]), result


def _affinity(case: Any, result: Any) -> Pair:
    (node,) = nodes([case["node"]], None)
    return {blocker.kind for blocker in of_node(wants({"spec": case["spec"]}), node)}.isdisjoint({"label", "name"}), result


def _pod(case: Any, result: Any) -> Pair:
    if result is None:
        return None, None
    spec = case["spec"]
    amounts = {name: amount for name, amount in requests(spec).amounts.items() if amount}
    ports = [(port.address, port.protocol, port.number) for port in host_ports(spec)]
    theirs = result["requests"]
    named = {"cpu": "MilliCPU", "memory": "Memory", "ephemeral-storage": "EphemeralStorage", "pods": "AllowedPodNumber"}
    theirs = {**{name: theirs[field] for name, field in named.items()}, **(theirs["ScalarResources"] or {})}
    return (amounts, not shortfalls(Pod(case)), ports), (
        {name: amount for name, amount in theirs.items() if amount},
        result["class"] == "Guaranteed",
        [(port.get("hostIP") or "0.0.0.0", port["protocol"], port["hostPort"]) for port in result["ports"] or ()],
    )


def _merge(case: Any, result: Any) -> Pair:
    return _without_nulls(merge_strategic(*case)), _without_nulls(result)


def _without_nulls(value: Any) -> Any:
    """Return it without the keys of maps that are null, which everybody reads as absent."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _patch(case: Any, result: Any) -> Pair:
    return (None if result is None else apply_patch(*case)), result


def _requirement(case: Any, result: Any) -> Pair:
    has, wanted = (karpenter.requirement(case[side]["operator"], case[side]["values"]) for side in ("has", "wants"))
    assert has is not None
    assert wanted is not None
    both, key = has & wanted, case["has"]["key"]
    bounds = {"Gte": both.least, "Lte": both.most}
    ours = {
        "key": OLDER_NAMES.get(key, key),
        "op": ("NotIn" if both.values else "Exists") if both.complement else ("In" if both.values else "DoesNotExist"),
        "values": sorted(both.values, key=str.encode),
        "bounds": {name: str(bound) for name, bound in bounds.items() if bound is not None},
        "admits": [not (both & karpenter.Requirement(frozenset({value}))).none for value in case["tried"]],
        "meets": has.meets(wanted),
    }
    return ours, result


COMPARED: Mapping[str, Callable[[Any, Any], Pair]] = {
    "quantity": _quantity,
    "bytes": lambda number, result: (binary(number), result),
    "duration": _duration,
    "integer": lambda text, result: (integer(text), result),
    "selector": _selector,
    "toleration": _toleration,
    "affinity": _affinity,
    "pod": _pod,
    "merge": _merge,
    "patch": _patch,
    "requirement": _requirement,
}
"""Kind -> what compares a case and the program's result with ``kube``"""


def cases(kind: str, number: int) -> list[Any]:
    """Return the first so many cases of a kind."""
    random = Random(kind)
    return [CASES[kind](random) for _ in range(number)]


def results(kind: str, given: Sequence[Any]) -> list[Any]:
    """Return the result of the program for each case; skip the test where there is no Go."""
    lines = (json.dumps({"kind": kind, "cases": given[i : i + A_LINE]}) for i in range(0, len(given), A_LINE))
    done = subprocess.run([go_tools.program("kube")], input="\n".join(lines), capture_output=True, text=True, check=True)
    return [result for line in done.stdout.splitlines() for result in json.loads(line)]


def differences(kind: str, given: Sequence[Any], found: Sequence[Any]) -> list[str]:
    """Return a line for each case of which ``kube`` and the program differ."""
    pairs = [(case, *COMPARED[kind](case, result)) for case, result in zip(given, found, strict=True)]
    return [f"{json.dumps(case)}: {ours}, upstream {theirs}" for case, ours, theirs in pairs if ours != theirs]


def written_pods() -> list[Any]:
    """Return the pods of the golden cases and of the recorded reviews."""
    documents = (yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(golden.CASES.rglob("*.yaml")))
    reviews = (json.loads(path.read_text(encoding="utf-8"))["request"] for path in sorted(golden.REVIEWS.glob("pods-*.json")))
    pods = (*(document.get("pod") for document in documents), *(review["object"] for review in reviews))
    return [{**pod, "apiVersion": "v1", "kind": "Pod"} for pod in pods if isinstance(pod, dict)]


@pytest.mark.parametrize("kind", CASES)
def test_kube_computes_what_kubernetes_computes(kind: str) -> None:
    """Of cases that are made now, in numbers."""
    given = cases(kind, LIVE)
    assert differences(kind, given, results(kind, given)) == []


def test_pods_that_are_written_elsewhere_ask_for_what_kubernetes_computes() -> None:
    """Those that the API server can decode."""
    given = written_pods()
    found = results("pod", given)
    assert sum(result is not None for result in found) > 700
    assert differences("pod", given, found) == []


@pytest.mark.parametrize("kind", CASES)
def test_kube_computes_what_is_recorded(kind: str) -> None:
    """Without Go."""
    lines = [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]
    given, found = zip(*((case, result) for name, case, result in lines if name == kind), strict=True)
    assert differences(kind, given, found) == []


def test_what_is_recorded_is_what_kubernetes_computes_today() -> None:
    """Cases and results are those of this generator and of this program. BERTH_WRITE_UPSTREAM=1 writes them."""
    given = [(kind, case) for kind, number in RECORDED.items() for case in cases(kind, number)]
    found = [result for kind in RECORDED for result in results(kind, [case for name, case in given if name == kind])]
    lines = (json.dumps([*pair, result], separators=(",", ":")) for pair, result in zip(given, found, strict=True))
    text = "".join(f"{line}\n" for line in lines)
    if os.environ.get("BERTH_WRITE_UPSTREAM"):
        RESULTS.write_text(text, encoding="utf-8")
    assert text == RESULTS.read_text(encoding="utf-8"), "BERTH_WRITE_UPSTREAM=1 python -m pytest tests/kube/upstream; read the difference"
