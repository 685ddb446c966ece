"""What comes back over TLS from a running server: recorded reviews, all that is no review, modes, dry runs, and the log."""

from __future__ import annotations

import base64
import copy
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.main import main
from policies.verdict import MODES
from server.limits import Limits
from tests.support.calls.server_process import JSON, LIBRARY, ROOT, Running, serving
from tests.support.counts import PROVE, only_in_prove
from tests.testcluster.calls import Answer, answer_of
from webhook.admission.app import LARGEST_REVIEW

REVIEWS = sorted((ROOT / "tests" / "reviews").glob("*.json"))
PODS = [path for path in REVIEWS if path.stem.startswith("pods-")]
CREATE: dict[str, Any] = json.loads((ROOT / "tests" / "reviews" / "pods-create-train-llama.json").read_text())
MISMATCH = (ROOT / "tests" / "reviews" / "pods-create-mismatch.json").read_bytes()
OPTIONS = ["--policies", LIBRARY, "--platforms", "karpenter-aws"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server with the shipped library."""
    with serving(tmp_path_factory.mktemp("server"), *OPTIONS) as it:
        yield it


def changed(**request: object) -> bytes:
    """The recorded CREATE with other fields in its request."""
    review = copy.deepcopy(CREATE)
    review["request"].update(request)
    return json.dumps(review).encode()


@pytest.mark.parametrize("path", PODS, ids=lambda path: path.stem)
def test_a_recorded_review_is_answered_as_try_shows(path: Path, server: Running, capsys: pytest.CaptureFixture[str]) -> None:
    """The same answer to the letter, and one that kube-apiserver takes: kind, uid, patch and its type together, codes."""
    served = server.post("/mutate", path.read_bytes())
    assert main(["try", *OPTIONS, "-o", "review", str(path)]) in (0, 1)
    assert json.loads(served.body) == json.loads(capsys.readouterr().out)
    taken_by_the_api_server(served, json.loads(path.read_text())["request"]["uid"])


@pytest.mark.parametrize("path", PODS, ids=lambda path: path.stem)
def test_validate_sends_no_patch(path: Path, server: Running) -> None:
    """The API server takes a patch from a validating webhook for an error."""
    served = server.post("/validate", path.read_bytes())
    taken_by_the_api_server(served, json.loads(path.read_text())["request"]["uid"])
    assert "patch" not in served.response
    assert "patchType" not in served.response


def taken_by_the_api_server(answer: Answer, uid: str) -> None:
    """The checks of kube-apiserver 1.36, admission/request/admissionreview.go and warning.go."""
    document = json.loads(answer.body)
    response = document["response"]
    assert (answer.status, document["apiVersion"], document["kind"]) == (200, "admission.k8s.io/v1", "AdmissionReview")
    assert response["uid"] == uid
    assert ("patch" in response) == ("patchType" in response)
    if "patch" in response:
        assert json.loads(base64.b64decode(response["patch"]))
    assert response["allowed"] or response["status"]["code"] >= 400
    assert sum(map(len, response.get("warnings", []))) <= 4096


def test_advice_is_given_over_the_wire(server: Running) -> None:
    """A Deployment is allowed whatever is in it, and its author is warned."""
    review = json.loads((ROOT / "tests" / "reviews" / "deployments-create-vllm-server.json").read_text())
    container = review["request"]["object"]["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = {"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "2"}}
    answer = server.post("/advise", json.dumps(review).encode())
    assert (answer.status, answer.response["allowed"], "patch" in answer.response) == (200, True, False)
    assert "spec.template.spec.containers[0]" in answer.response["warnings"][0]


def test_a_workload_on_the_paths_for_pods_is_400(server: Running) -> None:
    """Misrouted, and told so."""
    answer = server.post("/mutate", (ROOT / "tests" / "reviews" / "deployments-create-vllm-server.json").read_bytes())
    assert answer.status == 400
    assert b"send only pods here" in answer.body


NOT_JSON = [
    pytest.param(b"", id="empty"),
    pytest.param(b"{", id="cut"),
    pytest.param(b"apiVersion: v1", id="yaml"),
    pytest.param(json.dumps(CREATE).replace('"uid": "', '"uid": NaN, "x": "', 1).encode(), id="nan"),
    pytest.param(b"[" * 30_000 + b"]" * 30_000, id="deep-lists"),
    pytest.param(b'{"a":' * 30_000 + b"1" + b"}" * 30_000, id="deep-maps"),
]
NO_REVIEW = [
    pytest.param(b"null", "is not an AdmissionReview", id="null"),
    pytest.param(b"[]", "is not an AdmissionReview", id="list"),
    pytest.param(json.dumps({**CREATE, "kind": "Pod"}).encode(), "is not an AdmissionReview", id="kind"),
    pytest.param(json.dumps({**CREATE, "apiVersion": "admission.k8s.io/v1beta1"}).encode(), "of admission.k8s.io/v1", id="version"),
    pytest.param(json.dumps({"kind": CREATE["kind"], "apiVersion": CREATE["apiVersion"]}).encode(), "has no request", id="no-request"),
    pytest.param(changed(uid=7), "request.uid is 7", id="uid"),
    pytest.param(changed(operation="DELETE"), "Berth evaluates CREATE and UPDATE", id="operation"),
]
UNREADABLE = [
    pytest.param(b"\xef\xbb\xbf" + json.dumps(CREATE).encode(), "the body is not JSON: ", id="byte-order-mark"),
    pytest.param(changed()[:-9], "the body is not JSON: ", id="cut-late"),
    pytest.param(changed(object={"metadata": {"name": "NAN"}}).replace(b'"NAN"', b"NaN"), "the body is not JSON: ", id="nan-in-the-object"),
    pytest.param(changed(object=None), "request.object is missing", id="no-object"),
    pytest.param(changed(object="pod"), 'request.object is "pod"', id="object-is-text"),
    pytest.param(changed(object={"spec": {"containers": "none"}}), "spec.containers", id="containers"),
    pytest.param(changed(object={"spec": {"containers": [{"resources": {"limits": ["x"]}}]}}), "limits", id="limits"),
    pytest.param(changed(object={"metadata": 1, "spec": {}}), "metadata", id="metadata"),
]
AS_GO_READS_IT = [
    pytest.param(b"1e400", id="1e400"),
    pytest.param(b'"\xff"', id="not-utf-8"),
    pytest.param(b'"\\ud800"', id="half-a-surrogate"),
]


@pytest.mark.parametrize("path", ["/mutate", "/validate", "/advise"])
@pytest.mark.parametrize("body", NOT_JSON)
def test_what_is_not_json_is_400(path: str, body: bytes, server: Running) -> None:
    """A sentence, no stack trace, and the server goes on."""
    answer = server.post(path, body)
    assert (answer.status, answer.headers["content-type"]) == (400, "text/plain; charset=utf-8")
    assert b"the body is not JSON: " in answer.body
    assert answer.body.count(b"\n") == 1
    assert server.process.poll() is None


@pytest.mark.parametrize("path", ["/mutate", "/validate"])
@pytest.mark.parametrize(("body", "message"), NO_REVIEW)
def test_what_is_no_review_of_a_pod_is_400(path: str, body: bytes, message: str, server: Running) -> None:
    """The field is named, with what was found and wanted."""
    answer = server.post(path, body)
    assert answer.status == 400
    assert message in answer.body.decode()
    assert answer.body.count(b"\n") == 1


@pytest.mark.parametrize("path", ["/mutate", "/validate"])
@pytest.mark.parametrize(("body", "message"), UNREADABLE)
def test_what_has_a_uid_and_can_not_be_read_is_denied(path: str, body: bytes, message: str, server: Running) -> None:
    """In an answer: an error status would let the pod pass where the failurePolicy is Ignore."""
    answer = server.post(path, body)
    taken_by_the_api_server(answer, CREATE["request"]["uid"])
    assert (answer.response["allowed"], answer.response["status"]["code"]) == (False, 403)
    assert answer.response["status"]["message"].startswith("BERTH-005: this object can't be read or evaluated: ")
    assert message in answer.response["status"]["message"]


@pytest.mark.parametrize("path", ["/mutate", "/validate"])
@pytest.mark.parametrize("value", AS_GO_READS_IT)
def test_what_go_reads_and_nobody_looks_at_hides_nothing(path: str, value: bytes, server: Running) -> None:
    """A number past a double's and half a character are no reason to reject the pod, nor to pass it: it is judged as it is without."""
    odd = MISMATCH.replace(b'"metadata":{', b'"metadata":{"x":' + value + b",", 1)
    assert odd != MISMATCH
    answer = server.post(path, odd)
    assert (answer.response["allowed"], answer.response) == (False, server.post(path, MISMATCH).response)


def test_a_wrong_type_at_any_path_is_an_answer(server: Running) -> None:
    """Each value of a recorded pod in turn becomes a text, a number, a list, a map, true (``make test``: some): 200 or 400, never 500."""
    client = server.connection()
    statuses = set()
    for body in broken(CREATE):
        client.request("POST", "/mutate", body, JSON)
        statuses.add(answer_of(client).status)
    client.close()
    assert statuses == {200, 400}


WRONG: tuple[Any, ...] = ("x", -1.5, [], {}, True, None, [[]], {"": None})


def broken(review: dict[str, Any]) -> Iterator[bytes]:
    """The review with one value replaced, at each path and with each type."""
    for number, path in enumerate(paths(review)):
        for value in WRONG if PROVE else WRONG[number % 3 :: 3]:
            copied = copy.deepcopy(review)
            parent = copied
            for step in path[:-1]:
                parent = parent[step]
            parent[path[-1]] = value
            yield json.dumps(copied).encode()


def paths(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every path but managedFields', which nobody reads."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        if key != "managedFields":
            yield (*at, key)
            yield from paths(inner, (*at, key))


def test_duplicate_keys_are_read_as_go_reads_them(server: Running) -> None:
    """The last one wins, as in kube-apiserver itself: nothing can be shown to one and hidden from the other."""
    twice = MISMATCH.replace(b'"limits"', b'"limits": {"nvidia.com/gpu": "7"}, "limits"', 1)
    assert twice != MISMATCH
    assert server.post("/mutate", twice).response["status"] == server.post("/mutate", MISMATCH).response["status"]


def large(review: dict[str, Any], size: int) -> bytes:
    """The review with so many characters in an environment variable, written as Go writes it."""
    copied = copy.deepcopy(review)
    copied["request"]["object"]["spec"]["containers"][0]["env"] = [{"name": "E", "value": "<" * size}]
    return json.dumps(copied).replace("<", "\\u003c").encode()


@pytest.mark.parametrize("path", ["/mutate", "/validate"])
def test_a_review_over_the_cap_is_denied(path: str, server: Running) -> None:
    """With a sentence and its uid: an HTTP error would let it pass where the failurePolicy is Ignore."""
    body = large(CREATE, 1_300_000)
    assert len(body) > Limits().body
    answer = server.post(path, body)
    taken_by_the_api_server(answer, CREATE["request"]["uid"])
    assert (answer.response["allowed"], answer.response["status"]["code"]) == (False, 413)
    assert answer.response["status"]["message"].startswith("BERTH-003: the AdmissionReview of this object has ")


def test_advice_on_a_workload_over_the_cap_allows(server: Running) -> None:
    """It only ever warns."""
    answer = server.post("/advise", large(CREATE, 1_300_000))
    assert (answer.response["allowed"], answer.response["warnings"][0][:9]) == (True, "BERTH-003")


def test_a_body_that_no_review_can_have_is_413(server: Running) -> None:
    """By its declared length, unread, or where it passes; the connection is closed. So is what is large and no review."""
    client = server.connection()
    client.putrequest("POST", "/mutate")
    client.putheader("Content-Type", "application/json")
    client.putheader("Content-Length", str(LARGEST_REVIEW + 1))
    client.endheaders()
    answer = answer_of(client)
    client.close()
    assert (answer.status, answer.headers["connection"]) == (413, "close")
    assert server.post("/mutate", b" " * (Limits().body + 1)).status == 413
    assert server.process.poll() is None


def test_the_cap_is_a_setting(tmp_path: Path) -> None:
    """--body in bytes, for a chunked body without a length too."""
    with serving(tmp_path, "--platforms", "karpenter-aws", "--body", str(2**20)) as server:
        body = large(CREATE, 300_000)
        client = server.connection()
        client.request("POST", "/mutate", iter([body[at : at + 2**16] for at in range(0, len(body), 2**16)]), JSON, encode_chunked=True)
        assert answer_of(client).response["status"]["code"] == 413
        client.close()
        assert server.post("/mutate", json.dumps(CREATE).encode()).response["allowed"] is True


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/mutate", 405),
        ("PUT", "/validate", 405),
        ("DELETE", "/advise", 405),
        ("POST", "/", 404),
        ("POST", "/mutate/", 404),
        ("POST", "//mutate", 404),
        ("POST", "/Mutate", 404),
        ("POST", "/%2e%2e/mutate", 404),
        ("GET", "/metrics", 404),
    ],
)
def test_another_path_or_method_is_turned_away(method: str, path: str, status: int, server: Running) -> None:
    """Nothing redirects: the API server would follow."""
    answer = server.post(path, b"{}", method=method)
    assert answer.status == status
    assert "location" not in answer.headers


@pytest.mark.parametrize("headers", [{}, {"Content-Type": "text/plain"}, {**JSON, "Content-Encoding": "gzip"}])
def test_another_content_is_415(headers: dict[str, str], server: Running) -> None:
    """Only plain JSON is read, and nothing is inflated."""
    answer = server.post("/mutate", json.dumps(CREATE).encode(), headers=headers)
    assert answer.status == 415
    assert answer.body.startswith(b"send the review ")


POLICY = """\
apiVersion: berth.dev/v1alpha1
kind: ClusterGPUPolicy
metadata: {name: all}
spec:
  mode: MODE
  require: {requestsEqualLimits: [accelerators]}
  default: {acceleratorTaints: Tolerate, gracePeriod: 10m}
"""


@pytest.mark.parametrize("max_mode", [pytest.param(mode, marks=only_in_prove) if mode == "Warn" else mode for mode in MODES])
def test_a_mode_is_what_comes_over_the_wire(max_mode: str, tmp_path: Path) -> None:
    """The weaker of the policy's and the server's: Enforce patches and rejects, Warn warns, Audit only records. What is recorded is
    the patch that the same policy sends in Enforce. `make test` has a policy in Warn under a server in Enforce, and not the other way."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY.replace("MODE", MODES[0]))
    patches = []
    with serving(tmp_path, "--policies", str(policy), "--platforms", "karpenter-aws", "--max-mode", max_mode) as server:
        for number, mode in enumerate(MODES, 1):
            if number > 1:
                policy.write_text(POLICY.replace("MODE", mode))
            server.event("policies_loaded", number)
            acting = min(mode, max_mode, key=MODES.index)
            good, bad = server.post("/mutate", json.dumps(CREATE).encode()).response, server.post("/mutate", MISMATCH).response
            assert ("patch" in good, bad["allowed"]) == ((True, False) if acting == "Enforce" else (False, True))
            assert [text[:9] for text in bad.get("warnings", [])] == (["BERTH-101"] if acting == "Warn" else [])
            audited = json.loads(good.get("auditAnnotations", {}).get("would", "[]"))
            would = [] if acting == "Enforce" else [("ClusterGPUPolicy/all", acting)]
            assert [(entry["policy"], entry["mode"]) for entry in audited] == would
            if audited:
                audit_outcomes = json.loads(bad["auditAnnotations"]["would"])[0]
                assert [denial["code"] for denial in audit_outcomes["denials"]] == ["BERTH-101"]
            patches.append(audited[0]["patch"] if audited else json.loads(base64.b64decode(good["patch"])))
    assert patches == patches[:1] * len(MODES)


@pytest.fixture(scope="module")
def braked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server under the emergency brake, with one policy."""
    folder = tmp_path_factory.mktemp("braked")
    policy = folder / "policy.yaml"
    policy.write_text(POLICY.replace("MODE", "Enforce"))
    with serving(folder, "--policies", str(policy), "--platforms", "karpenter-aws", "--max-mode", "Warn") as it:
        yield it


def test_under_the_emergency_brake_nothing_is_denied(braked: Running) -> None:
    """Where no policy is in Enforce, a review over the cap is allowed with a warning."""
    answer = braked.post("/mutate", large(CREATE, 1_300_000))
    assert (answer.response["allowed"], answer.response["warnings"][0][:9]) == (True, "BERTH-003")


def test_a_dry_run_gets_the_answer_and_leaves_nothing(braked: Running) -> None:
    """The same patch and warnings; no audit annotation, no line in the log, nothing in the counts of pods and policies."""
    review = json.loads(MISMATCH)
    review["request"]["dryRun"] = True
    before, lines = counts(braked), len(braked.events("decision"))
    dry = braked.post("/mutate", json.dumps(review).encode())
    assert len(braked.events("decision")) == lines
    assert counts(braked) == before
    real = braked.post("/mutate", MISMATCH)
    assert counts(braked) != before
    assert len(braked.events("decision")) == lines + 1
    assert "auditAnnotations" in real.response
    assert dry.response == {key: value for key, value in real.response.items() if key != "auditAnnotations"}


def counts(server: Running) -> list[str]:
    """The metrics of pods and policies."""
    lines = server.health("/metrics").body.decode().splitlines()
    return [line for line in lines if line.startswith(("berth_pods_", "berth_policy_outcomes_", "berth_remarks_"))]


def test_jq_reads_the_log(tmp_path: Path) -> None:
    """A line per decision, and every line is one JSON object, whatever a name holds."""
    jq = shutil.which("jq")
    if jq is None:
        pytest.skip("there is no jq here: apt install jq")
    with serving(tmp_path, *OPTIONS) as server:
        hostile = changed(userInfo={"username": 'a\n{"event":"decision","decision":"denied"}\x1b[2J\x85\u2028\x7f' + "n" * 5000})
        for body in (json.dumps(CREATE).encode(), MISMATCH, hostile, b"[]"):
            server.post("/mutate", body)
        server.event("rejected")
        raw = server.log.read_bytes()
    done = subprocess.run([jq, "-c", 'select(.event == "decision") | .decision'], input=raw, capture_output=True, check=True)
    assert done.stdout.split() == [b'"patched"', b'"denied"', b'"patched"']
    assert raw.isascii()
    assert b"\x1b" not in raw


def test_no_environment_variable_is_told(server: Running) -> None:
    """Neither the log, nor the answer, nor a metric holds what is in a container's env."""
    review = copy.deepcopy(CREATE)
    for container in review["request"]["object"]["spec"]["containers"]:
        container["env"] = [{"name": "TOKEN", "value": "hunter2-secret"}]
        container["resources"] = {"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "2"}}
    answers = [server.post(path, json.dumps(review).encode()).body for path in ("/mutate", "/validate")]
    outputs = [*answers, server.log.read_bytes(), server.health("/metrics").body]
    assert not [text for text in outputs if b"hunter2" in text or b"TOKEN" in text]
