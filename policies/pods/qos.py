"""The QoS class of a pod as Kubernetes computes it, and what keeps a pod from being Guaranteed.

Source: ``ComputePodQOS`` in k8s.io/kubernetes pkg/apis/core/v1/helper/qos (1.36). With pod-level resources
(``spec.resources``, KEP-2837, on by default since 1.34) they alone decide, even when they are empty; else
every container and init container must have limits of cpu and memory above zero, and the requests must sum up
to the limits. Amounts of zero count for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from policies.pods.view import Pod
from policies.values.quantity import QuantityError, parse
from policies.verdict import Path

COMPUTE = ("cpu", "memory")
"""The resources that the class depends on."""
POD_LEVEL: Path = ("spec", "resources")


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A container's resources, or the pod's own."""

    who: str
    """The container's name; "" for the pod level."""
    path: Path
    """The path of the map with requests and limits."""
    requests: Mapping[str, Any]
    limits: Mapping[str, Any]

    def limit(self, name: str) -> Fraction | None:
        """Return the limit: zero if it is absent or counts for nothing; None if it cannot be read."""
        return _counted(self.limits.get(name, 0))

    def request(self, name: str) -> Fraction | None:
        """Return the request, or the limit if no request is written, which is what the API server fills
        in."""
        return _counted(self.requests[name]) if name in self.requests else self.limit(name)


@dataclass(frozen=True, slots=True)
class Shortfall:
    """One resource at one level that keeps the pod from being Guaranteed."""

    level: Level
    name: str


def _counted(value: object) -> Fraction | None:
    try:
        return max(parse(value), Fraction(0))
    except QuantityError:
        return None


def shortfalls(pod: Pod) -> tuple[Shortfall, ...]:
    """Return what keeps this pod from being of QoS class Guaranteed, in the pod's order; empty if it is
    Guaranteed. An amount that cannot be read keeps it from being so."""
    levels = tuple(_levels(pod))
    return () if _guaranteed(levels) else tuple(Shortfall(at, name) for at in levels for name in COMPUTE if not _equal(at, name))


def _levels(pod: Pod) -> Iterator[Level]:
    if pod.resources is not None:
        requests, limits = pod.resources
        yield Level(who="", path=POD_LEVEL, requests=_filled_in(pod, requests), limits=limits)
        return
    for at in pod.containers:
        yield Level(who=at.name, path=(*at.path, "resources"), requests=at.requests, limits=at.limits)


def _filled_in(pod: Pod, requests: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the pod-level requests with those that the API server fills in if nobody wrote them: what the
    containers ask for together (defaultPodRequests in pkg/apis/core/v1/defaults.go). A pod under admission
    already has them. In a manifest they count as "0", which equals no limit, if a container names the
    resource: the author is then advised to write them."""
    named = {name for at in pod.containers for name in at.resource_names}
    return {**{name: "0" for name in COMPUTE if name in named}, **requests}


def _guaranteed(levels: tuple[Level, ...]) -> bool:
    return bool(levels) and all(all(at.limit(name) for at in levels) and _same_sum(levels, name) for name in COMPUTE)


def _same_sum(levels: tuple[Level, ...], name: str) -> bool:
    requests = [at.request(name) for at in levels]
    known = [amount for amount in requests if amount is not None]
    return len(known) == len(requests) and sum(known) == sum(at.limit(name) or 0 for at in levels)


def _equal(at: Level, name: str) -> bool:
    limit = at.limit(name)
    return bool(limit) and at.request(name) == limit
