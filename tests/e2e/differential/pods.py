"""Pods for the differential test: those of the other generators, and ones that select nodes of the fleet, so that many can be bound."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from random import Random
from typing import Any

from policies.facts.cluster_facts import ClusterFacts
from policies.policy import PolicySet
from tests.e2e.differential.nodes import FLEET, FleetNode
from tests.e2e.differential.requested import CAPACITY_KEYS, MACHINE_KEYS, SHARING_KEYS, RequestedPod
from tests.support.generators.random_fields import chance, some
from tests.support.generators.random_oddities import odd_pod
from tests.support.generators.random_pods import pod
from tests.support.generators.random_terms import REQUIRED, term, value_of
from tests.support.generators.random_worlds import World

Raw = dict[str, Any]
VOCABULARY = World(
    policy_set=PolicySet(policies=(), templates=()),
    platforms=("karpenter-aws", "gfd"),
    mig_strategy="mixed",
    queues=(),
    cluster=ClusterFacts(),
)
"""What the other generators take label keys from"""
ODD_TERMS: tuple[Raw, ...] = ({}, {"matchExpressions": []}, {"matchExpressions": None, "matchFields": []})


def generated(random: Random, name: str) -> Raw:
    """A pod of this name, or of a longer one."""
    kind = random.random()
    made = _near(random) if kind < 0.5 else pod(random, VOCABULARY) if kind < 0.8 else odd_pod(random, canonical=False)
    made.setdefault("metadata", {})["name"] = name if chance(random, 0.9) else f"{name}.{'x' * random.choice((1, 63))}.z"
    spec = made["spec"]
    if chance(random, 0.9):
        _without_invalid_probes(spec)
    if chance(random, 0.02):
        spec["schedulingGates"] = [{"name": "example.com/quota"}]
    if chance(random, 0.03):
        spec["nodeName"] = random.choice(FLEET).name
    _select_by_devices(spec)
    return made


def _without_invalid_probes(spec: Raw) -> None:
    """Most pods: an init container that ends has no probes, and a readiness probe no grace period."""
    for container in _containers(spec):
        container.get("readinessProbe", {}).pop("terminationGracePeriodSeconds", None)
    for container in spec.get("initContainers") or ():
        for probe in ("livenessProbe", "startupProbe", "readinessProbe") if container.get("restartPolicy") != "Always" else ():
            container.pop(probe, None)


def _select_by_devices(spec: Raw) -> None:
    """No node of the fleet runs full: who needs several devices at once names the nodes that have as many, in each term that selects
    something. A node's name speaks of no machine, so that defaults act as ever."""
    most = max(RequestedPod({"spec": spec}).devices.values(), default=0)
    if most <= 1 or spec.get("nodeName"):
        return
    named = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node.name for node in FLEET if node.devices >= most]}
    affinity = spec["affinity"] = spec.get("affinity") or {}
    nodes = affinity["nodeAffinity"] = affinity.get("nodeAffinity") or {}
    if not (nodes.get(REQUIRED) or {}).get("nodeSelectorTerms"):
        nodes[REQUIRED] = {"nodeSelectorTerms": [{"matchExpressions": [named]}]}
        return
    for one in nodes[REQUIRED]["nodeSelectorTerms"]:
        if one.get("matchExpressions") or one.get("matchFields"):
            one["matchExpressions"] = [*(one.get("matchExpressions") or ()), named]


def _containers(spec: Raw) -> list[Raw]:
    return [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]


# --- pods that a node of the fleet would take --------------------------------------------------------------------------


def _near(random: Random) -> Raw:
    """Asks for what some node has, and selects that node or says nothing about nodes."""
    node = random.choice([node for node in FLEET if node.sharing])
    made = pod(random, VOCABULARY)
    spec = made["spec"]
    resource = random.choice(sorted(node.sharing))
    for container in _containers(spec):
        if any("/" in name for side in (container.get("resources") or {}).values() for name in side):
            container["resources"] = {"limits": {resource: random.choice(("1", "1", "1", "2", "4"))}}
            if chance(random, 0.05):
                container["resources"] |= random.choice(({"requests": {resource: "1"}}, {"requests": {resource: "0"}}))
            if chance(random, 0.02):
                container["resources"] = {"requests": {resource: "1"}}
    for key in ("nodeSelector", "affinity", "nodeName", "resourceClaims"):
        spec.pop(key, None)
    if chance(random, 0.75):
        spec["schedulerName"] = "default-scheduler"
    kind = random.random()
    if kind < 0.3:
        return made
    if kind < 0.5:
        spec["nodeSelector"] = dict(some(random, _telling(random, node), 1, 2))
    else:
        spec["affinity"] = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": _terms(random, node)}}}
    return made


def _telling(random: Random, node: FleetNode) -> list[tuple[str, str]]:
    """Its labels; mostly those that policies are about."""
    about = {key: value for key, value in node.labels.items() if key in CAPACITY_KEYS | MACHINE_KEYS | SHARING_KEYS}
    return sorted((about if about and chance(random, 0.7) else node.labels).items())


def _terms(random: Random, node: FleetNode) -> list[Raw]:
    """One that selects the node, among others and odd ones, in any order."""
    terms: list[Raw] = [{"matchExpressions": list(_expressions(random, node))}]
    if chance(random, 0.1):
        terms[0]["matchFields"] = [{"key": "metadata.name", "operator": "In", "values": [node.name]}]
        if chance(random, 0.5):
            del terms[0]["matchExpressions"]
    if chance(random, 0.4):
        terms += [term(random, VOCABULARY) for _ in range(random.choice((1, 1, 2, 4)))]
    if chance(random, 0.1):
        terms.append(copy.deepcopy(random.choice(ODD_TERMS)))
    if chance(random, 0.3):
        other = random.choice(FLEET)
        terms.append({"matchExpressions": list(_expressions(random, other))} if other.labels else {})
    random.shuffle(terms)
    return terms


def _expressions(random: Random, node: FleetNode) -> Iterator[Raw]:
    for key, value in some(random, _telling(random, node), 1, 3):
        kind = random.random()
        if kind < 0.6:
            others = [value_of(random, key) for _ in range(random.choice((0, 0, 1, 2)))]
            yield {"key": key, "operator": "In", "values": random.sample([value, *others], 1 + len(others))}
        elif kind < 0.75:
            yield {"key": key, "operator": "NotIn", "values": [f"not-{value}"] if chance(random, 0.3) else [_another(random, key, value)]}
        elif kind < 0.9 or not value.isdecimal():
            yield {"key": key, "operator": "Exists"}
        else:
            yield {"key": key, "operator": "Gt", "values": [str(int(value) - random.choice((1, 5)))]}
    if chance(random, 0.1):
        yield {"key": "kubernetes.azure.com/agentpool", "operator": "DoesNotExist"}
    if chance(random, 0.1):  # what a node lacks until it is discovered, or for ever
        key = random.choice(("nvidia.com/gpu.family", "nvidia.com/gpu.product"))
        yield random.choice(
            ({"key": key, "operator": "DoesNotExist"}, {"key": key, "operator": "NotIn", "values": [value_of(random, key)]})
        )


def _another(random: Random, key: str, value: str) -> str:
    found = value_of(random, key)
    return found if found != value else f"not-{value}"
