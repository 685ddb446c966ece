"""Reviews of claims on /validate: what is read of them, how they are answered, logged and counted."""

from __future__ import annotations

import base64
import json
from typing import Any

import orjson
import pytest

from analysis.reviews import claim_review
from analysis.reviews.review import ReviewError
from kube.review import resource_of
from kube.tree import apply_patch
from policies.facts.cluster_facts import ClusterFacts
from policies.facts.device_requests import DeviceClass, RequestChoice
from policies.request import Phase
from policies.state.snapshot import Snapshot
from policies.work_budget import MOST_READ
from telemetry import log
from telemetry.metrics import Metrics
from tests.support import snapshots
from tests.support.cases.golden import catalog_with, policies_of
from tests.support.generators.written_claims import claim, exactly, first_of, review_of
from webhook.admission import handlers

Raw = dict[str, Any]
ACCESS = {"operator": "Exists"}


def of(mode: str, **require: Any) -> Raw:
    return {"kind": "ClusterGPUPolicy", "metadata": {"name": mode.lower()}, "spec": {"mode": mode, "require": require}}


def under(*policies: Raw) -> Snapshot:
    return snapshots.build(policies_of(list(policies), catalog_with()), catalog_with(), platforms=("gfd",))


FEW = under(of("Enforce", gpusPerPod={"max": 4})).with_facts(ClusterFacts(device_classes={"nics": DeviceClass("dra.net")}))


@pytest.fixture(autouse=True)
def lines(monkeypatch: pytest.MonkeyPatch) -> list[Raw]:
    logged: list[Raw] = []
    monkeypatch.setattr(log, "_sink", lambda line: logged.append(json.loads(line)))
    return logged


def validated(document: Raw, facts: Snapshot = FEW, metrics: Metrics | None = None, phase: Phase = "validate") -> tuple[str, Raw]:
    """The decision, and the response."""
    word, body = handlers.handle_review(phase, orjson.dumps(document), facts, metrics or Metrics("test"))
    response: Raw = orjson.loads(body)["response"]
    return word, response


@pytest.mark.parametrize("template", [False, True], ids=["claim", "template"])
@pytest.mark.parametrize("api", ["v1", "v1beta2", "v1beta1"])
def test_every_version_is_read(api: str, *, template: bool) -> None:
    """v1 and v1beta2 have ``exactly``; v1beta1 has its fields in the request."""
    one = exactly(count=8, tolerations=[ACCESS], adminAccess=True)
    request = one if api != "v1beta1" else {"name": "gpu", **one["exactly"]}
    asked = claim_review.from_document(review_of(claim(request, api=api, template=template)))
    assert claim_review.request_of(asked, "mutate").claim == (
        (RequestChoice("gpu.nvidia.com", 8, 8, admin=True, tolerations=json.dumps([ACCESS], separators=(",", ":"))),),
    )


def test_a_claim_without_a_name_yet_is_read() -> None:
    """A generated one has only its beginning when it is judged."""
    made = claim(exactly(count=8))
    made["metadata"] = {"generateName": "train-gpu-"}
    asked = claim_review.from_document(review_of(made))
    assert (asked.name, asked.kind, len(claim_review.request_of(asked, "mutate").claim)) == ("train-gpu-", "ResourceClaim", 1)


@pytest.mark.parametrize("resource", [["resourceclaims"], {"a": 1}, None, 7, "pods"])
def test_a_review_of_no_resource_that_is_known_is_of_no_claim(resource: object) -> None:
    """Whatever stands in place of its name."""
    document = review_of(claim(exactly(count=8)))
    document["request"]["resource"]["resource"] = resource
    assert resource_of(document) not in claim_review.KINDS


def test_a_claim_is_denied_in_an_answer(lines: list[Raw]) -> None:
    """With every reason, an audit annotation and a line of the log; it counts as no pod."""
    metrics = Metrics("test")
    word, response = validated(review_of(claim(exactly(count=8), exactly(adminAccess=True))), metrics=metrics)
    assert (word, response["uid"], response["allowed"], response["status"]["code"]) == ("denied", "u-1", False, 403)
    assert response["status"]["message"].startswith("2 reasons:\n- BERTH-111: the claim requests 9 GPUs")
    assert [one["code"] for one in json.loads(response["auditAnnotations"]["denied"])] == ["BERTH-111", "BERTH-116"]
    fields = {key: lines[0][key] for key in ("event", "phase", "kind", "name", "namespace", "user", "decision")}
    assert fields == {
        "event": "decision", "phase": "validate", "kind": "ResourceClaim", "name": "gpus", "namespace": "ml", "user": "alice",
        "decision": "denied",
    }  # fmt: skip
    counted = metrics.exposition("")[0].decode()
    assert 'berth_policy_outcomes_total{mode="Enforce",outcome="denied",policy="(other)",rule="device_counts"} 1.0' in counted
    assert 'berth_pods_total{decision="denied"} 0.0' in counted


@pytest.mark.parametrize(
    ("made", "word"),
    [
        (claim(exactly(count=4)), "admitted"),
        (claim(first_of(exactly(count=2), exactly(count=4))), "admitted"),
        (claim(exactly("nics", 8)), "passed"),
        (claim(), "passed"),
    ],
    ids=["few", "one of few", "network cards", "nothing"],
)
def test_the_others_are_allowed(made: Raw, word: str) -> None:
    """Without a word."""
    assert validated(review_of(made)) == (word, {"uid": "u-1", "allowed": True})


def test_warn_is_told_to_who_makes_it() -> None:
    """As a warning and in the audit log; Audit in the audit log alone."""
    soft = under(of("Warn", gpusPerPod={"max": 4}), of("Audit", gpusPerPod={"max": 2}))
    word, response = validated(review_of(claim(exactly(count=8))), soft, phase="mutate")
    assert (word, response["allowed"], len(response["warnings"])) == ("admitted", True, 1)
    assert validated(review_of(claim(exactly(count=8))), soft) == ("admitted", {"uid": "u-1", "allowed": True})
    assert response["warnings"][0].startswith("BERTH-111 (would be denied if ClusterGPUPolicy/warn were in Enforce): the claim requests 8")
    assert [one["mode"] for one in json.loads(response["auditAnnotations"]["would"])] == ["Audit", "Warn"]


def test_what_is_required_is_written_and_recorded(lines: list[Raw]) -> None:
    """As a JSON Patch with the selector and who asked for it, which /validate then admits, and not the claim without it."""
    hopper = under(of("Enforce", families={"in": ["hopper"]}))
    made = claim(exactly(), template=True)
    word, response = validated(review_of(made), hopper, phase="mutate")
    assert (word, response["allowed"], response["patchType"]) == ("patched", True, "JSONPatch")
    patch = json.loads(base64.b64decode(response["patch"]))
    assert [one["path"] for one in patch] == ["/spec/spec/devices/requests/0/exactly/selectors", "/metadata/annotations"]
    assert json.loads(patch[1]["value"]["berth.dev/applied"])[0]["path"] == "/spec/spec/devices/requests/0/exactly/selectors/0"
    assert (lines[0]["phase"], lines[0]["edits"][0]["rule"]) == ("mutate", "device_selectors")
    assert validated(review_of(apply_patch(made, patch)), hopper) == ("admitted", {"uid": "u-1", "allowed": True})
    word, response = validated(review_of(made), hopper)
    assert (word, "BERTH-127" in response["status"]["message"]) == ("denied", True)


def test_what_is_written_makes_no_claim_too_large() -> None:
    """The largest with three selectors for each of 256 ways is judged again, as another webhook may make it come back."""
    strict = under(of("Enforce", families={"notIn": ["turing"]}, gpuMemory={"min": 16}, sharing=["Exclusive"]))
    made = claim(*[first_of(*[exactly()] * 8)] * 32)
    word, response = validated(review_of(made), strict, phase="mutate")
    edited = apply_patch(made, json.loads(base64.b64decode(response["patch"])))
    assert (word, len(orjson.dumps(edited)) > 4 * MOST_READ) == ("patched", True)
    assert [validated(review_of(edited), strict, phase=phase)[0] for phase in ("mutate", "validate")] == ["admitted", "admitted"]


def test_nothing_is_told_of_a_dry_run(lines: list[Raw]) -> None:
    """It never happened: the answer alone."""
    word, response = validated(review_of(claim(exactly(count=8)), dry_run=True))
    assert (word, response["allowed"], "auditAnnotations" in response, lines) == ("denied", False, False, [])


@pytest.mark.parametrize(
    "tolerations",
    [
        [{"key": f"k{number}" * 30} for number in range(2000)],
    ],
    ids=["too many"],
)
def test_more_than_is_judged_is_denied_in_an_answer(tolerations: list[Raw]) -> None:
    """An error would let it pass where the entry says Ignore."""
    document = json.dumps(review_of(claim(exactly(tolerations=tolerations)))).encode()
    word, body = handlers.handle_review("validate", document, FEW, Metrics("test"))
    response = orjson.loads(body)["response"]
    assert (word, response["allowed"], response["status"]["code"]) == ("denied", False, 413)


def test_a_claim_as_large_as_usual_ones_at_their_largest_is_judged() -> None:
    """32 requests with 16 tolerations each (k8s.io/api/resource/v1): as many as the API server takes."""
    largest = claim(*[exactly(tolerations=[{"key": "gpu.nvidia.com/unhealthy", "operator": "Exists"}] * 16)] * 32)
    assert claim_review.size_of(claim_review.from_document(review_of(largest))) < MOST_READ
    assert validated(review_of(largest))[1]["status"]["code"] == 403


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"object": None}, "request.object is missing; expected a ResourceClaim"),
        ({"operation": "DELETE"}, 'request.operation is "DELETE"; Berth evaluates CREATE and UPDATE'),
        ({"subResource": "status"}, 'request.subResource is "status"; send only claims here'),
        ({"namespace": ""}, 'request.namespace is ""; expected a string'),
    ],
)
def test_what_is_no_review_of_a_claim(change: Raw, sentence: str) -> None:
    """One sentence says what was wanted."""
    document = review_of(claim(exactly()))
    document["request"] |= change
    with pytest.raises(ReviewError) as caught:
        validated(document)
    assert (caught.value.status, caught.value.sentence) == (400, sentence)


def test_other_objects_of_the_group_are_none() -> None:
    """They are denied as what comes to /validate and is no pod."""
    document = review_of(claim(exactly()))
    document["request"]["resource"]["resource"] = "deviceclasses"
    with pytest.raises(ReviewError, match="send only pods here"):
        validated(document)
