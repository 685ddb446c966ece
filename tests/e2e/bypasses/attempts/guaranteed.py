"""Class 6: QoS class Guaranteed as kubelet sees it (pkg/apis/core/v1/helper/qos): zero is no amount, the pod's own amounts count first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.e2e.bypasses.attempts.claims import CLAIMED, claim, exactly, naming
from tests.e2e.bypasses.guardrails import marked, with_
from tests.e2e.bypasses.way import Way, changes, creates, in_turn
from tests.e2e.workloads import NVIDIA, pod
from tests.testcluster.controlplane.api import STRATEGIC, Raw


def sized(requests: Raw, limits: Raw, **spec: Any) -> Raw:
    """A pod of one GPU."""
    return pod({"requests": {NVIDIA: "1", **requests}, "limits": {NVIDIA: "1", **limits}}, **spec)


BOTH: Raw = {"cpu": "1", "memory": "1Gi"}
TWIN = sized(BOTH, BOTH)
PODS: dict[str, Raw] = {
    "no cpu of none": sized({**BOTH, "cpu": "0"}, {**BOTH, "cpu": "0"}),
    "no memory of none": sized({**BOTH, "memory": "0"}, {**BOTH, "memory": "0"}),
    "nothing at all": sized({}, {}),
    "cpu alone": sized({"cpu": "1"}, {"cpu": "1"}),
    "more cpu than requested": sized(BOTH, {**BOTH, "cpu": "2"}),
    "requests alone": sized(BOTH, {}),
    "requested as none": sized({**BOTH, "cpu": "0"}, BOTH),
    "an init container": with_(TWIN, initContainers=[{"name": "i", "image": "registry.example/i:1"}]),
    "a sidecar": with_(TWIN, initContainers=[{"name": "i", "image": "registry.example/i:1", "restartPolicy": "Always"}]),
    "another container": with_(TWIN, containers=[*TWIN["spec"]["containers"], {"name": "other", "image": "registry.example/i:1"}]),
    "the pod's own above its containers'": with_(TWIN, resources={"requests": BOTH, "limits": {"cpu": "2", "memory": "2Gi"}}),
    "the pod's own requests above its limits of cpu alone": with_(TWIN, resources={"requests": BOTH, "limits": {"cpu": "1"}}),
    "a fraction": marked(pod({"requests": {"cpu": "1"}}), annotations={"gpu-fraction": "0.5"}),
}
QOS = "Pod QOS Class may not change"
"""the API server's own denial"""
WHOLE_POD = with_(sized({}, {}), resources={"requests": BOTH, "limits": BOTH})


def _created() -> Iterator[Way]:
    for name, made in PODS.items():
        yield Way(name=name, guard="guaranteed", attack=creates(made), twin=creates(TWIN))
    yield Way(
        name="the pod's own of cpu alone",
        guard="guaranteed",
        attack=creates(with_(WHOLE_POD, resources={"limits": {"cpu": "1"}})),
        twin=creates(WHOLE_POD),
    )
    attack = in_turn(creates(claim(exactly())), creates(naming("NAME")))
    honest = pod({**CLAIMED, "requests": BOTH, "limits": BOTH})
    twin = in_turn(creates(claim(exactly())), creates(naming("NAME", made=honest)))
    yield Way(name="a claim", guard="guaranteed", attack=attack, twin=twin)


def _resized() -> Iterator[Way]:
    """The API server itself holds a pod to its QoS class (validation.ValidatePodResize): whoever is Guaranteed stays so."""
    for name, amounts in {"limits": {"limits": {"cpu": "2"}}, "requests": {"requests": {"cpu": "500m"}}}.items():
        change = {"spec": {"containers": [{"name": "main", "resources": amounts}]}}
        same = {"spec": {"containers": [{"name": "main", "resources": {"limits": {"cpu": "2"}, "requests": {"cpu": "2"}}}]}}
        attack = changes(TWIN, change, content=STRATEGIC, subresource="resize")
        twin = changes(TWIN, same, content=STRATEGIC, subresource="resize")
        yield Way(name=f"resized {name}", guard="guaranteed", attack=attack, twin=twin, codes=("BERTH-103", QOS))


WAYS = (*_created(), *_resized())
