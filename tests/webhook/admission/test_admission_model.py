"""Interleavings of admission: phases, failurePolicy, conditions that error, retries, replicas, watches that lag, floods.

One law: nothing that is stored violates an enforced policy. The exception is that of docs/guardrails.md: an entry at Ignore is passed over
where the replica that is called is gone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from analysis.reviews import claim_review, review, workload_advice, workload_review
from policies.claims import claim_verdict
from policies.engine import evaluate
from registration.entries import DEFAULT, InstallChoices
from tests.support.calls.api_server_model import Cluster, Outcome, review_of
from tests.support.calls.webhook_dispatch import NAMESPACE, PODS, AdmissionRequest, judge
from tests.support.counts import count

Raw = dict[str, Any]
POLICY = {
    "apiVersion": "berth.dev/v1alpha1",
    "kind": "ClusterGPUPolicy",
    "metadata": {"name": "guard", "uid": "p", "generation": 1, "resourceVersion": "1"},
    "spec": {"mode": "Enforce", "require": {"gpusPerPod": {"max": 2}, "tolerations": {"forbid": [{"key": "reserved"}]}}},
}
QUEUE = {**POLICY, "metadata": {**POLICY["metadata"], "name": "queue"}, "spec": {"mode": "Enforce", "require": {"queue": {"kueue": ["*"]}}}}  # type: ignore[dict-item]
JOBSETS = ("jobset.x-k8s.io", "v1alpha2", "jobsets")
CLAIMS = ("resource.k8s.io", "v1", "resourceclaims")
Names = tuple[int, int, int]
"""How many names of each kind that a pod asks none of has: dear ones to a condition, and cheap ones by which its cost is tuned."""
NO_NAMES = (0, 0, 0)
KINDS = ("nvidia.com/mig-{:048}", "n.example/{:06}", "x.example/{:06}")
MANY = 2_000
BUDGET = 1_000_000
"""Units of one condition (apiserver pkg/apis/cel/config.go)."""


def cluster(replicas: int, chosen: InstallChoices = DEFAULT, seed: int = 0, policy: Raw = POLICY) -> Cluster:
    """A cluster with one policy, a namespace and a class of GPUs, which every replica knows."""
    made = Cluster(replicas=replicas, chosen=chosen, seed=seed)
    made.write("ClusterGPUPolicy", policy)
    made.write("Namespace", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    made.write("DeviceClass", device_class())
    made.clock.now += 10
    made.deliver()
    return made


def device_class() -> Raw:
    expression = "device.driver == 'gpu.nvidia.com'"
    return {"kind": "DeviceClass", "metadata": {"name": "gpu.nvidia.com"}, "spec": {"selectors": [{"cel": {"expression": expression}}]}}


def pod(gpus: int = 0, claims: Sequence[str] = (), names: Names = NO_NAMES, tolerated: str = "") -> AdmissionRequest:
    """A new pod: so many GPUs by name, these claims, and further names, of which it asks for none."""
    amounts = {kind.format(number): "0" for kind, many in zip(KINDS, names, strict=True) for number in range(many)}
    amounts |= {"nvidia.com/gpu": str(gpus)} if gpus else {}
    used = [{"name": f"c{number}"} for number in range(len(claims))]
    spec: Raw = {"containers": [{"name": "main", "image": "i", "resources": {"limits": amounts, "claims": used}}]}
    spec["resourceClaims"] = [{"name": f"c{number}", "resourceClaimName": claim} for number, claim in enumerate(claims)]
    if tolerated:
        spec["tolerations"] = [{"key": tolerated, "operator": "Exists"}]
    return AdmissionRequest(object={"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "p-"}, "spec": spec})


def claim(name: str, devices: int) -> AdmissionRequest:
    exactly = {"deviceClassName": "gpu.nvidia.com", "allocationMode": "ExactCount", "count": devices}
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
    value = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name}, "spec": spec}
    return AdmissionRequest(object=value, resource=CLAIMS)


def jobset(gpus: int, names: Names = NO_NAMES, queue: str = "") -> AdmissionRequest:
    """A JobSet of two kinds of pods: none with so many names, and one with GPUs."""
    templates = [(0, pod(names=names)), (1, pod(gpus=gpus))]
    jobs = [
        {"name": f"j{number}", "replicas": replicas, "template": {"spec": {"template": {"spec": asked.object["spec"]}}}}
        for number, (replicas, asked) in enumerate(templates)
    ]
    metadata = {"name": "j", "labels": {"kueue.x-k8s.io/queue-name": queue} if queue else {}}
    value = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": metadata, "spec": {"replicatedJobs": jobs}}
    return AdmissionRequest(object=value, resource=JOBSETS, typed=False)


@cache
def tuned(kind: str, chosen: InstallChoices) -> tuple[Names, ...]:
    """Names with which an object of a kind costs each condition just what it may, and a little more."""

    def make(names: Names) -> AdmissionRequest:
        return pod(claims=("c0",), names=names) if kind == "pod" else jobset(1, names)

    base, *more = (_cost(make(names), chosen) for names in (NO_NAMES, (100, 0, 0), (0, 100, 0), (0, 0, 100)))
    _, (many,) = judge([make((MANY, 0, 0))], chosen=chosen)
    found = [NO_NAMES, (MANY, 0, 0)]
    for entry in many.errors:
        units = [(cost[entry] - base[entry]) // 100 for cost in more]
        found += [_names(BUDGET - base[entry] + over, units) for over in range(-8, 28, 4)]
    return tuple(dict.fromkeys(found))


def _cost(asked: AdmissionRequest, chosen: InstallChoices) -> Mapping[str, int]:
    return judge([replace(asked, cost=True)], chosen=chosen)[1][0].cost


def _names(left: int, units: Sequence[int]) -> Names:
    """Return names that cost at most so many units, as near as can be."""
    dear = max(0, left // units[0] - 1)
    rest = left - dear * units[0]
    plain, cheap = max(
        ((plain, (rest - plain * units[1]) // units[2]) for plain in range(rest // units[1] + 1)),
        key=lambda both: both[0] * units[1] + both[1] * units[2],
    )
    return dear, plain, cheap


def tolerating(before: Raw, key: str) -> AdmissionRequest:
    """An update that adds a toleration."""
    tolerations = [*before["spec"].get("tolerations", ()), {"key": key, "operator": "Exists"}]
    now = {**before, "spec": {**before["spec"], "tolerations": tolerations}}
    return AdmissionRequest(object=now, old=before, operation="UPDATE")


def violations(made: Cluster, asked: AdmissionRequest, outcome: Outcome) -> tuple[object, ...]:
    """What is stored, judged with all that is stored, without bounds of work."""
    assert outcome.stored is not None
    snapshot = made.truth.apply({}).snapshot
    stored = replace(asked, object=outcome.stored)
    document = json.loads(review_of(stored, "law"))
    if asked.resource == CLAIMS:
        request = claim_review.request_of(claim_review.from_document(document), "validate")
        return claim_verdict.evaluate_claim(request, snapshot.facts_for(NAMESPACE)).violations
    if asked.resource == JOBSETS:
        return workload_review.evaluate_workload(workload_advice.from_document(document), snapshot).violations
    return evaluate(review.from_document(document).in_phase("validate"), snapshot.facts_for(NAMESPACE)).violations


def obeyed(made: Cluster, asked: AdmissionRequest, outcome: Outcome) -> None:
    """The law. Entries that only warn may be passed over."""
    skipped = [name for name in outcome.skipped if not name.startswith("advise.")]
    if outcome.stored is None or (outcome.lost and not skipped):
        return
    denials = violations(made, asked, outcome)
    assert not denials, f"stored: {denials[0]}; passed over: {outcome.skipped}"


class Admission(RuleBasedStateMachine):
    """A cluster, and everybody who may do something in it."""

    names = st.integers(0, 9)

    @initialize(replicas=st.sampled_from([1, 3, 5]), queues=st.booleans(), seed=st.integers(0, 2**16))
    def start(self, replicas: int, *, queues: bool, seed: int) -> None:
        self.chosen = InstallChoices(queues=True) if queues else DEFAULT
        self.cluster = cluster(replicas, self.chosen, seed, QUEUE if queues else POLICY)
        self.pods: list[AdmissionRequest] = []

    def post(self, *asked: AdmissionRequest) -> None:
        for one, outcome in zip(asked, self.cluster.post(*asked), strict=True):
            obeyed(self.cluster, one, outcome)
            if outcome.stored is not None and one.resource == PODS:
                self.pods = [*self.pods[-9:], replace(one, object=outcome.stored)]

    @rule(name=st.integers(0, 5), devices=st.sampled_from([1, 2, 8]))
    def make_a_claim(self, name: int, devices: int) -> None:
        if ("ResourceClaim", NAMESPACE, f"c{name}") not in {key for _, key, _ in self.cluster.events}:
            self.post(claim(f"c{name}", devices))

    @rule(gpus=st.sampled_from([0, 1, 3]), claims=st.lists(st.integers(0, 5), max_size=2), names=names, many=st.sampled_from([1, 2, 40]))
    def make_pods(self, gpus: int, claims: list[int], names: int, many: int) -> None:
        sizes = tuned("pod", self.chosen)
        self.post(*[pod(gpus, [f"c{n}" for n in claims], sizes[names % len(sizes)])] * (many if names % len(sizes) == 0 else 1))

    @rule(pods=st.sampled_from([2, 20]), claims=st.sampled_from([1, 850]))
    def flood(self, pods: int, claims: int) -> None:
        """Pods with claims that nobody makes."""
        self.post(*(pod(claims=[f"no-{number}-{index}" for index in range(claims)]) for number in range(pods)))

    @rule(gpus=st.sampled_from([0, 1]), names=names, queue=st.sampled_from(["", "a"]))
    def make_a_workload(self, gpus: int, names: int, queue: str) -> None:
        sizes = tuned("jobset", self.chosen)
        self.post(jobset(gpus, sizes[names % len(sizes)], queue))

    @rule(index=st.integers(0, 9), key=st.sampled_from(["reserved", "free"]))
    def tolerate(self, index: int, key: str) -> None:
        """Add a toleration to a pod that is stored."""
        if self.pods:
            self.post(tolerating(self.pods[index % len(self.pods)].object, key))

    @rule(seconds=st.sampled_from([0.05, 1.0, 10.0]))
    def wait(self, seconds: float) -> None:
        self.cluster.clock.now += seconds

    @rule(index=st.integers(0, 4), lag=st.sampled_from([0.02, 0.5, 3.0, 60.0]))
    def slow_down(self, index: int, lag: float) -> None:
        self.cluster.servers[index % len(self.cluster.servers)].lag = lag

    @rule(index=st.integers(0, 4), up=st.booleans(), behind=st.booleans())
    def hurt(self, index: int, *, up: bool, behind: bool) -> None:
        server = self.cluster.servers[index % len(self.cluster.servers)]
        server.up, server.behind = up, behind


def test_nothing_that_is_stored_violates_an_enforced_policy() -> None:
    """Whatever happens in which order."""
    steps = settings(max_examples=count(10, 20_000), stateful_step_count=50, deadline=None, phases=[Phase.generate])
    run_state_machine_as_test(Admission, settings=steps)


@pytest.mark.parametrize("names", range(12))
def test_a_pod_that_is_tuned_to_the_budget_of_a_condition(names: int) -> None:
    """It is judged, whatever its names cost: none is passed over by a condition that errors."""
    made, sizes = cluster(1), tuned("pod", DEFAULT)
    asked = pod(claims=["eight"], names=sizes[names % len(sizes)])
    made.write("ResourceClaim", {**claim("eight", 8).object, "metadata": {"name": "eight", "namespace": NAMESPACE}})
    made.clock.now += 1
    (outcome,) = made.post(asked)
    assert outcome.stored is None


@pytest.mark.parametrize("names", [0, 1, 2, 3])
def test_a_workload_that_is_tuned_to_the_budget_of_a_condition(names: int) -> None:
    """It is judged too."""
    chosen = InstallChoices(queues=True)
    made, sizes = cluster(1, chosen, policy=QUEUE), tuned("jobset", chosen)
    (outcome,) = made.post(jobset(1, sizes[names % len(sizes)]))
    assert outcome.stored is None


@pytest.mark.parametrize("key", ["reserved", "free"])
def test_an_update_while_every_replica_is_behind(key: str) -> None:
    """Nothing that must be turned away is passed over; nobody can flood a replica to get a toleration."""
    made = cluster(3)
    (outcome,) = made.post(pod(gpus=1))
    assert outcome.stored is not None
    for server in made.servers:
        server.behind = True
    assert [one.stored for one in made.post(tolerating(outcome.stored, key))] == [None]
    for server in made.servers:
        server.behind = False
    assert [one.stored is None for one in made.post(tolerating(outcome.stored, key))] == [key == "reserved"]


@pytest.mark.parametrize("replicas", [1, 3, 5, 10])
@pytest.mark.parametrize(("pods", "claims"), [(40, 1), (20, 850)])
def test_claims_that_nobody_makes(replicas: int, pods: int, claims: int) -> None:
    """A pod that names some is denied, however many are posted at once, and on however many replicas."""
    made = cluster(replicas)
    outcomes = made.post(*(pod(claims=[f"no-{number}-{index}" for index in range(claims)]) for number in range(pods)))
    assert [outcome.stored for outcome in outcomes] == [None] * pods
