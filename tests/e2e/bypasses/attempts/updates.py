"""Class 2: an update adds what a creation may not have, by every kind of call, to every kind of pod."""

from __future__ import annotations

from collections.abc import Iterator

from tests.e2e.bypasses.attempts.claims import claim, exactly, naming
from tests.e2e.bypasses.attempts.tolerations import WORDS
from tests.e2e.bypasses.attempts.words import FOREVER, GO
from tests.e2e.bypasses.guardrails import ALLOWED, DO_NOT_DISRUPT, FORBIDDEN, H100_NODE, marked, with_
from tests.e2e.bypasses.way import GATE, Attempt, Way, changes, creates, in_turn, replaces
from tests.e2e.workloads import gpus, pod
from tests.testcluster.controlplane.api import JSON_PATCH, STRATEGIC, Raw

PODS: dict[str, Raw] = {
    "a pod": pod(),
    "a gated pod": pod(schedulingGates=[GATE]),
    "a pod with a node": pod(nodeName=H100_NODE),
    "a fraction": marked(pod({}), annotations={"gpu-fraction": "0.5"}),
    "a slice": pod(gpus(1, "nvidia.com/mig-1g.10gb")),
    "a DRA resource": pod(gpus(1, "deviceclass.resource.kubernetes.io/ways-gpu")),
}
MARK = {"metadata": {"labels": {"tests.berth.dev/marked": "so"}}}


def annotating(value: str) -> Raw:
    return {"metadata": {"annotations": {DO_NOT_DISRUPT: value}}}


def _protections() -> Iterator[Way]:
    twin = changes(pod(), annotating("12h"))
    for name, made in PODS.items():
        for value in ("true", "48h"):
            attack = changes(made, annotating(value))
            yield Way(name=f"{name} is annotated {value}", guard="protection", attack=attack, twin=changes(made, annotating("12h")))
    for value in GO[1:5]:
        yield Way(name=f"a pod is annotated {value}", guard="protection", attack=changes(pod(), annotating(value)), twin=twin)
    longer = changes(marked(pod(), annotations={DO_NOT_DISRUPT: "1h"}), annotating("true"))
    yield Way(name="a short one is made long", guard="protection", attack=longer, twin=twin)
    for name, (where, key, value) in FOREVER.items():
        yield Way(
            name=f"{name} word", guard="protection", attack=changes(pod(), {"metadata": {where: {key: value}}}), twin=changes(pod(), MARK)
        )
    claimed = in_turn(creates(claim(exactly())), changes(naming("NAME"), annotating("true")))
    yield Way(name="a pod with a claim", guard="protection", attack=claimed, twin=twin)
    yield from _calls(twin)


def _calls(twin: Attempt) -> Iterator[Way]:
    """kubectl annotate, apply, edit and replace."""
    patch = [{"op": "add", "path": "/metadata/annotations", "value": {DO_NOT_DISRUPT: "true"}}]
    calls: dict[str, Attempt] = {
        "strategic merge patch": changes(pod(), annotating("true"), content=STRATEGIC),
        "JSON patch": changes(pod(), patch, content=JSON_PATCH),
        "PUT": replaces(pod(), lambda value: value["metadata"].setdefault("annotations", {}).update({DO_NOT_DISRUPT: "true"})),
    }
    for name, attempt in calls.items():
        yield Way(name=f"by {name}", guard="protection", attack=attempt, twin=twin)


def _tolerations() -> Iterator[Way]:
    def tolerating(made: Raw, *added: Raw) -> Attempt:
        return replaces(made, lambda value: value["spec"].setdefault("tolerations", []).extend(added))

    twin = tolerating(pod(), ALLOWED)
    for name, toleration in WORDS.items():
        yield Way(name=f"a pod tolerates {name}", guard="forbid", attack=tolerating(pod(), toleration), twin=twin)
    for name, made in PODS.items():
        yield Way(name=f"{name} tolerates the taint", guard="forbid", attack=tolerating(made, FORBIDDEN), twin=tolerating(made, ALLOWED))
    claimed = in_turn(creates(claim(exactly())), tolerating(naming("NAME"), FORBIDDEN))
    yield Way(name="a pod with a claim tolerates the taint", guard="forbid", attack=claimed, twin=twin)
    once = with_(pod(), tolerations=[{**ALLOWED, "effect": "NoExecute", "tolerationSeconds": 10}])
    yield Way(name="one that was there, and another", guard="forbid", attack=tolerating(once, FORBIDDEN), twin=tolerating(once, ALLOWED))


def _both() -> Iterator[Way]:
    """A change that is none of our business hides one that is."""

    def busy(value: Raw) -> None:
        value["metadata"].setdefault("labels", {})["tests.berth.dev/marked"] = "so"
        value["metadata"].setdefault("annotations", {})[DO_NOT_DISRUPT] = "true"
        value["spec"]["containers"][0]["image"] = "registry.example/other:1"

    def honest(value: Raw) -> None:
        value["spec"]["containers"][0]["image"] = "registry.example/other:1"

    yield Way(name="among other changes", guard="protection", attack=replaces(pod(), busy), twin=replaces(pod(), honest))


WAYS: tuple[Way, ...] = (*_protections(), *_tolerations(), *_both())
