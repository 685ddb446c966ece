"""Class 10: a claim whose class, or whose own selectors, say less than they seem to; and claims that nobody knows yet."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tests.e2e.bypasses.attempts.claims import CLAIMED, COUNTS, claim, exactly, first_of, naming, template
from tests.e2e.bypasses.guardrails import with_
from tests.e2e.bypasses.steps import kept
from tests.e2e.bypasses.way import KEPT_OFF, Way, creates, in_turn
from tests.e2e.workloads import pod
from tests.testcluster.controlplane.api import Raw

OUTSIDE = ("BERTH-126",)
ARCHITECTURE = 'device.attributes["gpu.nvidia.com"].architecture'


def either(*of: str, counts: tuple[int, ...] = (1, 1)) -> Raw:
    """``firstAvailable`` of these classes."""
    listed = [
        {"name": f"a{n}", "deviceClassName": name, "allocationMode": "ExactCount", "count": count}
        for n, (name, count) in enumerate(zip(of, counts, strict=True))
    ]
    return {"name": "gpu", "firstAvailable": listed}


def _types() -> Iterator[Way]:
    """Whole GPUs and slices, by the class."""
    whole, cut = (creates(claim(exactly(1, f"ways-{name}"))) for name in ("whole", "mig"))
    yield Way(name="a class of whole GPUs", guard="slices", attack=whole, twin=cut, codes=OUTSIDE)
    yield Way(name="a class of slices", guard="sharing", attack=cut, twin=whole, codes=OUTSIDE)
    attack, twin = (creates(claim(either("ways-whole", second))) for second in ("ways-mig", "ways-plain"))
    yield Way(name="slices as the second choice", guard="sharing", attack=attack, twin=twin, codes=OUTSIDE)


def selecting(*architectures: str, found: str = "{}", before: str = "") -> list[Raw]:
    """An author's own selector, shaped like the one that Berth writes."""
    listed = found.format(f"{ARCHITECTURE} in {json.dumps(list(architectures))}")
    driver = 'device.driver == "gpu.nvidia.com"'
    return [{"cel": {"expression": f"{before}{driver} && has({ARCHITECTURE}) && {listed}"}}]


def is_unconfined(value: Raw) -> bool:
    """Return whether no selector of the first request demands Hopper alone."""
    selectors = value["spec"]["devices"]["requests"][0]["exactly"].get("selectors", ())
    return not any(one["cel"]["expression"].endswith(f'{ARCHITECTURE} in ["Hopper"]') for one in selectors)


def _selectors() -> Iterator[Way]:
    """The author's own are beside those of policies, and never in their place."""
    own: dict[str, list[Raw]] = {
        "a wider list": selecting("Hopper", "Turing"),
        "what it is not": selecting("Ampere", found="!({})"),
        "a list in an OR": selecting("Hopper", found="{} || true"),
        "a list before a comment": selecting("Hopper", found="true // {}"),
        "a list after a comment": selecting("Hopper", "Turing", before="// x\n"),
        "an escape": [{"cel": {"expression": selecting("Hopper", "Turing")[0]["cel"]["expression"].replace("Turing", "Turin\\u0067")}}],
    }
    twin = creates(claim(exactly(1, selectors=selecting("Hopper"))))
    for name, selectors in own.items():
        attack = kept(creates(claim(exactly(1, selectors=selectors))), is_unconfined)
        yield Way(name=f"an own selector: {name}", guard="families", attack=attack, twin=twin, codes=(KEPT_OFF, *OUTSIDE))
    attack = kept(creates(claim(exactly(1, "ways-plain"))), is_unconfined)
    yield Way(name="a class whose name says nothing", guard="families", attack=attack, twin=twin, codes=(KEPT_OFF,))


def _sizes() -> Iterator[Way]:
    """How many, beside other devices and other choices."""
    both = creates(claim(exactly(1, "dra.net"), exactly(2, "ways-plain")))
    attack = creates(claim(exactly(1, "dra.net"), exactly(8, "ways-plain")))
    yield Way(name="network cards, and eight GPUs", guard="max", attack=attack, twin=both, codes=COUNTS)
    attack, twin = (creates(claim(either("dra.net", "ways-plain", counts=(1, count)))) for count in (8, 2))
    yield Way(name="a network card, else eight GPUs", guard="max", attack=attack, twin=twin, codes=COUNTS)
    attack, twin = (in_turn(creates(claim(first_of(*counts))), creates(naming("NAME"))) for counts in ((1, 2, 3), (1, 2)))
    yield Way(name="one, two or three", guard="one-of", attack=attack, twin=twin, codes=COUNTS)
    most = creates(claim(exactly(2**63 - 1)))
    yield Way(name="as many as an int64 counts", guard="max", attack=most, twin=creates(claim(exactly(2))), codes=COUNTS)


def _pods() -> Iterator[Way]:
    """A claim and its pod at once: the pod waits for the claim to be known. One that a pod names twice is one."""
    attack, twin = (in_turn(creates(claim(request)), creates(naming("NAME"))) for request in (exactly(1, "ways-nobody"), exactly(1)))
    for guard in ("families", "models", "memory"):
        yield Way(name="a claim, and its pod at once", guard=guard, attack=attack, twin=twin, codes=OUTSIDE)
    attack = in_turn(creates(claim(exactly(8))), creates(naming("NAME")))
    yield Way(name="a claim of eight, and its pod at once", guard="max", attack=attack, twin=twin, codes=COUNTS)
    twice = [{"name": name, "resourceClaimName": "NAME"} for name in ("gpu", "again")]
    both = with_(pod({"claims": [{"name": "gpu"}, {"name": "again"}]}), resourceClaims=twice)
    twin = in_turn(creates(claim(exactly(2))), creates(both))
    for guard, count in (("max", 5), ("one-of", 3)):
        attack = in_turn(creates(claim(exactly(count))), creates(both))
        yield Way(name=f"a claim of {count} that is named twice", guard=guard, attack=attack, twin=twin, codes=COUNTS)
    listed = [{"name": f"gpu-{n}", "resourceClaimTemplateName": "NAME"} for n in range(3)]
    thrice = with_(pod({"claims": [{"name": one["name"]} for one in listed]}), resourceClaims=listed)
    attack, twin = (in_turn(creates(template(exactly(count))), creates(thrice)) for count in (2, 1))
    yield Way(name="a template that is named three times", guard="max", attack=attack, twin=twin, codes=COUNTS)
    alike = with_(pod({"claims": [{"name": "gpu"}, {"name": "gpu-0"}]}), resourceClaims=[twice[0], listed[0]])
    attack, twin = (in_turn(creates(template(exactly(count))), creates(claim(exactly(2))), creates(alike)) for count in (3, 2))
    yield Way(name="a claim and a template of the same name", guard="max", attack=attack, twin=twin, codes=COUNTS)
    beside = with_(pod({**CLAIMED, "limits": {"nvidia.com/gpu": "3"}}), resourceClaims=twice[:1])
    attack, twin = (in_turn(creates(claim(exactly(count))), creates(beside)) for count in (2, 1))
    yield Way(name="a claim beside three GPUs", guard="max", attack=attack, twin=twin, codes=COUNTS)


WAYS = (*_types(), *_selectors(), *_sizes(), *_pods())
