"""Make up workloads of a cluster: pods as the API server sends them, made from the recorded reviews, the same ones each time.

Sixty workloads of teams in twenty namespaces: training and fine-tuning Jobs, PyTorchJobs, servers. They differ in images, commands,
environments, names, labels, containers, GPUs, durations, and in what the author requires of the node.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson

Review = dict[str, Any]

REVIEWS = Path(__file__).parents[2] / "tests" / "reviews"
TEAMS = tuple(f"team-{letter}" for letter in "abcdefghijklmnopqrst")
IMAGES = ("pytorch/pytorch", "nvcr.io/nvidia/nemo", "registry.example.com/train", "registry.example.com/eval", "vllm/vllm-openai")
WORDS = ("amber", "basil", "cedar", "delta", "ember", "fjord", "grove", "heron", "iris", "juniper", "krill", "lotus", "maple", "nectar")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_WIDE = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}


def recorded(name: str) -> Review:
    """Return a review of tests/reviews, to be changed at will."""
    review: Review = orjson.loads((REVIEWS / f"{name}.json").read_bytes())
    return review


def namespace(number: int) -> str:
    """Return the name of a namespace, which belongs to one of ``TEAMS`` in turn."""
    return f"{TEAMS[number % len(TEAMS)]}-{number // len(TEAMS)}"


def move(review: Review, name: str) -> None:
    """Put the pod into a namespace."""
    review["request"]["namespace"] = review["request"]["object"]["metadata"]["namespace"] = name


def workload(chance: random.Random, namespaces: int = len(TEAMS)) -> Review:
    """Return the review of a pod of a new workload."""
    kind = chance.choices(("training", "small", "finetune", "vllm-server"), (4, 3, 2, 3))[0]
    review = recorded(f"pods-create-{kind}") if kind in ("finetune", "vllm-server") else _training(chance, is_small=kind == "small")
    number = chance.randrange(namespaces)
    move(review, namespace(number))
    pod = review["request"]["object"]
    _rename(pod["metadata"], f"{chance.choice(WORDS)}-{chance.choice(WORDS)}-{chance.randrange(100)}", chance)
    pod["metadata"]["labels"] |= {"team": TEAMS[number % len(TEAMS)], "app.kubernetes.io/version": f"2026.{chance.randrange(52)}"}
    annotations = pod["metadata"].setdefault("annotations", {})
    annotations["example.com/commit"] = f"{chance.getrandbits(64):016x}"
    if chance.random() < 0.3:
        annotations["berth.dev/expected-duration"] = chance.choice(("30m", "45m", "90m", "6h", "24h"))
    for container in pod["spec"]["containers"]:
        _vary(container, chance)
    _place(pod["spec"], chance)
    return review


def pod_of(template: Review, chance: random.Random) -> Review:
    """Return one more pod of the same workload: another call, another index."""
    review = copy.deepcopy(template)
    review["request"]["uid"] = _uid(chance)
    review["request"]["object"]["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] = str(chance.randrange(1000))
    return review


def plain(chance: random.Random) -> Review:
    """Return a pod without an accelerator, which reaches Berth only by a registration of one's own."""
    review = recorded("pods-create-web")
    review["request"]["uid"] = _uid(chance)
    move(review, f"{chance.choice(TEAMS)}-0")
    metadata = review["request"]["object"]["metadata"]
    metadata["name"] = review["request"]["name"] = f"{chance.choice(WORDS)}-{chance.randrange(10**6)}"
    metadata["labels"] = {"app": chance.choice(WORDS)}
    for container in review["request"]["object"]["spec"]["containers"]:
        _vary(container, chance)
    return review


def required(terms: Iterable[list[dict[str, Any]]]) -> dict[str, Any]:
    """Return a required node affinity with these terms, each a list of expressions."""
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": expressions} for expressions in terms]}}}


def _training(chance: random.Random, *, is_small: bool) -> Review:
    review = recorded("pods-create-train-llama")
    pod = review["request"]["object"]
    if is_small:
        del pod["spec"]["containers"][1:]
    resources = pod["spec"]["containers"][0]["resources"]
    gpus = str(chance.choice((1, 1, 2) if is_small else (4, 8, 8, 8)))
    resources["limits"]["nvidia.com/gpu"] = resources["requests"]["nvidia.com/gpu"] = gpus
    if not is_small and chance.random() < 0.2:
        command = {"exec": {"command": ["test", "-e", "/ckpt/alive"]}, "periodSeconds": 30, "failureThreshold": 10}
        pod["spec"]["containers"][0]["livenessProbe"] = command
    if not is_small and chance.random() < 0.4:
        pod["metadata"]["ownerReferences"][0] |= {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob"}
    return review


def _rename(metadata: dict[str, Any], name: str, chance: random.Random) -> None:
    metadata["generateName"] = f"{name}-"
    owner = metadata["ownerReferences"][0]
    owner |= {"name": name, "uid": _uid(chance)}
    for key in metadata["labels"]:
        if key.endswith(("job-name", "controller-uid")):
            metadata["labels"][key] = name if key.endswith("job-name") else owner["uid"]


def _vary(container: dict[str, Any], chance: random.Random) -> None:
    container["image"] = f"{chance.choice(IMAGES)}:{chance.randrange(40)}.{chance.randrange(20)}"
    extra = [{"name": f"{chance.choice(WORDS).upper()}_{i}", "value": chance.choice(WORDS)} for i in range(chance.randrange(12))]
    if extra:  # an empty list is not sent
        container["env"] = [*container.get("env", ()), *extra]
    if "cpu" in container["resources"].get("requests", {}):
        container["resources"]["requests"]["cpu"] = f"{chance.randrange(1, 4000, 2)}m"  # as the API server writes it: never 2000m


def _place(spec: dict[str, Any], chance: random.Random) -> None:
    """Write what an author may require of the node: nothing, zones, a machine, a capacity; and the toleration."""
    wish = chance.random()
    if wish < 0.2:
        zones = chance.sample([f"us-west-2{letter}" for letter in "abcd"], chance.choice((1, 2)))
        spec["affinity"] = required([{"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}] for zone in zones)
    elif wish < 0.3:
        spec["affinity"] = required([[{"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["p4de", "p5"]}]])
    elif wish < 0.4:
        spec["nodeSelector"] = {"karpenter.sh/capacity-type": "on-demand"}
    if chance.random() < 0.3 and _WIDE not in spec["tolerations"]:
        spec["tolerations"].insert(0, dict(_WIDE))


def _uid(chance: random.Random) -> str:
    digits = f"{chance.getrandbits(128):032x}"
    return "-".join((digits[:8], digits[8:12], "4" + digits[13:16], "a" + digits[17:20], digits[20:]))
