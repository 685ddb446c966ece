"""Write the loads: files with a body in each line, the same ones each time.

Berth caches what it decided for pods that are equal in all that a decision reads, so the load decides what is measured:

    burst    the pods of one Job: names and uids differ
    mixed    1,000 pods of 60 workloads in 20 namespaces, again and again: cached
    unlike   each call tolerates its own taint, avoids its own zone and has its own deadline, besides 4,096 workloads: uncached
    plain    pods without an accelerator, to be answered as they came
    giant    a pod of 3 MiB, the most that an API server takes
    spread, unlike_spread   mixed and unlike in 1,000 namespaces
    job.pods, unlike.pods, mixed.pods   pods to be created, as a controller sends them; .bare: those of no workload
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import orjson

from bench.inputs import workloads
from bench.inputs.workloads import Review

MARK = "@@@@@@@@"
"""Load generators replace it by a number that no other call has: harness/wrk.lua, harness/load/main.go"""
_NUMBER = b'"number"'
WORKLOADS, PODS, UNLIKE, PLAIN = 60, 1000, 4096, 200
GIANT = 3 * 2**20
NAMESPACES = 1000
"""of the load on many policies"""
_INDEX = "batch.kubernetes.io/job-completion-index"


def written(name: str, folder: Path) -> Path:
    """Return the file of a load, written if it is not there yet."""
    file = folder / f"{name}.jsonl"
    load, _, form = name.partition(".")
    if not file.exists() and form:
        file.write_bytes(b"".join(_pod(review, is_owned=form == "pods") + b"\n" for review in CREATED[load]()))
    elif not file.exists():
        file.write_bytes(b"".join(_encoded(review) + b"\n" for review in LOADS[load]()))
    return file


def with_number(body: bytes, number: int) -> bytes:
    """Return a body as load generators send it."""
    return body.replace(MARK.encode(), b"%08d" % number)


def burst() -> list[Review]:
    """Return one pod of the recorded training Job."""
    return [workloads.pod_of(workloads.recorded("pods-create-train-llama"), random.Random(1))]


def mixed(namespaces: int = len(workloads.TEAMS)) -> list[Review]:
    """Return pods in an order that mixes the workloads."""
    chance = random.Random(2)
    templates = [workloads.workload(chance, namespaces) for _ in range(WORKLOADS)]
    return [workloads.pod_of(chance.choice(templates), chance) for _ in range(PODS)]


def spread() -> list[Review]:
    """Return the same, with a pod in each namespace."""
    reviews = mixed()
    for number, review in enumerate(reviews):
        workloads.move(review, workloads.namespace(number % NAMESPACES))
    return reviews


def unlike(namespaces: int = len(workloads.TEAMS)) -> list[Review]:
    """Return pods with three fields of their own that a decision reads and that change nothing in it."""
    chance = random.Random(3)
    reviews = [workloads.workload(chance, namespaces) for _ in range(UNLIKE)]
    for review in reviews:
        spec = review["request"]["object"]["spec"]
        spec["tolerations"].append(_own_toleration())
        spec["activeDeadlineSeconds"] = _NUMBER[1:-1].decode()
        affinity = spec.setdefault("affinity", workloads.required([[]]))
        for term in affinity["nodeAffinity"][workloads.REQUIRED]["nodeSelectorTerms"]:
            # A zone: beside a label that Berth does not know, no default acts.
            term["matchExpressions"].append({"key": "topology.kubernetes.io/zone", "operator": "NotIn", "values": [f"z-{MARK}"]})
    return reviews


def plain() -> list[Review]:
    """Return small web servers."""
    chance = random.Random(4)
    return [workloads.plain(chance) for _ in range(PLAIN)]


def giant() -> list[Review]:
    """Return the recorded training pod with its configuration in some ten thousand variables."""
    review = workloads.recorded("pods-create-train-llama")
    container = review["request"]["object"]["spec"]["containers"][0]
    size = len(orjson.dumps(container["env"][0])) + 270
    container["env"] += [{"name": f"OPTION_{i:05}", "value": f"{i:05}" + "x" * 265} for i in range((GIANT - 5000) // size)]
    return [review]


def _unlike_job() -> list[Review]:
    (review,) = burst()
    review["request"]["object"]["spec"]["tolerations"].append(_own_toleration())
    return [review]


LOADS: dict[str, Callable[[], list[Review]]] = {
    "burst": burst, "mixed": mixed, "unlike": unlike, "plain": plain, "giant": giant, "spread": spread,
    "unlike_spread": lambda: unlike(NAMESPACES),
}  # fmt: skip
CREATED: dict[str, Callable[[], list[Review]]] = {"job": burst, "unlike": _unlike_job, "mixed": mixed}


def _own_toleration() -> dict[str, str]:
    return {"key": "example.com/queue", "operator": "Equal", "value": f"q-{MARK}", "effect": "NoSchedule"}


def _encoded(review: Review) -> bytes:
    request = review["request"]
    request["uid"] = request["uid"][: -len(MARK)] + MARK
    labels = request["object"]["metadata"].setdefault("labels", {})
    labels |= {_INDEX: MARK} if _INDEX in labels else {}
    return orjson.dumps(review).replace(_NUMBER, b"1" + MARK.encode())


def _pod(review: Review, *, is_owned: bool) -> bytes:
    """Return a pod without what the API server adds, and without finalizers, which nobody takes off.

    A garbage collector deletes pods whose owner does not exist, so with one they must not be owned.
    """
    pod = review["request"]["object"]
    for key in ("namespace", "managedFields", "finalizers", *(() if is_owned else ("ownerReferences",))):
        pod["metadata"].pop(key, None)
    pod["metadata"]["labels"] |= {_INDEX: MARK} if "batch.kubernetes.io/job-name" in pod["metadata"]["labels"] else {}
    return orjson.dumps({key: value for key, value in pod.items() if key != "status"})
