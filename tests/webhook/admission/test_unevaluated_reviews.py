"""What can't be read is answered: denied where anything is enforced in that namespace, and by that namespace's own facts."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from analysis.reviews.decoding import LARGEST_REPAIRED, MOST_MARKS
from kube.review import Head, head_of
from policies.state.snapshot import Snapshot
from server.limits import UID_BYTES
from sources.sources import Sources, load_sources
from telemetry import log
from telemetry.metrics import Metrics
from webhook.admission import handlers
from webhook.admission.unevaluated_reviews import answer_unevaluated, may_deny, too_large

ROOT = Path(__file__).parent.parent.parent
BODY = (ROOT / "reviews" / "pods-create-train-llama.json").read_bytes()
CREATE: dict[str, Any] = json.loads(BODY)
UID = CREATE["request"]["uid"]
METRICS = Metrics("0")
POLICY = """
apiVersion: berth.dev/v1alpha1
kind: {kind}
metadata: {{name: {name}{namespace}}}
spec: {{mode: {mode}, require: {{gpusPerPod: {{max: 4}}}}}}
"""


def policy(name: str, mode: str, namespace: str = "") -> str:
    kind = "GPUPolicy" if namespace else "ClusterGPUPolicy"
    return POLICY.format(kind=kind, name=name, mode=mode, namespace=f", namespace: {namespace}" if namespace else "")


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """One policy of the cluster in Audit, and one of the namespace ``strict`` in Enforce."""
    file = tmp_path_factory.mktemp("policies") / "all.yaml"
    file.write_text("---".join((policy("all", "Audit"), policy("own", "Enforce", "strict"))))
    return load_sources(Sources(policies=(str(file),), platforms=("karpenter-aws",))).snapshot


@pytest.fixture(autouse=True)
def lines(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    logged: list[dict[str, Any]] = []
    monkeypatch.setattr(log, "_sink", lambda line: logged.append(json.loads(line)))
    return logged


def sent(namespace: str = "default", name: str | None = None, body: bytes = BODY) -> bytes:
    """The recorded review, of another namespace; its fields stand in the order in which the API server writes them."""
    named = f'"name":{json.dumps(name, ensure_ascii=False)},' if name is not None else ""
    return body.replace(b'"namespace":"default","operation"', f'{named}"namespace":"{namespace}","operation"'.encode(), 1)


def with_part(part: bytes) -> bytes:
    """The recorded review with one more field in the pod's metadata, as bytes."""
    return BODY.replace(
        b'"object":{"kind":"Pod","apiVersion":"v1","metadata":{', b'"object":{"kind":"Pod","apiVersion":"v1","metadata":{' + part + b",", 1
    )


def deep(levels: int) -> bytes:
    return b'"managedFields":[{"fieldsV1":' + b'{"f:a":' * levels + b"{}" + b"}" * levels + b"}]"


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(deep(1_100), id="deep"),
        pytest.param(deep(9_000), id="as-deep-as-go-reads"),
        pytest.param(rb'"managedFields":[{"fieldsV1":{"f:\ud800":{}}}]', id="half-a-surrogate"),
        pytest.param(b'"managedFields":[{"fieldsV1":{"f:\xff":{}}}]', id="no-utf-8"),
        pytest.param(b'"managedFields":[{"fieldsV1":{"f:a":1e400}}]', id="infinite"),
        pytest.param(b'"managedFields":[{"fieldsV1":{"f:a":' + b"9" * 5_000 + b"}}]", id="5000-digits"),
    ],
)
@pytest.mark.parametrize("phase", ["mutate", "validate"])
def test_what_nobody_reads_hides_nothing(phase: Any, part: bytes, snapshot: Snapshot) -> None:
    """Whatever is in it, the pod is judged as it is without: these are what Go writes and orjson denies."""
    with pytest.raises(ValueError):
        orjson.loads(with_part(part))
    expected = handlers.handle_review(phase, BODY, snapshot, METRICS)
    assert handlers.handle_review(phase, with_part(part), snapshot, METRICS) == expected


UNREADABLE: dict[str, Callable[[], bytes]] = {
    "too large to be repaired": lambda: with_part(deep(1_100) + b',"a":"' + b"x" * LARGEST_REPAIRED + b'"'),
    "cut off": lambda: BODY[:-5],
    "no number": lambda: with_part(b'"a":NaN'),
    "no map": lambda: BODY.replace(b'"spec":{', b'"spec":[],"was":{', 1),
    "no pod": lambda: BODY.replace(b'"object":{', b'"object":7,"was":{', 1),
    "deep where it is read": lambda: BODY.replace(b'"spec":{', b'"spec":{"nodeSelector":{"a":' + b"[" * 600 + b"]" * 600 + b"},", 1),
}


@pytest.mark.parametrize("body", [pytest.param(make(), id=name) for name, make in UNREADABLE.items()])
@pytest.mark.parametrize("phase", ["mutate", "validate"])
def test_what_can_not_be_read_is_denied_in_an_answer(phase: Any, body: bytes, snapshot: Snapshot, lines: list[dict[str, Any]]) -> None:
    """Where something is enforced; elsewhere it is allowed with a warning. An error status would let it pass at Ignore."""
    for namespace, word in (("strict", "denied"), ("default", "unmatched")):
        decision, answer = handlers.handle_review(phase, sent(namespace, body=body), snapshot, METRICS)
        response = json.loads(answer)["response"]
        text = response["warnings"][0] if word == "unmatched" else response["status"]["message"]
        assert (decision, response["uid"], response["allowed"]) == (word, UID, word == "unmatched")
        assert text.startswith("BERTH-005: this object can't be read or evaluated: ")
    assert [(line["event"], line["denied"]) for line in lines] == [("unreadable", True), ("unreadable", False)]


@pytest.mark.parametrize(("group", "kind", "denied"), [("resource.k8s.io", "ResourceClaim", True), ("", "Pod", False)])
def test_a_claim_that_is_too_long_is_denied_whatever_its_class_is_called(
    group: str, kind: str, *, denied: bool, snapshot: Snapshot
) -> None:
    """A pod that is as long, and in which nothing looks like an accelerator, is none of Berth's; a class may have any name."""
    asked = {"uid": UID, "kind": {"group": group, "version": "v1", "kind": kind}, "namespace": "strict", "operation": "CREATE"}
    text = json.dumps(
        {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": {**asked, "object": [0] * (MOST_MARKS + 1)}}
    )
    _, answer = handlers.handle_review("validate", text.replace(" ", "").encode(), snapshot, METRICS)
    assert json.loads(answer)["response"]["allowed"] is not denied


def test_advice_is_never_a_denial(snapshot: Snapshot) -> None:
    """It only ever warns, also of what can't be read."""
    word, answer = handlers.advise_workload(sent("strict")[:-5], snapshot, METRICS)
    response = json.loads(answer)["response"]
    assert (word, response["allowed"], response["warnings"][0][:9]) == ("advised", True, "BERTH-005")


def test_one_namespace_is_not_denied_for_the_policy_of_another(snapshot: Snapshot) -> None:
    """A pod of which too much would have to be judged, and a review over the cap, are decided by the namespace's own policies."""
    terms = ",".join(f'"example.com/{i:05}":"x"' for i in range(6000)).encode()
    large = BODY.replace(b'"spec":{', b'"spec":{"nodeSelector":{' + terms + b"},", 1)
    for namespace, word in (("strict", "denied"), ("default", "unmatched")):
        body = sent(namespace, body=large)
        head = head_of(body[:UID_BYTES])
        assert handlers.handle_review("mutate", body, snapshot, METRICS)[0] == word
        assert head == Head(UID, namespace)
        assert answer_unevaluated("mutate", head, snapshot, too_large(10**7, 10**6))[0] == word


def test_where_the_namespace_is_unknown_any_policy_counts(snapshot: Snapshot) -> None:
    """Nobody's large pod passes because its name fills the first bytes; under Audit alone nothing is denied."""
    head = head_of(sent("default", "x" * UID_BYTES)[:UID_BYTES])
    assert head == Head(UID, None)
    assert may_deny(snapshot, head.namespace)
    assert not may_deny(snapshot.with_policies(c for c in snapshot.policies if c.mode != "Enforce"), None)


def test_a_namespace_whose_labels_have_not_come_counts_as_unknown(snapshot: Snapshot) -> None:
    """Which policies are for it is not known yet."""
    assert may_deny(replace(snapshot, by_labels=True, every_namespace=True), "new")


@pytest.mark.parametrize(
    "name",
    [
        '","namespace":"default","operation":"CREATE","x":"',
        '\\","namespace":"default","operation":',
        '"},"namespace":"default","operation":"',
        "\\",
        "\\\\",
        '\\\\","namespace":"default","operation":"',
        "\u2028\ud7ff{}[]",
    ],
)
def test_no_name_is_taken_for_a_namespace(name: str) -> None:
    """The one text before it that an author writes; Go writes quotes and backslashes in it as JSON does."""
    assert head_of(sent("strict", name)) == Head(UID, "strict")


@pytest.mark.parametrize(
    "body",
    [
        BODY.replace(b'"operation"', b'"name":"x","operation"', 1),
        BODY.replace(b'"namespace":"default","operation"', b'"operation"', 1),
        BODY.replace(b'"namespace":"default","operation"', b'"userInfo":{"username":"a"},"namespace":"default","operation"', 1),
        b" " + BODY,
        json.dumps(CREATE).encode(),
    ],
    ids=["name-behind", "none", "user-before", "space", "another-writer"],
)
def test_a_head_that_the_api_server_does_not_write_tells_no_namespace(body: bytes) -> None:
    """Its uid is all that is taken from it."""
    assert head_of(body) == Head(UID, None)


@pytest.mark.parametrize("head", [b'{"request":{"object":{"uid":"0df2-a"', b'{"request":{"uid":"\\u0041"', b""])
def test_what_is_no_head_tells_nothing(head: bytes) -> None:
    """A uid stands where the API server writes it, and nowhere else."""
    assert head_of(head) is None


def test_every_recorded_review_tells_its_namespace() -> None:
    """As a real API server wrote them."""
    for path in sorted((ROOT / "reviews").iterdir()):
        asked = json.loads(path.read_bytes())["request"]
        assert head_of(path.read_bytes()[:UID_BYTES]) == Head(asked["uid"], asked["namespace"], asked["kind"]["group"]), path.name
