"""Class 0a, and ``berth.dev/applied`` forged: a review that can't be read, or costs an answer, is no way past an entry at Ignore.

What is sent to a webhook is what the API server stores: built-in types have no field that nobody knows, so what is deep or odd goes into
managedFields, which are kept as they came, or into the parameters of a claim's driver.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

from tests.e2e.bypasses.attempts.claims import claim, exactly, naming
from tests.e2e.bypasses.guardrails import marked, with_
from tests.e2e.bypasses.way import KEPT_OFF, Attempt, Outcome, Tenant, Way, creates, in_turn, outcome
from tests.e2e.workloads import APPLIED, gpus, pod
from tests.testcluster.controlplane.api import Raw

DEEP = 1100
"""levels: orjson refuses from 1,024 on, the API server from 10,000"""
US = "ClusterGPUPolicy/ways-grace"


def entry(path: str, value: object) -> str:
    """What says that a policy in force here wrote this value."""
    digest = hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:8]
    return json.dumps([{"by": [US], "rule": "tolerations", "path": path, "is": digest}])


FORGED: dict[str, str] = {
    "a path of 5,000 digits": entry(f"/spec/tolerations/{'9' * 5000}", 1),
    "a path of digits that are none": entry("/spec/tolerations/\u00b2", 1),
    "a path below zero": entry("/spec/tolerations/-1", 1),
    "no JSON": "[",
    "deep JSON": "[" * DEEP + "]" * DEEP,
    "a number": "1" * 5000,
    "numbers that are none": "[NaN, 1e400, -Infinity]",
    "text that is none": '["\\ud800"]',
    "other shapes": '[{"by": 1, "rule": [], "path": {}}, null, 3, "x", [[]]]',
}


def _forged() -> Iterator[Way]:
    """On pods that are wrong for another reason: of devices (an entry at Fail) and of fractions and claims (Ignore)."""
    long = {"terminationGracePeriodSeconds": 3600}
    for name, text in FORGED.items():
        fraction, claimed = (marked(made, annotations={APPLIED: text}) for made in (FRACTION, naming("NAME")))
        plain = marked(pod(), annotations={APPLIED: text})
        yield Way(name=f"applied is {name}", guard="grace", attack=creates(with_(plain, **long)), twin=creates(plain))
        yield Way(name=f"applied of a fraction is {name}", guard="grace", attack=creates(with_(fraction, **long)), twin=creates(fraction))
        attack, twin = (in_turn(creates(claim(exactly())), creates(one)) for one in (with_(claimed, **long), claimed))
        yield Way(name=f"applied of a pod with a claim is {name}", guard="grace", attack=attack, twin=twin)


FRACTION = marked(pod({}), annotations={"gpu-fraction": "0.5"})


def _blamed() -> Iterator[Way]:
    """An entry that names a policy as the writer of what the author wrote is not kept."""
    image = entry("/spec/containers/0/image", "registry.example/main:1")

    def tried(tenant: Tenant) -> Outcome:
        found = creates(marked(pod(), annotations={APPLIED: image}))(tenant)
        kept = "/spec/containers/0/image" in found.stored.get("metadata", {}).get("annotations", {}).get(APPLIED, "")
        return Outcome(passed=kept or not found.passed, message=found.message or f"{KEPT_OFF}: it is not recorded", stored=found.stored)

    yield Way(name="applied blames a policy", guard="grace", attack=tried, twin=creates(pod()), codes=(KEPT_OFF,))


def sent(value: Raw, **raw: str) -> Attempt:
    """Created from text, in which each name in ``raw`` stands for JSON that json would not write."""

    def tried(tenant: Tenant) -> Outcome:
        text = json.dumps(value).replace("NAME", tenant.name)
        for name, json_text in raw.items():
            text = text.replace(f'"{name}"', json_text)
        path = tenant.api.path_of(value, tenant.namespace, named=False)
        return outcome(tenant.api.call("POST", path, text.encode()))

    return tried


ODD: dict[str, str] = {
    "deep": '{"a":' * DEEP + "1" + "}" * DEEP,
    "deep lists": '{"a":' + "[" * DEEP + "]" * DEEP + "}",
    "half a character": '{"a": "\\ud800"}',
    "two of a key": '{"a": 1, "a": 2}',
}


def _odd() -> Iterator[Way]:
    for name, text in ODD.items():
        configured = claim(exactly(8))
        configured["spec"]["devices"]["config"] = [{"opaque": {"driver": "gpu.nvidia.com", "parameters": "ODD"}}]
        honest = claim(exactly(2))
        honest["spec"]["devices"]["config"] = configured["spec"]["devices"]["config"]
        attack, twin = sent(configured, ODD=text), sent(honest, ODD=text)
        yield Way(name=f"a claim's parameters are {name}", guard="max", attack=attack, twin=twin, codes=("BERTH-1", "BERTH-0"))
        attack = in_turn(sent(configured, ODD=text), creates(naming("NAME")))
        yield Way(name=f"a pod's claim's parameters are {name}", guard="max", attack=attack, twin=twin, codes=("BERTH-1", "BERTH-0"))
    yield from _managed()


def _managed() -> Iterator[Way]:
    deep = '{"f:metadata":' + '{"f:a":' * DEEP + "{}" + "}" * DEEP + "}"
    entry = {
        "manager": "m",
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": "ODD",
    }
    for name, made, wrong in (
        ("a pod", pod(), pod(gpus(8))),
        ("a fraction", FRACTION, marked(FRACTION, annotations={"gpu-fraction-num-devices": "8"})),
    ):
        attack, twin = (sent(marked(one, managedFields=[entry]), ODD=deep) for one in (wrong, made))
        yield Way(name=f"{name}'s managedFields are deep", guard="max", attack=attack, twin=twin, codes=("BERTH-11", "BERTH-0"))


def _large() -> Iterator[Way]:
    """Within what etcd takes: 1.5 MiB."""
    words = {f"x{n}": "y" * 200_000 for n in range(1)}
    made = {"annotations": lambda n: marked(FRACTION, annotations=words), "containers": _containers, "tolerations": _tolerations}
    for name, of in made.items():  # as many as there may be are honest, and more are not judged
        attack = creates(with_(of(3000), terminationGracePeriodSeconds=3600))
        yield Way(name=f"a fraction with many {name}", guard="grace", attack=attack, twin=creates(of(30)), codes=("BERTH-141", "BERTH-0"))


def _containers(number: int) -> Raw:
    return with_(FRACTION, containers=[{"name": f"c{n}", "image": "i:1"} for n in range(number)])


def _tolerations(number: int) -> Raw:
    return with_(FRACTION, tolerations=[{"key": f"k{n}", "operator": "Exists"} for n in range(number)])


WAYS = (*_forged(), *_blamed(), *_odd(), *_large())
