"""Where a pod can land, by the real kube-scheduler, is never less for a default, whatever its author says of nodes that Berth can't read.

Each pod is made once as its author wrote it and once as Berth edits it, on one node after another. Both tolerate every taint, so that only
the place is compared. Pods without such a word show that the same defaults do choose.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.e2e.differential import nodes
from tests.e2e.differential.forms import renamed, selecting
from tests.e2e.differential.nodes import BY_NAME, FLEET, FleetNode
from tests.support.counts import count
from tests.support.generators.random_terms import REQUIRED
from tests.support.generators.unread_words import WORDS, Word, with_word
from tests.testcluster.addons.berth import SCOPE, create_namespace, registered
from tests.testcluster.controlplane.cluster import Cluster, Options
from tests.testcluster.fixtures import control_plane

Raw = dict[str, Any]
PLAIN, THREADS = "plain", 8
NODES = 6
"""that each pod is tried on"""
DEFAULTS: dict[str, Raw] = {
    "models": {"models": {"in": ["L4", "A10G"]}},
    "capacity": {"capacity": ["spot"], "longRuns": {"over": "2h", "capacity": ["on-demand"], "unknownIsLong": True}},
    "families": {"families": {"in": ["hopper", "blackwell"]}, "capacity": ["on-demand"]},
    "slices": {"mig": {"slice": "10gb"}, "gpuMemory": {"min": 40}},
    "pool": {"nodeTemplate": "a100"},
}
"""namespace -> what is filled in there"""


def _objects() -> Iterator[Raw]:
    group = "berth.dev/v1alpha1"
    for name, default in DEFAULTS.items():
        scope = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}}
        spec = {"mode": "Enforce", "match": scope, "default": default}
        yield {"apiVersion": group, "kind": "ClusterGPUPolicy", "metadata": {"name": name}, "spec": spec}
    template = {"gpus": {"families": {"in": ["ampere"]}}, "labels": {nodes.POOL: "gpu-a100"}}
    yield {"apiVersion": group, "kind": "GPUNodeTemplate", "metadata": {"name": "a100"}, "spec": template}


@dataclass(kw_only=True, slots=True)
class Tried:
    """One pod: as its author wrote it and as Berth edits it, and the nodes that it is tried on."""

    number: int
    word: Word | None
    written: Raw
    edited: Raw
    on: Sequence[FleetNode]

    def name(self, form: str, node: FleetNode) -> str:
        return f"{form}-{self.number}-{node.name}"


@pytest.fixture(scope="module")
def alone(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster whose nodes stay as they were made."""
    with control_plane(request.session, Options(kubelets=False, controllers="namespace-controller")) as started:
        yield started


def test_a_default_never_takes_a_node_away(alone: Cluster, tmp_path: Path) -> None:
    """Beside an unreadable word each node that took the pod takes it still; without one some no longer do."""
    policies = tmp_path / "policies.yaml"
    policies.write_text("\n---\n".join(json.dumps(value) for value in _objects()))
    create_namespace(alone, PLAIN)
    for name in DEFAULTS:
        create_namespace(alone, name, {SCOPE: "places"})
    nodes.add(alone, _labels())
    with registered(alone, "places", [policies], "--platforms", "karpenter-aws,gfd"), ThreadPoolExecutor(THREADS) as pool:
        tried = list(pool.map(lambda number: _tried(alone, number), range(count(15, 650))))
        list(pool.map(lambda one: _create(alone, one), tried))
        bound = _bound(alone)
    took = {one.number: [n for n in one.on if one.name("written", n) in bound] for one in tried}
    lost = {one.number: [n.name for n in took[one.number] if one.name("edited", n) not in bound] for one in tried}
    worded = [one for one in tried if one.word is not None]
    print(f"{len(worded)} pods with an unreadable word, {sum(map(len, (took[o.number] for o in worded)))} nodes took them")
    assert not (failures := [(one.word, lost[one.number], one.edited["spec"]) for one in worded if lost[one.number]]), failures
    assert sum(bool(took[one.number]) for one in worded) > len(worded) // 4, "hardly a node takes what was made"
    assert any(lost[one.number] for one in tried if one.word is None), "no default chose a place"


def _labels() -> dict[str, dict[str, str]]:
    """Node -> labels by which some of the words hold there, some not."""
    found: dict[str, dict[str, str]] = {}
    for at, node in enumerate(FLEET):
        own = found.setdefault(node.name, {})
        for number, word in enumerate(WORDS):
            if word.key in node.labels or (at + number) % 4 == 0:
                continue
            if word.operator in ("In", "Exists"):
                own[word.key] = word.values[0] if word.values else ""
            elif word.operator in ("Gt", "Lt"):
                own[word.key] = str(int(word.values[0]) + (1 if word.operator == "Gt" else -1))
    return found


def _tried(cluster: Cluster, number: int) -> Tried:
    """One in five has no such word."""
    random = Random(f"places-{number}")
    word = None if number % 5 == 0 else random.choice(WORDS)
    pod = _pod(random, f"p{number}")
    if word is not None:
        pod = with_word(pod, word, random)
    written = cluster.api.try_create(pod, PLAIN, dry_run=True)
    edited = cluster.api.try_create(pod, random.choice(tuple(DEFAULTS)), dry_run=True)
    assert written.ok, written.message
    assert edited.ok, edited.message
    having = [node for node in FLEET if nodes.NVIDIA in node.sharing]
    return Tried(number=number, word=word, written=written.body, edited=edited.body, on=random.sample(having, NODES))


def _pod(random: Random, name: str) -> Raw:
    """One GPU, and perhaps words that are understood."""
    spec: Raw = {"containers": [{"name": "main", "image": "x", "resources": {"limits": {nodes.NVIDIA: "1"}}}]}
    if random.random() < 0.2:
        spec["nodeSelector"] = {"kubernetes.io/arch": "amd64"}
    if random.random() < 0.3:
        families = random.sample(["g5", "g6", "p4d", "p5", "g4dn"], 3)
        known = [
            {"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": families},
            {"key": "karpenter.sh/capacity-type", "operator": "NotIn", "values": ["reserved"]},
        ]
        terms = [{"matchExpressions": [one]} for one in random.sample(known, random.choice((1, 2)))]
        spec["affinity"] = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def _create(cluster: Cluster, one: Tried) -> None:
    for node in one.on:
        for form, pod in (("written", one.written), ("edited", one.edited)):
            made = selecting(renamed(pod, one.name(form, node)), {"kubernetes.io/hostname": BY_NAME[node.name].name})
            made["spec"]["tolerations"] = [{"operator": "Exists"}]
            cluster.api.create(made, PLAIN)


def _bound(cluster: Cluster) -> set[str]:
    """Names of the pods that a node took, once kube-scheduler has decided about all."""

    def undecided() -> bool:
        waiting = cluster.api.list("v1", "Pod", fieldSelector="spec.nodeName=")
        return any(not pod["status"].get("conditions") for pod in waiting)

    cluster.wait_for(lambda: not undecided(), "kube-scheduler to have decided about every pod", seconds=600)
    return {pod["metadata"]["name"] for pod in cluster.api.list("v1", "Pod") if pod["spec"].get("nodeName")}
