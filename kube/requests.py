"""What a pod asks of a node in amounts, and the QoS class that follows from them.

Amounts are in kube-scheduler's units: whole numbers, CPU in thousandths, each
rounded up (k8s.io/kubernetes pkg/scheduler/framework/types.go ``Resource.Add``).

The sum over containers is that of k8s.io/component-helpers resource/helpers.go ``PodRequests``: the larger of
all containers with the sidecars, and of each init container with the sidecars that were started before it;
requests of the whole pod (``spec.resources``) take the place of the sum, and the overhead comes on top.

The QoS class is that of ``ComputePodQOS`` in k8s.io/kubernetes pkg/apis/core/v1/helper/qos (1.36). With pod-level resources
(``spec.resources``, KEP-2837, on by default since 1.34) they alone decide, even when they are empty; else
every container and init container must have limits of cpu and memory above zero, and the requests must sum up
to the limits. Amounts of zero count for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any, NamedTuple

from kube.pod import Pod
from kube.quantity import QuantityError, parse
from kube.tree import LARGEST, Path, map_at, maps_in, text_of

Amounts = Mapping[str, int]
"""Resource -> amount, of ``cpu`` in thousandths."""
PODS = "pods"
"""What every pod takes one of (pkg/scheduler/framework/plugins/noderesources/fit.go ``fitsRequest``)."""
_NATIVE = ("cpu", "memory", "ephemeral-storage", PODS)
_OF_WHOLE_POD = ("cpu", "memory")
"""And hugepages: what ``spec.resources`` may hold (``IsSupportedPodLevelResource``)."""
_PREFIXES = ("hugepages-", "attachable-volumes-")


class HostPort(NamedTuple):
    """A port of the host that a pod takes."""

    address: str
    protocol: str
    number: int

    def conflicts(self, other: HostPort) -> bool:
        """Return whether both cannot be on one node (k8s.io/kube-scheduler framework ``HostPortInfo``)."""
        same = (self.protocol, self.number) == (other.protocol, other.number)
        return same and (self.address == other.address or ANY in (self.address, other.address))


ANY = "0.0.0.0"
"""All addresses of the host (``DefaultBindAllHostIP``)."""


@dataclass(frozen=True, slots=True)
class RequestedAmounts:
    """The requests of a pod."""

    amounts: Amounts
    paths: Mapping[str, Path]
    """Resource -> the place that asks most for it."""
    unreadable: frozenset[str]
    """Resources of which some amount is no quantity."""


def _exact(name: str, value: object) -> Fraction | None:
    """Return a quantity in kube-scheduler's units, not yet rounded; None if it is none, or larger than a node
    could have."""
    try:
        number = parse(value) * (1000 if name == "cpu" else 1)
    except QuantityError:
        return None
    return number if abs(number) < LARGEST else None


def to_units(name: str, value: object) -> int | None:
    """Return a quantity in kube-scheduler's units; None if it is none, or larger than a node could have."""
    number = _exact(name, value)
    return None if number is None else ceil(number)


def counts(name: str) -> bool:
    """Return whether kube-scheduler counts a resource (pkg/scheduler/util ``IsScalarResourceName``)."""
    return name in _NATIVE or "/" in name or name.startswith(_PREFIXES)


def amounts(value: Mapping[Any, Any]) -> dict[str, int]:
    """Return those of a map of quantities that are counted and can be read."""
    read = ((text_of(name), to_units(text_of(name), amount)) for name, amount in value.items())
    return {name: amount for name, amount in read if amount is not None and counts(name)}


def requests(spec: Mapping[Any, Any]) -> RequestedAmounts:
    """Return what a pod with this spec requests."""
    sums = _Sums()
    for i, container in enumerate(maps_in(spec.get("containers"))):
        sums.container(container, ("spec", "containers", i))
    for i, container in enumerate(maps_in(spec.get("initContainers"))):
        sums.init_container(container, ("spec", "initContainers", i))
    total = sums.total()
    sums.whole_pod(map_at(spec, "resources"), total)
    sums.overhead(map_at(spec, "overhead"), total)
    return RequestedAmounts({name: ceil(amount) for name, amount in total.items()}, sums.paths, frozenset(sums.unreadable))


_Exact = dict[str, Fraction]


class _Sums:
    """Adds up the containers of one pod."""

    def __init__(self) -> None:
        self.paths: dict[str, Path] = {}
        self.unreadable: set[str] = set()
        self._most: dict[str, Fraction] = {}
        self._running: _Exact = {}
        self._sidecars: _Exact = {}
        self._starting: _Exact = {}

    def container(self, container: Mapping[Any, Any], path: Path) -> None:
        _add(self._running, self._requests(container, path))

    def init_container(self, container: Mapping[Any, Any], path: Path) -> None:
        requested = self._requests(container, path)
        if container.get("restartPolicy") == "Always":
            _add(self._running, requested)
            _add(self._sidecars, requested)
            at_once = self._sidecars
        else:
            at_once = dict(requested)
            _add(at_once, self._sidecars)
        _raise(self._starting, at_once)

    def total(self) -> _Exact:
        _raise(self._running, self._starting)
        return self._running

    def whole_pod(self, resources: Mapping[Any, Any], total: _Exact) -> None:
        """Requests of the whole pod replace the sum; a limit alone is the request of what no container asks for
        (``defaultPodRequests``)."""
        for side in ("requests", "limits"):
            for name, value in map_at(resources, side).items():
                read = _exact(text_of(name), value)
                if not (name in _OF_WHOLE_POD or text_of(name).startswith("hugepages-")):
                    continue
                if read is None:
                    self.unreadable.add(text_of(name))
                elif side == "requests" or (name not in map_at(resources, "requests") and name not in total):
                    total[text_of(name)] = read
                    self.paths[text_of(name)] = ("spec", "resources", side, text_of(name))

    def overhead(self, overhead: Mapping[Any, Any], total: _Exact) -> None:
        """The overhead of the runtime class comes on top."""
        for key, value in overhead.items():
            name = text_of(key)
            read = _exact(name, value)
            if read is None:
                self.unreadable.add(name)
            elif counts(name):
                _add(total, {name: read})
                self.paths.setdefault(name, ("spec", "overhead", name))

    def _requests(self, container: Mapping[Any, Any], path: Path) -> _Exact:
        """Return the requests of a container, filled from its limits."""
        requested: _Exact = {}
        for side in ("requests", "limits"):
            for key, value in map_at(container, "resources", side).items():
                name = text_of(key)
                if name in requested or name in self.unreadable or not counts(name):
                    continue
                read = _exact(name, value)
                if read is None:
                    self.unreadable.add(name)
                    continue
                requested[name] = read
                if read > self._most.get(name, -1):
                    self._most[name] = read
                    self.paths[name] = (*path, "resources", side, name)
        return requested


def _add(total: _Exact, more: _Exact) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, Fraction(0)) + amount


def _raise(total: _Exact, others: _Exact) -> None:
    for name, amount in others.items():
        total[name] = max(total.get(name, amount), amount)


def host_ports(spec: Mapping[Any, Any]) -> Iterator[HostPort]:
    """Yield the ports of the host that containers and sidecars take (pkg/scheduler/util ``GetHostPorts``)."""
    sidecars = (container for container in maps_in(spec.get("initContainers")) if container.get("restartPolicy") == "Always")
    for container in (*sidecars, *maps_in(spec.get("containers"))):
        for port in maps_in(container.get("ports")):
            number = port.get("hostPort", port.get("containerPort") if spec.get("hostNetwork") is True else None)
            if isinstance(number, int) and not isinstance(number, bool) and number > 0:
                yield HostPort(text_of(port.get("hostIP")) or ANY, text_of(port.get("protocol")) or "TCP", number)


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
