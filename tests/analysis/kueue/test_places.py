"""What waits in a queue of Kueue's for ever, and what runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from analysis.kueue import places
from policies.facts import admission_queues
from policies.facts.cluster_facts import ClusterFacts, FactEntry
from policies.state.snapshot import Snapshot
from policies.verdict import FIRST_READ
from policies.workloads.pods import Owner
from policies.workloads.templates import workload_of
from tests.support import snapshots
from tests.support.cases import golden

Raw = dict[str, Any]
CATALOG = golden.catalog_with()
KUEUE, LABEL = "kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/queue-name"
FAMILY, GPU = "nvidia.com/gpu.family", "nvidia.com/gpu"
TAINT = {"key": GPU, "value": "present", "effect": "NoSchedule"}
HOPPER_ONLY: Raw = {"require": {"families": {"in": ["hopper"]}}}


def flavor(name: str, **spec: Any) -> Raw:
    return {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": name}, "spec": {"nodeLabels": {FAMILY: name}, **spec}}


def cluster_queue(*flavors: str, covered: tuple[str, ...] = ("cpu", GPU), **spec: Any) -> Raw:
    group = {"coveredResources": list(covered), "flavors": [{"name": name, "resources": []} for name in flavors]}
    return {"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": "gpus"}, "spec": {"resourceGroups": [group], **spec}}


def local_queue(name: str = "team-a", **spec: Any) -> Raw:
    metadata = {"name": name, "namespace": "ml"}
    return {"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": metadata, "spec": {"clusterQueue": "gpus", **spec}}


def world(*objects: Raw, policy: Raw | None = None, followed: bool = True, queues: tuple[str, ...] = ()) -> Snapshot:
    """Nodes by GPU Feature Discovery's labels; ``followed``: all of Kueue's objects are known."""
    made = [{"kind": "ClusterGPUPolicy", "metadata": {"name": "p"}, "spec": {"mode": "Enforce", **policy}}] if policy else []
    facts = ClusterFacts.from_objects(objects)
    if followed:
        facts = facts.changed(FactEntry("followed", kind, value=True) for kind in admission_queues.KINDS)
    return snapshots.build(golden.policies_of(made, CATALOG), CATALOG, platforms=("gfd",), cluster=facts, queues=queues)


def template(resource: str = GPU, **spec: Any) -> Raw:
    limits = {resource: 1} if resource else {"cpu": 1}
    return {"metadata": {}, "spec": {"containers": [{"name": "main", "resources": {"limits": limits}}], "restartPolicy": "Never", **spec}}


def job(queue: str | None = "team-a", *, resource: str = GPU, owner: tuple[str, str] | None = None, **spec: Any) -> Raw:
    metadata: Raw = {"name": "train", **({"labels": {LABEL: queue}} if queue is not None else {})}
    if owner is not None:
        metadata["ownerReferences"] = [{"apiVersion": owner[0], "kind": owner[1], "name": "o", "uid": "u", "controller": True}]
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template(resource, **spec)}}


def told(value: Raw, snapshot: Snapshot, kind: str = "Job", api_version: str = "batch/v1") -> tuple[str, ...]:
    known = workload_of(CATALOG, api_version, kind)
    assert known is not None
    owner = Owner(api_version=api_version, kind=kind, name="train", namespace="ml", workload=known)
    return tuple(str(one) for one in places.remarks(value, owner, snapshot.facts_for("ml")))


HOPPER = (local_queue(), cluster_queue("hopper"), flavor("hopper"))
AMPERE = (local_queue(), cluster_queue("ampere"), flavor("ampere"))


# --- placement ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("objects", "policy"),
    [
        (HOPPER, HOPPER_ONLY),
        (AMPERE, None),
        (AMPERE, {"default": {"families": {"in": ["hopper"]}}}),
        ((local_queue(), cluster_queue("any"), flavor("any", nodeLabels={})), HOPPER_ONLY),
        ((local_queue(), cluster_queue("zoned"), flavor("zoned", nodeLabels={"zone": "a"})), HOPPER_ONLY),
    ],
    ids=["within", "no policy", "a default", "any node", "other labels"],
)
def test_a_job_with_a_flavor_left_is_not_warned(objects: tuple[Raw, ...], policy: Raw | None) -> None:
    """A default gives way to the flavor's nodeSelector, and labels that no policy speaks of keep nothing out."""
    assert told(job(), world(*objects, policy=policy)) == ()


def test_tolerations_that_berth_adds_come_too_late_for_kueue() -> None:
    """It reads the template: a flavor with the taint of GPU nodes takes only what tolerates that, by itself or by the flavor."""
    tainted = (local_queue(), cluster_queue("hopper"), flavor("hopper", nodeTaints=[TAINT]))
    policy = {"default": {"acceleratorTaints": "Tolerate"}}
    (text,) = told(job(), world(*tainted, policy=policy))
    assert ": hopper has taint nvidia.com/gpu=present:NoSchedule; tolerate it in the template, or in the flavor" in text
    tolerated = {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}
    assert told(job(tolerations=[tolerated]), world(*tainted, policy=policy)) == ()
    given = (local_queue(), cluster_queue("hopper"), flavor("hopper", nodeTaints=[TAINT], tolerations=[tolerated]))
    assert told(job(), world(*given, policy=policy)) == ()


def test_each_flavor_is_told_of() -> None:
    """What policy keeps out comes first: Kueue would give it."""
    both = (local_queue(), cluster_queue("ampere", "hopper"), flavor("ampere"), flavor("hopper", nodeTaints=[TAINT]))
    (text,) = told(job(), world(*both, policy=HOPPER_ONLY))
    assert "admits spec.template, but its pods never run: ClusterGPUPolicy/p denies them in ampere" in text
    assert text.endswith(". hopper has taint nvidia.com/gpu=present:NoSchedule")


def test_a_flavor_that_kueue_may_give_wrongly() -> None:
    """One of two is left; which one Kueue gives depends on quotas. A nodeSelector of the template decides it."""
    both = (local_queue(), cluster_queue("ampere", "hopper"), flavor("ampere"), flavor("hopper"))
    (text,) = told(job(), world(*both, policy=HOPPER_ONLY))
    assert "may place spec.template where its pods never run: ClusterGPUPolicy/p denies them in ampere" in text
    assert told(job(nodeSelector={FAMILY: "hopper"}), world(*both, policy=HOPPER_ONLY)) == ()


def test_pods_that_are_denied_anywhere_are_told_of_elsewhere() -> None:
    """The flavor is not what is wrong with them."""
    policy = {"require": {"gpusPerPod": {"oneOf": [2, 4]}, "families": {"in": ["hopper"]}}}
    assert told(job(), world(*AMPERE, policy=policy)) == ()


def test_workloads_that_are_held_by_gates_are_matched_by_their_pods() -> None:
    """Those have what policies write by then; where Kueue manages pods, that is left to flavors and not known before."""
    deployment = {**job(), "apiVersion": "apps/v1", "kind": "Deployment"}
    deployment["spec"] = {"template": template(restartPolicy="Always")}
    (text,) = told(deployment, world(*AMPERE, policy=HOPPER_ONLY), "Deployment", "apps/v1")
    assert f"no flavor of queue team-a (gpus) fits spec.template, so it never runs: ampere has {FAMILY}=ampere" in text
    assert told(deployment, world(*AMPERE, policy=HOPPER_ONLY, queues=("kueue",)), "Deployment", "apps/v1") == ()
    assert told(deployment, world(*HOPPER, policy=HOPPER_ONLY), "Deployment", "apps/v1") == ()


def test_each_template_is_judged() -> None:
    """The path of the one that is left out is named; a template without devices waits for no flavor of theirs."""
    workers = {"groupName": "w", "template": template(nodeSelector={FAMILY: "hopper"})}
    spec = {"headGroupSpec": {"template": template("")}, "workerGroupSpecs": [workers, {"template": template()}]}
    value = {"metadata": {"name": "r", "labels": {LABEL: "team-a"}}, "spec": spec}
    (text,) = told(value, world(*AMPERE), "RayCluster", "ray.io/v1")
    assert "fits spec.workerGroupSpecs[0].template, so it never runs" in text


# --- the queue ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("queue", "objects", "words"),
    [
        ("team-q", HOPPER, 'is "team-q", not a known LocalQueue in namespace ml: it waits forever; write "team-a"'),
        ("zzz", HOPPER, 'is "zzz", not a known LocalQueue in namespace ml: it waits forever; write team-a'),
        ("team-a", (), 'is "team-a", and namespace ml has no LocalQueue: it waits forever; run: kubectl get localqueues -A'),
        ("team-a", (local_queue(),), "LocalQueue team-a uses ClusterQueue gpus, which is not known"),
        ("team-a", (local_queue(), cluster_queue("hopper")), "flavor hopper is not known; run: kubectl get resourceflavors"),
        ("team-a", (*HOPPER, local_queue(stopPolicy="Hold")), "LocalQueue team-a is stopped (spec.stopPolicy: Hold)"),
        (
            "team-a",
            (local_queue(), cluster_queue("hopper", stopPolicy="HoldAndDrain")),
            "ClusterQueue gpus is stopped (spec.stopPolicy: HoldAndDrain): it waits until that is None",
        ),
        (
            "team-a",
            (local_queue(), cluster_queue("hopper", covered=("cpu",)), flavor("hopper")),
            "covers no nvidia.com/gpu: it waits forever, unless Kueue's configuration maps it; add it to the ClusterQueue",
        ),
    ],
)
def test_queues_that_admit_nothing(queue: str, objects: tuple[Raw, ...], words: str) -> None:
    """Each with what to type, early enough for a narrow terminal."""
    (text,) = told(job(queue), world(*objects))
    assert words in text
    assert text.index(words) + len(words) <= FIRST_READ


@pytest.mark.parametrize(
    ("selector", "warned"),
    [
        (None, True),
        ({}, False),
        ({"matchLabels": {"team": "research"}}, False),
        ({"matchLabels": {"team": "web"}}, True),
        ({"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["research"]}]}, True),
        ({"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["ml"]}]}, False),
        ({"matchExpressions": [{"key": "team", "operator": "Near"}]}, False),
    ],
    ids=str,
)
def test_namespaces_that_a_queue_takes(selector: Raw | None, *, warned: bool) -> None:
    """Null takes none, as for Kueue; a namespace whose labels are not known may be taken."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml", "labels": {"team": "research"}}}
    objects = (local_queue(), cluster_queue("hopper", namespaceSelector=selector), flavor("hopper"))
    found = told(job(), world(*objects, namespace))
    assert ["excludes namespace ml (spec.namespaceSelector)" in one for one in found] == [True] * warned
    assert told(job(), world(*objects)) == ()


@pytest.mark.parametrize(
    "value",
    [job(None), job(""), job("zzz", resource=""), job("zzz", owner=("jobset.x-k8s.io/v1alpha2", "JobSet"))],
    ids=["no queue", "an empty queue", "no device", "a managed parent"],
)
def test_other_workloads_are_left_alone(value: Raw) -> None:
    """What names no queue, asks for no device, or waits by its parent's label."""
    assert told(value, world(*HOPPER)) == ()


@pytest.mark.parametrize("objects", [(), HOPPER[:1], HOPPER[:2], AMPERE[1:]])
def test_what_is_not_known_is_no_guess(objects: tuple[Raw, ...]) -> None:
    """Where not all of Kueue's objects are known, what is missing may be there."""
    assert told(job(), world(*objects, policy=HOPPER_ONLY, followed=False)) == ()


def test_what_is_known_of_files_is_judged() -> None:
    """A queue, its ClusterQueue and all of its flavors are enough."""
    assert len(told(job(), world(*AMPERE, policy=HOPPER_ONLY, followed=False))) == 1


def test_queues_of_another_group_are_none() -> None:
    """A kind of the same name in somebody else's group."""
    others = [{**one, "apiVersion": "example.com/v1"} for one in HOPPER]
    assert told(job(), world(*others, followed=False)) == ()
    assert ClusterFacts.from_objects(others) == ClusterFacts()


def test_work_is_bounded() -> None:
    """Beyond what is affordable a flavor counts as fitting: never a guess, and never seconds."""
    names = [f"f{i}" for i in range(64)]
    objects = (local_queue(), cluster_queue(*names), *(flavor(name, nodeLabels={FAMILY: "ampere", "n": name}) for name in names))
    (text,) = told(job(), world(*objects, policy=HOPPER_ONLY))
    assert "may place spec.template where its pods never run" in text


def test_a_template_that_is_none_is_left_to_others() -> None:
    """Whatever stands there, nothing is raised."""
    specs: tuple[Any, ...] = ({"template": {"spec": {"containers": "x"}}}, {"template": None}, None, [])
    for spec in specs:
        value = {"metadata": {"labels": {LABEL: "team-a"}}, "spec": spec}
        assert told(value, world(*AMPERE, policy=HOPPER_ONLY)) == ()
    assert told({"metadata": []}, world(*HOPPER)) == ()


def test_facts_come_and_go() -> None:
    """Kueue is installed, and removed: nothing is claimed before or after."""
    facts = ClusterFacts()
    for kinds, known in ((("LocalQueue",), {"LocalQueue": True}), ((), {})):
        changes = admission_queues.followed(kinds)
        put = [FactEntry("followed", name, value=True) for (_, _, name), value in changes.items() if value is not None]
        gone = [FactEntry("followed", name, value=True) for (_, _, name), value in changes.items() if value is None]
        facts = facts.changed(put, gone)
        assert facts.followed == known
    assert replace(facts) == ClusterFacts()
