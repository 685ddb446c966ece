"""``docs/laws.md``, law 10 ("guardrails hold for every author"), on random worlds, pods, and what an author may do to them.

Who the author says that he is relaxes where the pod may run, and nothing else. What can't be read is the worst that it may be.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import jsonpatch
import pytest

from policies.engine import evaluate
from policies.facts.device_requests import RequestChoice
from policies.policy import Bounds, Match, Policy
from policies.request import Request
from policies.verdict import Verdict
from tests.support.counts import count
from tests.support.generators import random_pods, random_worlds
from tests.support.generators.random_cluster import NODES
from tests.support.generators.random_fields import chance
from tests.support.generators.random_worlds import World

Raw = dict[str, Any]
PODS_PER_WORLD = 20
SEED = 60
PLACES = frozenset(f"BERTH-{number}" for number in (121, 122, 123, 124, 125, 126, 132, 152, 153))
"""What a pod is denied with for where it would run: the node that it names with its taints (124, 132), and what it wishes for a place,
a template or a slice (152, 153), among it"""
FLOOR = "BERTH-133"
"""the one denial that an author gets out of by what the pod says: a service whose author opted out of grace"""
QUEUED = "BERTH-144"
"""denied to a pod past the queue that is required, until its author puts it there"""
KINDS = {"BERTH-102": "BERTH-101", "BERTH-112": "BERTH-111", "BERTH-118": "BERTH-111"}
"""One code in place of another for the same thing: an amount that is wrong, a count that is too much or can't be known"""


@dataclass(frozen=True, kw_only=True)
class Tried:
    """A pod, and what its author made of it; ``seed`` says the world."""

    seed: int
    world: World
    request: Request
    changed: Request
    replaced: bool = False
    """what was changed may be the very thing that was denied"""

    def codes(self) -> tuple[Counter[str], Counter[str]]:
        """Of both, by code, at both calls."""
        return codes(self.world, self.request), codes(self.world, self.changed)

    def opted_out(self) -> bool:
        """Whether a service of this author's has no floor any more: what a service is, authors write."""
        return "grace" in self.changed.pod["metadata"].get("annotations", {}).get("berth.dev/opt-out", "")

    def is_queued_otherwise(self) -> bool:
        """Return whether the author chose another queue system: BERTH-144 is denied to pods past a queue, and asks for just that."""
        chosen = [(pod["spec"].get("schedulerName"), pod["metadata"].get("labels")) for pod in (self.request.pod, self.changed.pod)]
        return chosen[0] != chosen[1]

    def denials(self) -> tuple[Counter[str], Counter[str]]:
        """Of both, by code."""
        return denied(self.world, self.request), denied(self.world, self.changed)

    def reproduction(self) -> str:
        """All that is needed to see it again."""
        before, after = self.denials()
        policies = [str(p) for p in self.world.policy_set.policies if p.namespace in (None, self.request.namespace)]
        lines = [f"Random({self.seed}), queues {self.world.queues}, platforms {self.world.platforms}, {self.request.namespace}"]
        lines += [json.dumps(self.request.pod), f"denied: {dict(before)}", json.dumps(self.changed.pod), f"denied: {dict(after)}"]
        return "\n".join([*lines, *policies])


def denied(world: World, request: Request) -> Counter[str]:
    """How often it is denied with each code: as it came, and as it is stored where it was not."""
    first = _judged(world, request)
    if first.violations:
        return _codes(first)
    stored = jsonpatch.apply_patch(deepcopy(request.pod), deepcopy(list(first.patch)))
    return _codes(_judged(world, replace(request, pod=stored, phase="validate")))


def codes(world: World, request: Request) -> Counter[str]:
    """The same of both calls, whatever the first one says or writes: what it denies a pod for hides nothing of the second."""
    return _codes(_judged(world, request)) | _codes(_judged(world, replace(request, phase="validate")))


def _judged(world: World, request: Request) -> Verdict:
    return evaluate(request, world.snapshot.facts_for(request.namespace))


def _codes(verdict: Verdict) -> Counter[str]:
    return Counter(KINDS.get(violation.code, violation.code) for violation in verdict.violations)


def _worlds(number: int) -> Iterator[tuple[int, Random, World]]:
    for seed in range(SEED, SEED + max(1, number // PODS_PER_WORLD)):
        random = Random(seed)
        world = random_worlds.world(random)
        policies = [_bare(policy) for policy in world.policy_set.policies]
        yield seed, random, random_worlds.with_policies(world, policies)


def _bare(policy: Policy) -> Policy:
    """Without what an author chooses by, as the platform's guardrails are: labels, owners, or asking for more. Nothing is mended."""
    least = policy.match.gpus.min if policy.match.gpus is not None else None
    match = Match(namespace_selector=policy.match.namespace_selector, gpus=Bounds(min=least) if least else None)
    return replace(policy, match=match, default=replace(policy.default, repair=()))


# --- who the pod is ------------------------------------------------------------------------------------------------------

Mutation = Callable[[Random, Raw], None]
_LABELS = (
    ("kueue.x-k8s.io/pod-group-name", "g"),
    ("kueue.x-k8s.io/queue-name", "q"),
    ("kueue.x-k8s.io/managed", "true"),
    ("kueue.x-k8s.io/podset", "main"),
    ("ray.io/cluster", "c"),
    ("notebook-name", "n"),
    ("serving.kserve.io/inferenceservice", "s"),
    ("training.kubeflow.org/operator-name", "pytorchjob-controller"),
    ("jobset.sigs.k8s.io/jobset-name", "j"),
    ("tier", "batch"),
)
_ANNOTATIONS = (
    ("kubernetes.io/config.mirror", "h"),
    ("kubernetes.io/config.source", "file"),
    ("gpu-fraction", "0.5"),
    ("gpu-memory", "4000"),
    ("gpu-fraction-num-devices", "1"),
    ("berth.dev/opt-out", "grace"),
    ("berth.dev/expected-duration", "1m"),
    ("berth.dev/applied", '[{"by":["ClusterGPUPolicy/p0"],"rule":"tolerations","path":"/spec/tolerations/0","is":"00000000"}]'),
    ("berth.dev/applied", '{"edits":1,"sha256":""}'),
    ("resource.kubernetes.io/pod-claim-name", "g"),
    ("scheduling.k8s.io/group-name", "g"),
)
_OWNERS = (
    ("batch/v1", "Job"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("v1", "Node"),
    ("kubeflow.org/v1", "PyTorchJob"),
    ("example.com/v1", "Anything"),
)
_SCHEDULERS = ("default-scheduler", "kai-scheduler", "runai-scheduler", "volcano", "slurm-bridge-scheduler", "mine")
_NODE_NAMES = (*NODES, "node-nowhere")


def _label(random: Random, pod: Raw) -> None:
    key, value = random.choice(_LABELS)
    pod["metadata"].setdefault("labels", {}).setdefault(key, value)


def _annotate(random: Random, pod: Raw) -> None:
    key, value = random.choice(_ANNOTATIONS)
    pod["metadata"].setdefault("annotations", {}).setdefault(key, value)


def _own(random: Random, pod: Raw) -> None:
    api_version, kind = random.choice(_OWNERS)
    owner = {"apiVersion": api_version, "kind": kind, "name": "o", "uid": "u", "controller": chance(random, 0.9)}
    pod["metadata"]["ownerReferences"] = [owner]


def _schedule(random: Random, pod: Raw) -> None:
    pod["spec"]["schedulerName"] = random.choice(_SCHEDULERS)


def _name_node(random: Random, pod: Raw) -> None:
    pod["spec"]["nodeName"] = random.choice(_NODE_NAMES)


def _match_field(random: Random, pod: Raw) -> None:
    field = {"key": "metadata.name", "operator": "In", "values": [random.choice(_NODE_NAMES)]}
    affinity = pod["spec"].setdefault("affinity", {}).setdefault("nodeAffinity", {})
    required = affinity.setdefault("requiredDuringSchedulingIgnoredDuringExecution", {})
    required["nodeSelectorTerms"] = [{**term, "matchFields": [field]} for term in required.get("nodeSelectorTerms") or [{}]]


AUTHOR_MUTATIONS: tuple[Mutation, ...] = (_label, _annotate, _own, _schedule, _name_node, _match_field)


def tried_worlds(number: int) -> Iterator[Tried]:
    """Pods, and the same with one to four words more of who they are."""
    for seed, random, world in _worlds(number):
        for _ in range(PODS_PER_WORLD):
            request = random_pods.authored(random, world)
            changed = deepcopy(request.pod)
            for mutation in random.choices(AUTHOR_MUTATIONS, k=random.randint(1, 4)):
                mutation(random, changed)
            yield Tried(seed=seed, world=world, request=request, changed=replace(request, pod=changed))


def test_who_the_author_says_he_is_relaxes_nothing_but_places() -> None:
    """Labels, annotations, owners, schedulerName, nodeName and matchFields: no other denial goes, whatever they are made."""
    seen: Counter[str] = Counter()
    for tried in tried_worlds(count(600, 200_000)):
        held = {code for code, is_free in ((FLOOR, tried.opted_out()), (QUEUED, tried.is_queued_otherwise())) if is_free}
        before, after = (Counter({code: n for code, n in found.items() if code not in PLACES | held}) for found in tried.codes())
        seen.update(before.keys())
        assert before <= after, tried.reproduction()
    wanted = (101, 103, 111, 113, 114, 115, 131, 133, 141, 142)
    assert {f"BERTH-{number}" for number in wanted} <= set(seen)


# --- what can't be read --------------------------------------------------------------------------------------------------

UNREADABLE: tuple[Any, ...] = (
    "$GPUS",
    "",
    "ten",
    "0x8",
    "1e",
    "--1",
    "1.2.3",
    "9" * 70,
    "1e999",
    True,
    [],
    {},
    "é",
)
"""Null is no such amount: the API server reads it as zero (apimachinery pkg/api/resource/quantity.go, UnmarshalJSON)."""
WORDS = ("", "soon", "2d", ".5", "1h1", "1e3h", "9" * 40 + "h", "+-1h", "h", "é", "0x1h")
NAMES = ("deviceclass.resource.kubernetes.io/odd", "deviceclass.resource.kubernetes.io/gpu.nvidia.com", "nvidia.com/gpu", "amd.com/gpu")


def _another_amount(random: Random, pod: Raw) -> bool:
    """Of a name, or of a side of one, that was not there: in a container, or in one more."""
    name, value = random.choice(NAMES), random.choice(UNREADABLE)
    containers = _containers(pod)
    if chance(random, 0.4) or any(name in side for one in containers for side in _sides(one)):
        pod["spec"]["containers"].append({"name": "more", "image": "i:1", "resources": {"limits": {name: value}}})
    else:
        random.choice(containers).setdefault("resources", {}).setdefault("limits", {})[name] = value
    return False


def _sides(container: Raw) -> Iterator[Raw]:
    resources = container.get("resources") or {}
    yield from (resources[side] for side in ("limits", "requests") if resources.get(side))


def _an_amount(random: Random, pod: Raw) -> bool:
    """In place of one that is there."""
    sides = [side for field in ("containers", "initContainers") for one in pod["spec"].get(field, ()) for side in _sides(one)]
    places = [(side, name) for side in sides for name in side if "/" in name]
    if not places:
        return _another_amount(random, pod)
    side, name = random.choice(places)
    side[name] = random.choice(UNREADABLE)
    return True


def _a_word(random: Random, pod: Raw) -> bool:
    """Of the author's, about how long or how many, where he said nothing."""
    keys = ("berth.dev/expected-duration", "karpenter.sh/do-not-disrupt", "gpu-fraction-num-devices", "gpu-fraction", "berth.dev/mig-slice")
    key = random.choice(keys)
    annotations = pod["metadata"].setdefault("annotations", {})
    if key not in annotations:
        annotations[key] = random.choice(WORDS)
    return False


def _an_unknown_claim(random: Random, pod: Raw) -> bool:
    kind = random.choice(("resourceClaimName", "resourceClaimTemplateName"))
    pod["spec"].setdefault("resourceClaims", []).append({"name": "more", kind: "nowhere"})
    return False


UNKNOWN: tuple[Callable[[Random, Raw], bool], ...] = (_another_amount, _an_amount, _a_word, _an_unknown_claim)


def unread(number: int) -> Iterator[Tried]:
    """Pods, and the same with something that can't be read put in."""
    for seed, random, world in _worlds(number):
        for _ in range(PODS_PER_WORLD):
            request = random_pods.authored(random, world)
            changed = deepcopy(request.pod)
            done = [mutation(random, changed) for mutation in random.choices(UNKNOWN, k=random.randint(1, 2))]
            yield Tried(seed=seed, world=world, request=request, changed=replace(request, pod=changed), replaced=any(done))


def test_what_cannot_be_read_is_rejected_at_least_as_before() -> None:
    """Amounts, counts, durations, annotations and claims: what was denied stays so, and with the same codes where it was left alone."""
    for tried in unread(count(300, 200_000)):
        before, after = tried.denials()
        held = Counter({code: n for code, n in before.items() if code not in PLACES})
        assert bool(after) or not held, tried.reproduction()
        if not tried.replaced:
            assert held <= after, tried.reproduction()
            # A wish for a slice is given up where it can't be judged (BERTH-210): nothing is asked for, so nothing is denied. And no
            # node has the devices of two vendors, so beside another vendor's there is no place to be judged.
            assert bool(after) or not before.keys() - {"BERTH-153"} or _of_two_vendors(tried), tried.reproduction()


def _of_two_vendors(tried: Tried) -> bool:
    """Whether the pod asks for an AMD GPU too, since something was put in."""
    before, after = (
        {name for one in _containers(pod) for side in _sides(one) for name in side} for pod in (tried.request.pod, tried.changed.pod)
    )
    return "amd.com/gpu" in after - before


def _containers(pod: Raw) -> list[Raw]:
    return [*pod["spec"]["containers"], *pod["spec"].get("initContainers", ())]


@pytest.mark.parametrize("most", [None, 8])
def test_a_claim_that_grows_is_denied_as_before(most: int | None) -> None:
    """A claim of which nobody knows how many it takes, or that may take eight, in place of one that was known. One that takes just eight
    may be one of the numbers that a policy allows, where what it was before was none."""
    for seed, random, world in _worlds(count(120, 20_000)):
        claims = {key: _grown(requests, most) for key, requests in world.cluster.claims.items()}
        grown = replace(world, cluster=replace(world.cluster, claims=claims))
        for _ in range(PODS_PER_WORLD):
            request = random_pods.authored(random, world)
            before, after = denied(world, request), denied(grown, request)
            held = Counter({code: n for code, n in before.items() if code not in PLACES})
            assert held <= after, f"Random({seed}): {json.dumps(request.pod)} {dict(before)} {dict(after)} {world.policy_set.policies}"


def _grown(requests: Sequence[Sequence[RequestChoice]], most: int | None) -> tuple[tuple[RequestChoice, ...], ...]:
    def wider(choice: RequestChoice) -> RequestChoice:
        return choice._replace(most=None if most is None or choice.most is None else max(choice.most, most))

    return tuple(tuple(map(wider, choices)) for choices in requests)
