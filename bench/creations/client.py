"""Pods created on an API server by several writers at once, a closed loop over connections that are kept.

What is created (a pod in each line of a file):

    job       the pods of one training Job of eight GPUs: Berth decides once
    unlike    the same, each with a toleration of its own: decisions read it, and nothing that is remembered helps
    mixed     1,000 pods of 60 workloads (bench/load/bodies.py)
"""

from __future__ import annotations

import copy
import json
import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from bench.load import bodies
from tests.support.machine import BenchError
from tests.testcluster import go_build
from tests.testcluster.controlplane.api import Api

MODULE = Path(__file__).parent / "client"
Pod = dict[str, Any]
_STEP = 100_000
"""numbers given to each run: more pods than it makes"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Created:
    """What a run saw. Latencies in microseconds, from the first byte of a call to the last of its answer."""

    pods: int
    failed: int
    """answered with anything but 201"""
    said: str
    """about the first of those"""
    seconds: float
    p50: float
    p99: float
    longest: float
    cpu: float
    """seconds of the load generator"""

    @property
    def rate(self) -> float:
        """Answers a second."""
        return self.pods / self.seconds


class Creations:
    """Runs that never repeat a number."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._next = 0

    def run(self, pods: Path, namespace: str, *, writers: int, seconds: float = 0, count: int = 0, dry_run: bool = False) -> Created:
        """For some seconds, or until ``count`` are created; connections are made before. Raises BenchError where there is no Go, and
        where the API server does not answer."""
        where = ["-address", f"{self._api.host}:{self._api.port}", "-ca", str(self._api.ca), "-pods", str(pods), "-namespace", namespace]
        much = ["-writers", str(writers), "-seconds", str(seconds), "-count", str(count), "-first", str(self._next)]
        self._next = (self._next + _STEP) % 100_000_000
        command = [_program(), *where, *much, *(["-dry-run"] if dry_run else [])]
        environment = {**os.environ, "BERTH_BENCH_TOKEN": self._api.token}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        if done.returncode != 0:
            raise BenchError(f"creating pods failed: {done.stderr.strip()}")
        return Created(**json.loads(done.stdout))


def _program() -> str:
    try:
        return str(go_build.built(MODULE, ".", "creations"))
    except go_build.NoGo as error:
        raise BenchError(str(error)) from None


def written(name: str, folder: Path, *, owned: bool = True) -> Path:
    """The file of a load. Without ``owned`` pods belong to no workload: a garbage collector deletes those whose owner is invented."""
    file = folder / f"{name}{'' if owned else '-bare'}.pods.jsonl"
    if not file.exists():
        file.write_bytes(b"".join(orjson.dumps(_posted(pod, owned=owned)) + b"\n" for pod in LOADS[name]()))
    return file


def job() -> list[Pod]:
    """Two containers, eight GPUs."""
    return _objects(bodies.burst())


def unlike() -> list[Pod]:
    """Of the same Job; what each tolerates is its own."""
    (pod,) = job()
    pod["spec"]["tolerations"].append(
        {"key": "example.com/queue", "operator": "Equal", "value": f"q-{bodies.MARK}", "effect": "NoSchedule"}
    )
    return [pod]


def mixed() -> list[Pod]:
    """Of teams in twenty namespaces; all are created in one."""
    return _objects(bodies.mixed())


LOADS: dict[str, Callable[[], list[Pod]]] = {"job": job, "unlike": unlike, "mixed": mixed}


def _objects(reviews: Sequence[Pod]) -> list[Pod]:
    return [copy.deepcopy(review["request"]["object"]) for review in reviews]


def _posted(pod: Pod, *, owned: bool) -> Pod:
    """As a controller sends it: without what the API server adds, and without finalizers, for which nobody is there."""
    metadata = pod["metadata"]
    for key in ("namespace", "managedFields", "finalizers", *(() if owned else ("ownerReferences",))):
        metadata.pop(key, None)
    if "batch.kubernetes.io/job-name" in metadata["labels"]:
        metadata["labels"]["batch.kubernetes.io/job-completion-index"] = bodies.MARK
    return {key: value for key, value in pod.items() if key != "status"}
