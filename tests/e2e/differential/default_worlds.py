"""Worlds whose policies fill in what the author left out, the shipped library among them: what they mean, said by hand.

A default acts where the pod is silent, by the raw keys that it selects nodes by; where one of them is of no platform in force, none chooses
a place. What is not said here is not judged: a pod that names a slice or a template by annotation, that a queue system may hold, that
selects by labels of which nobody says whether they speak, or by values that are new, of which two of the library's policies speak, or that
asks for slices where a template does not say whether its nodes have them.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.e2e.differential.nodes import NVIDIA
from tests.e2e.differential.requested import CAPACITY_KEYS, MACHINE_KEYS, RequestedPod
from tests.e2e.differential.worlds import (
    LONG_RUNS,
    NO_TURING,
    REQUIRING,
    TEAM,
    Wish,
    World,
    anywhere,
    both,
    capacity,
    cluster,
    family,
    instances,
    neither,
    of_model,
    pool,
    runs_long,
    shared,
    template,
)

BY_ANNOTATION = {"berth.dev/mig-slice", "berth.dev/node-template"}


def _is_plain(asked: RequestedPod) -> bool:
    return asked.written and asked.speaks_plainly and BY_ANNOTATION.isdisjoint(asked.annotations)


def _wish(asked: RequestedPod, *, machine: str = "", capacity: str = "", slice: str = "") -> Wish | None:
    """``machine``, ``capacity``: regions that hold where the pod is silent on the axis. ``slice``: in place of a whole GPU."""
    if not _is_plain(asked) or (slice and asked.is_queued):
        return None
    if asked.speaks_unread or asked.is_shared:
        return Wish()
    sliced = bool(slice) and asked.can_be_sliced
    regions = (
        machine if not asked.speaks(MACHINE_KEYS) and not sliced else "",
        capacity if not asked.speaks(CAPACITY_KEYS) else "",
    )
    return Wish(regions=tuple(filter(None, regions)), slice=slice if sliced else "")


def _training(asked: RequestedPod) -> Wish | None:
    return _wish(asked, machine="strong", capacity="stable" if runs_long(asked, unknown=False) else "spot")


DEFAULTS = {
    "families": {"in": ["ampere", "hopper"]},
    "capacity": ["spot"],
    "longRuns": {"over": "2h", "capacity": ["on-demand"], "unknownIsLong": False},
    "gracePeriod": "30m",
    "protectFor": "12h",
    "tolerate": [{"key": "team", "value": "research", "effect": "NoSchedule"}],
    "repair": ["accelerators"],
}
_SPOT_OR_STABLE = {"required": anywhere, "spot": capacity("spot"), "stable": capacity("on-demand")}
_REGIONS = {**_SPOT_OR_STABLE, "strong": family("ampere", "hopper")}
WISHES = World(
    name="wishes",
    berth="mixed",
    objects=(cluster("wishes", default=DEFAULTS, require={"requestsEqualLimits": ["accelerators"], "gracePeriod": {"max": "1h"}}),),
    regions=_REGIONS,
    wish=_training,
    repairs=True,
)
AWS_WISHES = World(
    name="aws-wishes", berth="aws", objects=(cluster("aws-wishes", default=DEFAULTS),), regions=_REGIONS, wish=_training, repairs=True
)
SLICE = World(
    name="slice",
    berth="mixed",
    objects=(cluster("slice", default={"mig": {"slice": "10gb"}, "models": {"in": ["L4"]}}),),
    regions={"required": anywhere, "l4": of_model("L4")},
    wish=lambda asked: _wish(asked, machine="l4", slice="nvidia.com/mig-1g.10gb"),
)
T0 = {"key": "pool", "value": "t0", "effect": "NoSchedule"}


def _on_template(asked: RequestedPod) -> Wish | None:
    if not _is_plain(asked):
        return None
    if asked.speaks_unread or asked.is_shared:
        return Wish()
    return Wish(regions=("t0",), tolerations=(T0,)) if set(asked.devices) == {NVIDIA} else None


TEMPLATE = World(
    name="template",
    berth="mixed",
    objects=(
        cluster("template", default={"nodeTemplate": "t0"}, allow={"nodeTemplates": ["t0", "t1"]}, require={"families": NO_TURING}),
        template("t0", {"karpenter.sh/nodepool": "gpu-t0"}, {"vendors": ["nvidia"], "families": {"in": ["ampere"]}}, T0),
        template("t1", {"pool": "t1", "tier": "gpu"}, {"families": {"in": ["hopper"]}}),
    ),
    regions={"required": neither(family("turing")), "t0": pool("gpu-t0")},
    wish=_on_template,
)


# --- the shipped library -------------------------------------------------------------------------------------------------


def _speaking(asked: RequestedPod, *, dev: bool) -> Iterator[str]:
    """Which of its policies fill in where this pod lands: see their heads."""
    job = asked.owner in (("batch", "Job"), ("kubeflow.org", "PyTorchJob"))
    job = job or asked.labels.get("training.kubeflow.org/operator-name") == "pytorchjob-controller"
    if job:
        yield "training" if asked.gpus >= 4 else "batch"
    server = asked.owner == ("apps", "ReplicaSet") or "serving.kserve.io/inferenceservice" in asked.labels
    if not dev and server and asked.gpus == 1:
        yield "inference"
    if dev and "notebook-name" in asked.labels and asked.gpus == 1:
        yield "notebooks"


def _by_library(asked: RequestedPod, *, dev: bool) -> Wish | None:
    speaking = list(_speaking(asked, dev=dev))
    if len(speaking) > 1 or not _is_plain(asked) or asked.spec.get("resourceClaims"):
        return None
    by_duration = "stable" if runs_long(asked, unknown=True) else "spot"
    match speaking[0] if speaking else "":
        case "training":
            return _wish(asked, machine="strong", capacity=by_duration)
        case "batch":
            return _wish(asked, capacity=by_duration)
        case "inference":
            return _wish(asked, machine="l4", capacity="stable", slice="nvidia.com/mig-1g.20gb")
    if asked.speaks_unread or asked.is_shared:
        return Wish(regions=("t4-shared",)) if set(asked.devices) == {NVIDIA} else None
    return Wish()


def _library(name: str, *, dev: bool) -> World:
    return World(
        name=name,
        berth="library",
        objects=(),
        regions={
            **_SPOT_OR_STABLE,
            "whole": shared("Exclusive"),
            "strong": both(family("ampere", "hopper", "blackwell"), neither(instances("g5", "g7", "g7e", "p4d"))),
            "l4": of_model("L4"),
            "t4-shared": pool("gpu-t4-shared"),
        },
        required=lambda asked: "whole" if asked.gpus >= 2 else "required",
        wish=lambda asked: _by_library(asked, dev=dev),
        labels={"environment": "dev"} if dev else {},
    )


WORLDS: tuple[World, ...] = (
    *REQUIRING,
    LONG_RUNS,
    TEAM,
    WISHES,
    AWS_WISHES,
    SLICE,
    TEMPLATE,
    _library("library", dev=False),
    _library("library-dev", dev=True),
)
"""All of them. A template of one is seen by every policy of its Berth."""
