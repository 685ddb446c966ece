"""The API server's admission by webhooks as a model in this process: which webhooks it calls for an object, what it makes of their answers,
and what it stores. Time is simulated; the application, its replicas' snapshots and the conditions are real.

From kube-apiserver 1.37 (staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook, client-go/rest):

- Mutating webhooks are called one after another, each with the object as the one before left it; those with IfNeeded once more if others
  changed it afterwards (mutating/dispatcher.go). Validating webhooks are called with what will be stored (validating/dispatcher.go).
- Conditions (matchconditions/matcher.go): a false one ends the matter; else one that errors, by its own budget of 1,000,000 or the
  webhook's of 2,500,000, denies the object at Fail and skips the webhook at Ignore. They are judged by the API server's code itself.
- A call has a uid of its own. An answer of 429 or 5xx with Retry-After is repeated after so many seconds, at most ten times and within the
  timeout, on any replica (rest/with_retry.go); a connection that is refused is not.
- A call without an answer denies the object at Fail and is passed over at Ignore.
"""

from __future__ import annotations

import base64
import copy
import hashlib
import heapq
import itertools
import json
import random
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from unittest import mock

import jsonpatch

from policies.state.updater import Options, Updater
from registration.entries import InstallChoices, WebhookEntry, entries, labelling
from server.http import Answer, Call
from server.limits import Limits
from telemetry import log
from telemetry.metrics import Metrics
from tests.support.calls.webhook_dispatch import AdmissionRequest, Dispatch, judge
from tests.support.generators.random_worlds import catalog
from webhook.admission import app as application
from webhook.admission.app import AdmissionState, App
from webhook.admission.decision_cache import empty_decisions
from webhook.admission.parking import Parking

Raw = dict[str, Any]
RETRIES = 10
STEP = 0.05
"""Seconds between two looks at a call that waits."""
HEADERS = {b"content-type": b"application/json"}
Steps = Generator[float, None, "Outcome"]
"""An admission that runs until it has to wait, and yields the time at which it goes on."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a request."""

    stored: Raw | None
    """None: it was denied."""
    skipped: tuple[str, ...] = ()
    """Entries at Ignore that were passed over: a condition errored, or there was no answer in time."""
    lost: tuple[str, ...] = ()
    """Entries at Ignore that were passed over because a replica that is gone was called."""
    why: str = ""


class Clock:
    """The time, in seconds."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass(kw_only=True)
class Server:
    """A replica of Berth. ``lag``: seconds until its watch brings what is stored."""

    app: App
    admission: AdmissionState
    updater: Updater
    lag: float = 0.02
    up: bool = True
    behind: bool = False
    read: int = 0
    """The number of events that it has."""

    def sheds(self, now: float) -> bool:
        return self.behind


class Timer:
    """A timer of the simulated time."""

    def __init__(self, at: float, run: Callable[[], None]) -> None:
        self.at = at
        self.run = run

    def cancel(self) -> None:
        self.run = lambda: None


class Denied(Exception):
    """The object is not stored."""


class _Gone(Exception):
    """The replica that is called is gone: its connection is refused."""


@dataclass(kw_only=True)
class _Passed:
    """See ``Outcome``."""

    skipped: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class Cluster:
    """An API server in front of replicas of Berth, registered for all that ``chosen`` says."""

    replicas: int
    chosen: InstallChoices
    seed: int = 0
    foreign: Callable[[Raw], Raw] | None = None
    """A mutating webhook that comes after Berth's."""
    clock: Clock = field(default_factory=Clock)
    events: list[tuple[float, tuple[str, str, str], Raw | None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        mutating, validating = entries(catalog(), self.chosen)
        self.mutating = [*(labelling(catalog(), self.chosen) if self.chosen.queues else []), *mutating]
        self.validating = validating
        self.random = random.Random(self.seed)
        self.truth = self._updater()
        self.servers = [self._server() for _ in range(self.replicas)]
        self._uids = itertools.count()
        self.timers: list[Timer] = []

    def _updater(self) -> Updater:
        return Updater(catalog(), Options(platforms=("gfd",), queues=("kueue",) if self.chosen.queues else ()))

    def _server(self) -> Server:
        admission = AdmissionState(limits=Limits(), metrics=Metrics("0"), parking=Parking(self._timer))
        server = Server(app=App(admission), admission=admission, updater=self._updater())
        server.app.overload = server  # type: ignore[assignment]
        return server

    # --- what is stored, and who knows of it ---

    def write(self, kind: str, value: Raw) -> None:
        """Store an object that no webhook is asked about."""
        metadata = value["metadata"]
        key = kind, metadata.get("namespace", ""), metadata["name"]
        self.events.append((self.clock.now, key, value))
        self.truth.apply({key: value})

    def deliver(self) -> None:
        """Let every replica read what its watch has brought by now."""
        for server in self.servers:
            by = self.clock.now - server.lag
            new = list(itertools.takewhile(lambda event, by=by: event[0] <= by, self.events[server.read :]))  # type: ignore[misc]
            if new and server.up:
                server.read += len(new)
                update = server.updater.apply({key: value for _, key, value in new})
                server.admission.snapshot = update.snapshot
                if not update.decisions_hold:
                    server.admission.decisions = empty_decisions()
                server.admission.parking.resume_arrived(update.snapshot)

    def _timer(self, seconds: float, run: Callable[[], None]) -> Timer:
        timer = Timer(self.clock.now + seconds, run)
        self.timers.append(timer)
        return timer

    def _ring(self) -> None:
        due = [timer for timer in self.timers if timer.at <= self.clock.now]
        self.timers = [timer for timer in self.timers if timer.at > self.clock.now]
        for timer in due:
            timer.run()

    # --- requests ---

    def post(self, *asked: AdmissionRequest) -> list[Outcome]:
        """Admit these at once; what is stored is written."""
        outcomes: dict[int, Outcome] = {}
        waiting = [(self.clock.now, index, self._admitted(one)) for index, one in enumerate(asked)]
        with self.simulated():
            while waiting:
                at, index, steps = heapq.heappop(waiting)
                self.clock.now = max(self.clock.now, at)
                self.deliver()
                self._ring()
                try:
                    heapq.heappush(waiting, (next(steps), index, steps))
                except StopIteration as end:
                    outcomes[index] = end.value
        return [outcomes[index] for index in range(len(asked))]

    def simulated(self) -> Any:
        """Return the context in which Berth reads the simulated time, and logs nothing."""
        return _Simulated(self.clock)

    def _admitted(self, asked: AdmissionRequest) -> Steps:
        passed = _Passed()
        try:
            current = yield from self._mutated(asked, passed)
            for entry in self._matched(current, self.validating, passed):
                yield from self._answered(entry, current, passed)
        except Denied as denied:
            return Outcome(stored=None, skipped=tuple(passed.skipped), lost=tuple(passed.lost), why=str(denied))
        stored = current.object
        if current.operation == "CREATE" and "name" in stored["metadata"]:
            self.write(stored["kind"], {**stored, "metadata": {**stored["metadata"], "namespace": asked.namespace}})
        return Outcome(stored=stored, skipped=tuple(passed.skipped), lost=tuple(passed.lost))

    def _mutated(self, asked: AdmissionRequest, passed: _Passed) -> Generator[float, None, AdmissionRequest]:
        left: dict[str, Raw] = {}
        current = asked
        for turn in (1, 2):
            for entry in self.mutating:
                if turn == 2 and left.get(entry.name) in (None, current.object):
                    continue
                if self._matched(current, [entry], passed):
                    response = yield from self._answered(entry, current, passed)
                    if patch := response.get("patch"):
                        changed = jsonpatch.apply_patch(copy.deepcopy(current.object), json.loads(base64.b64decode(patch)))
                        current = replace(current, object=changed)
                left[entry.name] = current.object
            if turn == 1 and self.foreign is not None and asked.operation == "CREATE":
                current = replace(current, object=self.foreign(copy.deepcopy(current.object)))
        return current

    def _matched(self, asked: AdmissionRequest, candidates: Sequence[WebhookEntry], passed: _Passed) -> list[WebhookEntry]:
        dispatch = dispatched(asked, self.chosen)
        for entry in candidates:
            if not any(asked.resource[2] in rule["resources"] and asked.operation in rule["operations"] for rule in entry.rules):
                continue
            if entry.name not in dispatch.called and entry.name in dispatch.errors:
                if entry.failure_policy == "Fail":
                    raise Denied(f"a condition of {entry.name} failed: {dispatch.errors[entry.name]}")
                passed.skipped.append(entry.name)
        return [entry for entry in candidates if entry.name in dispatch.called]

    def _answered(self, entry: WebhookEntry, asked: AdmissionRequest, passed: _Passed) -> Generator[float, None, Raw]:
        try:
            answer = yield from self._called(entry, asked)
        except _Gone:
            if entry.failure_policy == "Ignore":
                passed.lost.append(entry.name)
                return {}
            answer = None
        if answer is None or answer.status != 200:
            if entry.failure_policy == "Fail":
                raise Denied(f"{entry.name} gave no answer")
            passed.skipped.append(entry.name)
            return {}
        response: Raw = json.loads(answer.body)["response"]
        if not response["allowed"]:
            raise Denied(response["status"]["message"])
        return response

    def _called(self, entry: WebhookEntry, asked: AdmissionRequest) -> Generator[float, None, Answer | None]:
        body, until = review_of(asked, f"u{next(self._uids)}"), self.clock.now + entry.timeout
        for _ in range(1 + RETRIES):
            server = self.random.choice(self.servers)
            if not server.up:
                raise _Gone
            call = Call(b"POST", entry.at.encode(), HEADERS, self.clock.now, body, len(body))
            later: list[Answer] = []
            answer = server.app.answer(call, lambda _, answer, into=later: into.append(answer))  # type: ignore[misc]
            while answer is None:
                if self.clock.now >= until:
                    return None
                yield self.clock.now + STEP
                answer = later[0] if later else None
            if (answer.status < 500 and answer.status != 429) or b"retry-after" not in answer.start:
                return answer
            if self.clock.now + 1 >= until:
                return None
            yield self.clock.now + 1
        return None


class _Simulated:
    def __init__(self, clock: Clock) -> None:
        self._patches = [mock.patch.object(application, "monotonic", clock)]

    def __enter__(self) -> None:
        self._sink = log._sink
        log.to(lambda line: None)
        for patch in self._patches:
            patch.start()

    def __exit__(self, *_: object) -> None:
        for patch in self._patches:
            patch.stop()
        log.to(self._sink)


def review_of(asked: AdmissionRequest, uid: str) -> bytes:
    """Return the body of a call."""
    group, version, resource = asked.resource
    request = {
        "uid": uid,
        "resource": {"group": group, "version": version, "resource": resource},
        "kind": {"group": group, "version": version, "kind": asked.object["kind"]},
        "subResource": asked.subresource,
        "namespace": asked.namespace,
        "name": asked.object["metadata"].get("name", ""),
        "operation": asked.operation,
        "userInfo": {"username": asked.user, "groups": list(asked.groups)},
        "object": asked.object,
        "oldObject": asked.old,
    }
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).encode()


_dispatches: dict[tuple[bytes, InstallChoices], Dispatch] = {}
MOST_DISPATCHES = 2_000


def dispatched(asked: AdmissionRequest, chosen: InstallChoices) -> Dispatch:
    """Return what the API server's code says of the conditions; each request is put to it once. Of requests, which may be as large as
    the API server takes them, digests are kept."""
    key = hashlib.sha256(asked.line().encode()).digest(), chosen
    if key not in _dispatches:
        if len(_dispatches) >= MOST_DISPATCHES:
            _dispatches.clear()
        invalid, (_dispatches[key],) = judge([asked], chosen=chosen)
        assert invalid == []
        assert not _dispatches[key].undecodable, _dispatches[key].undecodable
    return _dispatches[key]
