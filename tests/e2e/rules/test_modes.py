"""What the modes leave behind, where people look: the audit log, the output of kubectl, the events and conditions of workloads."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import jsonpatch
import pytest

from tests.e2e.judged import POLICIES, Judged, judged
from tests.e2e.workloads import APPLIED, TOLERATION, affinity, expression, gpus, node_of, pod, waiting, workload
from tests.testcluster.controlplane.api import Raw, Reply
from tests.testcluster.controlplane.cluster import Cluster

WOULD = "mutate.pods.berth.dev/would"
DENIED = "mutate.pods.berth.dev/denied"
T4 = {"nvidia.com/gpu.product": "Tesla-T4"}
CLOSE = 200
"""Characters of a denial within which code, fact and fix stand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Modes(Judged):
    """With the file of policies that Berth follows."""

    policies: Path

    def switch(self, before: str, after: str) -> None:
        """The mode of the policy ``tried``; in force when this returns."""
        loaded = len(self.berth.events("policies_loaded"))
        self.policies.write_text(self.policies.read_text().replace(f"mode: {before}\n", f"mode: {after}\n", 1))
        self.cluster.wait_for(lambda: len(self.berth.events("policies_loaded")) > loaded, f"Berth to follow to {after}")


@pytest.fixture(scope="module")
def world(cluster: Cluster) -> Iterator[Modes]:
    policies = cluster.folder / "modes.yaml"
    policies.write_text((POLICIES / "modes.yaml").read_text())
    with judged(cluster, "modes", namespaces={mode: {"mode": mode} for mode in ("audit", "warn", "enforce")}, policies=policies) as found:
        yield Modes(cluster=cluster, berth=found.berth, facts=found.facts, names=found.names, policies=policies)


@pytest.fixture(autouse=True)
def cleared(world: Modes) -> Iterator[None]:
    yield
    world.clear()


@contextmanager
def enforcing(world: Modes) -> Iterator[None]:
    """The policy that was tried is in Enforce."""
    world.switch("Audit", "Enforce")
    try:
        yield
    finally:
        world.switch("Enforce", "Audit")


def audit_annotations(world: Judged, mode: str, name: str) -> Raw:
    """What the audit log says of the last request that created the pod ``name``, or was denied to."""
    about = {"resource": "pods", "namespace": world[mode], "name": name}

    def found() -> list[Raw]:
        events = (event for event in world.cluster.audited() if event["verb"] == "create")
        return [event for event in events if about.items() <= event["objectRef"].items()]

    events: list[Raw] = world.cluster.wait_for(found, "the audit event")
    return {key: json.loads(text) for key, text in events[-1].get("annotations", {}).items() if key.partition("/")[0].endswith("berth.dev")}


def named(name: str, made: Raw) -> Raw:
    """The same pod with a name, by which the audit log knows it."""
    metadata = {key: value for key, value in made["metadata"].items() if key != "generateName"}
    return {**made, "metadata": {**metadata, "name": name}}


def decided(stored: Raw) -> Raw:
    """What an author or a policy says, without what the API server gives every object."""
    metadata = stored["metadata"]
    return {"labels": metadata.get("labels", {}), "annotations": metadata.get("annotations", {}), "spec": stored["spec"]}


def kubectl(world: Judged, *words: str, given: Raw | None = None) -> subprocess.CompletedProcess[str]:
    text = None if given is None else json.dumps(given)
    return subprocess.run(world.cluster.kubectl(*words), input=text, capture_output=True, text=True, check=False)


def apply(world: Judged, mode: str, given: Raw, *words: str) -> subprocess.CompletedProcess[str]:
    """As a person types it."""
    return kubectl(world, "apply", "-n", world[mode], "-f", "-", *words, given=given)


# --- Audit -------------------------------------------------------------------------------------------------------------

TERMS = affinity({"matchExpressions": [expression("kubernetes.io/os", "linux")]}, {})
EDITED = {
    "one-gpu": pod(),
    "two-gpus-and-terms": pod(gpus(2), {"labels": {"app": "a"}, "annotations": {"b": "c"}}, affinity=TERMS),
    "a-slice": pod(gpus(name="nvidia.com/mig-1g.20gb"), tolerations=[TOLERATION]),
}
WRONG = pod(gpus(3), nodeSelector=T4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One pod, in Audit and then in Enforce."""

    plain: Raw
    audited: Raw
    audit_outcomes: Raw
    enforced: Reply


@pytest.fixture(scope="module")
def tried(world: Modes) -> dict[str, Tried]:
    """Each pod is created in Audit; then the policy is set to Enforce, and each is created again."""
    api, pods = world.cluster.api, {name: named(name, made) for name, made in {**EDITED, "wrong": WRONG}.items()}
    plain, audited = ({name: api.create(made, world[mode]) for name, made in pods.items()} for mode in ("plain", "audit"))
    recorded = {name: audit_annotations(world, "audit", name)[WOULD] for name in pods}
    world.clear()
    with enforcing(world):
        enforced = {name: api.try_create(made, world["audit"]) for name, made in pods.items()}
    world.clear()
    return {
        name: Tried(plain=plain[name], audited=audited[name], audit_outcomes=recorded[name][0], enforced=enforced[name]) for name in pods
    }


@pytest.mark.parametrize("name", [*EDITED, "wrong"])
def test_audit_changes_nothing(tried: dict[str, Tried], name: str) -> None:
    """The pod is stored as it is without Berth."""
    assert decided(tried[name].audited) == decided(tried[name].plain)


@pytest.mark.parametrize("name", EDITED)
def test_audit_tells_what_enforce_then_does(tried: dict[str, Tried], name: str) -> None:
    """The patch that the audit log has, on the pod as it was stored, is what Enforce stores."""
    one = tried[name]
    assert (one.audit_outcomes["policy"], one.audit_outcomes["mode"], one.audit_outcomes["denials"]) == (
        "ClusterGPUPolicy/tried",
        "Audit",
        [],
    )
    assert one.enforced.ok, one.enforced.message
    assert decided(one.enforced.body) != decided(one.audited)
    assert decided(jsonpatch.apply_patch(one.audited, one.audit_outcomes["patch"])) == decided(one.enforced.body)


def test_audit_tells_what_enforce_then_denies(world: Modes, tried: dict[str, Tried]) -> None:
    """The denials that the audit log had are those that it has when the pod is denied, and that the author reads."""
    one = tried["wrong"]
    assert one.enforced.status == 403, one.enforced.message
    assert [denial["code"] for denial in one.audit_outcomes["denials"]] == ["BERTH-121", "BERTH-111"]
    assert all(f"{denial['code']}: {denial['fact']}" in one.enforced.message for denial in one.audit_outcomes["denials"])
    assert audit_annotations(world, "audit", "wrong") == {DENIED: one.audit_outcomes["denials"]}


def test_a_pod_in_audit_waits_as_without_berth(world: Modes) -> None:
    """Nobody tolerates the taint for it."""
    assert "untolerated taint" in waiting(world.cluster, world.cluster.api.create(pod(), world["audit"]))


def test_nothing_is_left_of_a_dry_run(world: Modes) -> None:
    """kubectl --dry-run=server leaves no annotation in the audit log, whether the pod would pass or be denied."""
    assert apply(world, "audit", named("dry", pod()), "--dry-run=server").returncode == 0
    assert audit_annotations(world, "audit", "dry") == {}
    assert apply(world, "enforce", named("dry-wrong", pod(nodeSelector=T4)), "--dry-run=server").returncode == 1
    assert audit_annotations(world, "enforce", "dry-wrong") == {}


# --- Warn --------------------------------------------------------------------------------------------------------------


def test_warn_lets_the_pod_through_and_tells_who_typed_it(world: Modes) -> None:
    """kubectl prints the warning; the pod is stored and edited by nobody, and the audit log has it too."""
    done = apply(world, "warn", named("soon-denied", pod(nodeSelector=T4, tolerations=[TOLERATION])))
    assert (done.returncode, done.stdout) == (0, "pod/soon-denied created\n")
    assert done.stderr.startswith("Warning: BERTH-121 (would be denied if ClusterGPUPolicy/warned were in Enforce): spec.nodeSelector ")
    stored = world.cluster.api.get("v1", "Pod", "soon-denied", world["warn"])
    assert stored is not None
    assert APPLIED not in stored["metadata"].get("annotations", {})
    assert node_of(world.cluster, stored) == "t4"
    (audit_outcomes,) = audit_annotations(world, "warn", "soon-denied")[WOULD]
    assert (audit_outcomes["mode"], [one["code"] for one in audit_outcomes["denials"]]) == ("Warn", ["BERTH-121"])


IN_ENFORCE = "(its pods will be denied): spec.template.spec.nodeSelector"
IN_WARN = "(would be denied if ClusterGPUPolicy/warned were in Enforce): {}.spec.nodeSelector"
ADVISED = {
    ("Deployment", "enforce"): IN_ENFORCE,
    ("StatefulSet", "enforce"): IN_ENFORCE,
    ("Job", "enforce"): IN_ENFORCE,
    ("CronJob", "enforce"): "(its pods will be denied): spec.jobTemplate.spec.template.spec.nodeSelector",
    ("Job", "warn"): IN_WARN.format("spec.template"),
    ("CronJob", "warn"): IN_WARN.format("spec.jobTemplate.spec.template"),
}


@pytest.mark.parametrize(("kind", "mode"), ADVISED)
def test_who_applies_a_workload_reads_what_its_pods_will_meet(world: Modes, kind: str, mode: str) -> None:
    """The pods' own warnings die in the controller's log; these reach the person who can mend the template, with its path in it."""
    done = apply(world, mode, workload(kind, pod(nodeSelector=T4, tolerations=[TOLERATION])))
    assert (done.returncode, done.stdout.endswith("/work created\n")) == (0, True), done.stderr
    (warning,) = [line for line in done.stderr.splitlines() if line.startswith("Warning: ")]
    wanted = f"Warning: BERTH-121 {ADVISED[kind, mode]} nvidia.com/gpu.product=Tesla-T4 violates families in [ampere]; use one of "
    assert warning.startswith(wanted)


@pytest.mark.parametrize("mode", ["audit", "plain"])
def test_nothing_is_said_of_a_workload_that_nobody_minds(world: Modes, mode: str) -> None:
    """A policy in Audit speaks to the platform team alone."""
    done = apply(world, mode, workload("Deployment", pod(nodeSelector=T4, tolerations=[TOLERATION])))
    assert (done.returncode, done.stderr) == (0, "")


# --- Enforce -----------------------------------------------------------------------------------------------------------


def test_a_denial_as_kubectl_prints_it(world: Modes) -> None:
    """One line that begins with the code; code, fact and fix within its first 200 characters; the pod's name is not in it."""
    done = apply(world, "enforce", named("my-very-own-pod", pod(gpus(3))))
    assert (done.returncode, done.stdout) == (1, "")
    before, _, sentence = done.stderr.partition("denied the request: ")
    assert before.endswith('admission webhook "mutate.pods.berth.dev" ')
    assert sentence[:CLOSE].startswith("BERTH-111: the pod requests 3 GPUs, more than the 2 allowed here; request at most 2")
    assert "my-very-own-pod" not in sentence
    assert sentence.count("\n") == 1


@pytest.mark.parametrize("kind", ["Job", "Deployment", "StatefulSet", "ReplicationController"])
def test_a_workload_tells_in_its_events_why_it_has_no_pod(world: Modes, kind: str) -> None:
    """Whole, so that kubectl describe shows the fix too; of a Deployment its ReplicaSet does."""
    name = f"told-{kind.lower()}"
    world.cluster.api.create(workload(kind, pod(gpus(3)), name), world["enforce"])
    message = world.cluster.wait_for(lambda: failed(world, name), f"an event of {name}")
    assert message.partition("denied the request: ")[2].startswith(
        "BERTH-111: the pod requests 3 GPUs, more than the 2 allowed here; request at most 2"
    )
    described = kubectl(world, "describe", "replicaset" if kind == "Deployment" else kind, "-n", world["enforce"])
    assert message in described.stdout


def failed(world: Modes, name: str) -> str | None:
    """The first event FailedCreate of the workload, or of its ReplicaSet."""
    events = world.cluster.api.list("v1", "Event", world["enforce"], fieldSelector="reason=FailedCreate")
    return next((str(one["message"]) for one in events if one["involvedObject"]["name"].startswith(name)), None)


def test_a_deployment_tells_in_its_conditions_why_it_has_no_pod(world: Modes) -> None:
    """ReplicaFailure, which is what kubectl get -o yaml and dashboards show."""
    world.cluster.api.create(workload("Deployment", pod(gpus(3))), world["enforce"])

    def failure() -> str | None:
        found = world.cluster.api.get("apps/v1", "Deployment", "work", world["enforce"]) or {}
        conditions = found.get("status", {}).get("conditions", ())
        return next((str(one["message"]) for one in conditions if one["type"] == "ReplicaFailure"), None)

    assert "BERTH-111: the pod requests 3 GPUs" in world.cluster.wait_for(failure, "the condition ReplicaFailure")


# --- the brake ---------------------------------------------------------------------------------------------------------


def test_the_brake_stops_what_enforces(cluster: Cluster) -> None:
    """Under --max-mode Audit the same policies edit and deny nothing, and tell everything."""
    namespaces = {"enforce": {"mode": "enforce"}}
    with judged(cluster, "braked", "--max-mode", "Audit", namespaces=namespaces, policies=POLICIES / "modes.yaml") as braked:
        made = named("braked", pod(gpus(3)))
        stored = [cluster.api.create(made, braked[key]) for key in ("plain", "enforce")]
        assert decided(stored[0]) == decided(stored[1])
        (audit_outcomes,) = audit_annotations(braked, "enforce", "braked")[WOULD]
        assert [one["code"] for one in audit_outcomes["denials"]] == ["BERTH-111"]
