"""Namespaces with good policies, and what is decided for pods in them: asked before anything is poisoned, and without end meanwhile.

Each answer is compared byte by byte with the first one to the same question.
"""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from policies.policy import API_VERSION
from tests.e2e.differential.pods import generated
from tests.support.calls.server_process import JSON
from tests.support.counts import PROVE
from tests.testcluster.addons.berth import Berth
from tests.testcluster.calls import PATIENCE, answer_of
from tests.testcluster.controlplane.api import Api

Raw = dict[str, Any]
REVIEWS = Path(__file__).parent.parent.parent / "reviews"
CALM = {"calm-guarded": {"team": "research"}, "calm-own": {"team": "web"}, "calm-plain": {}}
"""namespaces and their labels"""
RANDOM_PODS = 12
MANY = 100
"""answers whose CPU is read at once: the kernel counts it in hundredths of a second"""
PAUSE = 0.002 if PROVE else 0.02
"""seconds between two questions, or who asks would take what those who answer need"""


def _policy(kind: str, name: str, spec: Raw, namespace: str | None = None) -> Raw:
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {"name": name} | ({"namespace": namespace} if namespace else {}),
        "spec": spec,
    }


GOOD: tuple[Raw, ...] = (
    _policy(
        "ClusterGPUPolicy",
        "guard",
        {
            "mode": "Enforce",
            "match": {"namespaceSelector": {"matchLabels": {"team": "research"}}},
            "require": {"families": {"in": ["ampere", "hopper"]}, "gracePeriod": {"max": "2h"}, "gpusPerPod": {"max": 8}},
            "default": {"acceleratorTaints": "Tolerate", "gracePeriod": "15m", "protectFor": "4h"},
        },
    ),
    _policy(
        "ClusterGPUPolicy",
        "grant",
        {
            "mode": "Enforce",
            "match": {"namespaceSelector": {"matchLabels": {"team": "web"}}},
            "require": {"capacity": ["spot", "on-demand"], "instanceFamilies": {"notIn": ["p2", "p3"]}},
            "default": {"acceleratorTaints": "Tolerate"},
            "allow": {"nodeTemplates": ["calm"], "tolerations": [{"key": "team"}]},
        },
    ),
    _policy("GPUNodeTemplate", "calm", {"labels": {"calm-pool": "a"}, "taints": [{"key": "calm-pool", "value": "a"}]}),
    _policy(
        "GPUPolicy",
        "own",
        {"mode": "Enforce", "default": {"nodeTemplate": "calm", "tolerate": [{"key": "team", "value": "web"}], "gracePeriod": "5m"}},
        "calm-own",
    ),
)


@dataclass(frozen=True, slots=True)
class Question:
    """One review on one path."""

    path: str
    body: bytes


def questions(namespaces: Sequence[str] = tuple(CALM)) -> list[Question]:
    """Pods of real controllers and random ones, in each of the namespaces, on both paths."""
    read = [json.loads(file.read_bytes()) for file in sorted(REVIEWS.glob("pods-create-*.json"))]
    recorded = [value for value in read if "resourceClaims" not in value["request"]["object"]["spec"]]
    drawn = [{**recorded[0], "request": {**recorded[0]["request"], "object": _pod(seed)}} for seed in range(RANDOM_PODS)]
    return [
        Question(f"/{phase}?timeout=10s", json.dumps(in_namespace(value, namespace)).encode())
        for namespace in namespaces
        for value in (*recorded, *drawn)
        for phase in ("mutate", "validate")
    ]


def _pod(seed: int) -> Raw:
    """Without claims: one that is not there is waited for, and the same question would have two answers."""
    made = generated(Random(seed), f"p{seed}")
    spec = {field: value for field, value in made["spec"].items() if field != "resourceClaims"}
    return {"apiVersion": "v1", "kind": "Pod", **made, "spec": spec}


def in_namespace(review: Raw, namespace: str) -> Raw:
    """The same question about another namespace."""
    request = review["request"]
    pod = {**request["object"], "metadata": {**request["object"].get("metadata", {}), "namespace": namespace}}
    return {**review, "request": {**request, "namespace": namespace, "object": pod}}


class Asker:
    """One kept connection to a replica."""

    def __init__(self, replica: Berth) -> None:
        self._replica = replica
        self.again()

    def again(self) -> None:
        """On a new connection: a 503 closes the old one."""
        host, _, port = self._replica.url.removeprefix("https://").rpartition(":")
        context = ssl.create_default_context(cafile=str(self._replica.ca))
        self._connection = http.client.HTTPSConnection(host, int(port), context=context, timeout=PATIENCE)

    def ask(self, question: Question) -> tuple[int, bytes]:
        """(status, body)."""
        self._connection.request("POST", question.path, question.body, JSON)
        got = answer_of(self._connection)
        return got.status, got.body

    def close(self) -> None:
        """The connection is closed."""
        self._connection.close()


def answers(replica: Berth, asked: Sequence[Question]) -> list[tuple[int, bytes]]:
    """Once each."""
    asker = Asker(replica)
    try:
        return [asker.ask(question) for question in asked]
    finally:
        asker.close()


def cost(replica: Berth, asked: Sequence[Question], times: int = 8) -> float:
    """Seconds of its CPU for an answer, whatever else the machine does: the least of some rounds, as it has work of its own too."""
    rounds = []
    for _ in range(times):
        before = replica.process.cpu()
        for _ in range(MANY // len(asked) + 1):
            answers(replica, asked)
        rounds.append((replica.process.cpu() - before) / (len(asked) * (MANY // len(asked) + 1)))
    return min(rounds)


@dataclass(slots=True)
class Watched:
    """What was seen of one replica."""

    seconds: list[float] = field(default_factory=list)
    """of each answer"""
    others: list[str] = field(default_factory=list)
    """answers that are not as before"""
    away: int = 0
    """calls that were sent elsewhere: 503, which decides nothing"""


class Watching(threading.Thread):
    """Asks one replica the questions in turn, without end."""

    def __init__(self, replica: Berth, asked: Sequence[Question], before: Sequence[tuple[int, bytes]]) -> None:
        super().__init__(name=f"watching {replica.name}", daemon=True)
        self.seen = Watched()
        self._asker, self._asked, self._before = Asker(replica), asked, before
        self._ended = threading.Event()
        self._error: BaseException | None = None

    def run(self) -> None:
        """See ``close``."""
        try:
            while True:
                for question, before in zip(self._asked, self._before, strict=True):
                    if self._ended.wait(PAUSE):
                        return
                    begun = time.perf_counter()
                    now = self._asker.ask(question)
                    self.seen.seconds.append(time.perf_counter() - begun)
                    if now[0] == 503:
                        self.seen.away += 1
                        self._asker.again()
                    elif now != before:
                        self.seen.others.append(f"{question.path} {question.body[:200]!r}: {before} became {now}")
        except Exception as error:  # noqa: BLE001 - raised where the thread is joined
            self._error = error

    def close(self) -> None:
        """Ended. Raises what has ended it before."""
        self._ended.set()
        self.join()
        self._asker.close()
        if self._error is not None:
            raise self._error


@contextmanager
def watching(replicas: Sequence[Berth], asked: Sequence[Question], before: Sequence[tuple[int, bytes]]) -> Iterator[list[Watching]]:
    """One thread for each replica; ended on leaving."""
    threads = [Watching(replica, asked, before) for replica in replicas]
    for thread in threads:
        thread.start()
    try:
        yield threads
    finally:
        for thread in threads:
            thread.close()


def prepare(api: Api, poisoned: Sequence[str], label: str) -> None:
    """The namespaces, calm ones and others, and the good policies."""
    for name, labels in {**CALM, **{name: {label: "true"} for name in poisoned}}.items():
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
    for value in GOOD:
        api.create(value)
