"""The routes: what reaches the engine, what is turned away and how, and that nothing is allowed in silence."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from time import monotonic

import pytest

from policies.state.snapshot import Snapshot
from server.answer_queue import TOO_MANY
from server.http import Call, Rejection
from server.limits import Limits
from server.request_reader import NO_ROOM
from sources.sources import Sources, load_sources
from telemetry.metrics import Metrics
from tests.support.calls.in_process import JSON, Received, answered, ask, ask_asgi
from webhook.admission.app import LARGEST_REVIEW, AdmissionState, App, starlette_of

LIMIT = Limits().body
REVIEWS = Path(__file__).parent.parent.parent / "reviews"
CREATE = (REVIEWS / "pods-create-train-llama.json").read_bytes()
MISMATCH = (REVIEWS / "pods-create-mismatch.json").read_bytes()


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    """The shipped default policy, as serve loads it without --policies."""
    return load_sources(Sources(platforms=("karpenter-aws",))).snapshot


def serving(snapshot: Snapshot | None) -> AdmissionState:
    return AdmissionState(limits=Limits(), metrics=Metrics("0"), snapshot=snapshot)


def post(snapshot: Snapshot | None, body: bytes = CREATE, path: str = "/mutate", **headers: str) -> Received:
    sent = {**JSON, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return ask(starlette_of(App(serving(snapshot))), path, body, sent)


def test_a_gpu_job_is_patched(snapshot: Snapshot) -> None:
    """The recorded pod of a Job is allowed, with a patch."""
    answer = post(snapshot)
    response = json.loads(answer.body)["response"]
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert (response["allowed"], response["patchType"]) == (True, "JSONPatch")


def test_validate_is_the_same_way_without_a_patch(snapshot: Snapshot) -> None:
    """Both paths answer; only /mutate patches."""
    assert "patch" not in json.loads(post(snapshot, path="/validate").body)["response"]


def test_a_denial_is_an_answer(snapshot: Snapshot) -> None:
    """A denied pod is HTTP 200 with allowed false: an HTTP error would be a broken webhook."""
    answer = post(snapshot, MISMATCH)
    assert answer.status == 200
    assert json.loads(answer.body)["response"]["status"]["code"] == 403


def test_the_decision_is_one_log_line(snapshot: Snapshot, capsys: pytest.CaptureFixture[str]) -> None:
    """One JSON line says for whom, where and what."""
    post(snapshot)
    fields = json.loads(capsys.readouterr().err)
    assert (fields["event"], fields["level"], fields["phase"], fields["decision"]) == ("decision", "info", "mutate", "patched")
    assert (fields["namespace"], fields["policies"]) == ("default", ["ClusterGPUPolicy/berth-default"])


def test_a_name_cannot_forge_a_log_line(snapshot: Snapshot, capsys: pytest.CaptureFixture[str]) -> None:
    """A newline in a name stays inside its line, and a name of a megabyte is cut."""
    review = json.loads(CREATE)
    review["request"]["userInfo"]["username"] = 'x\n{"event":"decision"}' + "y" * 1_000_000
    post(snapshot, json.dumps(review).encode())
    logged = capsys.readouterr().err
    assert logged.count("\n") == 1
    assert len(logged) < 2000


def test_without_a_snapshot_the_api_server_is_told_to_retry() -> None:
    """Not loaded is 503 with a whole number of seconds and a closed connection, never allowed."""
    answer = post(None)
    assert (answer.status, answer.headers["retry-after"], answer.headers["connection"]) == (503, "1", "close")


def test_a_swapped_snapshot_decides_from_the_next_review(snapshot: Snapshot) -> None:
    """Loading policies needs no restart."""
    state = serving(None)
    app = App(state)
    assert ask(starlette_of(app), "/mutate", CREATE).status == 503
    state.snapshot = snapshot
    assert ask(starlette_of(app), "/mutate", CREATE).status == 200


def arriving(path: bytes = b"/mutate", **headers: str) -> Call:
    """A call whose head is in."""
    sent = {**JSON, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return Call(b"POST", path, {name.encode(): value.encode() for name, value in sent.items()}, monotonic(), waits=True)


def test_policies_that_change_while_a_body_comes_decide(snapshot: Snapshot) -> None:
    """A call is judged by what is in force when it can be judged, and never by what is gone."""
    state = serving(snapshot.with_policies(()))
    app, call = App(state), arriving()
    assert app.begin(call) is None
    state.snapshot = snapshot
    call.body, call.size = CREATE, len(CREATE)
    assert "patch" in json.loads(answered(app, call).body)["response"]


def test_while_it_drains_every_answer_closes_its_connection(snapshot: Snapshot) -> None:
    """The call is answered, and the next one of this caller goes elsewhere."""
    state = serving(snapshot)
    state.draining = True
    for body, status in ((CREATE, 200), (b"[]", 400)):
        answer = ask(starlette_of(App(state)), "/mutate", body)
        assert (answer.status, answer.headers["connection"]) == (status, "close")


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [
        pytest.param("/mutate", "GET", 405, id="get"),
        pytest.param("/mutate", "PUT", 405, id="put"),
        pytest.param("/mutate/", "POST", 404, id="trailing-slash-is-no-redirect"),
        pytest.param("//mutate", "POST", 404, id="double-slash"),
        pytest.param("/", "GET", 404, id="root"),
        pytest.param("/advise", "GET", 405, id="get-advice"),
    ],
)
def test_only_three_paths_and_one_method(snapshot: Snapshot, path: str, method: str, status: int) -> None:
    """Everything else is 404 or 405, and nothing redirects: the API server would follow."""
    answer = ask(starlette_of(App(serving(snapshot))), path, CREATE, method=method)
    assert answer.status == status
    assert "location" not in answer.headers
    assert answer.headers.get("allow") == ("POST" if status == 405 else None)


def test_another_server_gets_the_same_answer(snapshot: Snapshot) -> None:
    """The route of Starlette asks the application that this server asks without a task: status, headers and body are the same."""
    app = starlette_of(App(serving(snapshot)))
    for body in (CREATE, MISMATCH, b"[]", b" " * (LIMIT + 1)):
        direct, routed = ask(app, "/mutate", body), asyncio.run(ask_asgi(app, "/mutate", body))
        assert (direct.status, direct.headers, direct.body) == (routed.status, routed.headers, routed.body)


@pytest.mark.parametrize("kind", ["", "text/plain", "application/yaml", "application/jsonx"])
def test_another_content_type_is_415(snapshot: Snapshot, kind: str) -> None:
    """Only JSON is read."""
    assert post(snapshot, content_type=kind).status == 415


def test_a_content_type_with_a_charset_is_json(snapshot: Snapshot) -> None:
    """Parameters and letter case do not matter."""
    assert post(snapshot, content_type="Application/JSON; charset=utf-8").status == 200


def test_a_compressed_body_is_415(snapshot: Snapshot) -> None:
    """Nothing is inflated, so nothing can explode."""
    assert post(snapshot, content_encoding="gzip").status == 415


def test_a_declared_length_over_any_review_is_413_unread(snapshot: Snapshot) -> None:
    """Before any of the body is in; the connection closes."""
    app = App(serving(snapshot))
    denial = app.begin(arriving(content_length=str(LARGEST_REVIEW + 1)))
    assert denial is not None
    assert (denial.answer.status, denial.answer.close) == (413, True)
    assert app.begin(arriving(content_length=str(LARGEST_REVIEW))) is None


def test_a_review_over_the_cap_is_denied_by_its_head(snapshot: Snapshot) -> None:
    """Its uid is in its first bytes, which are all that is held."""
    call = arriving(b"/validate")
    call.body, call.size = CREATE[:4096], LIMIT + 1
    app = App(serving(snapshot))
    app.begin(call)
    response = json.loads(answered(app, call).body)["response"]
    assert (response["uid"], response["allowed"]) == (json.loads(CREATE)["request"]["uid"], False)


def test_what_is_over_the_cap_and_no_review_is_413(snapshot: Snapshot) -> None:
    """Nobody's uid can be told."""
    call = arriving()
    call.body, call.size = b" " * 4096, LIMIT + 1
    answer = answered(App(serving(snapshot)), call)
    assert (answer.status, answer.close) == (413, True)


def test_a_body_of_exactly_the_limit_is_read(snapshot: Snapshot) -> None:
    """The limit itself is allowed."""
    assert post(snapshot, CREATE + b" " * (LIMIT - len(CREATE))).status == 200


def test_what_is_no_review_is_400_and_logged(snapshot: Snapshot, capsys: pytest.CaptureFixture[str]) -> None:
    """The caller gets the sentence, the log gets it too."""
    answer = post(snapshot, b"[]")
    assert (answer.status, answer.headers["content-type"]) == (400, "text/plain; charset=utf-8")
    assert json.loads(capsys.readouterr().err)["reason"] == answer.body.decode().strip()


def test_an_object_that_is_no_pod_is_denied_in_an_answer(snapshot: Snapshot) -> None:
    """A field of the wrong type is named with its path; no answer is given on a guess, and no error that lets it pass at Ignore."""
    review = json.loads(CREATE)
    review["request"]["object"]["spec"]["containers"] = "none"
    response = json.loads(post(snapshot, json.dumps(review).encode()).body)["response"]
    assert (response["allowed"], response["status"]["code"]) == (False, 403)
    assert "spec.containers: expected a list; write a list there" in response["status"]["message"]


def test_a_failure_is_a_sentence_to_the_caller(
    snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mistake of ours is answered by the review's head, without a word of it: an error would let the pod pass at Ignore. The log has
    type, text and place, and it is counted as failed."""

    def broken(*_: object) -> None:
        raise LookupError("secret detail")

    monkeypatch.setattr("webhook.admission.handlers.evaluate", broken)
    state = serving(snapshot)
    answer = ask(starlette_of(App(state)), "/mutate", CREATE)
    response = json.loads(answer.body)["response"]
    assert (answer.status, response["allowed"], response["status"]["message"][:9]) == (200, False, "BERTH-007")
    assert b"secret" not in answer.body
    assert 'berth_requests_total{decision="failed",phase="mutate"} 1.0' in exposed(state)
    assert "LookupError: secret detail at " in json.loads(capsys.readouterr().err)["error"]


@pytest.mark.parametrize("path", ["/mutate", "/advise"])
def test_a_failure_denies_only_where_something_is_enforced(snapshot: Snapshot, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else, and for advice, it is a warning."""

    def broken(*_: object) -> None:
        raise LookupError

    monkeypatch.setattr("webhook.admission.handlers._handle_pod", broken)
    monkeypatch.setattr("analysis.reviews.workload_advice.parse", broken)
    response = json.loads(post(snapshot if path == "/advise" else snapshot.with_policies(()), path=path).body)["response"]
    assert (response["allowed"], response["warnings"][0][:9]) == (True, "BERTH-007")


def test_a_failure_over_what_is_no_review_is_500(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody's uid can be told."""

    def broken(*_: object) -> None:
        raise LookupError

    monkeypatch.setattr("webhook.admission.handlers.decode_body", broken)
    assert post(snapshot, b"{}").status == 500


def test_a_caller_that_hangs_up_is_no_failure(snapshot: Snapshot, capsys: pytest.CaptureFixture[str]) -> None:
    """A call that is lost on its way is counted as rejected, not in flight any more, and not logged as a mistake of ours."""
    state = serving(snapshot)
    app, call = App(state), arriving()
    app.begin(call)
    assert "berth_requests_in_flight 1.0" in exposed(state)
    app.lost(call)
    assert "berth_requests_in_flight 0.0" in exposed(state)
    assert 'berth_requests_total{decision="rejected",phase="mutate"} 1.0' in exposed(state)
    assert capsys.readouterr().err == ""


def test_a_call_that_waited_is_in_flight_until_its_answer(snapshot: Snapshot) -> None:
    """One that came in one piece never is: nobody could see it."""
    state = serving(snapshot)
    app, call = App(state), arriving()
    app.begin(call)
    call.body, call.size = CREATE, len(CREATE)
    answered(app, call)
    ask(starlette_of(app), "/mutate", CREATE)
    assert "berth_requests_in_flight 0.0" in exposed(state)


def exposed(admission: AdmissionState) -> str:
    return admission.metrics.exposition("text/plain")[0].decode()


def test_far_behind_calls_are_sent_elsewhere(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    """503 with Retry-After and a closed connection, unjudged, and counted."""
    state = serving(snapshot)
    app = App(state)
    monkeypatch.setattr(app.overload, "sheds", lambda now: True)
    answer = ask(starlette_of(app), "/mutate", CREATE)
    assert (answer.status, answer.headers["retry-after"], answer.headers["connection"]) == (503, "1", "close")
    assert 'berth_requests_total{decision="shed",phase="mutate"} 1.0' in exposed(state)


@pytest.mark.parametrize("path", ["/mutate/ignore", "/validate/ignore"])
def test_far_behind_nothing_is_passed_over(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """Where the API server stores what has no answer, a tenant could bring a 503 about: the object is denied."""
    app = App(serving(snapshot))
    monkeypatch.setattr(app.overload, "sheds", lambda now: True)
    answer = ask(starlette_of(app), path, CREATE)
    response = json.loads(answer.body)["response"]
    assert (answer.status, response["allowed"], response["status"]["message"][:9]) == (200, False, "BERTH-008")
    for rejection in (NO_ROOM, Rejection("shed", TOO_MANY)):
        call = Call(b"POST", path.encode(), {b"content-type": b"application/json"}, 0.0, CREATE[:4096], len(CREATE), rejection=rejection)
        for found in (answered(app, call), app.turned_away(call, TOO_MANY)):
            assert json.loads(found.body)["response"]["status"]["code"] == 429
