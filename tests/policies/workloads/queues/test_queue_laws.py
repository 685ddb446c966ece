"""The laws of what is written on workloads for their queue, over random workloads under random policies, beside a model of its own."""

from __future__ import annotations

import itertools
import json
from random import Random
from typing import Any

from kube.tree import apply_patch, value_at
from policies.request import Phase
from policies.state.snapshot import Snapshot
from policies.verdict import Verdict
from policies.workloads.pods import Around, Owner
from policies.workloads.queues import queue_verdict
from policies.workloads.queues.queued import QueuedWorkload
from policies.workloads.templates import workload_of
from tests.support import snapshots
from tests.support.cases import golden
from tests.support.counts import count

Raw = dict[str, Any]
CATALOG = golden.catalog_with()
KUEUE, KAI = "kueue.x-k8s.io/queue-name", "kai.scheduler/queue"
PARTITION, TIME = "slurmjob.slinky.slurm.net/partition", "slurmjob.slinky.slurm.net/timelimit"
PREFERRED, APPLIED = "kueue.x-k8s.io/podset-preferred-topology", "berth.dev/applied"
SLURMS = {"default-scheduler", "slurm-bridge-scheduler"}
SPECS: tuple[Raw, ...] = (
    {"default": {"queue": {"kueue": "a"}}},
    {"default": {"queue": {"kueue": "a", "topology": "rack"}}},
    {"default": {"queue": {"kueue": "b", "topology": "block"}}},
    {"default": {"queue": {"slurm": "a"}}},
    {"default": {"queue": {"kai": "a"}}},
    {"require": {"queue": {"kueue": ["a"]}}},
    {"require": {"queue": {"kueue": ["*"], "slurm": ["a"]}}},
)


def policies(random: Random) -> list[Raw]:
    chosen = [random.choice(SPECS) for _ in range(random.choice((1, 1, 2, 3)))]
    kinds = [random.choice(("ClusterGPUPolicy", "GPUPolicy")) for _ in chosen]
    modes = [random.choice(("Enforce", "Enforce", "Audit", "Warn")) for _ in chosen]
    return [
        {
            "kind": kind,
            "metadata": {"name": f"p{number}", **({"namespace": "ml"} if kind == "GPUPolicy" else {})},
            "spec": {**spec, "mode": mode},
        }
        for number, (kind, spec, mode) in enumerate(zip(kinds, chosen, modes, strict=True))
    ]


def template(random: Random) -> Raw:
    annotations: Raw = {}
    if random.random() < 0.5:
        annotations["berth.dev/expected-duration"] = random.choice(("30s", "90m", "2h"))
    if random.random() < 0.15:
        annotations[random.choice((PREFERRED, "kueue.x-k8s.io/podset-unconstrained-topology"))] = "mine"
    limits = {"nvidia.com/gpu": 1} if random.random() < 0.7 else {"cpu": 1}
    spec: Raw = {"containers": [{"name": "main", "resources": {"limits": limits}}], "restartPolicy": "Never"}
    if random.random() < 0.15:
        spec["schedulerName"] = random.choice(("default-scheduler", "kai-scheduler", "slurm-bridge-scheduler"))
    return {"metadata": {"annotations": annotations} if annotations else {}, "spec": spec}


def workload(random: Random) -> Raw:
    """A Job or a JobSet with one to three templates."""
    metadata: Raw = {"name": "w"}
    if random.random() < 0.3:
        metadata["labels"] = {random.choice((KUEUE, KUEUE, KAI)): random.choice("ab")}
    if random.random() < 0.15:
        metadata["annotations"] = random.choice(({PARTITION: "a"}, {TIME: "5"}, {"kueue.x-k8s.io/elastic-job": "true"}, {APPLIED: "[]"}))
    if random.random() < 0.15:
        version, kind = random.choice((("jobset.x-k8s.io/v1alpha2", "JobSet"), ("batch/v1", "CronJob")))
        metadata["ownerReferences"] = [{"apiVersion": version, "kind": kind, "name": "o", "uid": "u", "controller": True}]
    if random.random() < 0.5:
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template(random)}}
    sets = [{"name": f"r{i}", "template": {"spec": {"template": template(random)}}} for i in range(random.choice((1, 2, 3)))]
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": metadata, "spec": {"replicatedJobs": sets}}


def world(given: list[Raw]) -> Snapshot:
    return snapshots.build(golden.policies_of(given, CATALOG), CATALOG, platforms=("karpenter-aws",))


def judged(value: Raw, snapshot: Snapshot, phase: Phase = "mutate") -> Verdict:
    known = workload_of(CATALOG, value["apiVersion"], value["kind"])
    assert known is not None
    owner = Owner(api_version=value["apiVersion"], kind=value["kind"], name="w", namespace="ml", workload=known)
    made = QueuedWorkload(user="alice", value=value, catalog=CATALOG, owner=owner, around=Around())
    return queue_verdict.evaluate_queue(made, snapshot.facts_for("ml"), phase)


def after(value: Raw, verdict: Verdict) -> Raw:
    found: Raw = apply_patch(value, verdict.patch)
    return found


def without(value: Raw) -> Raw:
    """Without the record of what was written, and the maps that it left empty."""
    text = json.loads(json.dumps(value))
    (text["metadata"].get("annotations") or {}).pop(APPLIED, None)
    if not text["metadata"].get("annotations", True):
        text["metadata"].pop("annotations")
    return dict(text)


# --- the model: what the page about queues says, in its own words ---------------------------------------------


def templates(value: Raw) -> list[Raw]:
    if value["kind"] == "Job":
        return [value["spec"]["template"]]
    return [one["template"]["spec"]["template"] for one in value["spec"]["replicatedJobs"]]


def expected(value: Raw, given: list[Raw]) -> Raw:
    """What stands in the workload afterwards."""
    made: Raw = json.loads(json.dumps(value))
    with_gpus = [one for one in templates(made) if "nvidia.com/gpu" in one["spec"]["containers"][0]["resources"]["limits"]]
    acting = [one for one in given if one["spec"]["mode"] == "Enforce"]
    own = [one["spec"]["default"]["queue"] for one in acting if one["kind"] == "GPUPolicy" and "default" in one["spec"]]
    cluster = [one["spec"]["default"]["queue"] for one in acting if one["kind"] != "GPUPolicy" and "default" in one["spec"]]
    speaks = own or cluster
    metadata = made["metadata"]
    owner = metadata.get("ownerReferences", [{}])[0].get("kind")
    if not with_gpus or not speaks or any(one != speaks[0] for one in speaks) or owner == "JobSet":
        return made
    queue = speaks[0]
    labels, notes = metadata.get("labels", {}), metadata.get("annotations", {})
    schedulers = {one["spec"].get("schedulerName", "default-scheduler") for one in with_gpus}
    demands = [one["spec"]["require"]["queue"] for one in acting if "require" in one["spec"]]

    def admitted(system: str, name: str) -> bool:
        return all(not {name, "*"}.isdisjoint(one.get(system, ())) for one in demands)

    named = KUEUE in labels or KAI in labels or PARTITION in notes
    if "kueue" in queue:
        if not named and schedulers == {"default-scheduler"} and admitted("kueue", queue["kueue"]):
            metadata.setdefault("labels", {})[KUEUE] = queue["kueue"]
        words = {key for one in templates(made) for key in one["metadata"].get("annotations", {}) if "podset-" in key}
        there = metadata.get("labels", {}).get(KUEUE) == queue["kueue"] and "topology" in queue
        if there and not words and notes.get("kueue.x-k8s.io/elastic-job") != "true":
            for one in with_gpus:
                if one["spec"].get("schedulerName", "default-scheduler") == "default-scheduler":
                    one["metadata"].setdefault("annotations", {})[PREFERRED] = queue["topology"]
    elif (
        "slurm" in queue
        and not named
        and schedulers <= {"default-scheduler", "slurm-bridge-scheduler"}
        and admitted("slurm", queue["slurm"])
    ):
        minutes = {"30s": 1, "90m": 90, "2h": 120}
        times = [one["metadata"].get("annotations", {}).get("berth.dev/expected-duration") for one in with_gpus]
        metadata.setdefault("annotations", {})[PARTITION] = queue["slurm"]
        if TIME not in notes and None not in times:
            metadata["annotations"][TIME] = str(max(minutes[str(one)] for one in times))
    return made


def test_what_is_written_is_what_the_model_says_once_and_in_any_order() -> None:
    """Idempotent, whatever the order of policies, never over what an author wrote, and all of it recorded."""
    random, wrote = Random(20), 0
    for _ in range(count(200, 4000)):
        given, value = policies(random), workload(random)
        verdict = judged(value, world(given))
        once = after(value, verdict)
        assert without(once) == without(expected(value, given)), (value, given)
        assert after(once, judged(once, world(given))) == once, (value, given)
        assert after(value, judged(value, world(given[::-1]))) == once, (value, given)
        recorded = json.loads((once["metadata"].get("annotations") or {}).get(APPLIED, "[]"))
        assert len(recorded) == len(verdict.edits)
        for edit in verdict.edits:
            assert value_at(value, edit.path) is None
        wrote += bool(verdict.edits)
    assert wrote > 20


def test_a_policy_in_audit_says_what_enforce_would_write() -> None:
    """The would-be edits of one alone, added to those in force, are the edits that come of its switch to Enforce."""
    random, told = Random(21), 0
    for _ in range(count(120, 2000)):
        given, value = policies(random), workload(random)
        for number, one in itertools.islice(enumerate(given), 3):
            if one["spec"]["mode"] == "Enforce":
                continue
            switched = [*given[:number], {**one, "spec": {**one["spec"], "mode": "Enforce"}}, *given[number + 1 :]]
            now, then = judged(value, world(given)), judged(value, world(switched))
            audit_outcomes = [w for w in now.audit_outcomes if w.policy.endswith(f"/{one['metadata']['name']}")]
            if not audit_outcomes:
                assert then.edits == now.edits
                continue
            denied = judged(after(value, then), world(switched), "validate").violations
            assert {one.key for one in audit_outcomes[0].violations} <= {one.key for one in denied}
            if denied:  # what is written on it then is not stored
                continue
            kept = {edit.path for edit in now.edits} - {edit.path for edit in audit_outcomes[0].dropped}
            assert {edit.path for edit in then.edits} == kept | {edit.path for edit in audit_outcomes[0].edits}
            told += bool(audit_outcomes[0].edits)
    assert told > 10
