"""What is sent: files with a body in each line, made each time the same.

Berth remembers what it decided for pods that are alike in all that a decision reads, so what is sent decides what is measured:

    burst    the pods of one Job: names and uids differ
    mixed    1,000 pods of 60 workloads in 20 namespaces, again and again
    unlike   no two calls are alike: in each its own taint is tolerated, its own zone avoided, its own deadline set,
             besides 4,096 different workloads: nothing that was remembered helps
    plain    pods without an accelerator, to be answered as they came
    giant    a pod of 3 MiB, the most that an API server takes
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import orjson

from bench.load import workloads

MARK = "@@@@@@@@"
"""becomes a number that no other call has: bench/measuring/load.lua, bench/load/arrivals"""
_NUMBER = b'"number"'
WORKLOADS, PODS, UNLIKE, PLAIN = 60, 1000, 4096, 200
GIANT = 3 * 2**20
NAMESPACES = 1000
"""of the load on many policies"""


def written(name: str, folder: Path) -> Path:
    """The file of the load ``name``, made where it is not there yet."""
    file = folder / f"{name}.jsonl"
    if not file.exists():
        file.write_bytes(b"".join(_encoded(review) + b"\n" for review in LOADS[name]()))
    return file


def with_number(body: bytes, number: int) -> bytes:
    """As the load generators send it."""
    return body.replace(MARK.encode(), b"%08d" % number)


def burst() -> list[workloads.Review]:
    """One Job of the recorded training pod."""
    return [workloads.pod_of(workloads.recorded("pods-create-train-llama"), random.Random(1))]


def mixed(namespaces: int = len(workloads.TEAMS)) -> list[workloads.Review]:
    """In an order that mixes the workloads."""
    chance = random.Random(2)
    made = [workloads.workload(chance, namespaces) for _ in range(WORKLOADS)]
    return [workloads.pod_of(chance.choice(made), chance) for _ in range(PODS)]


def spread() -> list[workloads.Review]:
    """As mixed, with a pod in each of 1,000 namespaces."""
    reviews = mixed()
    for number, review in enumerate(reviews):
        review["request"]["namespace"] = review["request"]["object"]["metadata"]["namespace"] = workloads.namespace(number % NAMESPACES)
    return reviews


def unlike(namespaces: int = len(workloads.TEAMS)) -> list[workloads.Review]:
    """Each with three fields of its own that are read for a decision and change nothing in it."""
    chance = random.Random(3)
    return [_own(workloads.workload(chance, namespaces)) for _ in range(UNLIKE)]


def unlike_spread() -> list[workloads.Review]:
    """As unlike, in 1,000 namespaces."""
    return unlike(NAMESPACES)


def plain() -> list[workloads.Review]:
    """Small web servers."""
    chance = random.Random(4)
    return [workloads.plain(chance) for _ in range(PLAIN)]


def giant() -> list[workloads.Review]:
    """The recorded training pod with its configuration in some ten thousand variables."""
    review = workloads.recorded("pods-create-train-llama")
    container = review["request"]["object"]["spec"]["containers"][0]
    size = len(orjson.dumps(container["env"][0])) + 270
    container["env"] += [{"name": f"OPTION_{i:05}", "value": f"{i:05}" + "x" * 265} for i in range((GIANT - 5000) // size)]
    return [review]


LOADS: dict[str, Callable[[], list[workloads.Review]]] = {
    "burst": burst,
    "mixed": mixed,
    "unlike": unlike,
    "plain": plain,
    "giant": giant,
    "spread": spread,
    "unlike_spread": unlike_spread,
}


def _own(review: workloads.Review) -> workloads.Review:
    spec = review["request"]["object"]["spec"]
    spec["tolerations"].append({"key": "example.com/queue", "operator": "Equal", "value": f"q-{MARK}", "effect": "NoSchedule"})
    spec["activeDeadlineSeconds"] = _NUMBER[1:-1].decode()
    # a zone, since beside a label that nobody knows no default acts
    expression = {"key": "topology.kubernetes.io/zone", "operator": "NotIn", "values": [f"z-{MARK}"]}
    for term in _terms(spec):
        term["matchExpressions"].append(expression)
    return review


def _terms(spec: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """The author's required terms; made where there are none."""
    if "affinity" not in spec:
        spec["affinity"] = {"nodeAffinity": {workloads.REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": []}]}}}
    terms: list[dict[str, Any]] = spec["affinity"]["nodeAffinity"][workloads.REQUIRED]["nodeSelectorTerms"]
    return terms


def _encoded(review: workloads.Review) -> bytes:
    request = review["request"]
    request["uid"] = request["uid"][: -len(MARK)] + MARK
    labels = request["object"]["metadata"].setdefault("labels", {})
    if "batch.kubernetes.io/job-completion-index" in labels:
        labels["batch.kubernetes.io/job-completion-index"] = MARK
    return orjson.dumps(review).replace(_NUMBER, b"1" + MARK.encode())
