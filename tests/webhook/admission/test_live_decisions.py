"""While policies and facts change, every answer is that of a server that was started just now, whatever was decided before is kept."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import orjson
import pytest
from hypothesis import given

from analysis.reviews.review import ReviewError
from kube.review import API_VERSION, KIND
from policies.request import Phase, Request
from policies.state.objects import Change, Key
from policies.state.snapshot import Snapshot
from policies.state.updater import Options, Updater
from telemetry import log
from telemetry.metrics import Metrics
from tests.support.generators import random_changes, random_worlds
from tests.support.generators.random_changes import Changing
from tests.support.generators.random_cluster import NAMESPACES
from tests.support.generators.strategies import examples, randoms
from webhook.admission import handlers
from webhook.admission.decision_cache import Decisions, empty_decisions
from webhook.admission.parking import NotYet

METRICS = Metrics("test")
Line = dict[str, Any]


@pytest.fixture(autouse=True, scope="module")
def lines() -> Any:
    """What is logged, newest last."""
    logged: list[Line] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(log, "_sink", lambda line: logged.append(json.loads(line)))
        yield logged


def body(request: Request, namespace: str) -> bytes:
    """The review that the API server would send for it."""
    asked = {
        "uid": "u-1",
        "operation": "CREATE",
        "namespace": namespace,
        "userInfo": {"username": request.user},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "object": request.pod,
    }
    return orjson.dumps({"apiVersion": API_VERSION, "kind": KIND, "request": asked})


def answered(phase: Phase, sent: bytes, snapshot: Snapshot, lines: list[Line], decisions: Decisions | None = None) -> Any:
    """Decision, answer and log line. With ``decisions`` None nothing is kept."""
    lines.clear()
    try:
        answer = handlers.handle_review(phase, sent, snapshot, METRICS, decisions=decisions)
    except ReviewError as error:
        return error.sentence
    return *answer, [{name: value for name, value in line.items() if name != "time"} for line in lines]


def in_use(changing: Changing, snapshot: Snapshot, namespace: str) -> bool:
    """Whether the namespace is decided in; else the call is to come again, which ``judged`` says."""
    there = ("Namespace", "", namespace) in changing.there
    if there or not snapshot.by_labels:
        return True
    with pytest.raises(NotYet):
        handlers.handle_review("mutate", body(Request(namespace=namespace, user="anna", pod={}), namespace), snapshot, METRICS, waits=True)
    return False


def wholly_alike(random: Random, lines: list[Line], batches: int) -> int:
    """The same pods again and again, between batches of changes: each answer against that of a snapshot made anew. How many were
    found among what was kept."""
    changing = Changing(random, random_changes.options(random))
    followed, decisions, found = Updater(random_worlds.catalog(), changing.options), empty_decisions(), 0
    sent = [(random.choice(NAMESPACES), request) for request in changing.pods(5)]
    for number in range(batches):
        every = random.random() < 0.8
        update, built = followed.apply(changing.batch(random.choice((1, 1, 4))), all_nodes=every), changing.built(all_nodes=every)
        current, decisions = update.snapshot, decisions if update.decisions_hold else empty_decisions()
        for namespace, request in sent:
            if in_use(changing, current, namespace):
                kept = len(decisions)
                for phase in ("mutate", "validate"):
                    pod = body(request, namespace)
                    assert answered(phase, pod, current, lines, decisions) == answered(phase, pod, built, lines), f"batch {number}"
                found += len(decisions) == kept
    return found


@examples(5, 250)
@given(random=randoms())
def test_answers_are_those_of_a_server_that_was_just_started(random: Random, lines: list[Line]) -> None:
    """Byte for byte and log line for log line, at every step of random changes, though what was decided under the snapshots before
    is kept and used."""
    wholly_alike(random, lines, 10)


def test_what_was_kept_is_used_meanwhile(lines: list[Line]) -> None:
    """Else the law above would say nothing of it."""
    assert sum(wholly_alike(Random(seed), lines, 10) for seed in range(2)) > 10


# --- the kinds of change, one by one: each is a way in which a decision that is kept could be stale -------------------------------

POD: dict[str, Any] = {
    "metadata": {"labels": {"tier": "batch"}},
    "spec": {
        "terminationGracePeriodSeconds": 30,
        "containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1, "cpu": "2"}, "requests": {"cpu": "1"}}}],
    },
}
CLAIMING: dict[str, Any] = {
    "spec": {"containers": [{"name": "c"}], "resourceClaims": [{"name": "g", "resourceClaimTemplateName": "one"}]},
}


def put(kind: str, name: str, spec: Any = None, namespace: str = "", labels: Any = None) -> dict[Key, Change]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), **({"labels": labels} if labels else {})}
    return {(kind, namespace, name): {"metadata": metadata, "spec": spec}}


def enforced(**parts: Any) -> dict[str, Any]:
    return {"mode": "Enforce", **parts}


def asked(device_class: str, count: int) -> dict[str, Any]:
    return {"spec": {"devices": {"requests": [{"exactly": {"deviceClassName": device_class, "count": count}}]}}}


def driver(name: str) -> dict[str, Any]:
    return {"selectors": [{"cel": {"expression": f'device.driver == "{name}"'}}]}


def nodepool(grace: str) -> dict[str, Any]:
    return {"template": {"spec": {"terminationGracePeriod": grace}}}


TEAM = {"namespaceSelector": {"matchLabels": {"team": "a"}}}
POOL = {"labels": {"karpenter.sh/nodepool": "gpu"}}
OTHER_POOL = {"labels": {"karpenter.sh/nodepool": "other"}}
CHOOSES = enforced(default={"nodeTemplate": "t"})
CASES: dict[str, tuple[dict[str, Any], dict[Key, Change], dict[Key, Change]]] = {
    "a policy changes": (
        POD,
        put("ClusterGPUPolicy", "p", enforced(require={"capacity": ["spot"]})),
        put("ClusterGPUPolicy", "p", enforced(require={"capacity": ["reserved"]})),
    ),
    "a policy goes": (POD, put("GPUPolicy", "p", enforced(require={"capacity": ["spot"]}), "ns"), {("GPUPolicy", "ns", "p"): None}),
    "a policy comes": (
        POD,
        put("ClusterGPUPolicy", "p", enforced(default={"gracePeriod": "5m"})),
        put("GPUPolicy", "p", enforced(require={"gracePeriod": {"max": "2m"}}), "ns"),
    ),
    "a template changes": (
        POD,
        put("GPUNodeTemplate", "t", POOL) | put("ClusterGPUPolicy", "p", CHOOSES),
        put("GPUNodeTemplate", "t", OTHER_POOL),
    ),
    "a template comes": (POD, put("ClusterGPUPolicy", "p", CHOOSES), put("GPUNodeTemplate", "t", POOL)),
    "a namespace's labels": (
        POD,
        put("ClusterGPUPolicy", "p", enforced(require={"capacity": ["spot"]}, match=TEAM)) | put("Namespace", "ns", labels={"team": "a"}),
        put("Namespace", "ns", labels={"team": "b"}),
    ),
    "a NodePool's grace": (
        POD,
        put("GPUNodeTemplate", "t", POOL)
        | put("NodePool", "gpu", nodepool("10m"))
        | put("ClusterGPUPolicy", "p", enforced(default={"nodeTemplate": "t", "gracePeriod": "1h"})),
        put("NodePool", "gpu", nodepool("20m")),
    ),
    "a claim's count": (
        CLAIMING,
        put("ClusterGPUPolicy", "p", enforced(require={"gpusPerPod": {"max": 2}}))
        | put("DeviceClass", "gpu.nvidia.com", driver("gpu.nvidia.com"))
        | put("ResourceClaimTemplate", "one", asked("gpu.nvidia.com", 1), "ns"),
        put("ResourceClaimTemplate", "one", asked("gpu.nvidia.com", 4), "ns"),
    ),
    "a class's driver": (
        CLAIMING,
        put("ClusterGPUPolicy", "p", enforced(require={"gpusPerPod": {"max": 2}}))
        | put("DeviceClass", "class", driver("gpu.nvidia.com"))
        | put("ResourceClaimTemplate", "one", asked("class", 4), "ns"),
        put("DeviceClass", "class", driver("dra.net")),
    ),
    "another policy reads more": (
        POD,
        put("ClusterGPUPolicy", "p", enforced(require={"capacity": ["spot"]})),
        put(
            "GPUPolicy",
            "p",
            enforced(match={"podSelector": {"matchLabels": {"tier": "batch"}}}, require={"requestsEqualLimits": ["cpuAndMemory"]}),
            "ns",
        ),
    ),
}


@pytest.mark.parametrize(("pod", "first", "change"), CASES.values(), ids=CASES.keys())
def test_a_change_shows_in_the_next_answer(pod: Any, first: dict[Key, Change], change: dict[Key, Change], lines: list[Line]) -> None:
    """The pod that was decided a moment ago is decided otherwise, and again as before once the change is taken back."""
    followed = Updater(random_worlds.catalog(), Options(platforms=("karpenter-aws",)))
    update, decisions = followed.apply(put("Namespace", "ns") | first), empty_decisions()
    sent = body(Request(namespace="ns", user="anna", pod=pod), "ns")

    def answers() -> list[Any]:
        return [answered(phase, sent, update.snapshot, lines, decisions) for phase in ("mutate", "validate")]

    before = answers()
    assert answers() == before
    update = followed.apply(change)
    decisions = decisions if update.decisions_hold else empty_decisions()
    assert answers() != before
    update = followed.apply(dict.fromkeys(change) | {key: first[key] for key in change if key in first})
    decisions = decisions if update.decisions_hold else empty_decisions()
    assert answers() == before
