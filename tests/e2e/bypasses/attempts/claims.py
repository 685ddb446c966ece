"""Classes 0d and 3: resource claims, before and after the pod that names them, and beside devices.

Codes of a claim that is not known, or may be of any size, are those of counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.e2e.bypasses.guardrails import ALLOWED, FORBIDDEN, marked, with_
from tests.e2e.bypasses.way import GATE, Attempt, Outcome, Tenant, Way, creates, deletes, in_turn
from tests.e2e.workloads import NVIDIA, pod
from tests.testcluster.controlplane.api import Raw

VERSION = "resource.k8s.io/v1"
CLAIMED: Raw = {"claims": [{"name": "gpu"}]}
COUNTS = ("BERTH-11",)


def exactly(count: int = 1, of: str = "ways-gpu", **more: Any) -> Raw:
    """A request of a claim."""
    return {"name": "gpu", "exactly": {"deviceClassName": of, "allocationMode": "ExactCount", "count": count, **more}}


def every(of: str = "ways-gpu") -> Raw:
    return {"name": "gpu", "exactly": {"deviceClassName": of, "allocationMode": "All"}}


def first_of(*counts: int) -> Raw:
    """``firstAvailable``, in this order."""
    listed = [
        {"name": f"a{n}", "deviceClassName": "ways-gpu", "allocationMode": "ExactCount", "count": count} for n, count in enumerate(counts)
    ]
    return {"name": "gpu", "firstAvailable": listed}


def claim(*requests: Raw, name: str = "NAME", **metadata: Any) -> Raw:
    named = [{**one, "name": f"gpu{n}"} for n, one in enumerate(requests)]
    return {
        "apiVersion": VERSION,
        "kind": "ResourceClaim",
        "metadata": {"name": name, **metadata},
        "spec": {"devices": {"requests": named}},
    }


def template(*requests: Raw) -> Raw:
    spec = claim(*requests)["spec"]
    return {"apiVersion": VERSION, "kind": "ResourceClaimTemplate", "metadata": {"name": "NAME"}, "spec": {"spec": spec}}


def naming(*names: str, made: Raw | None = None, by: str = "resourceClaimName") -> Raw:
    """A pod with these claims."""
    listed = [{"name": "gpu" if n == 0 else f"gpu-{n}", by: name} for n, name in enumerate(names)]
    return with_(made or pod(CLAIMED), resourceClaims=listed)


def devices(count: int) -> Raw:
    """A container's resources: so many GPUs, and the claim."""
    return {"limits": {NVIDIA: str(count)}, **CLAIMED}


REQUESTS: dict[str, tuple[Raw, ...]] = {
    "of eight": (exactly(8),),
    "of two requests": (exactly(3), exactly(3)),
    "of all that there is": (every(),),
    "of one, or eight": (first_of(1, 8),),
    "of eight, or one": (first_of(8, 1),),
    "of eight of a class that doesn't tell its driver": (exactly(8, "ways-odd"),),
    "of eight of a class that nobody knows": (exactly(8, "ways-nobody"),),
    "of eight of others' devices": (exactly(8, adminAccess=True),),
    "of all, of a class that nobody knows": (every("ways-nobody"),),
}


def _sizes() -> Iterator[Way]:
    honest = in_turn(creates(claim(exactly(2))), creates(naming("NAME")))
    honest_template = in_turn(creates(template(exactly(2))), creates(naming("NAME", by="resourceClaimTemplateName")))
    for name, requests in REQUESTS.items():
        for guard in ("max", "one-of"):
            attack = in_turn(creates(claim(*requests)), creates(naming("NAME")))
            yield Way(name=f"a claim {name}", guard=guard, attack=attack, twin=honest, codes=COUNTS)
            attack = in_turn(creates(template(*requests)), creates(naming("NAME", by="resourceClaimTemplateName")))
            yield Way(name=f"a template {name}", guard=guard, attack=attack, twin=honest_template, codes=COUNTS)


def _orders() -> Iterator[Way]:
    """The pod before its claim."""
    twin = in_turn(creates(claim(exactly(1))), creates(naming("NAME")))
    for what, made in {"claim": claim(exactly(8)), "template": template(exactly(8))}.items():
        by = "resourceClaimName" if what == "claim" else "resourceClaimTemplateName"
        attack = in_turn(creates(naming("NAME", by=by)), creates(made))
        yield Way(name=f"a pod, then its {what}", guard="max", attack=attack, twin=twin, codes=COUNTS)
        attack = in_turn(creates(with_(naming("NAME", by=by), schedulingGates=[GATE])), creates(made))
        yield Way(name=f"a gated pod, then its {what}", guard="max", attack=attack, twin=twin, codes=COUNTS)
    for name, then in {"of eight": claim(exactly(8)), "of all": claim(every())}.items():
        gated = with_(naming("NAME"), schedulingGates=[GATE])
        attack = in_turn(creates(claim(exactly(1))), creates(gated), deletes(VERSION, "ResourceClaim", "NAME"), creates(then))
        yield Way(name=f"a claim made anew {name} while its pod is gated", guard="max", attack=attack, twin=twin, codes=COUNTS)


def _beside() -> Iterator[Way]:
    """Claims and devices together."""
    twin = in_turn(creates(claim(exactly(1))), creates(naming("NAME", made=pod(devices(3)))))
    alone = {
        "eight, and a claim that is not there": naming("NAME", made=pod(devices(8))),
        "eight, and a template that is not there": naming("NAME", made=pod(devices(8)), by="resourceClaimTemplateName"),
        "four, and a claim that is not there": naming("NAME", made=pod(devices(4))),
        "one, and a claim that is not there": naming("NAME", made=pod(devices(1))),
        "one, and four claims that are not there": naming(*(f"NAME-{n}" for n in range(4)), made=pod(devices(1))),
    }
    for name, made in alone.items():
        yield Way(name=name, guard="max", attack=creates(made), twin=twin, codes=COUNTS)
    pairs: dict[str, Attempt] = {
        "four, and a claim of one": in_turn(creates(claim(exactly(1))), creates(naming("NAME", made=pod(devices(4))))),
        "two claims of three": in_turn(
            creates(claim(exactly(3), name="NAME-a")), creates(claim(exactly(3), name="NAME-b")), creates(naming("NAME-a", "NAME-b"))
        ),
        "a claim that the container does not name": in_turn(creates(claim(exactly(4))), creates(naming("NAME", made=pod()))),
    }
    for name, attempt in pairs.items():
        yield Way(name=name, guard="max", attack=attempt, twin=twin, codes=COUNTS)
    large = naming("NAME", made=with_(pod(devices(8)), terminationGracePeriodSeconds=3600))
    yield Way(name="eight, and a claim that is not there", guard="large", attack=creates(large), twin=creates(pod()))
    grown = with_(naming("NAME"), terminationGracePeriodSeconds=3600)
    attack = in_turn(creates(claim(exactly(8))), creates(grown))
    yield Way(name="a claim of eight", guard="large", attack=attack, twin=creates(pod()))
    yield Way(name="a claim that is not there", guard="large", attack=creates(grown), twin=creates(pod()), codes=("BERTH-141", "BERTH-11"))


def _forged() -> Iterator[Way]:
    """A generated claim, which nobody but kube-controller-manager makes."""
    twin = in_turn(creates(claim(exactly(1))), creates(naming("NAME")))
    annotations = {"resource.kubernetes.io/pod-claim-name": "gpu"}
    for kind, api_version in (("Pod", "v1"), ("ReplicaSet", "apps/v1")):
        owner = {"apiVersion": api_version, "kind": kind, "name": "NAME", "uid": "0a1b2c3d-0000-4000-8000-00000000f0f0", "controller": True}
        made = claim(exactly(8), annotations=annotations, ownerReferences=[owner])
        attack = in_turn(creates(made), creates(naming("NAME")))
        yield Way(name=f"a claim said to be generated for a {kind}", guard="max", attack=attack, twin=twin, codes=COUNTS)
    attack = in_turn(creates(claim(exactly(8), annotations=annotations)), creates(naming("NAME")))
    yield Way(name="a claim said to be generated, of nobody", guard="max", attack=attack, twin=twin, codes=COUNTS)
    yield Way(name="a claim generated for a pod that is there", guard="max", attack=_adopted, twin=twin, codes=COUNTS)


def _adopted(tenant: Tenant) -> Outcome:
    """Gated, so that the claim's controller has not looked at the pod for long; then by its true uid."""
    first = creates(template(exactly(1)))(tenant)
    made = creates(with_(naming("NAME", by="resourceClaimTemplateName"), schedulingGates=[GATE]))(tenant) if first.passed else first
    if not made.passed:
        return made
    of = made.stored["metadata"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": of["name"], "uid": of["uid"], "controller": True}
    annotations = {"resource.kubernetes.io/pod-claim-name": "gpu"}
    return creates(claim(exactly(8), name="NAME-forged", annotations=annotations, ownerReferences=[owner]))(tenant)


def _others() -> Iterator[Way]:
    """What else holds for a pod that asks by claim alone, and for the claim itself."""
    for guard, wrong, right in (
        ("grace", {"terminationGracePeriodSeconds": 3600}, {"terminationGracePeriodSeconds": 60}),
        ("forbid", {"tolerations": [FORBIDDEN]}, {"tolerations": [ALLOWED]}),
    ):
        attack, twin = (in_turn(creates(claim(exactly())), creates(with_(naming("NAME"), **spec))) for spec in (wrong, right))
        yield Way(name="a claim", guard=guard, attack=attack, twin=twin)
        yield Way(name="a claim that is not there", guard=guard, attack=creates(with_(naming("NAME"), **wrong)), twin=twin)
    protected, calm = (marked(naming("NAME"), annotations={"karpenter.sh/do-not-disrupt": value}) for value in ("true", "1h"))
    attack, twin = (in_turn(creates(claim(exactly())), creates(made)) for made in (protected, calm))
    yield Way(name="a claim", guard="protection", attack=attack, twin=twin)
    yield from _device_taints()


def _device_taints() -> Iterator[Way]:
    """Claims tolerate taints of devices."""
    twin = creates(claim(exactly(tolerations=[ALLOWED])))
    for name, toleration in {
        "the taint": FORBIDDEN,
        "every taint": {"operator": "Exists"},
        "every value": {"key": "team", "operator": "Exists"},
    }.items():
        yield Way(name=f"a claim tolerates {name}", guard="forbid", attack=creates(claim(exactly(tolerations=[toleration]))), twin=twin)
        attack = creates(template(exactly(tolerations=[toleration])))
        yield Way(name=f"a template tolerates {name}", guard="forbid", attack=attack, twin=twin)
    listed = first_of(1, 1)
    listed["firstAvailable"][1]["tolerations"] = [FORBIDDEN]
    yield Way(name="a second choice tolerates the taint", guard="forbid", attack=creates(claim(listed)), twin=twin)


def _passed_over() -> Iterator[Way]:
    """What made a condition fail, so that an entry at Ignore passed it over."""
    twin = in_turn(creates(claim(exactly(1))), creates(naming("NAME")))
    for what, shape in (("plain names", "n.example/{:05}"), ("names like slices", "nvidia.com/mig-{:048}")):
        amounts = {shape.format(number): "0" for number in range(3_000)}
        tuned = naming("NAME", made=pod({"limits": amounts, **CLAIMED}))
        attack = in_turn(creates(claim(exactly(2), name="NAME-a")), creates(claim(exactly(2), name="NAME-b")), creates(tuned))
        yield Way(name=f"a claim beside thousands of {what}", guard="max", attack=attack, twin=twin, codes=(*COUNTS, "BERTH-004"))


def _flood(tenant: Tenant) -> Outcome:
    """Twenty pods at once, each with 850 claims that are not there; the first that is stored, else the first."""
    pods = [naming(*(f"NAME-{number}-{index}" for index in range(850))) for number in range(20)]
    with ThreadPoolExecutor(len(pods)) as pool:
        outcomes = list(pool.map(lambda one: creates(one)(tenant), pods))
    return next((one for one in outcomes if one.passed), outcomes[0])


FLOOD = Way(
    name="a flood of claims that are not there",
    guard="max",
    attack=_flood,
    twin=in_turn(creates(claim(exactly(1))), creates(naming("NAME"))),
    codes=COUNTS,
)
"""Tried when the others are over: it takes the places in which their twins wait for their claims."""
WAYS = (*_sizes(), *_orders(), *_beside(), *_forged(), *_others(), *_passed_over())
