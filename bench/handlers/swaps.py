"""How long the change of policies holds reviews up: calls at fixed times while a file of policies is rewritten again and again."""

from __future__ import annotations

import http.client
import ssl
import time
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

import orjson

from bench.load import many_policies, workloads
from bench.load.arrivals import Arrivals, Arriving
from bench.measuring.candidates import JSON, Server
from bench.measuring.setting import Setting
from tests.support.machine import BenchError

RATE = 1_000
"""calls a second: about a tenth of what a core answers, so that none waits behind others"""
FEW, MANY = 10, 100
"""GPUs for each pod that the policy allows, in turn; the watched pod asks for some between"""
REST = 1.5
"""seconds before each change: the quiet time that it is compared with"""
AROUND = 0.3
"""seconds before and after the first decision under new policies in which they were swapped"""
PATIENCE = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Moments, in seconds since 1970."""

    quiet: float
    written: float
    in_force: float
    """first decision under it that was seen"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The longest latencies in milliseconds, for each change."""

    quiet: tuple[float, ...]
    read: tuple[float, ...]
    """from the file's change to that of decisions"""
    swapped: tuple[float, ...]
    """around the moment of that"""
    seconds: tuple[float, ...]
    """until it was in force"""
    shed: int
    """calls of the whole run that were answered with another status than 200"""


def measured(setting: Setting, server: Server, policies: Path) -> Held:
    """Changes, one after the other, under steady load. Raises BenchError where one is not in force after a minute."""
    changes, seconds = (1, 6.0) if setting.scale.quick else (6, 45.0)
    running = Arriving(server, setting.bodies("spread"), setting.cores.load, rate=RATE, seconds=seconds)
    watch = Watch(server)
    time.sleep(1)
    seen = [_changed(policies, watch, MANY if number % 2 else FEW) for number in range(changes) if running.running()]
    return _held(seen, running.result())


class Watch:
    """One kept connection that asks for a pod which the changing policy allows or denies."""

    def __init__(self, server: Server) -> None:
        context = ssl.create_default_context(cafile=str(server.ca))
        self._connection = http.client.HTTPSConnection(server.address, context=context, timeout=PATIENCE)
        review = workloads.recorded("pods-create-train-llama")
        review["request"]["namespace"] = review["request"]["object"]["metadata"]["namespace"] = many_policies.WATCHED
        resources = review["request"]["object"]["spec"]["containers"][0]["resources"]
        for side in ("limits", "requests"):
            resources[side]["nvidia.com/gpu"] = str((FEW + MANY) // 2)
        self._body = orjson.dumps(review)

    def allowed(self) -> bool | None:
        """None: the server had too much to do."""
        self._connection.request("POST", "/mutate", self._body, JSON)
        answer = self._connection.getresponse()
        body = answer.read()
        return bool(orjson.loads(body)["response"]["allowed"]) if answer.status == HTTPStatus.OK else None


def _changed(policies: Path, watch: Watch, most: int) -> Change:
    quiet = time.time()
    time.sleep(REST)
    written = time.time()
    many_policies.changed(policies, most)
    while watch.allowed() != (most == MANY):
        if time.time() > written + PATIENCE:
            raise BenchError(f"policies that changed were not in force after {PATIENCE} s")
        time.sleep(0.05)
    in_force = time.time()
    time.sleep(AROUND)
    return Change(quiet=quiet, written=written, in_force=in_force)


def _held(changes: list[Change], calls: Arrivals) -> Held:
    end = calls.begin + calls.slot * len(calls.slots)
    counted = [change for change in changes if change.in_force + AROUND < end]
    if not counted:
        raise BenchError("no change of policies was in force before the calls ended")
    return Held(
        quiet=tuple(calls.longest(c.quiet, c.written) / 1000 for c in counted),
        read=tuple(calls.longest(c.written, c.in_force) / 1000 for c in counted),
        swapped=tuple(calls.longest(c.in_force - AROUND, c.in_force + AROUND) / 1000 for c in counted),
        seconds=tuple(c.in_force - c.written for c in counted),
        shed=calls.shed,
    )
