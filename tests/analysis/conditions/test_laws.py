"""What a pod's author is told of policies, their owners are told before any pod comes: on random worlds and pods."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given

from analysis.conditions import ObjectStatus, compute_conditions
from analysis.conditions.reach import may_meet
from policies.engine import evaluate
from policies.objects.parse import Understood
from policies.policy import NodeTemplate, Policy, PolicySet
from policies.state.objects import Key, ObjectEntry
from policies.verdict import Remark
from tests.analysis.conditions.found import message_of
from tests.support.generators.strategies import Case, audited, cases, examples


def entries(policy_set: PolicySet) -> dict[Key, ObjectEntry]:
    """As if they had come from a cluster."""
    found: dict[Key, ObjectEntry] = {}
    objects: list[Policy | NodeTemplate] = [*policy_set.policies, *policy_set.templates]
    for one in objects:
        entry = _entry(one)
        found[entry.key] = entry
    return found


def _entry(one: Policy | NodeTemplate) -> ObjectEntry:
    kind = "GPUNodeTemplate" if isinstance(one, NodeTemplate) else "ClusterGPUPolicy" if one.namespace is None else "GPUPolicy"
    namespace = "" if isinstance(one, NodeTemplate) else one.namespace or ""
    return ObjectEntry(
        kind=kind,  # type: ignore[arg-type]
        namespace=namespace,
        name=one.name,
        uid="u",
        generation=1,
        resource_version="1",
        status={},
        understood=Understood(acting=one),
        acting=one,
        stale=False,
        spec="",
        last_good=None,
    )


def found(case: Case) -> dict[str, ObjectStatus]:
    """By the policy's id."""
    world = case.world
    return {"/".join(filter(None, key)): one for key, one in compute_conditions(world.snapshot, entries(world.policy_set), {}).items()}


def remarks(case: Case, code: str) -> list[Remark]:
    """None in a namespace that is not known: a cluster's are."""
    if case.request.namespace not in case.world.cluster.namespaces:
        return []
    verdict = evaluate(case.request, case.world.snapshot.facts_for(case.request.namespace))
    return [remark for remark in verdict.remarks if remark.code == code]


@examples(15, 3_000)
@given(cases())
def test_defaults_that_differ_for_a_pod_are_in_the_status(case: Case) -> None:
    """BERTH-202 names policies: each of them is Conflicted. Workloads that differ count as others, though a pod may be of two."""
    remarked = remarks(case, "BERTH-202")
    statuses = found(case) if remarked else {}
    policies = {p.id: p for p in case.world.policy_set.policies}
    for remark in remarked:
        if all(may_meet(policies[one].match, policies[other].match) for one, other in combinations(remark.policies, 2)):
            for name in remark.policies:
                assert "differs from" in message_of(statuses[name], "Conflicted"), (remark, name)


@examples(15, 3_000)
@given(cases())
def test_a_default_that_is_clipped_for_a_pod_is_in_the_status(case: Case) -> None:
    """BERTH-203 by what is enforced whatever a run takes: each policy that gives the default is Clipped."""
    policies = case.world.policy_set.policies
    if any(p.namespace is not None or p.require.long_runs is not None for p in policies):
        return
    remarked = [remark for remark in remarks(case, "BERTH-203") if "is clipped to what policies require" in remark.text]
    statuses = found(case) if remarked else {}
    for remark in remarked:
        for name in remark.policies:
            one = statuses[name]
            assert "spec.default" in message_of(one, "Clipped"), (remark, name)


@examples(15, 2_000)
@given(audited())
def test_no_world_breaks_it_and_every_object_has_its_conditions(case: Case) -> None:
    """Whatever policies there are, in whatever mode."""
    for name, finding in found(case).items():
        status = {one.type: one.status for one in finding.conditions}
        always = ["Accepted"] if name.startswith("GPUNodeTemplate/") else ["Accepted", "Conflicted"]
        assert [*status][: len(always)] == always
        assert status["Ready"] == status["Accepted"]
        assert all(len(one.message) <= 2_000 for one in finding.conditions)
        assert len(finding.where) <= 500
        assert 0 < len(finding.what) <= 500
