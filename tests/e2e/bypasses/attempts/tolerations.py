"""Class 8: a forbidden taint is tolerated in whatever words, and nothing that may be is refused."""

from __future__ import annotations

from collections.abc import Iterator

from tests.e2e.bypasses.guardrails import ALLOWED, FORBIDDEN, with_
from tests.e2e.bypasses.way import Way, creates
from tests.e2e.workloads import TOLERATION, gpus, pod
from tests.testcluster.controlplane.api import Raw

WORDS: dict[str, Raw] = {
    "every taint": {"operator": "Exists"},
    "every taint that keeps off": {"operator": "Exists", "effect": "NoSchedule"},
    "every taint that evicts": {"operator": "Exists", "effect": "NoExecute"},
    "every taint for a while": {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60},
    "every value": {"key": "team", "operator": "Exists"},
    "every value, by one effect": {"key": "team", "operator": "Exists", "effect": "NoExecute"},
    "the taint": FORBIDDEN,
    "the taint, without an operator": {"key": "team", "value": "other"},
    "the taint, by every effect": {"key": "team", "operator": "Equal", "value": "other"},
    "the taint, preferred": {**FORBIDDEN, "effect": "PreferNoSchedule"},
    "the taint, for a year": {**FORBIDDEN, "effect": "NoExecute", "tolerationSeconds": 31536000},
}


def _words() -> Iterator[Way]:
    twin = creates(pod(tolerations=[TOLERATION, ALLOWED]))
    for name, toleration in WORDS.items():
        yield Way(name=name, guard="forbid", attack=creates(pod(tolerations=[toleration])), twin=twin)
    many = [{**ALLOWED, "key": f"key-{n}"} for n in range(50)]
    yield Way(name="the last of many", guard="forbid", attack=creates(pod(tolerations=[*many, FORBIDDEN])), twin=twin)
    for operator, value, within in (("Gt", "5", "9"), ("Lt", "9", "5")):
        numeric, honest = ({"key": "level", "operator": operator, "value": one, "effect": "NoSchedule"} for one in (value, within))
        attack, twin = creates(pod(tolerations=[numeric])), creates(pod(tolerations=[honest]))
        yield Way(name=operator, guard="ranges", attack=attack, twin=twin)
    for name, made in OTHERS.items():
        wrong = with_(made, tolerations=[WORDS["every taint"]])
        yield Way(name=f"every taint, by {name}", guard="forbid", attack=creates(wrong), twin=creates(with_(made, tolerations=[ALLOWED])))


OTHERS: dict[str, Raw] = {
    "a slice": pod(gpus(1, "nvidia.com/mig-1g.10gb")),
    "a DRA resource": pod(gpus(1, "deviceclass.resource.kubernetes.io/ways-gpu")),
    "a Neuron device": pod(gpus(1, "aws.amazon.com/neuron")),
    "a fraction": pod({}, {"annotations": {"gpu-fraction": "0.5"}}),
}

WAYS = tuple(_words())
