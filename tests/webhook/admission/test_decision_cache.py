"""What was decided is kept for the next pod that is alike in all that is read, and for no other."""

from __future__ import annotations

import base64
import copy
import json
import tracemalloc
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import jsonpatch
import orjson
import pytest

from analysis.reviews import review
from analysis.reviews.audit_annotations import audit_annotations
from analysis.reviews.decoding import encoded
from analysis.reviews.review import ReviewError, parse
from analysis.reviews.verdict_records import audit_records
from kube.review import API_VERSION, KIND
from policies.engine import evaluate
from policies.facts.cluster_facts import ClusterFacts, FactEntry
from policies.facts.device_requests import RequestChoice
from policies.pods.projection import extract
from policies.request import Phase, Request
from policies.state.snapshot import Snapshot
from policies.verdict import MODES, AuditOutcome, Edit, Verdict
from sources.sources import Sources, load_sources
from telemetry import log
from telemetry.metrics import Metrics
from tests.support import worded
from tests.support.counts import count
from tests.support.generators.strategies import case_of
from webhook.admission import decision_cache, handlers
from webhook.admission.decision_cache import Decisions, decision_fields, decision_word, empty_decisions

ROOT = Path(__file__).parent.parent.parent.parent
BODY = (ROOT / "tests" / "reviews" / "pods-create-train-llama.json").read_bytes()
METRICS = Metrics("test")
PHASES: tuple[Phase, ...] = ("mutate", "validate")


@pytest.fixture
def snapshot() -> Snapshot:
    return load_sources(Sources(policies=(str(ROOT / "policies" / "library"),), platforms=("karpenter-aws",))).snapshot


@pytest.fixture(autouse=True)
def lines(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    logged: list[dict[str, Any]] = []
    monkeypatch.setattr(log, "_sink", lambda line: logged.append(json.loads(line)))
    return logged


def body(request: Request, uid: str = "u-1") -> bytes:
    """The review that the API server would send for it."""
    return orjson.dumps(
        {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "request": {
                "uid": uid,
                "operation": request.operation,
                "namespace": request.namespace,
                "userInfo": {"username": request.user},
                "resource": {"group": "", "version": "v1", "resource": "pods"},
                "object": request.pod,
                "oldObject": request.old_pod,
                "dryRun": request.dry_run,
            },
        }
    )


def answered(phase: Phase, sent: bytes, snapshot: Snapshot, decisions: Decisions | None = None) -> tuple[str, bytes] | str:
    """With ``decisions`` None nothing is kept."""
    try:
        return handlers.handle_review(phase, sent, snapshot, METRICS, decisions=decisions)
    except ReviewError as error:
        return error.sentence


def twin(pod: dict[str, Any], random: Random) -> dict[str, Any]:
    """Another pod of the same template: other names, images and environment."""
    other = copy.deepcopy(pod)
    if isinstance(metadata := other.get("metadata"), dict):
        metadata |= {"name": f"p-{random.random()}", "uid": str(random.random()), "resourceVersion": "7"}
    spec = other.get("spec")
    for container in spec.get("containers") or () if isinstance(spec, dict) else ():
        if isinstance(container, dict):
            container |= {"image": f"i-{random.random()}", "env": [{"name": "A", "value": str(random.random())}]}
    return other


def key_of(request: Request, snapshot: Snapshot, namespace: str = "default") -> decision_cache.Key | None:
    facts = snapshot.facts_for(namespace)
    return decision_cache.decision_key(request.phase, request, facts, encoded(extract(request.pod, facts.reads)))


def test_what_is_kept_is_what_would_be_decided_anew() -> None:
    """Byte for byte, for pods and their twins, in any order of phases, namespaces, users and dry runs, policies in every mode."""
    for seed in range(count(40, 4_000)):
        random = Random(seed)
        case = case_of(random, MODES)
        namespaces = [case.request.namespace, "default", "kube-public", ""]
        requests = [
            replace(case.request, pod=pod, namespace=random.choice(namespaces) or "x", dry_run=random.random() < 0.2, user=user)
            for pod in (case.request.pod, twin(case.request.pod, random), twin(case.request.pod, random))
            for user in (case.request.user, "somebody")
        ]
        decisions = empty_decisions()
        for at, request in enumerate(requests * 2):
            phase: Phase = random.choice(("mutate", "validate"))
            sent = body(request, f"u-{at}")
            assert answered(phase, sent, case.world.snapshot, decisions) == answered(phase, sent, case.world.snapshot), f"Random({seed})"


def test_a_twin_is_not_evaluated_again(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch, lines: list[dict[str, Any]]) -> None:
    """Its answer has its own uid, and its log line its own name."""
    decisions = empty_decisions()
    first = handlers.handle_review("mutate", BODY, snapshot, METRICS, decisions=decisions)
    monkeypatch.setattr(handlers, "evaluate", None)
    document = json.loads(BODY)
    document["request"]["uid"] = 'other "uid'
    document["request"]["object"]["metadata"]["generateName"] = "other-"
    word, answer = handlers.handle_review("mutate", json.dumps(document).encode(), snapshot, METRICS, decisions=decisions)
    expected = json.loads(first[1])
    expected["response"]["uid"] = 'other "uid'
    assert (word, json.loads(answer)) == (first[0], expected)
    one, two = lines
    assert (two["uid"], two["pod"], two["edits"], two["policies"]) == ('other "uid', "other-", one["edits"], one["policies"])


def test_another_snapshot_knows_nothing_of_it(snapshot: Snapshot) -> None:
    """What was decided under policies that are gone acts no more."""
    decisions = empty_decisions()
    handlers.handle_review("mutate", BODY, snapshot, METRICS, decisions=decisions)
    assert handlers.handle_review("mutate", BODY, snapshot.with_policies(()), METRICS, decisions=decisions)[0] == "unmatched"


def test_updates_are_not_kept(snapshot: Snapshot) -> None:
    """They depend on two pods."""
    request, facts = review.parse(BODY).in_phase("validate"), snapshot.facts_for("default")
    assert key_of(request, snapshot) is not None
    assert decision_cache.decision_key("validate", replace(request, operation="UPDATE", old_pod=request.pod), facts, b"{}") is None


def test_what_is_nested_deeper_than_it_can_be_written_is_denied(snapshot: Snapshot) -> None:
    """In what is read; elsewhere it passes as it is."""
    document = json.loads(BODY)
    deep: Any = "x"
    for _ in range(600):
        deep = [deep]
    document["request"]["object"]["spec"]["unknown"] = deep
    assert answered("mutate", json.dumps(document).encode(), snapshot) == answered("mutate", BODY, snapshot)
    document["request"]["object"]["spec"]["nodeSelector"] = {"a": deep}
    word, answer = handlers.handle_review("mutate", json.dumps(document).encode(), snapshot, METRICS)
    assert (word, b"BERTH-005" in answer, b"nested deeper than 254 levels" in answer) == ("denied", True, True)


@pytest.mark.parametrize("phase", ["mutate", "validate"])
def test_what_would_take_too_long_is_denied_unread(phase: Phase, snapshot: Snapshot, lines: list[dict[str, Any]]) -> None:
    """In an answer, so that no entry at Ignore lets it pass; where nothing may deny it is allowed with a warning."""
    document = json.loads(BODY)
    document["request"]["object"]["spec"]["nodeSelector"] = {f"example.com/{i:05}": "x" for i in range(6000)}
    sent = json.dumps(document).encode()
    word, answer = handlers.handle_review(phase, sent, snapshot, METRICS)
    status = json.loads(answer)["response"]["status"]
    assert (word, status["code"], status["message"][:9]) == ("denied", 413, "BERTH-004")
    audited = snapshot.with_policies(replace(c, mode="Audit") for c in snapshot.policies)
    word, answer = handlers.handle_review(phase, sent, audited, METRICS)
    response = json.loads(answer)["response"]
    assert (word, response["allowed"], response["warnings"][0][:9]) == ("unmatched", True, "BERTH-004")
    assert [(line["event"], line["denied"]) for line in lines] == [("too_large", True), ("too_large", False)]


@pytest.mark.parametrize("names", [100, 2_000, 45_000])
@pytest.mark.parametrize("phase", ["mutate", "validate"])
def test_a_pod_that_asks_for_nothing_is_admitted_at_any_size(phase: Phase, names: int, snapshot: Snapshot) -> None:
    """A condition sends large pods unread; beside one name of an accelerator, at any amount, the same pod is denied."""
    document = json.loads(BODY)
    amounts = {f"example.com/{number:05}": "1" for number in range(names)}
    container: dict[str, Any] = {"name": "main"}
    document["request"]["object"] = {"metadata": {"name": "p"}, "spec": {"containers": [container, {"name": "other"}]}}
    allowed = []
    for more in ({}, {"nvidia.com/mig-1g.5gb": "1"}, {"acme.example/GPU": "8"}):
        container["resources"] = {"limits": amounts | more, "requests": amounts | more}
        word, answer = handlers.handle_review(phase, json.dumps(document, separators=(",", ":")).encode(), snapshot, METRICS)
        allowed.append((word, json.loads(answer)["response"]["allowed"]))
    assert allowed == [("passed", True), ("denied", False), ("denied", False)]


@pytest.mark.parametrize("written", ["tolerations", "bytes"])
def test_what_policies_add_counts_at_once(written: str, snapshot: Snapshot) -> None:
    """A pod near the limit is denied by the call that would write into it; else, once it is written, the next call would deny it."""
    answers = set()
    for number in range(100, 181) if written == "tolerations" else range(54, 65):
        document = json.loads(BODY)
        pod = document["request"]["object"]
        if written == "tolerations":
            pod["spec"]["tolerations"] = [{"key": f"k{i}", "operator": "Exists"} for i in range(number)]
        else:
            pod["spec"]["tolerations"] = [{"key": "k" * 1000, "operator": "Exists"} for _ in range(number)]
        response = json.loads(handlers.handle_review("mutate", json.dumps(document).encode(), snapshot, METRICS)[1])["response"]
        answers.add(response["allowed"])
        if not response["allowed"]:
            assert response["status"]["code"] == 413
            continue
        document["request"]["object"] = jsonpatch.apply_patch(pod, json.loads(base64.b64decode(response["patch"])))
        for phase in PHASES:
            again = json.loads(handlers.handle_review(phase, json.dumps(document).encode(), snapshot, METRICS)[1])["response"]
            assert again["allowed"], (number, phase, again)
    assert answers == {True, False}


def test_an_old_pod_that_would_take_too_long_is_denied_unread(snapshot: Snapshot) -> None:
    """An update's review holds two."""
    document = json.loads(BODY)
    document["request"] |= {"operation": "UPDATE", "oldObject": {"spec": {"tolerations": [{"key": f"k{i}"} for i in range(20_000)]}}}
    assert handlers.handle_review("validate", json.dumps(document).encode(), snapshot, METRICS)[0] == "denied"


@pytest.mark.parametrize("dry_run", [False, True])
def test_an_update_that_keeps_what_policies_wrote_is_restored(dry_run: bool, snapshot: Snapshot, lines: list[dict[str, Any]]) -> None:  # noqa: FBT001
    """It is logged as other decisions are; an update that takes nothing away passes."""
    document = json.loads(BODY)
    pod = document["request"]["object"]
    response = json.loads(handlers.handle_review("mutate", BODY, snapshot, METRICS)[1])["response"]
    stored = jsonpatch.apply_patch(pod, json.loads(base64.b64decode(response["patch"])))
    lines.clear()
    document["request"] |= {"operation": "UPDATE", "oldObject": stored, "dryRun": dry_run}
    words = []
    for new in (pod, stored):
        document["request"]["object"] = new
        words.append(handlers.handle_review("mutate", json.dumps(document).encode(), snapshot, METRICS)[0])
    assert words == ["restored", "passed"]
    assert [line["decision"] for line in lines] == ([] if dry_run else words)


def test_nothing_is_kept_for_a_namespace_that_can_not_be(snapshot: Snapshot) -> None:
    """Its name would be kept with each pod that has claims, and no one has counted its characters."""
    assert key_of(review.parse(BODY), snapshot, "n" * 64) is None


def test_what_is_kept_takes_as_many_bytes_as_are_counted(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    """orjson leaves 4 KiB of room behind the shortest text, and would for as long as that is kept."""
    monkeypatch.setattr(log, "_sink", lambda line: None)
    request = review.parse(BODY)
    pods = [{**request.pod, "spec": {**request.pod["spec"], "nodeSelector": {"zone": str(number)}}} for number in range(200)]
    sent = [body(replace(request, pod=pod)) for pod in pods]
    decisions = empty_decisions()
    handlers.handle_review("mutate", BODY, snapshot, METRICS, decisions=decisions)
    tracemalloc.start()
    for one in sent:
        handlers.handle_review("mutate", one, snapshot, METRICS, decisions=decisions)
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert len(decisions) == 201
    assert taken < 1.5 * decisions._bytes


def test_claims_are_decided_by_namespace(snapshot: Snapshot) -> None:
    """A claim is found by its name in the pod's namespace; all else is alike where the policies are."""
    request = review.parse(BODY)
    claiming = replace(request, pod={**request.pod, "spec": {**request.pod["spec"], "resourceClaims": [{"name": "c"}]}})
    assert key_of(request, snapshot, "ml-1") == key_of(request, snapshot, "ml-2")
    assert key_of(claiming, snapshot, "ml-1") != key_of(claiming, snapshot, "ml-2")


def test_a_claim_that_changes_is_another_key(snapshot: Snapshot) -> None:
    """Of the pods that name it alone, whichever way; what was decided for others stays."""
    request = review.parse(BODY)
    named: list[dict[str, Any]] = [{"name": "c", "resourceClaimName": "c"}, {"name": "t", "resourceClaimTemplateName": "c"}, {"name": "o"}]
    pods = [replace(request, pod={**request.pod, "spec": {**request.pod["spec"], "resourceClaims": [one]}}) for one in named]

    def keys(*claims: FactEntry) -> list[decision_cache.Key | None]:
        cluster = ClusterFacts().changed(claims)
        return [key_of(pod, replace(snapshot, cluster=cluster, selected={})) for pod in pods]

    def claim(kind: str, *choices: RequestChoice) -> FactEntry:
        return FactEntry("claims", (kind, "default", "c"), (choices,))

    one, two = RequestChoice("gpu.nvidia.com"), RequestChoice("gpu.nvidia.com", 2, 2, tolerations='[{"key":"x"}]')
    by_name, by_template, other = keys()
    assert keys(claim("ResourceClaim", one))[1:] == [by_template, other]
    assert keys(claim("ResourceClaim", two))[1:] == [by_template, other]
    assert keys(claim("ResourceClaimTemplate", one))[::2] == [by_name, other]
    assert len({by_name, keys(claim("ResourceClaim", one))[0], keys(claim("ResourceClaim", two))[0], None}) == 4


def test_what_is_kept_is_bounded(snapshot: Snapshot) -> None:
    """Pods that are all unlike leave no more behind than the bound says."""
    asked = review.parse(BODY)
    facts, decisions = snapshot.facts_for("default"), empty_decisions()
    for number in range(count(200, 20_000)):
        pod = {**asked.pod, "spec": {**asked.pod["spec"], "nodeSelector": {"zone": "z" * 20_000 + str(number)}}}
        request = replace(asked, pod=pod)
        key = key_of(request, snapshot)
        decided = decision_cache.store_verdict(asked, evaluate(request, facts), "mutate")
        assert key is not None
        decision_cache.keep(decisions, key, decided)
    assert len(decisions) * 20_000 < decisions.most
    assert decisions._bytes <= decisions.most


REVIEW = parse((Path(__file__).parent.parent.parent / "reviews" / "pods-create-train-llama.json").read_bytes())
EDIT = Edit(op="add", path=("spec", "tolerations", "-"), value={"key": "k"}, rule="tolerations", policies=("ClusterGPUPolicy/a",))
DENIAL = worded.denial("BERTH-101", "f", rule="requests_match_limits", policies=("ClusterGPUPolicy/a",))
PATCH = ({"op": "add", "path": "/spec/tolerations", "value": [{"key": "k"}]},)


def audit_outcomes(**fields: Any) -> AuditOutcome:
    return AuditOutcome(policy="ClusterGPUPolicy/audited", mode="Audit", **fields)


@pytest.mark.parametrize(
    ("verdict", "phase", "word"),
    [
        (Verdict(judged=False), "mutate", "passed"),
        (Verdict(judged=False, patch=PATCH), "mutate", "restored"),
        (Verdict(), "mutate", "unmatched"),
        (Verdict(matched=("p",)), "mutate", "admitted"),
        (Verdict(matched=("p",), edits=(EDIT,), patch=PATCH), "mutate", "patched"),
        (Verdict(matched=("p",), edits=(EDIT,), patch=PATCH), "validate", "admitted"),
        (Verdict(matched=("p",), violations=(DENIAL,)), "validate", "denied"),
    ],
)
def test_a_decision_is_one_word(verdict: Verdict, phase: Any, word: str) -> None:
    """The same in the log and in the metrics."""
    assert decision_word(verdict, phase) == word


def test_a_line_tells_whose_pod_and_who_decided() -> None:
    """And what was written where; never what the pod is made of."""
    verdict = Verdict(matched=("ClusterGPUPolicy/a",), edits=(EDIT,), patch=PATCH, violations=(), uncounted=2)
    fields = {**decision_cache.pod_fields(REVIEW, "mutate"), **json.loads(decision_fields(verdict, "mutate", "patched"))}
    assert (fields["namespace"], fields["pod"], fields["notAudited"]) == ("default", "train-llama-", 2)
    assert fields["edits"] == [{"rule": "tolerations", "path": "spec/tolerations/-", "policies": ["ClusterGPUPolicy/a"]}]
    assert "nginx" not in json.dumps(fields)


def test_would_records_are_those_of_the_annotation() -> None:
    """The log and the audit log tell the same."""
    verdict = Verdict(audit_outcomes=(audit_outcomes(edits=(EDIT,), patch=PATCH),))
    assert json.loads(audit_annotations(verdict)["would"]) == json.loads(json.dumps(audit_records(verdict)))
    assert json.loads(decision_fields(verdict, "mutate", "unmatched"))["would"] == json.loads(json.dumps(audit_records(verdict)))


def test_a_pod_without_a_name_has_an_empty_one() -> None:
    """Whatever is in its place."""
    assert [decision_cache._name(pod) for pod in ({}, {"metadata": 7}, {"metadata": {"generateName": "a-"}})] == ["", "", "a-"]
