"""Explanations of what was read, without a cluster."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from analysis.admission.manifests import read_manifest
from analysis.admission_preview import Admission
from analysis.why import values
from analysis.why.explain import Explainer
from analysis.why.explanation import Explanation
from analysis.why.surroundings import Surroundings
from catalog.prices import prices
from cli.inspect import why_text as text
from kube.node import Occupant
from policies.document import Document
from policies.placement.fleet import fleet_of
from policies.state.updater import Options, Updater
from tests.support.generators.random_worlds import catalog
from tests.support.generators.strategies import randoms
from tests.support.scheduling import random_places
from tests.support.scheduling.node_pools import AWS, node_pool, of_families

Raw = dict[str, Any]
GPU = "nvidia.com/gpu"
NOW = datetime(2026, 11, 23, 12, 30, tzinfo=UTC)
TAINT = {"key": GPU, "value": "true", "effect": "NoSchedule"}
FORBIDDING = {
    "apiVersion": "berth.dev/v1alpha1",
    "kind": "ClusterGPUPolicy",
    "metadata": {"name": "closed"},
    "spec": {"mode": "Enforce", "require": {"tolerations": {"forbid": [{"key": "team", "value": "ml"}]}}},
}


def _pod(count: int = 1, status: Raw | None = None, **spec: Any) -> Raw:
    metadata = {"name": "p", "namespace": "n", "uid": "1", "creationTimestamp": "2026-11-23T12:00:00Z"}
    containers = [{"name": "c", "resources": {"limits": {GPU: str(count)}, "requests": {GPU: str(count)}}}]
    found = {"phase": "Pending", **(status or {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers, **spec}, "status": found}


def _node(name: str, count: int = 8, taints: Any = (), **labels: str) -> Raw:
    metadata = {"name": name, "labels": labels}
    status = {"allocatable": {GPU: count, "pods": 10}}
    return {"kind": "Node", "metadata": metadata, "spec": {"taints": list(taints)}, "status": status}


def _explained(pod: Raw, *places: Raw, policies: Any = (), occupants: Any = (), **asked: Any) -> Explanation:
    changes = {(one["kind"], "", one["metadata"]["name"]): one for one in (*policies, *places) if one["kind"] != "DeviceClass"}
    snapshot = Updater(catalog(), Options(platforms=(AWS,))).apply(changes).snapshot
    fleet = fleet_of(places, catalog=catalog(), tables=snapshot.tables, occupants=occupants)
    read = Surroundings(namespace="n", value=pod, pods=[pod], **asked)
    return Explainer(Admission(snapshot), fleet, prices(catalog())).of_object("pod/p", read, None)


def _text(found: Explanation) -> str:
    return text.format_why(found, NOW)


def test_what_karpenter_would_buy() -> None:
    """Once it is mended, the cheapest known machine with its price."""
    found = _explained(_pod(8), node_pool("gpu", requirements=[of_families("p4d", "p5")], taints=[TAINT]))
    assert found.remedy is not None
    assert [name for name, _ in found.remedy.buys["gpu"]] == ["p4d.24xlarge", "p5.48xlarge"]
    shown = _text(found)
    assert "  NodePool gpu\n    taint nvidia.com/gpu=true:NoSchedule is not tolerated\n" in shown
    assert "Karpenter may then create p4d.24xlarge (21.96 USD per hour on demand), the cheapest known of 2, by NodePool gpu.\n" in shown
    assert values.explanation_value(found)["remedy"]["buys"]["gpu"][0]["machine"] == "p4d.24xlarge"


def test_a_change_that_a_policy_forbids_is_told_and_not_proposed() -> None:
    """The next one is proposed, and the reason given."""
    team = [{"key": "team", "value": "ml", "effect": "NoSchedule"}]
    found = _explained(
        _pod(nodeSelector={"zone": "b", "disk": "x"}), _node("a", 8, team, zone="b", disk="x"), _node("b"), policies=[FORBIDDING]
    )
    shown = _text(found)
    assert "  - spec.nodeSelector.zone\n  - spec.nodeSelector.disk\nIt then fits b.\n" in shown
    assert "A smaller change would be denied by ClusterGPUPolicy/closed: BERTH-131" in shown


def test_a_pod_that_came_without_berth_is_mended_without_it_too() -> None:
    """Made anew it gets what it lacks; where Berth is not asked, such as in an excluded namespace, it takes the same change by hand."""
    spec = {"mode": "Enforce", "default": {"acceleratorTaints": "Tolerate"}}
    policy: Raw = {"apiVersion": "berth.dev/v1alpha1", "kind": "ClusterGPUPolicy", "metadata": {"name": "taints"}, "spec": spec}
    found = _explained(_pod(), _node("a", 8, [TAINT]), policies=[policy])
    assert found.remedy is not None
    assert found.remedy.anew
    shown = _text(found)
    assert "Recreate it: Berth will add what is missing," in shown
    assert "The smallest change (1 step) to the pod of Pod p:\n  + spec.tolerations: {" in shown
    assert "It then fits a.\n" in shown
    assert values.explanation_value(found)["remedy"]["anewNeedsNone"]
    tolerations = [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}]
    others: list[tuple[Raw, Raw, list[Raw]]] = [
        (_pod(), _node("a", 8, [TAINT]), []),
        (_pod(tolerations=tolerations), node_pool("gpu", taints=[TAINT]), [policy]),
    ]
    for pod, place, policies in others:
        other = _explained(pod, place, policies=policies)  # not for want of policies: there are none, or they have written all
        assert other.remedy is None or not other.remedy.anew


def test_a_pod_that_only_waits_needs_no_change() -> None:
    """All that is in its way may end by itself; what would run now is told too."""
    shown = _text(_explained(_pod(8), _node("a"), occupants=[Occupant("a", {GPU: 4})]))
    assert f"    8 {GPU} requested; 4 free now\n" in shown
    assert "It needs no change: it waits until what blocks it ends, such as other pods.\n" in shown
    assert "To run now, the smallest change (1 step) to the pod of Pod p:\n" in shown


def test_words_of_others() -> None:
    """Kueue's conditions of the Workload that the pod belongs to, Karpenter's event, the scheduler's condition; each once, the newest
    first."""
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/1 nodes",
        "lastTransitionTime": "2026-11-23T12:01:00Z",
    }
    workloads = [
        {
            "metadata": {"ownerReferences": [{"uid": uid}]},
            "status": {"conditions": [{"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": message}]},
        }
        for uid, message in (("1", "couldn't assign flavors"), ("2", "of another"))
    ]
    events = [
        {"reason": "FailedScheduling", "message": message, "lastTimestamp": at, "source": {"component": who}}
        for who, at, message in (
            ("default-scheduler", "2026-11-23T12:01:00Z", "0/1 nodes"),
            ("karpenter", "2026-11-23T12:02:00Z", "old"),
            ("karpenter", "2026-11-23T12:29:00Z", "did not tolerate\x1b[31m taint"),
        )
    ] + [{"reason": "Pulled", "message": "image", "source": {"component": "kubelet"}}]
    found = _explained(_pod(status={"conditions": [condition], "nominatedNodeName": "a"}), _node("a"), events=events, queued=workloads)
    assert [(one.who, one.text) for one in found.told] == [
        ("karpenter", "did not tolerate\x1b[31m taint"),
        ("kube-scheduler", "0/1 nodes"),
        ("Kueue", "couldn't assign flavors"),
    ]
    shown = _text(found)
    assert "  karpenter, FailedScheduling, 60s ago: did not tolerate\\x1b[31m taint\n" in shown
    assert "Nominated for node a" in shown
    assert "pod/p in namespace n: Pending, created 30m ago.\n" in shown


def test_nothing_alone_mends_it() -> None:
    """Where no node is left."""
    shown = _text(_explained(_pod(), {**_node("a"), "spec": {"unschedulable": True}}))
    assert "    cordoned\n" in shown
    assert "No change to it fixes that" in shown


def test_what_is_not_judged_is_named() -> None:
    """A place is then not a promise."""
    shown = _text(_explained(_pod(schedulerName="volcano", volumes=[{"name": "v", "persistentVolumeClaim": {}}]), _node("a")))
    assert "No blocker found; not checked: volumes, the rules of its own scheduler.\n" in shown
    assert "fits now" not in shown


def test_many_places_make_one_screen() -> None:
    """The nearest first; the rest is counted."""
    shown = _text(_explained(_pod(9), *(_node(f"n{i}", i % 8, zone=str(i)) for i in range(1, 20)))).splitlines()
    assert len(shown) < 40
    assert "  and 2 more groups with more blockers: berth why -o json" in shown


WORDS = (
    st.text(max_size=6)
    | st.none()
    | st.sampled_from(["PodScheduled", "False", "FailedScheduling", "2026-11-23T12:00:00Z", "\x1b[2J", "\u202e"])
)
TOLD = st.lists(
    st.dictionaries(
        st.sampled_from(["type", "status", "reason", "message", "lastTimestamp", "lastTransitionTime", "reportingComponent", "source"]),
        WORDS,
    ),
    max_size=4,
)


@given(randoms(), TOLD, TOLD)
def test_whatever_is_told_stays_on_its_line(random: Any, events: list[Raw], conditions: list[Raw]) -> None:
    """No content of what is read makes it raise, and nothing but printable text comes out."""
    names = ["a", "b"]
    pod = random_places.pod(random, "p", names)
    pod["metadata"] |= {"namespace": "n", "uid": "1"}
    pod["status"] = {"conditions": conditions, "phase": random.choice(("Pending", "Running", None, 3))}
    workload = {"metadata": {"ownerReferences": [{"uid": "1"}]}, "status": {"conditions": conditions}}
    places = [random_places.node(random, name) for name in names] + [node_pool("gpu", requirements=[of_families("p4d")])]
    found = _explained(pod, *places, events=events, queued=[workload])
    assert all(line.isprintable() for line in _text(found).splitlines())
    assert values.format_explanation(found).isascii()


def _waiting(*conditions: tuple[str, str, str], **status: Any) -> Raw:
    every = [{"type": type_, "status": state, "reason": reason, "message": "Kueue's\nown words"} for type_, state, reason in conditions]
    metadata = {"name": "job-p-1", "ownerReferences": [{"uid": "1"}]}
    return {"metadata": metadata, "spec": {"queueName": "team-a"}, "status": {"conditions": every, **status}}


def test_what_a_workload_waits_for_in_kueue() -> None:
    """In plain words, with what to type next; what Kueue says is quoted on one line."""
    queued = _waiting(("QuotaReserved", "False", "WaitingForQuota"), ("Evicted", "True", "Preempted"))
    found = _explained(_pod(), queued=[queued])
    lines = _text(found).splitlines()
    preempted = "it was preempted and waits to be admitted again; other workloads use the quota that it needs"
    assert lines[1] == f"Queue team-a of Kueue: {preempted}."
    assert lines[2:4] == ['  Kueue says (WaitingForQuota): "Kueue\'s own words"', "  Next: kubectl get workloads.kueue.x-k8s.io -n n"]
    shown = values.explanation_value(found)["queue"]
    assert (shown["state"], shown["queue"], shown["evicted"]) == ("pending", "team-a", "Preempted")


def test_what_is_left_once_kueue_has_given_quota() -> None:
    """Checks are named while they are waited for; once it is admitted, its flavor is."""
    given: Raw = {
        "admission": {"clusterQueue": "gpus", "podSetAssignments": [{"flavors": {GPU: "hopper"}}]},
        "admissionChecks": [{"name": "capacity", "state": "Retry", "message": "no machines"}],
    }
    reserved = _text(_explained(_pod(), queued=[_waiting(("QuotaReserved", "True", "QuotaReserved"), **given)]))
    assert "Queue team-a (ClusterQueue gpus) of Kueue: it has quota of flavor hopper and waits for admission checks: capacity (Retry)." in (
        reserved
    )
    assert '  capacity says: "no machines"\n' in reserved
    admitted = _text(_explained(_pod(), queued=[_waiting(("Admitted", "True", "Admitted"), ("PodsReady", "False", "x"), **given)]))
    assert "Kueue has admitted it to flavor hopper (its pods are not ready).\n" in admitted


def test_what_kueue_says_nothing_of() -> None:
    """A workload that is like another without a place gets no condition, and `why` no reason."""
    shown = _text(_explained(_pod(), queued=[_waiting(("PodsReady", "False", "WaitForStart"))]))
    assert (
        "Queue team-a of Kueue: no condition gives a reason: Kueue has not processed it yet, or found no room for a similar workload."
        in shown
    )
    assert "  Next: kubectl describe workloads.kueue.x-k8s.io job-p-1 -n n\n" in shown


def test_a_pod_without_a_queue_says_nothing_of_one() -> None:
    """Of others' Workloads neither."""
    assert _explained(_pod(), queued=[{"metadata": {"ownerReferences": [{"uid": "2"}]}}]).queue is None
    labelled = _pod()
    labelled["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "team-a"}
    assert "Kueue has no Workload for it" in _text(_explained(labelled))
    assert _explained(labelled, unread={"workloads": "you may not list workloads in namespace n"}).queue is None


def _deployment(**spec: Any) -> Raw:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "llm"}, "spec": {"replicas": 1, **spec}}


def _of_replica_set(pod: Raw, uid: str, **metadata: str) -> Raw:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"llm-{uid}", "uid": uid, "controller": True}
    return {**pod, "metadata": {**pod["metadata"], **metadata, "ownerReferences": [owner]}}


def _rolling(old: Raw, *owners: Raw) -> Explanation:
    """A new pod of a Deployment on a node of one GPU, which another pod holds."""
    new = _of_replica_set(_pod(), "new")
    return _explained(new, _node("a", 1), occupants=[Occupant("a", {GPU: 1})], owners=owners, siblings=[old, new])


def test_a_rolling_update_that_waits_for_its_own_old_pod() -> None:
    """By default one pod more is started first, and none may be missing: the GPU of the old one never becomes free."""
    old = _of_replica_set(_pod(nodeName="a", status={"phase": "Running"}), "old", name="llm-old-x")
    found = _rolling(old, _deployment())
    assert found.rollout is not None
    assert (found.rollout.deployment, found.rollout.surge, found.rollout.holders) == ("llm", 1, ("llm-old-x",))
    shown = _text(found)
    assert f"(maxSurge 1, maxUnavailable 0), and llm-old-x of the same Deployment holds the {GPU} that it waits for.\n" in shown
    assert "kubectl patch deployment llm -n n -p '{" in shown
    assert "It needs no change" not in shown
    assert values.explanation_value(found)["rollingUpdate"]["holders"] == ["llm-old-x"]
    service = {"kind": "InferenceService", "metadata": {"name": "llm"}}
    assert "maxSurge: 0 and maxUnavailable: 1 in InferenceService llm, which writes the Deployment.\n" in _text(
        _rolling(old, _deployment(), service)
    )


def test_a_deployment_of_a_file_that_starts_such_an_update() -> None:
    """It is held against the one that it replaces: with the same template no pod is replaced."""
    labels: Raw = {"matchLabels": {"app": "llm"}}
    template: Raw = {"metadata": {"labels": {"app": "llm"}}, "spec": _pod()["spec"]}
    proposed = _deployment(template=template, selector=labels)
    proposed["metadata"]["namespace"] = "n"
    old = _of_replica_set(_pod(nodeName="a", status={"phase": "Running"}), "old", name="llm-old-x")
    places = [_node("a", 1)]
    snapshot = Updater(catalog(), Options(platforms=(AWS,))).apply({("Node", "", "a"): places[0]}).snapshot
    fleet = fleet_of(places, catalog=catalog(), tables=snapshot.tables, occupants=[Occupant("a", {GPU: 1})])
    explainer = Explainer(Admission(snapshot), fleet, prices(catalog()))
    manifest = read_manifest(Document(file="llm.yaml", value=proposed), catalog(), "n")
    running = {**proposed, "spec": {**proposed["spec"], "template": {}}}
    for before, waits in ((running, True), (proposed, False), ({}, False)):
        found = explainer.of_manifest("deployment/llm", manifest, (), Surroundings(namespace="n", value=before, pods=[old]))
        assert (found.rollout is not None) == waits
    told = explainer.of_manifest("deployment/llm", manifest, (), Surroundings(namespace="n", value=running, pods=[old]))
    assert "set spec.strategy.rollingUpdate to maxSurge: 0 and maxUnavailable: 1 in llm.yaml.\n" in _text(told)


def test_other_pods_that_wait_are_in_no_such_update() -> None:
    """One of another strategy, one whose Deployment may miss a pod, and one whose GPU others hold."""
    running: Raw = {"phase": "Running"}
    old = _of_replica_set(_pod(nodeName="a", status=running), "old")
    none_missing: Raw = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}
    for deployment in (_deployment(strategy={"type": "Recreate"}), _deployment(strategy=none_missing), _deployment(replicas=4)):
        assert _rolling(old, deployment).rollout is None
    assert _rolling(old).rollout is None
    same = _of_replica_set(_pod(nodeName="a", status=running), "new")
    ended = _of_replica_set(_pod(nodeName="a", status={"phase": "Failed"}), "old")
    plain = _of_replica_set({**_pod(), "spec": {"nodeName": "a", "containers": [{}]}}, "old")
    for other in (same, ended, plain):
        assert _rolling(other, _deployment()).rollout is None


def test_gates_are_named_with_their_owners() -> None:
    """By the domain of the name: a queue system's, or a workload's whose operator sets it. Until they are gone nothing is placed."""
    names = ("kueue.x-k8s.io/admission", "grove.io/podgang-pending-creation", "example.com/wait", "bare")
    found = _explained(_pod(schedulingGates=[{"name": name} for name in names]), _node("a"))
    shown = _text(found)
    owned = "kueue.x-k8s.io/admission (Kueue), grove.io/podgang-pending-creation (operator of PodCliqueSet), example.com/wait, bare"
    assert f"Pending, created 30m ago, gated by {owned}.\n" in shown
    assert f"No scheduler considers it until its scheduling gates are removed: {owned}.\n" in shown
    assert "fits now" not in shown
    value = values.explanation_value(found)
    assert (value["outlook"], "notChecked" in value) == ("later", False)
    assert value["schedulingGates"][0] == {"name": "kueue.x-k8s.io/admission", "system": "Kueue", "kind": ""}


def _of_file(value: Raw, *, platforms: tuple[str, ...] = (AWS,), advised: bool = False) -> Explanation:
    snapshot = Updater(catalog(), Options(platforms=platforms)).apply({}).snapshot
    named = Updater(catalog(), Options(platforms=(AWS,))).apply({("ClusterGPUPolicy", "", "any"): ANY}).snapshot
    manifest = read_manifest(Document(file="pod.yaml", value=value), catalog(), "n")
    explainer = Explainer(Admission(snapshot), None, prices(catalog()), advised=Admission(named) if advised else None)
    return explainer.of_manifest("pod/p", manifest, ())


ANY: Raw = {"apiVersion": "berth.dev/v1alpha1", "kind": "ClusterGPUPolicy", "metadata": {"name": "any"}, "spec": {"mode": "Enforce"}}


def test_what_admission_says_needs_no_policy_and_no_node() -> None:
    """A value that the catalog does not know is named where the cluster's policies and nodes can't be read."""
    value = _pod(nodeSelector={"karpenter.k8s.aws/instance-gpu-name": "h100-sxm"})
    assert _of_file(value, platforms=()).warnings == ()
    (warning,) = _of_file(value, platforms=(), advised=True).warnings
    assert (warning.remark.code, 'did you mean "h100"?' in warning.text) == ("BERTH-201", True)
    assert _text(_of_file(value, advised=True)).splitlines()[1].startswith("  warning: BERTH-201: ")


def test_what_kubernetes_itself_denies() -> None:
    """A request that is not its limit, whichever policies there are, with the fix; a pod on a node is not explained so."""
    value = _pod(2)
    value["spec"]["containers"][0]["resources"]["requests"] = {GPU: "1"}
    explained = _of_file(value)
    assert (explained.state, explained.invalid, [one.code for one in explained.denials]) == ("denied", True, ["BERTH-101"])
    shown = _text(explained)
    assert "  Kubernetes itself, whatever the policies are\n    BERTH-101: container" in shown
    assert explained.value["spec"]["containers"][0]["resources"]["requests"] == {GPU: "2"}
    assert not _of_file(_pod(2)).invalid


def _denied_by(message: str, **more: Any) -> Explanation:
    """A Job whose pods are not created, with what the API server said of the last one."""
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "n", "uid": "1"}, "spec": {"template": _pod()}}
    event = {"reason": "FailedCreate", "lastTimestamp": "2026-11-23T12:00:00Z", "message": message, "reportingComponent": "job-controller"}
    read = Surroundings(namespace="n", value=job, events=[event], **more)
    admission = Admission(Updater(catalog(), Options(platforms=(AWS,))).apply({}).snapshot)
    return Explainer(admission, None, prices(catalog())).of_object("job/j", read, None)


def test_pods_that_are_denied_because_berth_does_not_answer() -> None:
    """They come by themselves; of another webhook nothing is said, nor of a policy that denied them."""
    failed = 'Internal error occurred: failed calling webhook "{}": failed to call webhook: connect: connection refused'
    assert "tries again" in _text(_denied_by(failed.format("validate.pods.berth.dev")))
    for other in (failed.format("check.example.com"), 'admission webhook "validate.pods.berth.dev" denied the request: BERTH-111: 9 GPUs'):
        assert not _denied_by(other).unanswered
        assert "No policy would deny its pods as the policies are now; the message above says what denied them." in _text(_denied_by(other))


def test_policies_that_could_not_be_read_are_not_said_to_deny_nothing() -> None:
    """The message may name one of them."""
    shown = _text(_denied_by("BERTH-111: 9 GPUs", unread={"ClusterGPUPolicy": "you may not list clustergpupolicies.berth.dev"}))
    assert "Berth's policies could not be read here" in shown
    assert "No policy" not in shown


def test_the_policy_that_wants_a_label_is_named() -> None:
    """What the author wants is of nobody else."""
    wants_spot = {**FORBIDDING, "metadata": {"name": "spot"}, "spec": {"mode": "Enforce", "default": {"capacity": ["spot"]}}}
    zone = {"topology.kubernetes.io/zone": "a"}
    snapshot = Updater(catalog(), Options(platforms=(AWS,))).apply({("ClusterGPUPolicy", "", "spot"): wants_spot}).snapshot
    fleet = fleet_of([_node("n")], catalog=catalog(), tables=snapshot.tables)
    manifest = read_manifest(Document(file="pod.yaml", value=_pod(nodeSelector=zone)), catalog(), "n")
    explained = Explainer(Admission(snapshot), fleet, prices(catalog())).of_manifest("pod/p", manifest, ())
    shown = _text(explained)
    assert "required; it has no such label (required by ClusterGPUPolicy/spot)\n" in shown
    assert "label topology.kubernetes.io/zone=a is required; it has no such label\n" in shown
    (place,) = values.explanation_value(explained)["places"]
    assert {one["key"]: one.get("policies") for one in place["blockers"]} == {
        "topology.kubernetes.io/zone": None,
        "karpenter.sh/capacity-type": ["ClusterGPUPolicy/spot"],
    }


def test_pods_of_a_workload_that_do_not_all_fit_at_once() -> None:
    """One of three has a place on two GPUs; the others wait until there are more."""
    value = _deployment(
        replicas=3, template={"metadata": {"labels": {"a": "b"}}, "spec": _pod()["spec"]}, selector={"matchLabels": {"a": "b"}}
    )
    places = [_node("a", 3)]
    snapshot = Updater(catalog(), Options(platforms=(AWS,))).apply({("Node", "", "a"): places[0]}).snapshot
    manifest = read_manifest(Document(file="llm.yaml", value=value), catalog(), "n")
    for held, expected in ((0, ("now", 3)), (1, ("later", 2))):
        occupants = [Occupant("a", {GPU: held})]
        fleet = fleet_of(places, catalog=catalog(), tables=snapshot.tables, occupants=occupants)
        found = Explainer(Admission(snapshot), fleet, prices(catalog())).of_manifest("deployment/llm", manifest, ())
        assert found.room is not None
        assert (found.outlook, found.room.now) == expected
        assert ("There is room for 2 of its 3 pods now. The others wait until more is free.\n" in _text(found)) == (held == 1)


def test_all_templates_that_kubernetes_denies_are_fixed_at_once() -> None:
    """Each keeps its own amount."""

    def role(request: str, limit: str) -> Raw:
        return {
            "template": {"spec": {"containers": [{"name": "pytorch", "resources": {"limits": {GPU: limit}, "requests": {GPU: request}}}]}}
        }

    roles = {"Master": role("1", "2"), "Worker": role("3", "4")}
    value = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "p"}, "spec": {"pytorchReplicaSpecs": roles}}
    explained = _of_file(value)
    assert (explained.invalid, len(explained.denials)) == (True, 2)
    fixed = explained.value["spec"]["pytorchReplicaSpecs"]
    requests = {name: one["template"]["spec"]["containers"][0]["resources"]["requests"][GPU] for name, one in fixed.items()}
    assert requests == {"Master": "2", "Worker": "4"}


def test_where_what_is_unknown_decides_no_change_is_ruled_out() -> None:
    """A NodePool of an unknown class may make what the pod asks for, or not."""
    shown = _text(_explained(_pod(), node_pool("gpu", group="example.com")))
    assert "    Berth does not know which machines its node class (example.com) creates\n" in shown
    assert "No change to it is known to fix that: what is unknown decides.\n" in shown
    assert "helps" not in shown
