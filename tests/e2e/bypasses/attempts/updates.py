"""Class 2: an update adds what a creation may not have, by every kind of call, to every kind of pod."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.e2e.bypasses.attempts.claims import claim, exactly, naming
from tests.e2e.bypasses.attempts.places import HOST
from tests.e2e.bypasses.attempts.words import FOREVER, GO, TOLERATIONS
from tests.e2e.bypasses.guardrails import (
    ALLOWED,
    DO_NOT_DISRUPT,
    FORBIDDEN,
    H100_NODE,
    P5_NODE,
    PLACES,
    SPOT_NODE,
    T4_NODE,
    marked,
    queued,
    with_,
)
from tests.e2e.bypasses.steps import APPLY, MARK, annotates, own, patches, placed, tolerates, ungates
from tests.e2e.bypasses.way import GATE, KEPT_OFF, Attempt, Way, changes, creates, in_turn, replaces
from tests.e2e.workloads import TOLERATION, gpus, pod
from tests.testcluster.controlplane.api import JSON_PATCH, STRATEGIC, Raw

PODS: dict[str, Raw] = {
    "a pod": pod(),
    "a gated pod": pod(schedulingGates=[GATE]),
    "a pod with a node": pod(nodeName=H100_NODE),
    "a fraction": marked(pod({}), annotations={"gpu-fraction": "0.5"}),
    "a slice": pod(gpus(1, "nvidia.com/mig-1g.10gb")),
    "a DRA resource": pod(gpus(1, "deviceclass.resource.kubernetes.io/ways-gpu")),
}


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
    for name, toleration in TOLERATIONS.items():
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


def _applied() -> Iterator[Way]:
    """By server-side apply and by JSON patch."""
    twin = in_turn(creates(own(pod())), annotates(**{DO_NOT_DISRUPT: "12h"}))
    protected: Raw = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "NAME", "annotations": {DO_NOT_DISRUPT: "true"}}}
    applies = patches("Pod", protected, content=APPLY, fieldManager="m", force="true")
    yield Way(name="by server-side apply", guard="protection", attack=in_turn(creates(own(pod())), applies), twin=twin)
    attack, twin = (patches("Pod", own({**pod(gpus(n)), "metadata": {}}), content=APPLY, fieldManager="m") for n in (8, 4))
    yield Way(name="created by server-side apply", guard="max", attack=attack, twin=twin)
    attack, twin = (
        in_turn(creates(own(pod())), patches("Pod", [{"op": "add", "path": "/spec/tolerations/-", "value": one}], content=JSON_PATCH))
        for one in (FORBIDDEN, ALLOWED)
    )
    yield Way(name="a toleration by JSON patch", guard="forbid", attack=attack, twin=twin)


HALF = {"gpu-fraction": "0.5"}
GONE = {"gpu-fraction": None}
MEMORY = "nvidia.com/container.main.gpu-memory.request"


def half(made: Raw | None = None, **spec: Any) -> Raw:
    """A pod that asks for half a GPU, and for nothing else unless it is given."""
    return own(marked(with_(made or pod({}), **spec), annotations=HALF))


def _taken_off() -> Iterator[Way]:
    """The words that ask for a part of a GPU go in the patch that goes too far, and may come back."""
    longer, shorter = {DO_NOT_DISRUPT: "true"}, {DO_NOT_DISRUPT: "12h"}
    back = annotates(**HALF)
    # no node has the label: once the scheduler binds it, the fraction counts on that node, and the twin is denied by chance
    by_memory = own(marked(pod({}, nodeSelector={"tests.berth.dev/nowhere": "true"}), annotations={MEMORY: "4Gi"}))
    running = half(tolerations=[TOLERATION], nodeSelector={HOST: H100_NODE})
    for name, steps, off in (
        ("its fraction goes", (creates(half()),), GONE),
        ("its memory of a GPU goes", (creates(by_memory),), {MEMORY: None}),
        ("its fraction goes while it runs", (creates(running), placed), GONE),
    ):
        attack, twin = (in_turn(*steps, annotates(**off, **words)) for words in (longer, shorter))
        yield Way(name=f"protected as {name}", guard="protection", attack=attack, twin=twin)
    attack, twin = (in_turn(creates(half()), annotates(**GONE, **words), back) for words in (longer, shorter))
    yield Way(name="protected as its fraction goes, which comes back", guard="protection", attack=attack, twin=twin)
    for name, more in (("", ()), (", which comes back", (back,))):
        attack, twin = (in_turn(creates(half()), tolerates(one, annotations=GONE), *more) for one in (FORBIDDEN, ALLOWED))
        yield Way(name=f"tolerates the taint as its fraction goes{name}", guard="forbid", attack=attack, twin=twin)
        queue = patches("Pod", {"metadata": {"annotations": GONE, "labels": {"kai.scheduler/queue": "other"}}})
        made = creates(half(queued("kai", "team-a", pod({}))))
        attack, twin = in_turn(made, queue, *more), in_turn(made, annotates(**GONE), *more)
        yield Way(name=f"leaves its queue as its fraction goes{name}", guard="kai", attack=attack, twin=twin)


def _emptied() -> Iterator[Way]:
    """They stay, and ask for nothing that anybody gives."""
    for value in ("", "0"):
        empty = {"gpu-fraction": value}
        attack, twin = (in_turn(creates(half()), annotates(**one)) for one in ({**empty, DO_NOT_DISRUPT: "true"}, {DO_NOT_DISRUPT: "12h"}))
        yield Way(name=f"protected as its fraction becomes {value!r}", guard="protection", attack=attack, twin=twin)
        attack = in_turn(creates(half()), tolerates(FORBIDDEN, annotations=empty))
        twin = in_turn(creates(half()), tolerates(ALLOWED))
        yield Way(name=f"tolerates the taint as its fraction becomes {value!r}", guard="forbid", attack=attack, twin=twin)
        made = creates(half(queued("kai", "team-a", pod({}))))
        attack = in_turn(made, patches("Pod", {"metadata": {"annotations": empty, "labels": {"kai.scheduler/queue": "other"}}}))
        yield Way(
            name=f"leaves its queue as its fraction becomes {value!r}", guard="kai", attack=attack, twin=in_turn(made, patches("Pod", MARK))
        )


def _asked_first() -> Iterator[Way]:
    """What is wrong for a GPU pod alone is there first, the fraction comes later; or its number takes the pod out of a match."""
    honest = creates(own(pod({})))
    for guard, first in (
        ("protection", own(marked(pod({}), annotations={DO_NOT_DISRUPT: "true"}))),
        ("forbid", own(pod({}, tolerations=[FORBIDDEN]))),
        ("guaranteed", own(pod({"requests": {"cpu": "1"}}))),
        ("runtime", own(pod({}, activeDeadlineSeconds=7200))),
    ):
        right: dict[str, Raw] = {
            "guaranteed": own(pod({side: {"cpu": "1", "memory": "1Gi"} for side in ("requests", "limits")})),
            "runtime": own(pod({}, activeDeadlineSeconds=600)),
        }
        twin = in_turn(creates(right[guard]) if guard in right else honest, annotates(**HALF))
        yield Way(name="wrong first, then a fraction", guard=guard, attack=in_turn(creates(first), annotates(**HALF)), twin=twin)
    attack, twin = (in_turn(honest, annotates(**HALF, **{"gpu-fraction-num-devices": number})) for number in ("3", "2"))
    yield Way(name="three fractions by an update", guard="one-of", attack=attack, twin=twin)
    for guard, before, after in (("small", "8", "1"), ("large", "2", "8")):
        attack, twin = (
            in_turn(
                creates(half(terminationGracePeriodSeconds=seconds)),
                annotates(**{"gpu-fraction-num-devices": before}),
                annotates(**{"gpu-fraction-num-devices": after}),
            )
            for seconds in (3600, 600)
        )
        yield Way(name=f"{before} fractions become {after}", guard=guard, attack=attack, twin=twin)


def _put_on() -> Iterator[Way]:
    """A pod that nobody judged asks for a part of a GPU later, or for a part of its own."""
    plain = creates(own(pod({})))
    for name, words, honest in (
        ("of eight devices", {**HALF, "gpu-fraction-num-devices": "8"}, {**HALF, "gpu-fraction-num-devices": "2"}),
        ("by memory of eight containers", {f"acme/x.c{n}.gpu-memory.portion.limit": "0.5" for n in range(8)}, {MEMORY: "4Gi"}),
    ):
        attack, twin = (in_turn(plain, annotates(**one)) for one in (words, honest))
        yield Way(name=f"a fraction {name} by an update", guard="max", attack=attack, twin=twin, codes=("BERTH-1",))
    attack, twin = (in_turn(creates(own(pod())), annotates(**one)) for one in (HALF, {"note": "x"}))
    yield Way(name="a part of its GPU by an update", guard="sharing", attack=attack, twin=twin)
    attack, twin = (in_turn(creates(own(pod({}, terminationGracePeriodSeconds=seconds))), annotates(**HALF)) for seconds in (3600, 300))
    yield Way(name="a fraction by an update, after a long grace", guard="grace", attack=attack, twin=twin)
    for guard, outside in (("families", T4_NODE), ("capacity", SPOT_NODE)):
        spec: Raw = {"schedulingGates": [GATE], "tolerations": [TOLERATION]}
        gated = creates(own(with_(pod({}), nodeSelector={HOST: outside}, **spec)))
        attack = in_turn(gated, annotates(**HALF), ungates(), placed)
        twin = in_turn(creates(half(nodeSelector={HOST: P5_NODE}, **spec)), annotates(**{"gpu-fraction": "0.25"}), ungates(), placed)
        codes = (*PLACES, "BERTH-123", KEPT_OFF)
        yield Way(name="a fraction by an update, on a node outside", guard=guard, attack=attack, twin=twin, codes=codes)
    gated = creates(own(pod(schedulingGates=[GATE], tolerations=[TOLERATION])))
    attack, twin = (
        in_turn(gated, patches("Pod", {"spec": {"nodeSelector": {HOST: node}}}), ungates(), placed) for node in (T4_NODE, P5_NODE)
    )
    yield Way(name="a gated pod selects a node", guard="families", attack=attack, twin=twin, codes=(*PLACES, KEPT_OFF))


WAYS: tuple[Way, ...] = (*_protections(), *_tolerations(), *_both(), *_applied(), *_taken_off(), *_emptied(), *_asked_first(), *_put_on())
