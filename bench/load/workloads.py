"""Workloads of a made-up cluster: pods as the API server sends them, made from the recorded reviews, each time the same ones.

Sixty workloads of teams in twenty namespaces: training and fine-tuning Jobs, PyTorchJobs, servers. Between them differ images,
commands, environments, names, labels, container counts, GPU counts, durations, and what the author asked of the node.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

Review = dict[str, Any]

REVIEWS = Path(__file__).parents[2] / "tests" / "reviews"
ZONES = ("us-west-2a", "us-west-2b", "us-west-2c", "us-west-2d")
TEAMS = tuple(f"team-{letter}" for letter in "abcdefghijklmnopqrst")
IMAGES = ("pytorch/pytorch", "nvcr.io/nvidia/nemo", "registry.example.com/train", "registry.example.com/eval", "vllm/vllm-openai")
WORDS = ("amber", "basil", "cedar", "delta", "ember", "fjord", "grove", "heron", "iris", "juniper", "krill", "lotus", "maple", "nectar")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_WIDE = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}


def recorded(name: str) -> Review:
    """A review of tests/reviews, to be changed at will."""
    review: Review = orjson.loads((REVIEWS / f"{name}.json").read_bytes())
    return review


def uid(chance: random.Random) -> str:
    """As Kubernetes makes them."""
    digits = f"{chance.getrandbits(128):032x}"
    return "-".join((digits[:8], digits[8:12], "4" + digits[13:16], "a" + digits[17:20], digits[20:]))


def workload(chance: random.Random, namespaces: int = len(TEAMS)) -> Review:
    """The review of a pod of a new workload."""
    made = chance.choices((_training, _small_job, _finetune, _server), (4, 3, 2, 3))[0](chance)
    number = chance.randrange(namespaces)
    made["request"]["namespace"] = made["request"]["object"]["metadata"]["namespace"] = namespace(number)
    _rename(made, f"{chance.choice(WORDS)}-{chance.choice(WORDS)}-{chance.randrange(100)}", chance)
    pod = made["request"]["object"]
    pod["metadata"]["labels"] |= {"team": TEAMS[number % len(TEAMS)], "app.kubernetes.io/version": f"2026.{chance.randrange(52)}"}
    pod["metadata"].setdefault("annotations", {}).update(_annotations(chance))
    for container in pod["spec"]["containers"]:
        _dress(container, chance)
    _place(pod["spec"], chance)
    return made


def namespace(number: int) -> str:
    """Its name; the team is that of ``TEAMS`` at ``number`` in turn."""
    return f"{TEAMS[number % len(TEAMS)]}-{number // len(TEAMS)}"


def pod_of(made: Review, chance: random.Random) -> Review:
    """One more pod of the same workload: another call, another index."""
    review = copy.deepcopy(made)
    review["request"]["uid"] = uid(chance)
    metadata = review["request"]["object"]["metadata"]
    metadata["labels"]["batch.kubernetes.io/job-completion-index"] = str(chance.randrange(1000))
    return review


def plain(chance: random.Random) -> Review:
    """A pod without an accelerator: what would reach us only by a registration of one's own."""
    made = recorded("pods-create-web")
    made["request"]["uid"] = uid(chance)
    made["request"]["namespace"] = made["request"]["object"]["metadata"]["namespace"] = f"{chance.choice(TEAMS)}-0"
    metadata = made["request"]["object"]["metadata"]
    metadata["name"] = made["request"]["name"] = f"{chance.choice(WORDS)}-{chance.randrange(10**6)}"
    metadata["labels"] = {"app": chance.choice(WORDS)}
    for container in made["request"]["object"]["spec"]["containers"]:
        _dress(container, chance)
    return made


def _training(chance: random.Random) -> Review:
    made = recorded("pods-create-train-llama")
    _gpus(made, chance.choice((4, 8, 8, 8)))
    if chance.random() < 0.2:
        command = {"exec": {"command": ["test", "-e", "/ckpt/alive"]}, "periodSeconds": 30, "failureThreshold": 10}
        made["request"]["object"]["spec"]["containers"][0]["livenessProbe"] = command
    if chance.random() < 0.4:
        owner = made["request"]["object"]["metadata"]["ownerReferences"][0]
        owner |= {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob"}
    return made


def _small_job(chance: random.Random) -> Review:
    made = recorded("pods-create-train-llama")
    del made["request"]["object"]["spec"]["containers"][1:]
    _gpus(made, chance.choice((1, 1, 2)))
    return made


def _finetune(chance: random.Random) -> Review:
    return recorded("pods-create-finetune")


def _server(chance: random.Random) -> Review:
    return recorded("pods-create-vllm-server")


def _gpus(made: Review, count: int) -> None:
    resources = made["request"]["object"]["spec"]["containers"][0]["resources"]
    for side in ("limits", "requests"):
        resources[side]["nvidia.com/gpu"] = str(count)


def _rename(made: Review, name: str, chance: random.Random) -> None:
    metadata = made["request"]["object"]["metadata"]
    metadata["generateName"] = f"{name}-"
    owner = metadata["ownerReferences"][0]
    owner |= {"name": name, "uid": uid(chance)}
    for key in metadata["labels"]:
        if key.endswith("job-name"):
            metadata["labels"][key] = name
        elif key.endswith("controller-uid"):
            metadata["labels"][key] = owner["uid"]


def _annotations(chance: random.Random) -> dict[str, str]:
    found = {"example.com/commit": f"{chance.getrandbits(64):016x}"}
    if chance.random() < 0.3:
        found["berth.dev/expected-duration"] = chance.choice(("30m", "45m", "90m", "6h", "24h"))
    return found


def _dress(container: dict[str, Any], chance: random.Random) -> None:
    container["image"] = f"{chance.choice(IMAGES)}:{chance.randrange(40)}.{chance.randrange(20)}"
    extra = [{"name": f"{chance.choice(WORDS).upper()}_{i}", "value": chance.choice(WORDS)} for i in range(chance.randrange(12))]
    if extra:  # an empty list is not sent
        container["env"] = [*container.get("env", ()), *extra]
    if "cpu" in container["resources"].get("requests", {}):
        container["resources"]["requests"]["cpu"] = f"{chance.randrange(1, 4000, 2)}m"  # as the API server writes it: never 2000m


def _place(spec: dict[str, Any], chance: random.Random) -> None:
    """What an author may have asked of the node: nothing, zones, a machine, a capacity, the toleration."""
    wish = chance.random()
    if wish < 0.2:
        spec["affinity"] = required(_zone(zone) for zone in chance.sample(ZONES, chance.choice((1, 2))))
    elif wish < 0.3:
        spec["affinity"] = required([{"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["p4de", "p5"]}])
    elif wish < 0.4:
        spec["nodeSelector"] = {"karpenter.sh/capacity-type": "on-demand"}
    if chance.random() < 0.3 and _WIDE not in spec["tolerations"]:
        spec["tolerations"].insert(0, dict(_WIDE))


def _zone(zone: str) -> dict[str, Any]:
    return {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}


def required(expressions: Iterator[dict[str, Any]] | list[dict[str, Any]]) -> dict[str, Any]:
    """A required node affinity with a term for each expression."""
    terms = [{"matchExpressions": [expression]} for expression in expressions]
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}
