"""What must hold of every answer, whatever the body: the only errors are denials to read, and the API server takes what is sent.

``check`` judges one body as the server does, on all three paths, and raises AssertionError where a law is broken. Any other
exception is a crash, which the server would answer with 500.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from typing import Any
from zlib import crc32

import jsonpatch
import orjson

from analysis.reviews import review
from analysis.reviews.decoding import encoded
from analysis.reviews.review import ReviewError
from documents import json_depth
from kube.pod import PodError
from kube.review import WARNING_LENGTH, WARNINGS_TOTAL, head_of
from policies import engine
from policies.patch import applied_again
from policies.pods.projection import extract
from policies.request import Phase
from policies.state.snapshot import Snapshot
from policies.verdict import Verdict
from server.limits import UID_BYTES
from telemetry import log
from telemetry.metrics import ANSWERS, Metrics
from tests.fuzz.trees import copied
from tests.fuzz.worlds import snapshots
from webhook.admission import handlers
from webhook.admission.unevaluated_reviews import may_deny

Raw = dict[str, Any]
METRICS = Metrics("0")
UNREAD = "rejected"
UNAIDED = 5
"""one of so many bodies is judged again without what was kept: a prime to the number of worlds, so each gets its share"""
PHASES: tuple[Phase, ...] = ("mutate", "validate")
_ANNOTATION = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
"""the name part of a qualified name (apimachinery util/validation), which the API server asks of each key"""


def check(body: bytes) -> str:
    """Under one of the worlds, by the body's own checksum; the decision at /mutate, or at /advise for a workload."""
    drawn, found = crc32(body), snapshots()
    return check_under(body, found[drawn % len(found)], unaided=drawn % UNAIDED == 0)


def check_everywhere(body: bytes) -> None:
    """Under every world: for a body that is kept."""
    for snapshot in snapshots():
        check_under(body, snapshot)


def check_under(body: bytes, snapshot: Snapshot, *, unaided: bool = True) -> str:
    """All three paths under one snapshot. ``unaided``: also against the rules on the whole pod, which doubles the time."""
    log.to(_check_line)
    advised, advice = _judged("advise", lambda: handlers.advise_workload(body, snapshot, METRICS))
    if advice is not None:
        _check_answer(advice, _uid(body))
        assert advice["response"]["allowed"] is True
        return UNREAD if _is(advice, "BERTH-005") else advised
    for phase in reversed(PHASES):
        decision, answer = _pod(phase, body, snapshot)
        unread = _is(answer, "BERTH-005")
        aided = not unaided or unread or _is(answer, "BERTH-004")
        assert aided or answer == _unaided(phase, body, snapshot), "what is kept of pods that were alike is not what this one gets"
        if answer is not None and unread:
            _check_unread(body, answer, snapshot)
        elif answer is not None:
            _check_pod(phase, body, answer, snapshot)
    return UNREAD if unread else decision


def _is(answer: Raw | None, code: str) -> bool:
    """It was not judged, for this reason."""
    response = answer["response"] if answer is not None else {}
    return str((response.get("status", {}).get("message", ""), *response.get("warnings", ()))[-1]).startswith(f"{code}: ")


def _check_unread(body: bytes, answer: Raw, snapshot: Snapshot) -> None:
    """Rejected where the namespace's policies may deny, or where it can't be told which they are; else allowed."""
    _check_answer(answer, _uid_of_unread(body, answer))
    head = head_of(body[:UID_BYTES])
    assert head is not None
    assert answer["response"]["allowed"] is not may_deny(snapshot, head.namespace)


def _uid(body: bytes) -> str:
    try:
        uid: str = json_depth.loads(body)["request"]["uid"]
    except ValueError:
        head = head_of(body[:UID_BYTES])
        uid = head.uid if head is not None else ""
    return uid


def _uid_of_unread(body: bytes, answer: Raw) -> str:
    """As ``_uid``; of a body with two of them, which no API server sends, the first will do too: a review that can't be read is answered by
    its first bytes."""
    head = head_of(body[:UID_BYTES])
    return head.uid if head is not None and answer["response"]["uid"] == head.uid else _uid(body)


def _pod(phase: Phase, body: bytes, snapshot: Snapshot) -> tuple[str, Raw | None]:
    return _judged(phase, lambda: handlers.handle_review(phase, body, snapshot, METRICS))


def _unaided(phase: Phase, body: bytes, snapshot: Snapshot) -> Raw | None:
    """The answer from the rules on the whole pod, not on the extract that decisions are kept by."""
    kept = vars(engine)["extract"]
    vars(engine)["extract"] = lambda pod, read: pod
    try:
        asked = review.parse(body, phase)
        if phase == "mutate" and asked.old_pod is not None:  # nothing is judged, and nothing kept
            verdict = Verdict(judged=False, patch=applied_again.patch(asked.old_pod, asked.pod, snapshot.whole))
        else:
            encoded(extract(asked.pod, snapshot.facts_for(asked.namespace).reads))  # denies what is nested too deep
            verdict = engine.evaluate(asked, snapshot.facts_for(asked.namespace))
    except (ReviewError, PodError):
        return None
    finally:
        vars(engine)["extract"] = kept
    answer: Raw = json.loads(orjson.dumps(review.answer_review(asked, verdict, phase=phase)))
    return answer


def _judged(path: str, judge: Callable[[], tuple[str, bytes]]) -> tuple[str, Raw | None]:
    """The decision and the answer; None for a body that is denied as unreadable, in one sentence that can be sent."""
    try:
        decision, sent = judge()
    except ReviewError as error:
        denied = error.status, error.sentence.encode()
    else:
        assert decision in ANSWERS[path], decision
        answer: Raw = json.loads(sent)  # another reader than the one that wrote it
        return decision, answer
    assert denied[0] == 400, f"denied with {denied}"
    assert denied[1], "denied without a sentence"
    return UNREAD, None


def _check_pod(phase: Phase, body: bytes, answer: Raw, snapshot: Snapshot) -> None:
    asked = json_depth.loads(body)
    response = answer["response"]
    _check_answer(answer, asked["request"]["uid"])
    if "patch" not in response:
        return
    assert (phase, asked["request"]["operation"], response["allowed"]) == ("mutate", "CREATE", True), "a patch where none may be"
    patch = json.loads(base64.b64decode(response["patch"], validate=True))
    assert patch, "an empty patch is an error to the API server"
    _check_patched(asked, patch, snapshot)


def _check_patched(asked: Raw, patch: list[Raw], snapshot: Snapshot) -> None:
    """A library that knows nothing of ours applies it; then nothing is left to write, and /validate admits the pod."""
    pod = jsonpatch.apply_patch(copied(asked["request"]["object"]), patch, in_place=True)
    assert pod != asked["request"]["object"], "a patch that changes nothing"
    try:
        again = json.dumps({**asked, "request": {**asked["request"], "object": pod}}).encode()
    except RecursionError:  # json writes fewer levels than orjson reads
        return
    for phase in PHASES:
        _, answer = _pod(phase, again, snapshot)
        assert answer is not None, "the pod that was written cannot be read"
        assert answer["response"]["allowed"] is True, f"{phase} denies what mutate wrote: {answer['response']}"
        assert "patch" not in answer["response"], f"a second mutate writes again: {base64.b64decode(answer['response']['patch'])!r}"


def _check_answer(answer: Raw, uid: str) -> None:
    """The checks of kube-apiserver 1.36: admission/request/admissionreview.go, endpoints/filters/warning.go, admission/audit.go."""
    response = answer["response"]
    head = (answer["apiVersion"], answer["kind"], response["uid"])
    assert head == ("admission.k8s.io/v1", "AdmissionReview", uid), f"another review's: {head}"
    assert ("patch" in response) == ("patchType" in response), "patch and patchType come together"
    denied = response["allowed"] is False and response["status"]["code"] in (403, 413) and response["status"]["message"]
    assert response["allowed"] is True or denied, f"neither allowed nor denied: {response}"
    warnings = response.get("warnings", [])
    assert sum(map(len, warnings)) <= WARNINGS_TOTAL, "more warnings than are kept"
    assert all(0 < len(warning) <= WARNING_LENGTH and warning.isprintable() for warning in warnings), warnings
    annotations = response.get("auditAnnotations", {})
    assert all(_ANNOTATION.fullmatch(key) and isinstance(value, str) for key, value in annotations.items()), annotations


def _check_line(line: bytes) -> None:
    """Of the log: one line of ASCII without control characters, which is a JSON object."""
    assert line.isascii()
    text = line[:-1].decode().replace("\x7f", "")  # DEL, which JSON leaves and terminals ignore
    assert text.isprintable(), line
    assert isinstance(json.loads(text), dict), line
