"""The policy sets of the differential test, and what each means by the truth of nodes, said a second time and by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.e2e.differential.nodes import AWS, BARE, Card, Offer
from tests.e2e.differential.requested import RequestedPod

Raw = dict[str, Any]
Inside = Callable[[Offer], bool]
LONG = 2 * 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What defaults make of a pod that is silent."""

    regions: tuple[str, ...] = ()
    """of the world, beside what is required"""
    slice: str = ""
    """resource name in place of a whole GPU"""
    tolerations: tuple[Raw, ...] = ()


BY_AUTHOR = {"5gb": "nvidia.com/mig-1g.5gb", "10gb": "nvidia.com/mig-1g.10gb", "20gb": "nvidia.com/mig-1g.20gb"}
"""What an author may ask for by annotation: the smallest slice of this size"""


def by_author(asked: RequestedPod) -> Wish | None:
    """Of a world without defaults that place pods: a slice where the author asks for one. A template by annotation is not judged."""
    if "berth.dev/node-template" in asked.annotations:
        return None
    size = asked.annotations.get("berth.dev/mig-slice")
    if size is None:
        return Wish()
    return Wish(slice=BY_AUTHOR[size]) if size in BY_AUTHOR and asked.can_be_sliced else None


def always(_: RequestedPod) -> str:
    return "required"


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """One namespace with its policies."""

    name: str
    """also of the namespace"""
    berth: str
    """which Berth judges it"""
    objects: tuple[Raw, ...]
    """empty: the shipped library"""
    regions: Mapping[str, Inside]
    required: Callable[[RequestedPod], str] = always
    """the region that ``require`` leaves this pod"""
    wish: Callable[[RequestedPod], Wish | None] = by_author
    """what its defaults mean for this pod; None: not judged"""
    repairs: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def platforms(self) -> tuple[str, ...]:
        return (AWS,) if self.berth == "aws" else (AWS, BARE)


def cluster(name: str, **spec: Any) -> Raw:
    """A ClusterGPUPolicy for the namespace of the same name. GPU taints are always tolerated."""
    default = {"acceleratorTaints": "Tolerate", **spec.pop("default", {})}
    match = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}}
    whole = {"mode": "Enforce", "match": match, "default": default, **spec}
    return {"apiVersion": "berth.dev/v1alpha1", "kind": "ClusterGPUPolicy", "metadata": {"name": name}, "spec": whole}


def team(name: str, **spec: Any) -> Raw:
    metadata = {"name": "own", "namespace": name}
    return {"apiVersion": "berth.dev/v1alpha1", "kind": "GPUPolicy", "metadata": metadata, "spec": {"mode": "Enforce", **spec}}


def template(name: str, labels: Raw, gpus: Raw, *taints: Raw) -> Raw:
    spec = {"gpus": gpus, "labels": labels, **({"taints": [*taints]} if taints else {})}
    return {"apiVersion": "berth.dev/v1alpha1", "kind": "GPUNodeTemplate", "metadata": {"name": name}, "spec": spec}


def _card(says: Callable[[Card], bool]) -> Inside:
    return lambda offer: offer.card is not None and says(offer.card)


def family(*names: str) -> Inside:
    """A family that is not known is none of them."""
    return _card(lambda card: card.family in names)


def of_model(*names: str) -> Inside:
    return _card(lambda card: card.model in names)


def memory(least: int, most: int) -> Inside:
    return _card(lambda card: card.memory is not None and least <= card.memory <= most)


def instances(*names: str) -> Inside:
    """Bare metal has none."""
    return lambda offer: offer.instance_family in names


def shared(*ways: str) -> Inside:
    return lambda offer: offer.sharing in ways


def capacity(*names: str) -> Inside:
    """Reserved capacity counts as on-demand."""
    return lambda offer: offer.capacity in names or (offer.capacity == "reserved" and "on-demand" in names)


def pool(name: str) -> Inside:
    return lambda offer: offer.pool == name


def neither(inside: Inside) -> Inside:
    return lambda offer: not inside(offer)


def both(*insides: Inside) -> Inside:
    return lambda offer: all(inside(offer) for inside in insides)


def anywhere(_: Offer) -> bool:
    return True


def only(name: str, inside: Inside, *, berth: str = "mixed", **require: Any) -> World:
    """A world of one constraint."""
    return World(name=name, berth=berth, objects=(cluster(name, require=require),), regions={"required": inside})


AMPERE_HOPPER = {"in": ["hopper", "ampere"]}
NO_TURING = {"notIn": ["turing"]}
REQUIRING = (
    only("families", family("hopper", "ampere"), families=AMPERE_HOPPER),
    only("families-out", neither(family("turing")), families=NO_TURING),
    only(
        "instances",
        both(neither(instances("g4dn", "p4d")), capacity("on-demand")),
        instanceFamilies={"notIn": ["g4dn", "p4d"]},
        capacity=["on-demand"],
    ),
    only("instances-in", instances("p5", "p4de", "g6"), instanceFamilies={"in": ["p5", "p4de", "g6"]}),
    only("spot", capacity("spot"), capacity=["spot"]),
    only("exclusive", shared("Exclusive"), sharing=["Exclusive"]),
    only("slices", both(shared("Exclusive", "MIG"), neither(family("turing"))), sharing=["Exclusive", "MIG"], families=NO_TURING),
    only("memory", both(memory(40, 80), neither(of_model("A100-40GB"))), gpuMemory={"min": 40, "max": 80}, models={"notIn": ["A100-40GB"]}),
    only("models", of_model("A100-40GB", "A100-80GB", "L4", "T4"), models={"in": ["A100", "L4", "T4"]}),
    only("models-out", neither(of_model("A100-40GB", "T4", "H200")), models={"notIn": ["A100-40GB", "T4", "H200"]}),
    only(
        "all-at-once",
        both(family("ampere", "hopper"), memory(40, 200), shared("Exclusive"), capacity("on-demand")),
        families=AMPERE_HOPPER,
        gpuMemory={"min": 40},
        sharing=["Exclusive"],
        capacity=["on-demand"],
    ),
    only("aws-families", family("hopper", "ampere"), berth="aws", families=AMPERE_HOPPER),
    only("aws-exclusive", both(shared("Exclusive"), neither(family("turing"))), berth="aws", sharing=["Exclusive"], families=NO_TURING),
)


def runs_long(asked: RequestedPod, *, unknown: bool) -> bool:
    return unknown if asked.seconds is None else asked.seconds > LONG


LONG_RUNS = World(
    name="long-runs",
    berth="mixed",
    objects=(cluster("long-runs", require={"longRuns": {"over": "2h", "capacity": ["on-demand"], "unknownIsLong": True}}),),
    regions={"required": anywhere, "long": capacity("on-demand")},
    required=lambda asked: "long" if runs_long(asked, unknown=True) else "required",
)
TEAM = World(
    name="team",
    berth="mixed",
    objects=(
        cluster("team", require={"families": NO_TURING}, allow={"tolerations": [{"key": "nvidia.com/gpu"}, {"key": "amd.com/gpu"}]}),
        team("team", require={"models": {"in": ["A100-80GB", "H100", "T4"]}}),
    ),
    regions={"required": of_model("A100-80GB", "H100-80GB")},
)
