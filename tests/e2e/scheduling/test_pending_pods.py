"""What `berth why` says of a pod and the change that it proposes, held against what becomes of both: the real admission of quotas and
LimitRanges, the real kube-scheduler and the real Karpenter, with CPU, memory, pods on nodes, DaemonSets and limits of NodePools."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

from cli.main import main
from kube.tree import apply_patch
from tests.support.counts import count
from tests.support.generators.random_worlds import catalog
from tests.support.scheduling.lanes import LANE, Lane, random_lane
from tests.testcluster.addons import karpenter, nodes
from tests.testcluster.addons.nodes import FakeNode
from tests.testcluster.controlplane.api import Raw
from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.fixtures import control_plane, needs_programs

LANES = count(20, 1600)
"""Of which about two thirds wait, or are refused."""
AT_ONCE = 20
MOST_UNPLACED = 0.01
"""Of the changes that are proposed."""
OVERLAY = "platforms: {karpenter-aws: {nodeClasses: [karpenter.kwok.sh]}}\n"
"""Karpenter's own simulated cloud has a node class of another group; its machines are AWS's (``addons.karpenter``)."""
OTHER = FakeNode(name="other", labels={LANE: "other"}, taints=({"key": LANE, "value": "other", "effect": "NoSchedule"},))
"""A node of no lane, with a pod and a DaemonSet: no list is empty, which is how a dump that was made without a kind looks"""
ON_OTHER: Raw = {"nodeName": "other", "containers": [{"name": "main", "image": "i:1"}]}
DAEMONS_OF_OTHER: Raw = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"name": "other", "namespace": "default"},
    "spec": {
        "selector": {"matchLabels": {"app": "other"}},
        "template": {
            "metadata": {"labels": {"app": "other"}},
            "spec": {"nodeSelector": {LANE: "other"}, "containers": ON_OTHER["containers"]},
        },
    },
}
POLICY: Raw = {
    "apiVersion": "berth.dev/v1alpha1",
    "kind": "ClusterGPUPolicy",
    "metadata": {"name": "any"},
    "spec": {"mode": "Enforce", "require": {"gpusPerPod": {"max": 1000}}},
}
"""Which changes nothing: no Berth is asked in the cluster"""
CLUSTER_KINDS = (("v1", "Node"), ("karpenter.sh/v1", "NodePool"), ("apps/v1", "DaemonSet"), ("v1", "Pod"))


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A control plane with every controller, and Karpenter with AWS's machines."""
    needs_programs(request.config, ("karpenter",))
    with control_plane(request.session) as started:
        karpenter.start(started, karpenter.instance_types(catalog()))
        nodes.add(started, OTHER)
        started.api.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "other"}, "spec": ON_OTHER})
        started.api.create(DAEMONS_OF_OTHER)
        yield started


@dataclass(slots=True)
class Tally:
    """What became of the pods, by what was said of them."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def test_what_is_said_of_pods_is_what_becomes_of_them(cluster: Cluster, tmp_path: Path) -> None:
    """Nothing that is called impossible is placed, nothing that has a place waits, and a change that is proposed places the pod."""
    (tmp_path / "catalog.yaml").write_text(OVERLAY)
    (tmp_path / "policy.json").write_text(json.dumps(POLICY))
    tally = Tally()
    for first in range(0, LANES, AT_ONCE):
        lanes = [random_lane(Random(f"lane {number}"), f"lane-{number}") for number in range(first, min(first + AT_ONCE, LANES))]
        _run(cluster, lanes, tmp_path, tally)
    print(json.dumps(dict(sorted(tally.counts.items())), indent=1))
    assert not tally.wrong, "\n".join(tally.wrong[:20])
    proposed = tally.counts["change: placed"] + tally.counts["change: not placed"]
    assert tally.counts["change: not placed"] <= MOST_UNPLACED * proposed, tally.counts
    assert min(tally.counts[key] for key in ("place: placed", "never: not placed", "change: placed")) >= LANES // 20, tally.counts


def _run(cluster: Cluster, lanes: list[Lane], folder: Path, tally: Tally) -> None:
    for lane in lanes:
        _create(cluster, lane)
    cluster.wait_for(lambda: _settled(cluster, lanes), "DaemonSets and quotas to be as the controllers make them")
    said = {lane.name: _why(cluster, lane, lane.pod, folder) for lane in lanes}
    placed = _placed(cluster, [lane.pod for lane in lanes])
    changed: dict[str, Raw] = {}
    for lane in lanes:
        answer, was = said[lane.name], lane.name in placed
        verdict = _verdict(answer)
        tally.counts[f"{verdict}: {'placed' if was else 'not placed'}"] += 1
        if (verdict, was) in (("never", True), ("place", False)):
            tally.wrong.append(f"{lane.name}: {verdict}, {'placed' if was else 'not placed'}: {json.dumps(answer)}")
        patch = answer.get("remedy", {}).get("patch")
        if not patch and not was:
            tally.counts[f"no change: {_cause(answer)}"] += 1
        if patch and not was:
            changed[lane.name] = apply_patch(lane.pod, patch)
    again = _placed(cluster, list(changed.values()))
    for name, pod in changed.items():
        tally.counts[f"change: {'placed' if name in again else 'not placed'}"] += 1
        if name not in again:
            print(f"not placed with the change: {name}: {json.dumps(pod)}: {json.dumps(said[name])}")
    _clear(cluster, lanes)


def _create(cluster: Cluster, lane: Lane) -> None:
    for value in lane.places:
        status = value.get("status")
        cluster.api.create({key: one for key, one in value.items() if key != "status"})
        if status is not None:
            cluster.api.patch(value, {"status": status}, subresource="status")


def _settled(cluster: Cluster, lanes: list[Lane]) -> bool:
    """Whether each DaemonSet has a pod on each node that it takes, if there is room, and each quota is counted."""
    names = {lane.name for lane in lanes}
    for one in cluster.api.list("apps/v1", "DaemonSet", "kube-system"):
        status = one.get("status", {})
        if status.get("observedGeneration") is None or status["currentNumberScheduled"] != status["desiredNumberScheduled"]:
            return False
    if any(not one.get("status", {}).get("conditions") for one in cluster.api.list("v1", "Pod", "kube-system")):
        return False
    quotas = [one for one in cluster.api.list("v1", "ResourceQuota") if one["metadata"]["namespace"] in names]
    nodes = [one for one in cluster.api.list("v1", "Node") if one["metadata"]["labels"].get(LANE) in names]
    taints = {taint["key"] for node in nodes for taint in node["spec"].get("taints", ())}
    return all(one.get("status", {}).get("hard") for one in quotas) and "node.kubernetes.io/not-ready" not in taints


def _why(cluster: Cluster, lane: Lane, pod: Raw, folder: Path) -> Raw:
    """Return the answer for a pod that is not created yet, beside what its lane has."""
    objects = [_typed(value, kind, version) for version, kind in CLUSTER_KINDS for value in _of_lane(cluster, lane, version, kind)]
    for version, kind in (("v1", "ResourceQuota"), ("v1", "LimitRange"), ("v1", "Pod")):
        objects += [_typed(value, kind, version) for value in cluster.api.list(version, kind, lane.name)]
    objects.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": lane.name}})
    (folder / "dump.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    (folder / "pod.json").write_text(json.dumps(pod))
    options = {"-f": "pod.json", "--from": "dump.json", "--catalog": "catalog.yaml", "--policies": "policy.json"}
    files = [word for option, name in options.items() for word in (option, str(folder / name))]
    with redirect_stdout(io.StringIO()) as out:
        assert main(["why", *files, "--platforms", "karpenter-aws,gfd", "-o", "json"]) == 0
    answer: Raw = json.loads(out.getvalue())
    return answer


def _of_lane(cluster: Cluster, lane: Lane, version: str, kind: str) -> list[Raw]:
    """Return the objects outside its namespace that belong to it, and those of no lane."""
    return [one for one in cluster.api.list(version, kind) if _lanes(one) & {lane.name, "other"}]


def _lanes(value: Raw) -> set[Any]:
    """Return the lanes that an object is of, by a node's label, a NodePool's template, a selector, or the node that a pod is on."""
    metadata, spec = value["metadata"], value.get("spec", {})
    template = spec.get("template", {})
    node = str(spec.get("nodeName") or "")
    return {
        metadata.get("labels", {}).get(LANE),
        template.get("metadata", {}).get("labels", {}).get(LANE),
        template.get("spec", {}).get("nodeSelector", {}).get(LANE),
        node.rpartition("-")[0] or node,
    }


def _typed(value: Raw, kind: str, version: str) -> Raw:
    return {**value, "kind": kind, "apiVersion": version}


def _verdict(answer: Raw) -> str:
    """Return what is said: ``place``, ``later``, ``never``, ``refused``, or ``unknown``."""
    if answer.get("denials"):
        return "refused"
    outlook = str(answer.get("outlook", "unknown"))
    return "place" if outlook == "now" else outlook


def _cause(answer: Raw) -> str:
    """Return in a few words why no change is proposed for a pod that is not placed."""
    if any(warning["code"] in ("BERTH-251", "BERTH-252") for warning in answer.get("warnings", ())):
        return "a quota or a LimitRange denies it"
    return "it waits for others" if answer.get("outlook") == "later" else "not known" if answer.get("notChecked") else "none helps"


def _placed(cluster: Cluster, pods: list[Raw]) -> set[str]:
    """Create pods, and return the namespaces of those that get a node before Karpenter says that it buys none. They are gone again then."""
    created = {pod["metadata"]["namespace"] for pod in pods if cluster.api.try_create(pod).ok}
    bound: set[str] = set()

    def decided() -> bool:
        waiting = {pod["metadata"]["namespace"] for pod in cluster.api.list("v1", "Pod") if pod["metadata"]["name"] == "asks"}
        bound.update(
            one["metadata"]["namespace"]
            for one in cluster.api.list("v1", "Pod")
            if one["metadata"]["name"] == "asks" and one["spec"].get("nodeName")
        )
        return waiting <= bound | _given_up(cluster)

    cluster.wait_for(decided, "each pod to be bound, or Karpenter to say why not")
    for namespace in created:
        cluster.api.delete_all("v1", "Event", namespace)
        cluster.api.delete_all("v1", "Pod", namespace)
    cluster.wait_for(lambda: not any(cluster.api.list("v1", "Pod", name) for name in created), "the pods to go")
    return bound


def _given_up(cluster: Cluster) -> set[str]:
    """Return the namespaces in which Karpenter has said that it makes no node for the pod."""
    events = cluster.api.list("v1", "Event")
    mine = [one for one in events if one["source"].get("component") == "karpenter" and one["reason"] == "FailedScheduling"]
    return {one["involvedObject"]["namespace"] for one in mine if one["involvedObject"]["name"] == "asks"}


def _clear(cluster: Cluster, lanes: list[Lane]) -> None:
    """Everything of the lanes goes, and the machines that were made for them."""
    api = cluster.api
    api.delete_all("apps/v1", "DaemonSet", "kube-system")
    for lane in lanes:
        api.delete({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": lane.name}})
    for version, kind in (("karpenter.sh/v1", "NodePool"), ("karpenter.sh/v1", "NodeClaim"), ("v1", "Node")):
        for one in api.list(version, kind):
            if one["metadata"]["name"] != OTHER.name:
                api.delete({"apiVersion": version, "kind": kind, **one})
    for one in api.list("v1", "Pod", "default"):
        if one["metadata"]["name"] != OTHER.name:
            api.delete({"apiVersion": "v1", "kind": "Pod", **one}, grace=0)
    cluster.wait_for(lambda: _names(api.list("v1", "Node")) == {OTHER.name}, "the lanes' machines to go")


def _names(values: list[Raw]) -> set[str]:
    return {one["metadata"]["name"] for one in values}
