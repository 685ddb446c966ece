"""Class 0a, and ``berth.dev/applied`` forged: a review that can't be read, or costs an answer, is no way past an entry at Ignore.

What is sent to a webhook is what the API server stores: built-in types have no field that nobody knows, so what is deep or odd goes into
managedFields, which are kept as they came, or into the parameters of a claim's driver.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from copy import deepcopy

from tests.e2e.bypasses.attempts.claims import claim, exactly, naming, template
from tests.e2e.bypasses.guardrails import ALLOWED, marked, with_
from tests.e2e.bypasses.way import KEPT_OFF, Attempt, Outcome, Tenant, Way, creates, in_turn, outcome
from tests.e2e.workloads import APPLIED, gpus, pod
from tests.testcluster.controlplane.api import Raw

DEEP = 1100
"""levels: orjson denies from 1,024 on, the API server from 10,000"""
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


BULK: Raw = {"a": [[] for _ in range(2_400)]}
"""10 KiB of 4,800 commas and brackets, within what the API server takes as parameters of a driver"""


def long(made: Raw, times: int = 26) -> Raw:
    """The claim or template, longer than what is read to the end; no name in it looks like a GPU's."""
    value = deepcopy(made)
    devices = value["spec"].get("spec", value["spec"])["devices"]
    devices["config"] = [{"opaque": {"driver": "x.example", "parameters": BULK}} for _ in range(times)]
    for number, request in enumerate(devices["requests"]):
        request["name"] = f"r{number}"
    return value


def _long() -> Iterator[Way]:
    """A claim, or its template, by itself and with its pod. One that is long and can be read is honest."""
    codes = ("BERTH-1", "BERTH-0")
    honest = creates(long(claim(exactly(1)), times=2))
    by_class = {
        "families": ("ways-odd", "ways-plain", "ways-gpu"),
        "sharing": ("ways-odd", "ways-plain", "h100"),
        "models": ("ways-plain",),
    }
    for guard, classes in {**by_class, "memory": ("ways-plain",), "max": ("ways-plain",)}.items():
        for of in classes:
            attack = creates(long(claim(exactly(8, of))))
            yield Way(name=f"a long claim of the class {of}", guard=guard, attack=attack, twin=honest, codes=codes)
    templated = {times: creates(long(template(exactly(1, "ways-plain")), times=times)) for times in (2, 26)}
    yield Way(name="a long template", guard="families", attack=templated[26], twin=templated[2], codes=codes)
    pods = {by: creates(naming("NAME", by=by)) for by in ("resourceClaimName", "resourceClaimTemplateName")}
    attack, twin = (in_turn(one, pods["resourceClaimTemplateName"]) for one in (templated[26], templated[2]))
    yield Way(name="a long template, and its pod", guard="models", attack=attack, twin=twin, codes=codes)
    twin = in_turn(honest, pods["resourceClaimName"])
    for name, guard, request in (
        ("", "sharing", exactly(1, "ways-odd")),
        (" of eight", "max", exactly(8, "ways-plain")),
        (" of others' devices", "max", exactly(1, "ways-odd", adminAccess=True)),
    ):
        attack = in_turn(creates(long(claim(request))), pods["resourceClaimName"])
        yield Way(name=f"a long claim{name}, and its pod", guard=guard, attack=attack, twin=twin, codes=codes)
    attack = creates(long(claim(exactly(1, "ways-plain", tolerations=[{"operator": "Exists"}]))))
    twin = creates(long(claim(exactly(1, tolerations=[ALLOWED])), times=2))
    yield Way(name="a long claim tolerates every taint", guard="forbid", attack=attack, twin=twin, codes=codes)


def _doubled() -> Iterator[Way]:
    """Of two values of one key the API server takes the last."""
    made = pod(containers=[{"name": "main", "image": "registry.example/main:1", "resources": "ODD"}])
    attack, twin = (
        sent(made, ODD=f'{{"limits": {{"nvidia.com/gpu": "{first}"}}, "limits": {{"nvidia.com/gpu": "{last}"}}}}')
        for first, last in ((1, 8), (8, 1))
    )
    yield Way(name="two of a key", guard="max", attack=attack, twin=twin)


WAYS = (*_forged(), *_blamed(), *_odd(), *_large(), *_long(), *_doubled())
