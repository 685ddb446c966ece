"""Workloads under policies about queues: outcomes of Audit and Warn, the record of what is written, topology and Slurm bridge."""

from __future__ import annotations

import base64
import json
from typing import Any

import orjson
import pytest

from kube.tree import apply_patch
from policies.state.snapshot import Snapshot
from telemetry import log
from telemetry.metrics import Metrics
from tests.analysis.reviews.test_workload_review import GIVES, JOB, LABEL, REQUIRES, denied, job, review, template
from tests.support import snapshots
from tests.support.cases import golden
from webhook.admission import handlers

Raw = dict[str, Any]
PREFERRED, APPLIED = "kueue.x-k8s.io/podset-preferred-topology", "berth.dev/applied"
PARTITION, TIME = "slurmjob.slinky.slurm.net/partition", "slurmjob.slinky.slurm.net/timelimit"
BLOCK = "cloud.provider.com/topology-block"
NEAR: Raw = {"default": {"queue": {"kueue": "team-a", "topology": BLOCK}}}
SLURM: Raw = {"default": {"queue": {"slurm": "gpu"}}}
LATER = {"berth.dev/expected-duration": "90m"}
JOB_SET = ("jobset.x-k8s.io/v1alpha2", "JobSet", "jobsets")
CATALOG = golden.catalog_with()


def world(*policies: tuple[str, Raw]) -> Snapshot:
    """A snapshot with policies, each with its mode."""
    named = [
        {"kind": "ClusterGPUPolicy", "metadata": {"name": f"p{i}"}, "spec": {"mode": mode, **one}} for i, (mode, one) in enumerate(policies)
    ]
    return snapshots.build(golden.policies_of(named, CATALOG), CATALOG, platforms=("karpenter-aws",))


@pytest.fixture(autouse=True)
def lines(monkeypatch: pytest.MonkeyPatch) -> list[Raw]:
    logged: list[Raw] = []
    monkeypatch.setattr(log, "_sink", lambda line: logged.append(json.loads(line)))
    return logged


def asked(body: bytes, snapshot: Snapshot, metrics: Metrics | None = None, *, path: str = "label") -> Raw:
    """The response."""
    call = handlers.handle_label if path == "label" else lambda *given: handlers.handle_review("validate", *given)
    response: Raw = orjson.loads(call(body, snapshot, metrics or Metrics("0"))[1])["response"]
    return response


def written(value: Raw, *specs: Raw, kind: tuple[str, str, str] = JOB, **given: Any) -> Raw:
    """The workload as these policies in Enforce leave it."""
    response = asked(review(value, kind, **given), world(*(("Enforce", one) for one in specs)))
    after: Raw = apply_patch(value, json.loads(base64.b64decode(response["patch"])) if "patch" in response else [])
    return after


def noted(value: Raw) -> Raw:
    found: Raw = value["metadata"].get("annotations") or {}
    return found


def topology(value: Raw) -> str | None:
    found: str | None = (value["spec"]["template"].get("metadata", {}).get("annotations") or {}).get(PREFERRED)
    return found


def test_a_policy_in_warn_warns_the_author_and_one_in_audit_does_not() -> None:
    """Both leave the workload as it is."""
    warned = asked(review(job()), world(("Warn", REQUIRES)))
    assert warned["allowed"]
    assert "patch" not in warned
    assert warned["warnings"][0].startswith("BERTH-144 (would be denied if ClusterGPUPolicy/p0 were in Enforce)")
    silent = asked(review(job()), world(("Audit", REQUIRES)))
    assert (silent["allowed"], silent.get("warnings")) == (True, None)


@pytest.mark.parametrize("mode", ["Audit", "Warn"])
def test_what_would_be_denied_is_recorded(mode: str, lines: list[Raw]) -> None:
    """In the API server's audit log, in Berth's own, and in the metric by policy."""
    metrics, snapshot = Metrics("0"), world((mode, REQUIRES))
    response = asked(review(job()), snapshot, metrics)
    (told,) = json.loads(response["auditAnnotations"]["would"])
    assert (told["policy"], told["mode"], told["denials"][0]["code"]) == ("ClusterGPUPolicy/p0", mode, "BERTH-144")
    assert lines[-1]["would"][0]["denials"][0]["code"] == "BERTH-144"
    counted = metrics.exposition("")[0].decode()
    assert f'berth_policy_outcomes_total{{mode="{mode}",outcome="would_deny",policy="(other)",rule="queue"}} 1.0' in counted


def test_the_label_is_shown_and_not_written(lines: list[Raw]) -> None:
    """The dry run of a default: the patch that it would be."""
    response = asked(review(job()), world(("Audit", GIVES)))
    assert "patch" not in response
    (told,) = json.loads(response["auditAnnotations"]["would"])
    assert {"op": "add", "path": "/metadata/labels", "value": {LABEL: "team-a"}} in told["patch"]
    assert lines[-1]["edits"] == []


def test_a_default_in_audit_is_no_queue_for_what_is_required_in_enforce() -> None:
    """Only what is written counts."""
    snapshot = world(("Audit", GIVES), ("Enforce", REQUIRES))
    assert not asked(review(job()), snapshot, path="validate")["allowed"]
    both = asked(review(job()), world(("Enforce", GIVES), ("Warn", REQUIRES)))
    assert both.get("warnings") is None


def test_an_update_is_warned_for_what_it_changes() -> None:
    """What was wrong before is not told again, as it is not denied."""
    snapshot, inside, outside = world(("Warn", REQUIRES)), job({LABEL: "team-a"}), job({LABEL: "other"})
    leaves = asked(review(outside, old=inside), snapshot, path="validate")
    assert leaves["allowed"]
    assert leaves["warnings"][0].startswith("BERTH-144")
    assert asked(review(outside, old=outside), snapshot, path="validate").get("warnings") is None


def test_a_kind_that_kueue_does_not_hold_is_warned_where_it_is_reviewed() -> None:
    """Only /validate is called for it."""
    require = {"require": {"queue": {"slurm": ["gpu"]}}}
    value = job({}, annotations={PARTITION: "other"}, schedulerName="slurm-bridge-scheduler")
    kind = ("apps/v1", "ReplicaSet", "replicasets")
    assert "BERTH-144" in asked(review(value, kind), world(("Warn", require)), path="validate")["warnings"][0]


def test_what_was_wrong_in_a_dry_run_is_not_recorded(lines: list[Raw]) -> None:
    """No audit annotations, no line in the log."""
    document = json.loads(review(job()))
    document["request"]["dryRun"] = True
    assert "auditAnnotations" not in asked(json.dumps(document).encode(), world(("Audit", REQUIRES)))
    assert lines == []


def test_what_is_written_is_recorded_once() -> None:
    """The second call adds nothing, and the record goes with what it records."""
    once = written(job(), NEAR)
    (label, placed) = json.loads(noted(once)[APPLIED])
    assert (label["path"], label["rule"], label["by"]) == ("/metadata/labels/kueue.x-k8s.io~1queue-name", "queue", ["ClusterGPUPolicy/p0"])
    assert placed["path"] == "/spec/template/metadata/annotations/kueue.x-k8s.io~1podset-preferred-topology"
    assert written(once, NEAR) == once
    moved = json.loads(json.dumps(once))
    moved["metadata"]["labels"][LABEL] = "mine"
    assert [one["path"] for one in json.loads(noted(written(moved, NEAR)).get(APPLIED, "[]"))] == []


def test_a_record_of_an_authors_own_proves_nothing() -> None:
    """An entry that these policies would not write is dropped, and nothing else is touched."""
    claimed = json.dumps([{"by": ["ClusterGPUPolicy/p0"], "rule": "queue", "path": "/metadata/name", "is": "00000000"}])
    value = job({LABEL: "mine"}, annotations={APPLIED: claimed, "mine": "1"})
    after = written(value, GIVES)
    assert noted(after) == {"mine": "1"}
    assert after["metadata"]["labels"] == {LABEL: "mine"}


def test_the_topology_of_the_queue_is_written_where_the_workload_is_in_it() -> None:
    """In the default queue, and where the author named the same; on each template of GPU pods, and on no other."""
    assert topology(written(job(), NEAR)) == BLOCK
    assert topology(written(job({LABEL: "team-a"}), NEAR)) == BLOCK
    sets = [{"name": name, "template": {"spec": {"template": template(gpus)}}} for name, gpus in (("leader", 0), ("workers", 1))]
    after = written({"metadata": {"name": "s"}, "spec": {"replicatedJobs": sets}}, NEAR, kind=JOB_SET)
    metadata = [one["template"]["spec"]["template"]["metadata"] for one in after["spec"]["replicatedJobs"]]
    assert metadata == [{}, {"annotations": {PREFERRED: BLOCK}}]


@pytest.mark.parametrize(
    "value",
    [
        job({LABEL: "other"}),
        job({LABEL: "team-a"}, gpus=0),
        job({LABEL: "team-a"}, annotations={"kueue.x-k8s.io/elastic-job": "true"}),
        job({LABEL: "team-a"}, owner=("jobset.x-k8s.io/v1alpha2", "JobSet")),
        job({LABEL: "team-a"}, schedulerName="kai-scheduler"),
    ],
    ids=["another queue", "no GPU", "elastic", "a managed parent", "another scheduler"],
)
def test_no_topology_elsewhere(value: Raw) -> None:
    """Kueue would never admit such a workload, would deny it, or does not place it."""
    assert topology(written(value, NEAR)) is None


@pytest.mark.parametrize(
    "word",
    [
        "podset-required-topology",
        "podset-preferred-topology",
        "podset-unconstrained-topology",
        "podset-slice-required-topology",
        "podset-group-name",
    ],
)
def test_an_authors_own_topology_stays_alone(word: str) -> None:
    """Kueue denies two of them, and some beside others."""
    value = job({LABEL: "team-a"})
    value["spec"]["template"]["metadata"] = {"annotations": {f"kueue.x-k8s.io/{word}": "mine"}}
    assert written(value, NEAR) == value


def test_two_defaults_that_differ_in_topology_alone() -> None:
    """They differ, so neither acts, and the platform team is told."""
    response = asked(review(job()), world(("Enforce", NEAR), ("Enforce", GIVES)))
    assert "patch" not in response


def test_slurms_partition_is_written_on_what_slurm_bridge_reads() -> None:
    """The topmost workload that it knows, with the time limit of its pods in whole minutes."""
    value = job()
    value["spec"]["template"]["metadata"] = {"annotations": LATER}
    after = noted(written(value, SLURM))
    assert (after[PARTITION], after[TIME]) == ("gpu", "90")
    assert TIME not in noted(written(job(), SLURM))
    of_cron = job(owner=("batch/v1", "CronJob"))
    assert noted(written(of_cron, SLURM))[PARTITION] == "gpu"
    of_set = job(owner=("jobset.x-k8s.io/v1alpha2", "JobSet"))
    assert written(of_set, SLURM) == of_set


def test_the_longest_of_several_pods_is_the_limit_of_all() -> None:
    """One that says nothing may run for ever: then none is written."""

    def made(*durations: str | None) -> Raw:
        sets = []
        for number, one in enumerate(durations):
            pods = template()
            pods["metadata"] = {"annotations": {"berth.dev/expected-duration": one}} if one else {}
            sets.append({"name": f"r{number}", "template": {"spec": {"template": pods}}})
        return noted(written({"metadata": {"name": "s"}, "spec": {"replicatedJobs": sets}}, SLURM, kind=JOB_SET))

    assert made("30s", "2h")[TIME] == "120"
    assert TIME not in made("2h", None)
    assert made("2h", None)[PARTITION] == "gpu"


@pytest.mark.parametrize(
    "value",
    [
        job(annotations={PARTITION: "mine"}),
        job({LABEL: "mine"}),
        job({"kai.scheduler/queue": "mine"}),
        job(schedulerName="kai-scheduler"),
        job(gpus=0),
    ],
    ids=["a partition", "Kueue's queue", "KAI's queue", "another scheduler", "no GPU"],
)
def test_slurm_takes_nobody_who_has_chosen(value: Raw) -> None:
    """A default never moves a workload that names a queue of any system."""
    assert written(value, SLURM) == value


def test_a_claim_and_an_authors_time_limit() -> None:
    """Slurm bridge denies pods with claims; a limit that is written stays."""
    assert PARTITION not in noted(written(job(resourceClaims=[{"name": "g", "resourceClaimName": "c"}]), SLURM))
    value = job(annotations={TIME: "5"})
    value["spec"]["template"]["metadata"] = {"annotations": LATER}
    after = noted(written(value, SLURM))
    assert (after[PARTITION], after[TIME]) == ("gpu", "5")


def test_what_a_cron_job_makes_is_judged_for_slurm() -> None:
    """Its Jobs' own annotations are read, so the one of the CronJob proves nothing, and its lack is no fault."""
    require = {"require": {"queue": {"slurm": ["gpu"]}}}
    cron = {"metadata": {"name": "c"}, "spec": {"jobTemplate": {"spec": {"template": template(schedulerName="slurm-bridge-scheduler")}}}}
    assert denied(cron, require, kind=("batch/v1", "CronJob", "cronjobs")) == ""
    user = "system:serviceaccount:kube-system:cronjob-controller"
    made = job(annotations={PARTITION: "other"}, owner=("batch/v1", "CronJob"), schedulerName="slurm-bridge-scheduler")
    assert "BERTH-144" in denied(made, require, user=user)
    within = job(annotations={PARTITION: "gpu"}, owner=("batch/v1", "CronJob"), schedulerName="slurm-bridge-scheduler")
    assert denied(within, require, user=user) == ""


def test_a_written_partition_is_the_one_that_is_required() -> None:
    """What a default writes is admitted, also on the second phase."""
    require = {"require": {"queue": {"slurm": ["gpu"]}}}
    assert denied(written(job(), SLURM, require), SLURM, require) == ""
    assert "BERTH-144" in denied(job(), SLURM, require)


WRAPPER = ("workload.codeflare.dev/v1beta2", "AppWrapper", "appwrappers")


def test_a_wrapper_is_held_back_in_place_of_what_it_wraps() -> None:
    """The AppWrapper gets the label, and its Job's template the topology; the Job that its controller makes gets none."""
    inner = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": template()}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": template()["spec"]}
    wrapped: Raw = {"metadata": {"name": "w"}, "spec": {"components": [{"template": inner}, {"template": pod}]}}
    after = written(wrapped, NEAR, kind=WRAPPER)
    assert after["metadata"]["labels"] == {LABEL: "team-a"}
    assert after["spec"]["components"][0]["template"]["spec"]["template"]["metadata"] == {"annotations": {PREFERRED: BLOCK}}
    assert after["spec"]["components"][1]["template"] == pod
    of_it = job(owner=("workload.codeflare.dev/v1beta2", "AppWrapper"))
    assert written(of_it, NEAR) == of_it


def test_a_wrapper_past_the_queue_is_denied() -> None:
    """Also one of bare pods, and what a wrapper's author writes is no wrapper's making."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": template()["spec"]}
    assert "BERTH-144" in denied({"metadata": {"name": "w"}, "spec": {"components": [{"template": pod}]}}, REQUIRES, kind=WRAPPER)
    assert "BERTH-144" in denied(job(owner=("workload.codeflare.dev/v1beta2", "AppWrapper")), REQUIRES)


def test_of_a_large_workload_fewer_policies_are_evaluated(lines: list[Raw]) -> None:
    """And how many were not is said."""
    sets = [{"name": f"r{i}", "template": {"spec": {"template": template()}}} for i in range(64)]
    snapshot = world(*(("Audit", REQUIRES) for _ in range(6)))
    asked(review({"metadata": {"name": "s"}, "spec": {"replicatedJobs": sets}}, JOB_SET), snapshot)
    assert (len(lines[-1]["would"]), lines[-1]["notAudited"]) == (3, 3)


def test_an_owner_of_an_authors_own_is_no_cron_job() -> None:
    """Slurm bridge may follow it to another object's words."""
    require = {"require": {"queue": {"slurm": ["gpu"]}}}
    within = job(annotations={PARTITION: "gpu"}, owner=("batch/v1", "CronJob"), schedulerName="slurm-bridge-scheduler")
    assert "BERTH-144" in denied(within, require)
