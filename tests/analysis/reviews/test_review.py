"""AdmissionReview v1: what is read from one, what is denied, and what the answer holds."""

from __future__ import annotations

import base64
import copy
import json
from pathlib import Path
from typing import Any

import pytest

from analysis.reviews.review import ReviewError, answer_review, parse
from policies.request import Request
from policies.verdict import AuditOutcome, Verdict
from tests.support import worded

REVIEWS = Path(__file__).parent.parent.parent / "reviews"
CREATE: dict[str, Any] = json.loads((REVIEWS / "pods-create-train-llama.json").read_text())
UPDATE: dict[str, Any] = json.loads((REVIEWS / "pods-update-amd-bench.json").read_text())
MISMATCH = worded.denial("BERTH-101", "the request is not the limit", "make them equal", rule="requests_match_limits")
PATCH = ({"op": "add", "path": "/spec/tolerations", "value": []},)


def body(review: dict[str, Any], **request: object) -> bytes:
    changed = copy.deepcopy(review)
    changed["request"].update(request)
    return json.dumps(changed).encode()


def parsed(review: dict[str, Any] = CREATE, **request: object) -> Request:
    return parse(body(review, **request))


def response(verdict: Verdict, phase: Any = "mutate") -> dict[str, Any]:
    whole = answer_review(parsed(), verdict, phase=phase)
    assert whole.pop("apiVersion") == "admission.k8s.io/v1"
    assert whole.pop("kind") == "AdmissionReview"
    assert list(whole) == ["response"]
    result: dict[str, Any] = whole["response"]
    return result


def warnings(verdict: Verdict) -> list[str]:
    got: list[str] = response(verdict).get("warnings", [])
    return got


def remarks(*texts: str) -> Verdict:
    return Verdict(remarks=tuple(worded.remark("BERTH-201", text) for text in texts))


def test_a_recorded_create_is_read() -> None:
    """What kube-apiserver 1.36 sent for a Job's pod comes out typed, the pod as it came."""
    review = parsed()
    assert (review.uid, review.operation, review.namespace) == ("12d3626a-b5a7-4a6c-b2bd-e385b0a58497", "CREATE", "default")
    assert (review.user, review.dry_run, review.old_pod) == ("admin", False, None)
    assert review.pod == CREATE["request"]["object"]


def test_a_recorded_update_has_its_old_pod() -> None:
    """An update is judged against what the pod was."""
    assert parsed(UPDATE).old_pod == UPDATE["request"]["oldObject"]


@pytest.mark.parametrize("name", [path.name for path in sorted(REVIEWS.glob("pods-*.json"))])
def test_every_recorded_review_of_a_pod_is_read(name: str) -> None:
    """None of the recorded reviews is denied at the door."""
    assert parse((REVIEWS / name).read_bytes()).namespace in ("default", "ml-team")


def test_dry_run_reaches_the_engine() -> None:
    """dryRun is part of the request that is judged."""
    assert parsed(dryRun=True).dry_run is True


def test_the_phase_is_given_by_the_path() -> None:
    """One review serves both phases."""
    review = parsed()
    assert (review.phase, review.in_phase("validate").phase) == ("mutate", "validate")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"", "not JSON", id="empty"),
        pytest.param(b"\xff", "not JSON", id="no-text"),
        pytest.param(b"[" * 70_000, "not JSON", id="too-deep"),
        pytest.param(b'{"a": NaN}', "not JSON", id="nan"),
        pytest.param(b'{"a": 1e400}', "not an AdmissionReview", id="infinite"),
        pytest.param(b'"\\ud800"', "not an AdmissionReview", id="half-a-surrogate"),
        pytest.param(b"[]", "not an AdmissionReview", id="list"),
        pytest.param(b"null", "not an AdmissionReview", id="null"),
        pytest.param(b'{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1beta1"}', "of admission.k8s.io/v1", id="old-version"),
        pytest.param(b'{"kind": "Pod", "apiVersion": "admission.k8s.io/v1"}', "not an AdmissionReview", id="kind"),
        pytest.param(b'{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}', "has no request", id="no-request"),
    ],
)
def test_what_is_no_review_is_a_400(content: bytes, message: str) -> None:
    """Broken or foreign JSON is the caller's mistake, in one sentence."""
    with pytest.raises(ReviewError, match=message) as error:
        parse(content)
    assert error.value.status == 400
    assert "\n" not in error.value.sentence


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        pytest.param({"uid": ""}, "request.uid is", id="no-uid"),
        pytest.param({"uid": 7}, "request.uid is 7", id="uid-number"),
        pytest.param({"namespace": None}, "request.namespace is missing", id="no-namespace"),
        pytest.param({"operation": "DELETE"}, 'request.operation is "DELETE"; Berth evaluates CREATE and UPDATE', id="delete"),
        pytest.param({"operation": ["CREATE"]}, "request.operation is", id="operation-list"),
        pytest.param({"object": None}, "request.object is missing; expected a pod", id="no-object"),
        pytest.param({"object": ["pod"]}, "request.object is", id="object-list"),
        pytest.param({"object": json.loads("[" * 500 + "]" * 500)}, "request.object is a list; expected a pod", id="object-deep"),
        pytest.param({"operation": "UPDATE", "oldObject": None}, "request.oldObject is missing", id="update-without-old"),
        pytest.param({"resource": {"group": "apps", "version": "v1", "resource": "deployments"}}, "send only pods", id="deployment"),
        pytest.param({"resource": "pods"}, 'request.resource is "pods"', id="resource-text"),
        pytest.param({"subResource": "ephemeralcontainers"}, "send only pods here", id="subresource"),
    ],
)
def test_what_berth_does_not_judge_is_a_400(request_: dict[str, Any], message: str) -> None:
    """Each field that is wrong or not ours is named with its value."""
    with pytest.raises(ReviewError, match=message):
        parsed(**request_)


def test_a_long_wrong_value_is_cut() -> None:
    """A message never carries a whole wrong object."""
    with pytest.raises(ReviewError) as error:
        parsed(object=["x" * 10_000])
    assert len(error.value.sentence) < 200


@pytest.mark.parametrize("info", [None, "admin", {}, {"username": None}, {"username": ["admin"]}])
def test_a_user_that_cannot_be_read_is_anybody(info: object) -> None:
    """Nobody is exempt, and nothing is believed, by a user name that is not there."""
    assert parsed(userInfo=info).user == "system:anonymous"


def test_the_last_of_two_equal_keys_wins() -> None:
    """As in Go, so that Berth judges what the API server stores."""
    twice = body(CREATE).replace(b'"operation": "CREATE"', b'"operation": "DELETE", "operation": "CREATE"')
    assert parse(twice).operation == "CREATE"


def test_allowed_as_it_is() -> None:
    """Neither patch nor patchType nor warnings: the API server denies a half of the first two."""
    assert response(Verdict()) == {"uid": "12d3626a-b5a7-4a6c-b2bd-e385b0a58497", "allowed": True}


def test_allowed_with_a_patch() -> None:
    """A patch is JSON Patch in base64, with its type."""
    got = response(Verdict(patch=PATCH))
    assert got["patchType"] == "JSONPatch"
    assert json.loads(base64.b64decode(got["patch"])) == list(PATCH)


def test_validate_never_patches() -> None:
    """The API server fails a validating webhook that sends a patch."""
    assert response(Verdict(patch=PATCH), "validate") == {"uid": parsed().uid, "allowed": True}


def test_denied_with_one_reason() -> None:
    """One violation is its sentence, and a denial carries no patch."""
    got = response(Verdict(violations=(MISMATCH,), patch=PATCH))
    message = "BERTH-101: the request is not the limit; make them equal."
    denied = [{"code": "BERTH-101", "rule": "requests_match_limits", "policies": [], "fact": "the request is not the limit"}]
    assert json.loads(got.pop("auditAnnotations")["denied"]) == denied
    assert got == {
        "uid": parsed().uid,
        "allowed": False,
        "status": {"status": "Failure", "code": 403, "reason": "Forbidden", "message": message},
    }


def test_denied_with_all_reasons() -> None:
    """Every violation is told at once, in the engine's order."""
    other = worded.denial("BERTH-111", "nine GPUs", "ask for eight", rule="device_counts")
    message = response(Verdict(violations=(MISMATCH, other)))["status"]["message"]
    assert message.splitlines() == ["2 reasons:", f"- {MISMATCH}", f"- {other}"]


def test_a_denial_is_bounded() -> None:
    """A megabyte that an author wrote does not come back, nor its line ends, nor the three-thousandth reason."""
    long = worded.denial("BERTH-101", "f\n\u2028" * 500_000)
    one = response(Verdict(violations=(long,)))["status"]["message"]
    assert (len(one), one.splitlines()) == (1000, [one])
    many = response(Verdict(violations=(long,) * 3000))["status"]["message"].splitlines()
    assert (many[0], len(many), many[-1]) == ("3000 reasons:", 22, "and 2980 more")


def test_warnings_once_each_in_order() -> None:
    """The same remark from two policies is said once."""
    assert warnings(remarks("a", "b", "a")) == ["BERTH-201: a", "BERTH-201: b"]


def test_a_policy_in_warn_says_what_it_would_deny() -> None:
    """Warn is one warning per would-be denial; Audit says nothing to the author."""
    warn = AuditOutcome(policy="ClusterGPUPolicy/x", mode="Warn", violations=(MISMATCH,))
    audit = AuditOutcome(policy="ClusterGPUPolicy/y", mode="Audit", violations=(MISMATCH,))
    assert warnings(Verdict(audit_outcomes=(warn, audit))) == [
        "BERTH-101 (would be denied if ClusterGPUPolicy/x were in Enforce): the request is not the limit; make them equal"
    ]


def test_a_warning_is_at_most_256_characters() -> None:
    """Past its total the API server cuts each to 256, so none is longer."""
    assert [len(text) for text in warnings(remarks("x" * 1000))] == [256]


def test_a_warning_is_one_printable_line() -> None:
    """Newlines and escapes from a name would make the API server drop the warning, or paint a terminal."""
    assert warnings(remarks("a\nb\x1b[31m\tc")) == ["BERTH-201: a b [31m c"]


def test_warnings_fit_into_what_the_api_server_keeps() -> None:
    """What does not fit is counted in the last one."""
    texts = warnings(remarks(*(f"{number} " + "x" * 300 for number in range(100))))
    assert sum(map(len, texts)) <= 4096
    assert texts[-1] == f"BERTH-001: {100 - len(texts) + 1} more warnings did not fit; run berth try to see all"


def test_warnings_that_just_fit_are_all_said() -> None:
    """No closing line where nothing is left out."""
    assert len(warnings(remarks(*(f"{number:02} " + "x" * 300 for number in range(16))))) == 16
