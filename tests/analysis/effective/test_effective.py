"""What ``effective`` says of a namespace, held against what the engine does to a pod: pods made here, not by ``effective_probe``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from hypothesis import given

from analysis.effective.effective import Effective, Layer, effective
from analysis.effective.effective_probe import PodKind
from analysis.effective.effective_rows import EffectiveRow
from kube.duration import format_duration
from kube.taints import TolerationPattern, covers
from policies.engine import evaluate
from policies.messages import OF_EDITS
from policies.policy import (
    Allow,
    Bounds,
    Default,
    DeviceLimit,
    InNotIn,
    LongRuns,
    MachineFields,
    Match,
    MigDefault,
    NodeTemplate,
    Policy,
    PolicySet,
    Require,
)
from policies.request import Request
from policies.rules.tolerations import toleration_of
from policies.state.snapshot import NamespaceFacts
from policies.verdict import MODES, Edit, Verdict
from tests.support.generators.random_cluster import CLUSTER, NAMESPACES
from tests.support.generators.random_worlds import catalog, world
from tests.support.generators.strategies import ENFORCE, examples, randoms
from tests.support.snapshots import build

Raw = dict[str, Any]
OWNERS = {
    "Job": ("batch/v1", "Job"),
    "Deployment": ("apps/v1", "ReplicaSet"),
    "StatefulSet": ("apps/v1", "StatefulSet"),
    "DaemonSet": ("apps/v1", "DaemonSet"),
    "Notebook": ("apps/v1", "StatefulSet"),
    "PyTorchJob": ("kubeflow.org/v1", "PyTorchJob"),
}
OWN_LABELS = {"Notebook": {"notebook-name": "n"}, "PyTorchJob": {"training.kubeflow.org/operator-name": "pytorchjob-controller"}}
PINNED = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [""]}]}]}


def pod(kind: PodKind, **spec: Any) -> Raw:
    """A pod of this kind that says nothing itself, as a controller makes it and the API server hands it on."""
    workload, gpus = kind.workload or "Pod", str(kind.gpus or 1)
    metadata: Raw = {"name": "p", "labels": {**dict(kind.labels or ()), **OWN_LABELS.get(workload, {})}}
    if workload in OWNERS:
        version, owner = OWNERS[workload]
        metadata["ownerReferences"] = [{"apiVersion": version, "kind": owner, "name": "o", "uid": "u", "controller": True}]
    if kind.seconds is not None:
        metadata["annotations"] = {"berth.dev/expected-duration": format_duration(kind.seconds)}
    if workload == "DaemonSet":
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": PINNED}}
    amounts = {"limits": {"nvidia.com/gpu": gpus}, "requests": {"nvidia.com/gpu": gpus}}
    container = {"name": "main", "resources": amounts}
    return {"metadata": metadata, "spec": {"containers": [container], "terminationGracePeriodSeconds": 30, **spec}}


def judged(facts: NamespaceFacts, kind: PodKind, **spec: Any) -> Verdict:
    user = "system:serviceaccount:kube-system:daemon-set-controller" if kind.workload == "DaemonSet" else ""
    return evaluate(Request(namespace=facts.namespace, user=user, pod=pod(kind, **spec)), facts)


def random_kind(random: Random) -> PodKind:
    """Nothing about it is open."""
    return PodKind(
        workload=random.choice(("Pod", *OWNERS)),
        labels=random.choice(((), (("tier", "batch"),))),
        gpus=random.choice((1, 1, 2, 8)),
        seconds=random.choice((None, None, 1800, 20000)),
    )


@dataclass(frozen=True)
class Both:
    """What is said, and what is done."""

    facts: NamespaceFacts
    kind: PodKind
    answer: Effective
    verdict: Verdict


def both(random: Random) -> Both:
    facts = world(random, random.choice((ENFORCE, MODES))).snapshot.facts_for(random.choice(NAMESPACES))
    kind = random_kind(random)
    return Both(facts, kind, effective(facts, kind), judged(facts, kind))


OF_FIELDS = ("BERTH-202", "BERTH-204", "BERTH-210", "BERTH-211", "BERTH-212")
"""remarks that stand with a field, always"""


def rows(answer: Effective, section: str, field: str) -> list[EffectiveRow]:
    return [row for row in answer.look.rows if (row.section, row.field) == (section, field)]


def remark_texts(answer: Effective) -> set[str]:
    """Every remark, wherever it stands."""
    notes = {note for row in answer.look.rows for note in row.notes if note.startswith("BERTH-")}
    return notes | set(answer.look.remarks)


def edits(verdict: Verdict, rule: str) -> list[Edit]:
    return [edit for edit in verdict.edits if edit.rule == rule]


# --- the same as the engine, whatever the policies ---------------------------------------------------------------------


@given(randoms())
@examples(12, 2000)
def test_the_policies_that_act_are_those_that_match(random: Random) -> None:
    """Of a pod about which nothing is open: always or never, as the engine matches it."""
    seen = both(random)
    assert {s.policy.id for s in seen.answer.policies if s.acts == "always"} == set(seen.verdict.matched)
    assert not any(s.acts == "sometimes" for s in seen.answer.policies)


@given(randoms())
@examples(12, 2000)
def test_denials_and_remarks_are_the_engines(random: Random) -> None:
    """The same sentences, each remark once, with its field or at the end."""
    seen = both(random)
    assert seen.answer.look.denied == seen.verdict.violations
    assert remark_texts(seen.answer) == {
        str(remark) for remark in seen.verdict.remarks if remark.code not in OF_EDITS
    }  # rows tell of edits
    assert not [text for text in seen.answer.look.remarks if text.startswith(OF_FIELDS)]


@given(randoms())
@examples(12, 2000)
def test_grace_and_protection_are_what_is_written(random: Random) -> None:
    """The merged gracePeriod, clipped and cut, and who asked; protectFor's marks likewise."""
    seen = both(random)
    written = {edit.path: edit for edit in edits(seen.verdict, "checkpoint_grace")}
    for row in rows(seen.answer, "default", "gracePeriod"):
        edit = written.get(("spec", "terminationGracePeriodSeconds"))
        if edit is not None and row.value is not None:
            assert (row.value, row.by) == (edit.value, edit.policies)
        elif not seen.verdict.violations:
            assert row.value in (None, 30)
    protected = edits(seen.verdict, "disruption")
    marks = [row for row in rows(seen.answer, "default", "protectFor") if row.value is not None]
    graces = [*rows(seen.answer, "default", "gracePeriod"), *rows(seen.answer, "require", "gracePeriod.min")]
    assert bool(written or protected) <= bool(marks or graces)
    for edit in protected:
        assert marks[0].by == edit.policies
        assert any(f"{edit.path[-1]}={edit.value}" in note for note in marks[0].notes)


@given(randoms())
@examples(12, 2000)
def test_tolerations_are_what_is_added(random: Random) -> None:
    """Each that is said to act is added, and each that is added is some row's."""
    seen = both(random)
    if seen.verdict.violations:
        return
    added = edits(seen.verdict, "tolerations")
    for row in rows(seen.answer, "default", "tolerate"):
        if row.value is not None:
            pattern = toleration_of(TolerationPattern(**row.value))
            assert any(covers(edit.value, pattern) for edit in added)
    fields = ("tolerate", "acceleratorTaints", "nodeTemplate", "(spot taints)")
    owners = [set(row.by) for field in fields for row in rows(seen.answer, "default", field) if row.value is not None]
    for edit in added:
        assert set(edit.policies) in owners, edit


@given(randoms())
@examples(12, 2000)
def test_the_template_and_the_slice_are_what_is_written(random: Random) -> None:
    """The template's labels are in the affinity, the slice is in the resources; what is said not to act is in neither."""
    seen = both(random)
    if seen.verdict.violations:
        return
    affinity = str([edit.value for edit in edits(seen.verdict, "node_affinity")])
    template = next((row.value for row in rows(seen.answer, "default", "nodeTemplate")), None)
    for name, compiled in seen.facts.snapshot.templates.items():
        own = dict(compiled.template.labels)
        if name == template and affinity != "[]":
            assert all(f"'{key}'" in affinity for key in own)
        if any(f"'{key}'" in affinity for key in own):
            assert template is not None
    renamed = {
        edit.path[-1]: edit.policies for edit in edits(seen.verdict, "mig_resources") if edit.op == "add" and "resources" in edit.path
    }
    for row in rows(seen.answer, "default", "mig"):
        if row.value is not None and row.value["resource"] != "nvidia.com/gpu" and renamed:
            assert set(renamed) == {row.value["resource"]}
            assert set(renamed.values()) == {row.by}
    if renamed:
        assert any(row.value is not None for row in rows(seen.answer, "default", "mig"))


@given(randoms())
@examples(12, 2000)
def test_a_model_that_is_not_left_is_denied(random: Random) -> None:
    """On nodes of one's own, a pod that selects a product of a model outside ``models left`` is denied; of one inside it is not
    denied for its model, where no policy asks how GPUs are shared."""
    base = world(random)
    facts = replace(base, platforms=("gfd",)).snapshot.facts_for(random.choice(NAMESPACES))
    kind = PodKind(workload="Pod", labels=(), gpus=1)
    answer = effective(facts, kind)
    left = rows(answer, "require", "models left")
    gpu = random.choice([g for g in catalog().gpus if g.vendor == "nvidia" and g.products])
    denied = judged(facts, kind, nodeSelector={"nvidia.com/gpu.product": gpu.products[0]}).violations
    if left and gpu.model not in left[0].value:
        assert {v.code for v in denied} & {"BERTH-121", "BERTH-122"}
    elif not rows(answer, "require", "sharing"):
        assert not any(v.code == "BERTH-121" and "gpu.product" in v.fact for v in denied)


@given(randoms())
@examples(12, 2000)
def test_would_is_what_the_engine_says_of_audit_and_warn(random: Random) -> None:
    """One layer for each policy in Audit or Warn that matches, denying as the engine would; without a row it would change nothing."""
    seen = both(random)
    layers = {layer.policies[0]: layer for layer in seen.answer.audit_outcomes}
    matched = {outcome.policy for outcome in seen.verdict.audit_outcomes}
    assert matched <= set(layers)
    for outcome in seen.verdict.audit_outcomes:
        layer = layers[outcome.policy]
        assert layer.denied == outcome.violations
        if not layer.rows and not layer.denied:
            assert outcome.edits == ()


def grid() -> Iterator[PodKind]:
    for workload in ("Pod", *OWNERS, "RayCluster", "InferenceService"):
        for labels in ((), (("tier", "batch"),)):
            yield from (PodKind(workload=workload, labels=labels, gpus=gpus) for gpus in (1, 2, 3, 8, 9))


@given(randoms())
@examples(12, 1000)
def test_what_holds_for_some_pods_is_shown_and_not_dropped(random: Random) -> None:
    """Where everything is open, each policy acts always, or in a layer whose pod it matches; one without a pod matches none at all."""
    facts = world(random, MODES).snapshot.facts_for(random.choice(NAMESPACES))
    answer = effective(facts, PodKind())
    layers = [*answer.some, *answer.audit_outcomes]
    for standing in answer.policies:
        assert standing.acts != "never"
        if standing.acts == "sometimes":
            layer = next(layer for layer in layers if standing.policy.id in layer.policies)
            assert_acts(facts, standing.policy.id, layer)


def assert_acts(facts: NamespaceFacts, policy: str, layer: Layer) -> None:
    if layer.kind is not None:
        assert any(s.policy.id == policy and s.acts == "always" for s in effective(facts, layer.kind).policies)
        return
    for kind in grid():
        assert not any(s.policy.id == policy and s.acts == "always" for s in effective(facts, kind).policies), kind


@given(randoms())
@examples(12, 1000)
def test_a_layer_is_the_difference_that_its_pod_makes(random: Random) -> None:
    """Its rows stand in the answer for that very pod, and not in the one for all."""
    facts = world(random).snapshot.facts_for(random.choice(NAMESPACES))
    answer = effective(facts, PodKind())
    for layer in answer.some:
        if layer.kind is not None:
            assert set(map(str, layer.rows)) <= set(map(str, effective(facts, layer.kind).look.rows))
            assert not set(map(str, layer.rows)) & set(map(str, answer.look.rows))


# --- field by field ----------------------------------------------------------------------------------------------------

WEB = TolerationPattern(key="team", value="web")
RESEARCH = TolerationPattern(key="team", value="research")


def of(name: str, namespace: str | None = None, **parts: Any) -> Policy:
    return Policy(name=name, namespace=namespace, mode=parts.pop("mode", "Enforce"), **parts)


def asked(*policies: Policy, kind: PodKind | None = None, templates: tuple[NodeTemplate, ...] = (), max_mode: Any = "Enforce") -> Effective:
    found = PolicySet(policies=policies, templates=templates)
    facts = build(found, catalog(), platforms=("karpenter-aws",), cluster=CLUSTER, max_mode=max_mode).facts_for("team-a")
    return effective(facts, kind or PodKind())


def one(answer: Effective, section: str, field: str) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    (row,) = rows(answer, section, field)
    return row.text, row.by, row.notes


A, B = "ClusterGPUPolicy/a", "ClusterGPUPolicy/b"
OWN = "GPUPolicy/team-a/own"


def test_the_tightest_limit_stands_and_says_whose_it_beats() -> None:
    """gpusPerPod.max, gracePeriod.max and oneOf."""
    wide = of("a", require=Require(gpus_per_pod=DeviceLimit(max=8, one_of=(1, 2, 4)), grace_max=3600))
    answer = asked(wide, of("b", require=Require(gpus_per_pod=DeviceLimit(max=4, one_of=(1, 4, 8)), grace_max=600)))
    assert one(answer, "require", "gpusPerPod.max") == ("4", (B,), (f"tighter than 8 from {A}",))
    assert one(answer, "require", "gracePeriod.max") == ("10m", (B,), (f"tighter than 1h from {A}",))
    assert one(answer, "require", "gpusPerPod.oneOf") == (
        "[1, 4]",
        (A, B),
        (f"tighter than [1, 2, 4] from {A}", f"tighter than [1, 4, 8] from {B}"),
    )


def test_a_constraint_that_another_holds_already_is_marked() -> None:
    """Both stand, as both are judged; the wider one adds nothing."""
    families = MachineFields(families=InNotIn(in_=("hopper", "ampere")))
    answer = asked(
        of("a", require=Require(machine=families)), of("b", require=Require(machine=MachineFields(models=InNotIn(in_=("H100",)))))
    )
    assert one(answer, "require", "families") == ("in [hopper, ampere]", (A,), (f"already implied by {B}: models in [H100]",))
    assert one(answer, "require", "models") == ("in [H100]", (B,), ())
    assert one(answer, "require", "models left")[0] == "[H100-80GB]"


def test_a_remark_stands_with_the_field_of_the_policy_that_it_is_about() -> None:
    """Two policies require the same, which the platform can't say: each row has its own remark."""
    machine = MachineFields(instance_families=InNotIn(not_in=("p4d",)))
    policies = (of("a", require=Require(machine=machine)), of("b", require=Require(machine=machine)))
    facts = build(PolicySet(policies=policies), catalog(), platforms=("gfd",), cluster=CLUSTER).facts_for("team-a")
    found = rows(effective(facts, PodKind()), "require", "instanceFamilies")
    assert [(row.by, len(row.notes)) for row in found] == [((A,), 1), ((B,), 1)]


def test_a_grace_period_is_the_longest_and_clipped() -> None:
    """By gracePeriod.max, with what it beat."""
    answer = asked(of("a", require=Require(grace_max=600), default=Default(grace=120)), of("own", "team-a", default=Default(grace=7200)))
    text, by, notes = one(answer, "default", "gracePeriod")
    assert (text, by) == ("10m", (OWN,))
    assert notes[:2] == (f"longer than 2m from {A}", "BERTH-203: default gracePeriod 7200 s is clipped to the maximum of 600 s")


def test_a_floor_is_the_longest_and_stands_before_a_shorter_default() -> None:
    """By gracePeriod.min; what limits it on this platform stands with it."""
    floors = of("a", require=Require(grace_min=600)), of("b", require=Require(grace_min=1200), default=Default(grace=120))
    answer = asked(*floors, of("own", "team-a", default=Default(grace=60)))
    assert one(answer, "require", "gracePeriod.min")[:2] == ("20m", (B,))
    assert one(answer, "require", "gracePeriod.min")[2][0] == f"longer than 10m from {A}"
    assert one(answer, "default", "gracePeriod") == ("20m", (B,), (f"longer than 1m from {OWN}",))
    service, daemon = (asked(floors[0], kind=PodKind(workload=kind)) for kind in ("Deployment", "DaemonSet"))
    assert one(service, "require", "gracePeriod.min")[2] == (
        "does not apply to a service's pod with the annotation berth.dev/opt-out: grace",
    )
    assert one(daemon, "require", "gracePeriod.min")[2][0].startswith("does not apply to a pod of a DaemonSet")
    alone = asked(floors[0], of("c", default=Default(grace=60)))
    assert one(alone, "default", "gracePeriod") == ("-", (), (f"10m is required by {A}",))


def test_a_namespaces_own_default_comes_before_the_clusters() -> None:
    """And says what it overrides."""
    answer = asked(of("a", default=Default(capacity=("on-demand",))), of("own", "team-a", default=Default(capacity=("spot",))))
    assert one(answer, "default", "capacity") == ("[spot]", (OWN,), (f"overrides [on-demand] from {A}",))


def test_defaults_that_differ_in_one_scope_do_not_act() -> None:
    """Neither acts, and the conflict is said with both."""
    answer = asked(of("a", default=Default(capacity=("on-demand",))), of("b", default=Default(capacity=("spot",))))
    text, by, notes = one(answer, "default", "capacity")
    assert (text, by) == ("-", ())
    assert notes == (
        f"BERTH-202: {A} and {B} have different defaults for capacity, so neither applies; set it yourself, or ask the platform"
        " team to make them equal",
    )


def test_a_clipped_capacity_says_what_is_left() -> None:
    """``capacity: [spot, on-demand]`` where only on-demand is allowed."""
    answer = asked(of("a", require=Require(capacity=("on-demand",)), default=Default(capacity=("spot", "on-demand"))))
    (row,) = rows(answer, "default", "capacity")
    assert row.value == ["on-demand", "reserved"]
    assert row.notes == (
        "BERTH-203: default capacity [spot, on-demand] is clipped to what policies require",
        "remaining: [on-demand, reserved]",
    )


def test_a_toleration_that_is_not_allowed_is_not_granted() -> None:
    """The one that is allowed acts; the other stands without a value, with why."""
    own = of("own", "team-a", default=Default(tolerate=(RESEARCH, WEB)))
    answer = asked(of("a", allow=Allow(tolerations=(RESEARCH,))), own)
    granted, denied = rows(answer, "default", "tolerate")
    assert (granted.text, granted.by) == ("team=research", (OWN,))
    assert (denied.value, denied.notes) == (
        None,
        (f"BERTH-218: toleration team=web of {OWN} is not added: no ClusterGPUPolicy allows it (allow.tolerations)",),
    )
    assert one(answer, "allow", "tolerations") == ("team=research", (A,), ())


def test_a_forbidden_toleration_does_not_act() -> None:
    """``tolerations.forbid`` beats a default, and says so."""
    answer = asked(of("a", require=Require(forbid_tolerations=(WEB,)), default=Default(tolerate=(WEB,))))
    text, by, notes = one(answer, "default", "tolerate")
    assert (text, by) == ("-", (A,))
    assert notes == (f"BERTH-203: default toleration team is not added: {A} forbids it",)


def test_a_template_that_is_not_allowed_does_not_act() -> None:
    """A GPUPolicy may only name what ``allow`` has."""
    template = NodeTemplate(name="t", labels=(("pool", "t"),))
    own = of("own", "team-a", default=Default(node_template="t"))
    assert "no ClusterGPUPolicy allows it here" in one(asked(own, templates=(template,)), "default", "nodeTemplate")[2][0]
    answer = asked(of("a", allow=Allow(node_templates=("t",))), own, templates=(template,))
    assert one(answer, "default", "nodeTemplate") == ("t", (OWN,), ())
    assert one(answer, "allow", "nodeTemplates") == ("t", (A,), ())


def test_protection_is_clipped_to_its_maximum() -> None:
    """And what can't say a duration is not written, and said."""
    answer = asked(of("a", require=Require(protection_max=3600), default=Default(protect_for="Always")))
    text, by, notes = one(answer, "default", "protectFor")
    assert (text, by, notes[0]) == ("1h", (A,), f"clipped from Always by protection.max of {A}")
    assert any("BERTH-212" in note for note in notes)


def test_grace_is_not_for_services_unless_named() -> None:
    """Of a Deployment's pod a policy's gracePeriod acts only where it names the workload."""
    everyone = of("a", default=Default(grace=120))
    text, by, notes = one(asked(everyone, kind=PodKind(workload="Deployment")), "default", "gracePeriod")
    assert (text, by) == ("-", ())
    assert notes == (f"does not apply to a service's pod unless {A} names the workload",)
    named = of("b", match=Match(workloads=("Deployment",)), default=Default(grace=60))
    assert one(asked(everyone, named, kind=PodKind(workload="Deployment")), "default", "gracePeriod")[:2] == ("1m", (B,))


def test_a_slice_stands_for_a_whole_gpu() -> None:
    """With its resource name; what is for whole GPUs steps back and says so."""
    template = NodeTemplate(name="t", sharing=("MIG",), mig_profiles=("1g.10gb",), labels=(("pool", "t"),))
    policy = of("a", default=Default(node_template="t", mig=MigDefault(slice_gb=10), machine=MachineFields(models=InNotIn(in_=("L4",)))))
    answer = asked(policy, templates=(template,))
    assert one(answer, "default", "mig") == ("1g.10gb (nvidia.com/mig-1g.10gb)", (A,), ())
    assert one(answer, "default", "machine")[2] == (f"models in [L4] from {A} applies to whole GPUs; this pod gets a MIG slice",)


def test_long_runs_are_shown_by_length() -> None:
    """A pod of unknown length, and a layer for the length that makes a difference."""
    runs = LongRuns(over=7200, capacity=("on-demand",), unknown_is_long=True)
    answer = asked(of("a", default=Default(capacity=("spot",), long_runs=runs)))
    assert one(answer, "default", "capacity")[0] == "[on-demand]"
    (layer,) = answer.some
    assert (layer.title, layer.kind) == ("runs of at most 2h", PodKind(seconds=7200))
    assert [(row.field, row.text) for row in layer.rows if row.field == "capacity"] == [("capacity", "[spot]")]
    assert asked(of("a", default=Default(long_runs=runs)), kind=PodKind(seconds=60)).some == ()


def test_a_policy_for_some_pods_is_a_layer_with_its_condition() -> None:
    """What the large Jobs get beside all others, on an example of them."""
    large = of("b", match=Match(workloads=("Job",), gpus=Bounds(min=8)), default=Default(grace=600))
    answer = asked(of("a", default=Default(grace=120)), large)
    (layer,) = answer.some
    assert (layer.title, layer.policies, layer.kind) == ("pods of Job that ask for at least 8 GPUs", (B,), PodKind(workload="Job", gpus=8))
    assert [(row.field, row.text) for row in layer.rows] == [("gracePeriod", "10m")]
    assert [s.acts for s in answer.policies] == ["always", "sometimes"]
    assert [s.acts for s in asked(large, kind=PodKind(gpus=4)).policies] == ["never"]


def test_audit_and_warn_stand_apart() -> None:
    """What they would change, and whether they would deny; nothing of theirs is in force."""
    softer = of("b", mode="Warn", require=Require(gpus_per_pod=DeviceLimit(one_of=(8,))))
    answer = asked(of("a", require=Require(gpus_per_pod=DeviceLimit(max=8))), softer)
    assert rows(answer, "require", "gpusPerPod.oneOf") == []
    (layer,) = answer.audit_outcomes
    assert layer.title == f"{B} (Warn)"
    assert [row.field for row in layer.rows] == ["gpusPerPod.oneOf"]
    assert str(layer.denied[0]).startswith("BERTH-112: the pod requests 1 GPU;")


def test_what_is_denied_anyway_is_not_denied_again_by_another_who_asks() -> None:
    """A denial that a policy in Enforce and one in Audit both ask for: the names of those who ask differ, the denial does not."""
    whole = Require(gpus_per_pod=DeviceLimit(one_of=(8,)))
    answer = asked(of("a", require=whole), of("b", mode="Audit", require=whole))
    assert [violation.code for violation in answer.look.denied] == ["BERTH-112"]
    (layer,) = answer.audit_outcomes
    assert layer.denied == ()


def test_a_mode_that_is_capped_shows_both() -> None:
    """--max-mode Audit: nothing is in force, and the policy's own word is kept."""
    answer = asked(of("a", default=Default(grace=120)), max_mode="Audit")
    assert [(s.mode, s.policy.mode) for s in answer.policies] == [("Audit", "Enforce")]
    assert answer.look.rows == ()
    assert [row.field for row in answer.audit_outcomes[0].rows] == ["gracePeriod"]


def test_policies_that_leave_nothing_are_told_as_the_engine_tells_it() -> None:
    """BERTH-122, with both."""
    hopper, turing = (
        of(n, require=Require(machine=MachineFields(families=InNotIn(in_=(f,))))) for n, f in (("a", "hopper"), ("b", "turing"))
    )
    answer = asked(hopper, turing)
    assert one(answer, "require", "models left")[0] == "no known GPU"
    assert str(answer.look.denied[0]).startswith("BERTH-122: ")


def test_a_namespace_that_is_excluded_says_so() -> None:
    """Berth is never called for kube-system, whatever policies say."""
    facts = build(PolicySet(policies=(of("a"),)), catalog(), cluster=CLUSTER).facts_for("kube-system")
    assert effective(facts, PodKind()).excluded
