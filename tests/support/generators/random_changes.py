"""A cluster that changes at random: objects as its API server has them, and what acts of them, found in the simplest way."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from kube.labels import GPU_DISCOVERED
from policies.facts import platform_detection
from policies.facts.cluster_facts import ClusterFacts
from policies.facts.offered_devices import STACKS
from policies.policy import NodeTemplate, Policy, PolicySet
from policies.request import Request
from policies.state.objects import Change, Key
from policies.state.snapshot import Snapshot
from policies.state.updater import AUTO, Options
from policies.verdict import MODES
from tests.support.generators import random_pods, random_worlds
from tests.support.generators.random_cluster import NAMESPACES, NODES
from tests.support.generators.random_fields import chance, some
from tests.support.generators.random_worlds import World
from tests.support.generators.written_objects import Raw, sayable, written
from tests.support.snapshots import build

TEMPLATES = ("t0", "t1")
POLICIES: tuple[Key, ...] = (
    *(("ClusterGPUPolicy", "", f"p{number}") for number in range(3)),
    *(("GPUPolicy", namespace, f"p{number}") for namespace in NAMESPACES for number in range(2)),
)
OURS: tuple[Key, ...] = (*POLICIES, *(("GPUNodeTemplate", "", name) for name in TEMPLATES))
FACTS: tuple[Key, ...] = (
    *(("Namespace", "", name) for name in NAMESPACES),
    *(("Node", "", name) for name in NODES),
    *(("NodePool", "", name) for name in ("gpu-a100", "default")),
    *(("DeviceClass", "", name) for name in ("gpu.nvidia.com", "odd")),
    ("ResourceClaimTemplate", "team-a", "single-gpu"),
    ("ResourceClaim", "team-a", "pair"),
    ("ResourceClaim", "team-b", "odd"),
    ("ResourceClaimTemplate", "dev", "every"),
    *(("ResourceSlice", "", name) for name in ("s0", "s1")),
    *((kind, "", "operator") for kind in STACKS),
    *(("LocalQueue", name, "gpu") for name in ("team-a", "team-b")),
    ("ClusterQueue", "", "gpu"),
    ("ResourceFlavor", "", "hopper"),
)
WRONG: tuple[Any, ...] = (
    {"mode": "Enforec"},
    {"require": {"families": {"in": ["hoper"]}}, "labels": {}},
    {"requires": {}},
    {"labels": {"a b": "c"}, "gpus": 4},
    [],
    None,
    "Enforce",
)
"""as spec, of any of our kinds"""


@dataclass(slots=True)
class Changing:
    """``good_is_told``: every object that is wrong has its last good form in its status, as if that came with it."""

    random: Random
    options: Options
    good_is_told: bool = False
    there: dict[Key, Raw] = field(default_factory=dict)
    acting: dict[Key, Policy | NodeTemplate] = field(default_factory=dict)
    good: dict[Key, int] = field(default_factory=dict)
    """generations of what acts"""
    certain: tuple[str, ...] = ()
    strategy: str | None = None
    _version: int = 0

    def batch(self, most: int = 5) -> dict[Key, Change]:
        """Some objects changed at once."""
        chosen = dict.fromkeys(
            self.random.choice(OURS if chance(self.random, 0.65) else FACTS) for _ in range(self.random.randint(1, most))
        )
        return {key: self._changed(key) for key in chosen}

    def _changed(self, key: Key) -> Change:
        if key in self.there and chance(self.random, 0.2):
            del self.there[key]
            self.acting.pop(key, None)
            return None
        self._version += 1
        value = self._ours(key) if key in OURS else _fact(self.random, key)
        value["metadata"] |= {"resourceVersion": str(self._version)}
        self.there[key] = value
        return value

    # --- our own objects ---

    def _ours(self, key: Key) -> Raw:
        before = self.there.get(key)
        if before is not None and chance(self.random, 0.2):
            return self._touched(key, before)
        uid = f"{key}{self._version}" if before is None or chance(self.random, 0.15) else before["metadata"]["uid"]
        if before is not None and before["metadata"]["uid"] != uid:
            self.acting.pop(key, None)
        value = self._wrong(key) if chance(self.random, 0.25) else self._right(key)
        value["metadata"] |= {"uid": uid, "generation": self._version}
        return value

    def _right(self, key: Key) -> Raw:
        one = self._typed(key)
        self.acting[key], self.good[key] = one, self._version
        return written(one)

    def _typed(self, key: Key) -> Policy | NodeTemplate:
        kind, namespace, name = key
        if kind == "GPUNodeTemplate":
            return sayable(random_worlds.template(self.random, name))
        return sayable(random_worlds.policy(self.random, int(name[1:]), TEMPLATES, MODES, namespace or None))

    def _wrong(self, key: Key) -> Raw:
        """Its last good form acts, where the cluster has one."""
        _, namespace, name = key
        value: Raw = {"metadata": {"name": name, **({"namespace": namespace} if namespace else {})}}
        if chance(self.random, 0.8):
            value["spec"] = self.random.choice(WRONG)
        if key in self.acting:
            if self.good_is_told:
                value["status"] = {"lastGood": {"generation": self.good[key], "spec": written(self.acting[key])["spec"]}}
        elif chance(self.random, 0.3):
            self._tell_good(key, value)
        return value

    def _tell_good(self, key: Key, value: Raw) -> None:
        """A form that was good before anybody who looks on now was there; or nonsense in its place."""
        if chance(self.random, 0.4):
            nonsense: tuple[Any, ...] = ([], "good", {}, {"spec": self.random.choice(WRONG)}, {"spec": {"gpus": {}, "require": {}}})
            value["status"] = {"lastGood": self.random.choice(nonsense)}
            return
        one = self._typed(key)
        self.acting[key], self.good[key] = one, self._version
        value["status"] = {"lastGood": {"generation": self._version, "spec": written(one)["spec"]}}

    def _touched(self, key: Key, before: Raw) -> Raw:
        """Only its status and its version are others."""
        status = {**before.get("status", {}), "observedGeneration": self._version}
        value = {**before, "status": status, "metadata": {**before["metadata"]}}
        if key not in self.acting and chance(self.random, 0.3):
            self._tell_good(key, value)
        return value

    # --- what is to be decided ---

    def facts(self) -> ClusterFacts:
        """Of all that is there, every label of every node included."""
        return ClusterFacts.from_objects({**value, "kind": kind} for (kind, _, _), value in self.there.items() if kind not in _OUR_KINDS)

    def built(self, *, all_nodes: bool = False) -> Snapshot:
        """A snapshot made at once of all that acts. Call it once after each batch: ``auto`` rests on what was seen before."""
        facts, options = self.facts(), self.options
        seen = platform_detection.Detector(random_worlds.catalog())
        self.certain = seen.certain(seen.all(facts), self.certain)
        self.strategy = platform_detection.mig_strategy(seen.all(facts), self.strategy)
        return build(
            PolicySet(
                policies=tuple(sorted((one for one in self.acting.values() if isinstance(one, Policy)), key=lambda p: p.id)),
                templates=tuple(sorted((one for one in self.acting.values() if isinstance(one, NodeTemplate)), key=lambda t: t.name)),
            ),
            random_worlds.catalog(),
            platforms=seen.platforms(seen.all(facts), self.certain) if options.platforms == (AUTO,) else options.platforms,
            mig_strategy=self.strategy if options.mig_strategy == AUTO else options.mig_strategy,
            queues=options.queues,
            max_mode=options.max_mode,
            cluster=facts,
            all_nodes=all_nodes,
        )

    def pods(self, number: int) -> list[Request]:
        """Random ones, for a namespace that there may be."""
        world = World(policy_set=PolicySet(), platforms=("karpenter-aws",), mig_strategy="mixed", queues=(), cluster=ClusterFacts())
        return [random_pods.request(self.random, world) for _ in range(number)]


_OUR_KINDS = ("ClusterGPUPolicy", "GPUPolicy", "GPUNodeTemplate")


def options(random: Random) -> Options:
    """Some platforms, or as the nodes tell."""
    platforms = (AUTO,) if chance(random, 0.3) else some(random, ("karpenter-aws", "karpenter-azure", "gfd"), 1, 2)
    return Options(
        platforms=platforms,
        mig_strategy=random.choice(("mixed", "single", AUTO)),
        queues=random.choice(((), ("kueue",))),
        max_mode=random.choice(("Enforce", "Enforce", "Enforce", "Warn")),
    )


def _fact(random: Random, key: Key) -> Raw:
    kind, namespace, name = key
    metadata: Raw = {"name": name, **({"namespace": namespace} if namespace else {})}
    match kind:
        case "Namespace":
            labels = random.choice(({}, {"team": "research"}, {"team": "web", "tier": "batch"}, {"environment": "dev"}))
            return {"metadata": {**metadata, "labels": labels}}
        case "Node":
            labels = NODES[random.choice((name, name, *NODES))]
            started = random.choice(({}, {GPU_DISCOVERED: "1790000000"}, {GPU_DISCOVERED: "1800000000"}))
            plugged = random.choice(({}, {"nvidia.com/gpu": "0"}, {"nvidia.com/gpu": "8"}, {"amd.com/gpu": "1", "x.io/y": "2"}))
            return {
                "metadata": {**metadata, "labels": {**labels, **started, "zone": random.choice("ab")}},
                "status": {"allocatable": plugged},
            }
        case "NodePool":
            grace = random.choice((None, "20m", "1h"))
            group = random.choice(("karpenter.k8s.aws", "karpenter.azure.com", "other.example.com"))
            return {
                "metadata": metadata,
                "spec": {"template": {"spec": {"terminationGracePeriod": grace, "nodeClassRef": {"group": group}}}},
            }
        case "DeviceClass":
            driver = random.choice(("gpu.nvidia.com", "other.example.com"))
            return {"metadata": metadata, "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{driver}"'}}]}}
        case "ResourceSlice":
            pool = {"name": random.choice("pq"), "generation": random.choice((1, 2))}
            driver = random.choice(("gpu.nvidia.com", "gpu.amd.com", "dra.net"))
            return {
                "metadata": metadata,
                "spec": {"driver": driver, "nodeName": random.choice((*NODES, "")), "pool": pool, "devices": [{}]},
            }
        case "ClusterPolicy" | "GPUCluster":
            metadata["creationTimestamp"] = random.choice(("2026-10-01T00:00:00Z", None))
            group = random.choice(("nvidia.com", "nvidia.com", "kyverno.io"))
            return {"apiVersion": f"{group}/v1", "metadata": metadata, "spec": {"gfd": {"enabled": random.choice((True, False, None))}}}
        case "LocalQueue":
            return {"metadata": metadata, "spec": {"clusterQueue": random.choice(("gpu", "odd"))}}
        case "ClusterQueue":
            covered = random.choice((["nvidia.com/gpu"], ["cpu"]))
            quotas = {"coveredResources": covered, "flavors": [{"name": "hopper"}]}
            return {"metadata": metadata, "spec": {"resourceGroups": [quotas], "stopPolicy": random.choice(("None", "Hold"))}}
        case "ResourceFlavor":
            return {"metadata": metadata, "spec": {"nodeLabels": {"nvidia.com/gpu.family": random.choice(("hopper", "ampere"))}}}
    count = random.choice(({"count": 1}, {"count": 4}, {"allocationMode": "All"}))
    spec: Raw = {"devices": {"requests": [{"exactly": {"deviceClassName": random.choice(("gpu.nvidia.com", "odd")), **count}}]}}
    return {"metadata": metadata, "spec": {"spec": spec} if kind == "ResourceClaimTemplate" else spec}
