"""``docs/laws.md``, laws 3 to 6, as properties of random worlds and pods. Each is one sentence; a failing example is made small.

Law 3 is "edits are minimal", law 4 "repetition and order change nothing", law 5 "team policies only tighten",
law 6 "audit runs the same code".
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.taints import TolerationPattern
from policies.engine import evaluate
from policies.facts.cluster_facts import ClusterFacts
from policies.facts.device_modes import unmaintained
from policies.messages import OF_EDITS
from policies.offers.constraints import Compiled, Constraint
from policies.patch.record import APPLIED, recorded
from policies.patch.restore import restore_pod
from policies.policy import Allow, Bounds, Default, InNotIn, LongRuns, MachineFields, NodeTemplate, Policy, PolicySet, Require
from policies.request import Request
from policies.verdict import Verdict
from tests.reference import node_law
from tests.reference.tolerations import grants
from tests.support.counts import count
from tests.support.generators import random_pods, random_worlds
from tests.support.generators.random_cluster import CLUSTER, DEAD_LABELS
from tests.support.generators.random_worlds import World, catalog, with_policies
from tests.support.generators.strategies import Case, audited, cases, examples, hostile

Raw = dict[str, Any]
_TERM = r"/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms"
GOLDEN = (
    r"/metadata/annotations(/(berth\.dev~1applied|karpenter\.sh~1do-not-disrupt|cluster-autoscaler\.kubernetes\.io~1safe-to-evict"
    r"|autoscaling\.cast\.ai~1removal-disabled|scheduling\.volcano\.sh~1queue-name|slurmjob\.slinky\.slurm\.net~1(partition|timelimit)))?",
    r"/metadata/labels(/(nvidia\.com~1gpu-driver-upgrade-drain\.skip|kai\.scheduler~1queue))?",
    r"/spec/tolerations(/-)?",
    r"/spec/affinity(/nodeAffinity(/requiredDuringSchedulingIgnoredDuringExecution)?)?",
    r"/spec/affinity/podAffinity(/preferredDuringSchedulingIgnoredDuringExecution(/-)?)?",
    r"/spec/(activeDeadlineSeconds|runtimeClassName|priorityClassName|priority|preemptionPolicy|schedulerName)",
    r"/spec/volumes(/-)?",
    r"/spec/(initContainers|containers)/\d+/volumeMounts(/-)?",
    _TERM + r"(/\d+(/matchExpressions(/-)?)?)?",
    r"/spec/terminationGracePeriodSeconds",
    r"/spec/(initContainers|containers)/\d+/(livenessProbe|startupProbe)/terminationGracePeriodSeconds",
    r"/spec/(initContainers|containers)/\d+/resources(/(limits|requests)(/[a-z0-9.-]+~1[A-Za-z0-9._-]+)?)?",
)
"""every place that a patch may touch"""
REMOVED = (r"/spec/(priority|preemptionPolicy)", r".*/resources/.*", r".*applied")
"""What a patch may remove: what the API server wrote of a pod without a priority class, a renamed resource, the record."""


def judge(case: Case, *, phase: str = "mutate", world: World | None = None, pod: Raw | None = None) -> Verdict:
    request = replace(case.request, phase="validate" if phase == "validate" else "mutate", pod=case.request.pod if pod is None else pod)
    facts = (world or case.world).snapshot.facts_for(request.namespace)
    return evaluate(request, facts)


def patched(pod: Raw, verdict: Verdict) -> Raw:
    result: Raw = jsonpatch.apply_patch(copy.deepcopy(pod), copy.deepcopy(list(verdict.patch)))
    return result


def outcome(verdict: Verdict) -> str:
    """All that is answered, byte for byte."""
    return json.dumps(
        [
            list(verdict.patch),
            [str(v) for v in verdict.violations],
            [str(r) for r in verdict.remarks],
            verdict.matched,
            str(verdict.audit_outcomes),
        ]
    )


@examples(30, 5_000)
@given(cases())
def test_a_second_mutate_changes_nothing(case: Case) -> None:
    """``mutate(mutate(p)) == mutate(p)``: what was written is there, berth.dev/applied too, and what was told of it is not told again."""
    first = judge(case)
    again = judge(case, pod=patched(case.request.pod, first))
    assert first.violations or not again.violations
    assert first.violations or list(again.patch) == []
    assert first.violations or not [remark for remark in again.remarks if remark.code in OF_EDITS]


@examples(60, 10_000)
@given(cases())
def test_a_pod_that_is_applied_again_keeps_what_was_written(case: Case) -> None:
    """An update that sends the pod as it arrived gets each field that policies wrote; one that sends what is stored gets nothing."""
    final = patched(case.request.pod, judge(case))
    whole = case.world.snapshot.whole
    assert restore_pod(final, final, whole) == ()
    entries = recorded(final["metadata"].get("annotations", {}).get(APPLIED))
    found = restore_pod(final, case.request.pod, whole)
    again = jsonpatch.apply_patch(copy.deepcopy(case.request.pod), list(found))
    fields = {entry["path"].split("/")[2] for entry in entries if entry["path"].startswith("/spec/")}
    fields -= {"containers", "initContainers"}  # their amounts are drawn as no API server stores them
    assert {name: again["spec"].get(name) for name in fields} == {name: final["spec"].get(name) for name in fields}


@pytest.mark.parametrize("sent", [{}, {"schedulerName": None}, {"schedulerName": "default-scheduler"}])
def test_the_scheduler_that_the_api_server_fills_in_is_none_of_the_author_s(sent: Raw) -> None:
    """Found once: an update that sent it was denied, because a policy had written another one."""
    policies = PolicySet(policies=(Policy(name="p", mode="Enforce", default=Default(scheduler_name="packing")),))
    world = World(policy_set=policies, platforms=("gke",), mig_strategy="mixed", queues=(), cluster=ClusterFacts())
    spec = {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}], **sent}
    case = Case(world=world, request=Request(namespace="a", pod={"metadata": {"name": "p"}, "spec": spec}))
    final = patched(case.request.pod, judge(case))
    assert final["spec"]["schedulerName"] == "packing"
    written = restore_pod(final, case.request.pod, case.world.snapshot.whole)
    assert {"op": "add", "path": "/spec/schedulerName", "value": "packing"} in written
    sent_by_hand = {**case.request.pod, "spec": {**spec, "schedulerName": "other"}}
    assert restore_pod(final, sent_by_hand, case.world.snapshot.whole) == ()


def test_a_default_that_one_of_two_platforms_can_say() -> None:
    """Found once: spot, which only what is written on the other platform keeps away, was tolerated by the second call."""
    early = InNotIn(in_=("turing", "ampere"))
    policies = (
        Policy(
            name="defaults",
            mode="Enforce",
            default=Default(machine=MachineFields(instance_families=InNotIn(in_=("a2", "p5", "g5"))), capacity=("on-demand",)),
            allow=Allow(node_templates=("pool",)),
        ),
        Policy(
            name="guardrails",
            mode="Enforce",
            require=Require(
                machine=MachineFields(families=early), long_runs=LongRuns(over=3600, capacity=("spot", "reserved"), unknown_is_long=True)
            ),
            default=Default(machine=MachineFields(gpu_memory=Bounds(min=40))),
        ),
    )
    world = World(
        policy_set=PolicySet(policies=policies, templates=(NodeTemplate(name="pool", labels=(("karpenter.sh/nodepool", "gpu"),)),)),
        platforms=("gke", "gfd"),
        mig_strategy="single",
        queues=(),
        cluster=ClusterFacts(),
    )
    amounts = {side: {"nvidia.com/gpu": "8"} for side in ("limits", "requests")}
    annotations = {"berth.dev/node-template": "pool", "berth.dev/expected-duration": "6h"}
    pod = {"metadata": {"annotations": annotations}, "spec": {"containers": [{"name": "c", "resources": amounts}]}}
    case = Case(world=world, request=Request(namespace="team-b", pod=pod))
    first = judge(case)
    assert {edit.rule for edit in first.edits} == {"tolerations", "node_affinity"}
    again = judge(case, pod=patched(pod, first))
    assert (again.violations, list(again.patch)) == ((), [])


@examples(30, 5_000)
@given(audited(), st.randoms(use_true_random=False))
def test_order_never_shows(case: Case, random: Random) -> None:
    """The same policies and templates in any order give the same bytes: patch, denials, warnings."""
    found, templates = list(case.world.policy_set.policies), list(case.world.policy_set.templates)
    random.shuffle(found)
    random.shuffle(templates)
    shuffled = replace(case.world, policy_set=PolicySet(policies=tuple(found), templates=tuple(templates)))
    assert outcome(judge(case)) == outcome(judge(case, world=shuffled))


@examples(30, 10_000)
@given(hostile())
def test_a_namespace_only_tightens(drawn: tuple[Case, tuple[Policy, ...]]) -> None:
    """Every pod that is admitted with the namespace's own policies is admitted without them, as it came and as mutated."""
    case, own = drawn
    both = with_policies(case.world, [*case.world.policy_set.policies, *own])
    for pod in (case.request.pod, patched(case.request.pod, judge(case, world=both))):
        if not judge(case, phase="validate", world=both, pod=pod).violations:
            assert judge(case, phase="validate", pod=pod).violations == ()


@examples(30, 10_000)
@given(hostile())
def test_a_namespace_brings_in_only_what_is_allowed(drawn: tuple[Case, tuple[Policy, ...]]) -> None:
    """Tolerations, templates and grace that a namespace's policies add lie within the cluster's allow and caps."""
    case, own = drawn
    both = with_policies(case.world, [*case.world.policy_set.policies, *own])
    verdict = judge(case, world=both)
    matched = [p for p in case.world.policy_set.policies if p.id in verdict.matched]
    templates = {t.name: t for t in case.world.policy_set.templates}
    allowed = [templates[n] for p in matched for n in p.allow.node_templates]
    grants_ = [t for p in matched for t in p.allow.tolerations]
    grants_ += [TolerationPattern(key=t.key, value=t.value, effect=t.effect) for template in allowed for t in template.taints]
    caps = [p.require.grace_max for p in matched if p.require.grace_max is not None]
    for edit in verdict.edits:
        mine = all(policy.startswith("GPUPolicy/") for policy in edit.policies)
        if mine and edit.rule == "tolerations":
            pattern = TolerationPattern(key=edit.value["key"], value=edit.value.get("value"), effect=edit.value.get("effect"))
            assert any(grants(g, pattern) for g in grants_), edit
        if mine and edit.path == ("spec", "terminationGracePeriodSeconds"):
            assert all(edit.value <= cap for cap in caps)
    for template in templates.values():
        granted = template in allowed or any(p.default.node_template and p.namespace is None for p in matched)
        assert granted or not _writes(verdict, template)


def _writes(verdict: Verdict, template: NodeTemplate) -> bool:
    """Whether all labels of a template are among what was written."""
    written = {(e["key"], tuple(e.get("values", ()))) for e in _written(verdict)}
    return all((key, (value,)) in written for key, value in template.labels)


def _written(verdict: Verdict) -> Iterator[Raw]:
    for edit in verdict.edits:
        if edit.rule == "node_affinity" and isinstance(edit.value, dict):
            terms = edit.value.get("nodeSelectorTerms", [edit.value])
            yield from (e for term in terms for e in term.get("matchExpressions", [term]) if "key" in e)


@examples(30, 5_000)
@given(cases())
def test_a_patch_applies_and_stays_in_its_places(case: Case) -> None:
    """A library that knows nothing of ours applies it; no operation leaves the golden paths; nothing is removed but a rename."""
    verdict = judge(case)
    patched(case.request.pod, verdict)
    for operation in verdict.patch:
        assert any(re.fullmatch(path, operation["path"]) for path in GOLDEN), operation
        assert operation["op"] != "remove" or any(re.fullmatch(path, operation["path"]) for path in REMOVED)


@examples(30, 5_000)
@given(cases())
def test_what_is_not_ours_survives_byte_for_byte(case: Case) -> None:
    """Outside the golden paths the pod is the same bytes, key order too; what the author wrote in lists stands, in order."""
    before = case.request.pod
    after = patched(before, judge(case))
    assert json.dumps(_without_ours(before)) == json.dumps(_without_ours(after))
    old = before["spec"].get("tolerations") or []
    assert (after["spec"].get("tolerations") or [])[: len(old)] == old
    rest = map(json.dumps, _expressions(after))
    assert all(expression in rest for expression in map(json.dumps, _expressions(before)))  # in order: each search goes on from the last


def _expressions(pod: Raw) -> list[Raw]:
    required = _required(pod).get("nodeSelectorTerms") or []
    return [e for term in required for e in term.get("matchExpressions") or ()]


def _required(pod: Raw) -> Raw:
    node = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required: Raw = node.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    return required


def _without_ours(pod: Raw) -> Raw:
    """The pod less what a patch may touch, empty parents included."""
    out = copy.deepcopy(pod)
    spec, metadata = out["spec"], out.get("metadata") or {}
    for name in ("tolerations", "terminationGracePeriodSeconds", *_FIELDS):
        spec.pop(name, None)
    _without_shared_memory(spec)
    affinity = spec.get("affinity") or {}
    if not any((affinity.get("podAffinity") or {}).get(field) for field in ("requiredDuringSchedulingIgnoredDuringExecution",)):
        affinity.pop("podAffinity", None)
    (affinity.get("nodeAffinity") or {}).pop("requiredDuringSchedulingIgnoredDuringExecution", None)
    affinity.get("nodeAffinity") or affinity.pop("nodeAffinity", None)
    affinity or spec.pop("affinity", None)
    for part, ours in (("annotations", GOLDEN[0]), ("labels", GOLDEN[1])):
        kept = {k: v for k, v in (metadata.get(part) or {}).items() if not re.fullmatch(ours, f"/metadata/{part}/{k.replace('/', '~1')}")}
        metadata.pop(part, None)
        metadata |= {part: kept} if kept else {}
    for container in (*spec.get("containers", ()), *spec.get("initContainers", ())):
        for probe in ("livenessProbe", "startupProbe"):
            container.get(probe, {}).pop("terminationGracePeriodSeconds", None)
        for side in ("limits", "requests"):
            amounts = (container.get("resources") or {}).pop(side, {})
            kept = {k: v for k, v in amounts.items() if "/" not in k}
            container.setdefault("resources", {})
            container["resources"] |= {side: kept} if kept else {}
    return out


_FIELDS = ("activeDeadlineSeconds", "runtimeClassName", "priorityClassName", "priority", "preemptionPolicy", "schedulerName")


def _without_shared_memory(spec: Raw) -> None:
    """Take away what is Berth's own of volumes and mounts, and lists that are left empty."""
    for owner, field in ((spec, "volumes"), *((c, "volumeMounts") for c in (*spec.get("containers", ()), *spec.get("initContainers", ())))):
        kept = [item for item in owner.pop(field, None) or () if item.get("name") != "berth-shared-memory"]
        owner |= {field: kept} if kept else {}


@examples(30, 5_000)
@given(audited())
def test_audit_says_what_enforce_does(case: Case) -> None:
    """A policy in Audit reports the very patch and denials that switching it alone to Enforce gives, and edits nothing."""
    verdict = judge(case)
    assert {p for e in verdict.edits for p in e.policies} <= {p.id for p in case.world.policy_set.policies if p.mode == "Enforce"}
    for outcome in verdict.audit_outcomes:
        switched = [replace(p, mode="Enforce") if p.id == outcome.policy else p for p in case.world.policy_set.policies]
        alone = judge(case, world=with_policies(case.world, switched))
        assert outcome.patch == alone.patch
        already = {(v.code, v.fact) for v in verdict.violations}
        assert {(v.code, v.fact) for v in outcome.violations} == {(v.code, v.fact) for v in alone.violations} - already


@examples(20, 1_000)
@given(cases())
def test_no_field_couples_two_axes(case: Case) -> None:
    """What one field leaves is told by its own axis alone: R is a product of machine, capacity and sharing."""
    built = case.world.snapshot
    for constraint in (c for compiled in built.policies for c in _constraints(compiled)):
        for table in built.tables.values():
            sides: dict[object, bool] = {}
            for bit, offer in enumerate(table.offers, table.first):
                side = {"machine": offer.host, "capacity": offer.capacity, "sharing": offer.sharing}[constraint.axis]
                key = id(side) if constraint.axis == "machine" else side
                inside = bool(constraint.rows >> bit & 1)
                assert sides.setdefault(key, inside) == inside, (constraint.text, offer)


def _constraints(compiled: Compiled) -> list[Constraint]:
    more = (compiled.require_long, compiled.capacity, compiled.capacity_long)
    return [*compiled.require, *compiled.machine, *(c for c in more if c is not None)]


@examples(30, 10_000)
@given(cases())
def test_what_mutate_lets_through_validate_admits(case: Case) -> None:
    """With no other webhook between them, a pod that mutate admits is never denied by validate."""
    verdict = judge(case)
    final = judge(case, phase="validate", pod=patched(case.request.pod, verdict))
    assert verdict.violations or final.violations == ()


@examples(30, 5_000)
@given(cases(), st.randoms(use_true_random=False))
def test_a_node_that_the_written_affinity_matches_is_allowed(case: Case, random: Random) -> None:
    """Nodes made of offers and of the unknown-model row, and either with keys removed: matched, they carry an allowed offer."""
    case = replace(case, world=random_worlds.maintained(case.world))
    verdict = judge(case)
    if not verdict.violations and any(e.rule == "node_affinity" for e in verdict.edits):
        final = patched(case.request.pod, verdict)
        assert node_law.broken(case.world, case.request, final, random) == []


def test_no_term_is_written_on_a_label_that_nobody_maintains() -> None:
    """Each pod is tried on two clusters alike: terms name GPU Feature Discovery's labels where it runs, and never where it is gone."""
    dead, alive = unmaintained(DEAD_LABELS, catalog()), 0
    for seed in range(count(30, 4_000)):
        random = Random(seed)
        world = replace(random_worlds.world(random), cluster=CLUSTER)
        abandoned = replace(world, cluster=DEAD_LABELS)
        for _ in range(5):
            case = Case(world=world, request=random_pods.request(random, world))
            alive += not dead.isdisjoint(_written_keys(case, world))
            assert dead.isdisjoint(_written_keys(case, abandoned)), seed
    assert alive > 5


def _written_keys(case: Case, world: World) -> set[str]:
    """The labels that terms name because of a policy: those of templates are the platform team's word."""
    final = patched(case.request.pod, judge(case, world=world))
    templates = {key for template in world.policy_set.templates for key, _ in template.labels}
    return _term_keys(final) - _term_keys(case.request.pod) - templates


def _term_keys(pod: Raw) -> set[str]:
    return {expression["key"] for expression in _expressions(pod)}
