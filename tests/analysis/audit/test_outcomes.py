"""The outcomes of policies on stored pods as data."""

from __future__ import annotations

import json
from dataclasses import replace

import jsonpatch
import pytest
from hypothesis import given

from analysis.audit.audited_decision import audit_pod
from analysis.audit.outcomes import audit_results
from analysis.audit.stored_pod import stored
from analysis.audit.workload_report import MOST_PATCH
from documents.files import read_policies
from kube.pod import OF_NO_CLASS
from policies.patch.record import APPLIED
from policies.policy import Default, Policy, PolicySet
from tests.analysis.audit.created import WIDE, Raw, as_stored, created
from tests.support.generators.random_cluster import CLUSTER
from tests.support.generators.random_worlds import catalog
from tests.support.generators.strategies import Case, audited, examples
from tests.support.snapshots import build

LIBRARY = {one.name: one for one in read_policies(["policies/library"], catalog())[0].policies}


def without_record(pod: Raw) -> Raw:
    """The pod without ``berth.dev/applied``, a map of annotations that has nothing else, and what the API server works out of its class."""
    annotations = {key: one for key, one in pod["metadata"].get("annotations", {}).items() if key != APPLIED}
    metadata = {key: one for key, one in pod["metadata"].items() if key != "annotations"}
    spec = {key: one for key, one in pod["spec"].items() if key not in OF_NO_CLASS}
    return {**pod, "spec": spec, "metadata": {**metadata, **({"annotations": annotations} if annotations else {})}}


@given(audited())
@examples(70, 10_000)
def test_the_patch_turns_the_pod_that_enforce_makes_into_that_which_it_would_make(case: Case) -> None:
    """Of a pod that is stored as policies in Enforce have made it, and of one that was admitted without them."""
    found = created(case)
    if found is None:
        return
    request, verdict, facts = found
    made = jsonpatch.apply_patch(request.pod, list(verdict.patch))
    if not made["metadata"].get("annotations", {}).get(APPLIED, "[]").startswith("["):
        return  # the record is cut
    wanted = {
        outcome.policy: jsonpatch.apply_patch(request.pod, list(outcome.patch))
        for outcome in verdict.audit_outcomes
        if not outcome.violations
    }
    for pod in (made, request.pod):
        judged = audit_pod(stored(as_stored(pod, request.namespace, "node-bare"), WIDE), facts)
        for one in audit_results(judged) if judged is not None else ():
            if one.finding == "would-change":
                patched = jsonpatch.apply_patch(made, json.loads(one.patch or "[]"))
                assert without_record(patched) == without_record(wanted[one.policies[0]])
                assert APPLIED not in one.patch


def test_what_is_enforced_is_no_part_of_what_would_change() -> None:
    """The patch has what the policy alone adds."""
    enforced = Policy(name="grace", mode="Enforce", default=Default(grace=600))
    taints = Policy(name="taints", mode="Audit", default=Default(protect_for=7200))
    facts = build(PolicySet(policies=(enforced, taints)), catalog(), platforms=("karpenter-aws",), cluster=CLUSTER).facts_for("default")
    pod = {"metadata": {}, "spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}
    judged = audit_pod(stored(as_stored(pod, "default"), WIDE), facts)
    assert judged is not None
    missing, audit_outcomes = sorted(audit_results(judged), key=lambda one: one.finding)
    assert (missing.finding, missing.paths, missing.patch) == ("not-as-enforced", ("terminationGracePeriodSeconds",), "")
    assert [operation["path"].split("/")[1] for operation in json.loads(audit_outcomes.patch)] == ["metadata"] * len(
        json.loads(audit_outcomes.patch)
    )


@pytest.mark.parametrize("platforms", [("karpenter-aws", "gfd"), ("gke",), ("eks-auto", "gfd"), ("gfd",)], ids="+".join)
@pytest.mark.parametrize("name", LIBRARY)
def test_the_patch_of_a_shipped_policy_has_room_in_a_report(name: str, platforms: tuple[str, ...]) -> None:
    """Of a Job's pod with eight GPUs, where the other shipped policies are in Enforce: a patch that nobody sees is none."""
    policies = tuple(replace(one, mode="Audit" if one.name == name else "Enforce") for one in LIBRARY.values())
    facts = build(PolicySet(policies=policies), catalog(), platforms=platforms).facts_for("team")
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u", "controller": True}
    containers = [{"name": "c", "resources": {side: {"nvidia.com/gpu": "8"} for side in ("limits", "requests")}}]
    pod = {"metadata": {"ownerReferences": [owner]}, "spec": {"containers": containers}}
    judged = audit_pod(stored(as_stored(pod, "team"), WIDE), facts)
    assert judged is not None
    patches = [one.patch for one in audit_results(judged) if one.patch]
    assert all(len(one) <= MOST_PATCH for one in patches)
    assert patches or name != "training"
