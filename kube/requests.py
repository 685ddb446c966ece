"""What a pod asks of a node in amounts, and the QoS class that follows from them.

Amounts are in kube-scheduler's units: whole numbers, CPU in thousandths, sums
rounded up (k8s.io/kubernetes pkg/scheduler/framework/types.go ``Resource.Add``).

The sum over containers is that of k8s.io/component-helpers resource/helpers.go ``PodRequests``: the larger of
all containers with the sidecars, and of each init container with the sidecars that were started before it;
requests of the whole pod (``spec.resources``) take the place of the sum, and the overhead comes on top.

The QoS class is that of ``ComputePodQOS`` in k8s.io/kubernetes pkg/apis/core/v1/helper/qos for a pod that the API
server admits. With pod-level resources (``spec.resources``, KEP-2837, on by default since 1.34) they alone decide, even when
they are empty (until 1.37); else every container and init container must have limits of cpu and memory above zero, and
requests that equal them. Amounts of zero count for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, NamedTuple

from kube.pod import POD_LEVEL, Pod, containers_of
from kube.quantity import QuantityError, binary, parse
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
    largest: Amounts
    """The most of each that one container asks for."""


def _in_thousandths(name: str, value: object) -> int | None:
    """Return a quantity in thousandths, rounded up as the API server stores it (``SetDefaults_ResourceList`` in
    pkg/apis/core/v1/defaults.go); None if it is none, or larger than a node could have."""
    try:
        amount = ceil(parse(value) * 1000)
    except QuantityError:
        return None
    return amount if abs(amount) < LARGEST * (1 if name == "cpu" else 1000) else None


def _in_units(name: str, thousandths: int) -> int:
    return thousandths if name == "cpu" else -(-thousandths // 1000)


def to_units(name: str, value: object) -> int | None:
    """Return a quantity in kube-scheduler's units; None if it is none, or larger than a node could have."""
    amount = _in_thousandths(name, value)
    return None if amount is None else _in_units(name, amount)


def write_units(name: str, amount: int) -> str:
    """Return an amount in kube-scheduler's units as an author writes it: ``500m``, ``2``, ``8Gi``."""
    if name == "cpu":
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    return binary(amount) if name in ("memory", "ephemeral-storage") or name.startswith("hugepages-") else str(amount)


def counts(name: str) -> bool:
    """Return whether kube-scheduler counts a resource (pkg/scheduler/util ``IsScalarResourceName``)."""
    return name in _NATIVE or "/" in name or name.startswith(_PREFIXES)


def is_native(name: str) -> bool:
    """Return whether a resource is Kubernetes' own, and not an extended one (pkg/apis/core/v1/helper ``IsNativeResource``)."""
    return "/" not in name or "kubernetes.io/" in name


def amounts(value: Mapping[Any, Any]) -> dict[str, int]:
    """Return those of a map of quantities that are counted and can be read."""
    read = ((text_of(name), to_units(text_of(name), amount)) for name, amount in value.items())
    return {name: amount for name, amount in read if amount is not None and counts(name)}


def requests(spec: Mapping[Any, Any]) -> RequestedAmounts:
    """Return what a pod with this spec requests."""
    return _whole_pod(spec, ("requests", "limits"))


def limits(spec: Mapping[Any, Any]) -> RequestedAmounts:
    """Return the limits of a pod with this spec, which add up as requests do (k8s.io/component-helpers resource ``PodLimits``)."""
    return _whole_pod(spec, ("limits",))


def has_pod_level(spec: Mapping[Any, Any]) -> bool:
    """Return whether a pod has requests or limits of its own (``IsPodLevelResourcesSet``)."""
    sides = (map_at(spec, "resources", side) for side in ("requests", "limits"))
    return any(name in _OF_WHOLE_POD or text_of(name).startswith(_PREFIXES[0]) for side in sides for name in side)


def _whole_pod(spec: Mapping[Any, Any], sides: Sequence[str]) -> RequestedAmounts:
    sums = _sums_of_containers(spec, sides)
    total = sums.total()
    sums.whole_pod(map_at(spec, "resources"), total)
    sums.overhead(map_at(spec, "overhead"), total)
    amounts_of = {name: _in_units(name, amount) for name, amount in total.items()}
    return RequestedAmounts(amounts_of, sums.paths, frozenset(sums.unreadable), sums.largest)


def _sums_of_containers(spec: Mapping[Any, Any], sides: Sequence[str]) -> _Sums:
    sums = _Sums(sides)
    for path, container in containers_of(spec):
        (sums.container if path[1] == "containers" else sums.init_container)(container, path)
    return sums


_Thousandths = dict[str, int]


class _Sums:
    """Adds up the containers of one pod. ``sides``: requests, filled from limits, or limits alone."""

    def __init__(self, sides: Sequence[str]) -> None:
        self._sides = sides
        self.paths: dict[str, Path] = {}
        self.unreadable: set[str] = set()
        self._most: _Thousandths = {}
        self._running: _Thousandths = {}
        self._sidecars: _Thousandths = {}
        self._starting: _Thousandths = {}

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

    def total(self) -> _Thousandths:
        _raise(self._running, self._starting)
        return self._running

    def whole_pod(self, resources: Mapping[Any, Any], total: _Thousandths) -> None:
        """Requests of the whole pod replace the sum. A limit alone is the request of what no container asks for, and of
        hugepages in any case (``defaultPodRequests``)."""
        for side in self._sides:
            for name, value in map_at(resources, side).items():
                read = _in_thousandths(text_of(name), value)
                of_containers = name in _OF_WHOLE_POD and name in total
                if not (name in _OF_WHOLE_POD or text_of(name).startswith("hugepages-")):
                    continue
                if read is None:
                    self.unreadable.add(text_of(name))
                elif side == self._sides[0] or (name not in map_at(resources, "requests") and not of_containers):
                    total[text_of(name)] = read
                    self.paths[text_of(name)] = ("spec", "resources", side, text_of(name))

    @property
    def largest(self) -> dict[str, int]:
        """The most of each resource that one container asks for."""
        return {name: _in_units(name, amount) for name, amount in self._most.items()}

    def overhead(self, overhead: Mapping[Any, Any], total: _Thousandths) -> None:
        """The overhead of the runtime class comes on top, of limits only where there is one."""
        for key, value in overhead.items():
            name = text_of(key)
            read = _in_thousandths(name, value)
            if read is None:
                self.unreadable.add(name)
            elif counts(name) and ("requests" in self._sides or total.get(name)):
                _add(total, {name: read})
                self.paths.setdefault(name, ("spec", "overhead", name))

    def _requests(self, container: Mapping[Any, Any], path: Path) -> _Thousandths:
        """Return the requests of a container, filled from its limits."""
        requested: _Thousandths = {}
        for side in self._sides:
            for key, value in map_at(container, "resources", side).items():
                name = text_of(key)
                if name in requested or name in self.unreadable or not counts(name):
                    continue
                read = _in_thousandths(name, value)
                if read is None:
                    self.unreadable.add(name)
                    continue
                requested[name] = read
                if read > self._most.get(name, -1):
                    self._most[name] = read
                    self.paths[name] = (*path, "resources", side, name)
        return requested


def _add(total: _Thousandths, more: _Thousandths) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise(total: _Thousandths, others: _Thousandths) -> None:
    for name, amount in others.items():
        total[name] = max(total.get(name, amount), amount)


def host_ports(spec: Mapping[Any, Any]) -> Iterator[HostPort]:
    """Yield the ports of the host that containers and sidecars take (pkg/scheduler/util ``GetHostPorts``)."""
    sidecars = (container for container in maps_in(spec.get("initContainers")) if container.get("restartPolicy") == "Always")
    for container in (*sidecars, *maps_in(spec.get("containers"))):
        for port in maps_in(container.get("ports")):
            number = port.get("hostPort") or (port.get("containerPort") if spec.get("hostNetwork") is True else None)
            if isinstance(number, int) and not isinstance(number, bool) and number > 0:
                yield HostPort(text_of(port.get("hostIP")) or ANY, text_of(port.get("protocol")) or "TCP", number)


COMPUTE = ("cpu", "memory")
"""The resources that the class depends on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A container's resources, or the pod's own."""

    who: str
    """The container's name; "" for the pod level."""
    path: Path
    """The path of the map with requests and limits."""
    requests: Mapping[str, Any]
    limits: Mapping[str, Any]

    def limit(self, name: str) -> int | None:
        """Return the limit in thousandths: zero if it is absent or counts for nothing; None if it cannot be read."""
        return _counted(name, self.limits.get(name, 0))

    def request(self, name: str) -> int | None:
        """Return the request, or the limit if no request is written, which is what the API server fills
        in."""
        return _counted(name, self.requests[name]) if name in self.requests else self.limit(name)


def _counted(name: str, value: object) -> int | None:
    amount = _in_thousandths(name, value)
    return None if amount is None else max(amount, 0)


def shortfalls(pod: Pod) -> tuple[tuple[Level, str], ...]:
    """Return what keeps this pod from being of QoS class Guaranteed, in the pod's order; empty if it is
    Guaranteed. An amount that cannot be read keeps it from being so."""
    return tuple((at, name) for at in _levels(pod) for name in COMPUTE if not _equal(at, name))


def _levels(pod: Pod) -> Iterator[Level]:
    if pod.resources is not None:
        requests, limits = pod.resources
        yield Level(who="", path=POD_LEVEL, requests=_filled_in(pod, requests, limits), limits=limits)
        return
    for at in pod.containers:
        yield Level(who=at.name, path=(*at.path, "resources"), requests=at.requests, limits=at.limits)


def _filled_in(pod: Pod, requests: Mapping[str, Any], limits: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the pod-level requests with those that the API server fills in if nobody wrote them: of a limit, what the
    containers ask for together (``DefaultPodLevelResources`` in pkg/api/pod/util.go, after webhooks that mutate; before
    1.37 ``defaultPodRequests`` in pkg/apis/core/v1/defaults.go, before them). Without a limit they count as "0"."""
    named = {name for at in pod.containers for name in at.resource_names}
    total = _sums_of_containers(pod.spec, ("requests", "limits")).total()
    return {**{name: _written(name, total.get(name, 0)) if name in limits else "0" for name in COMPUTE if name in named}, **requests}


def _written(name: str, thousandths: int) -> str:
    whole, rest = divmod(thousandths, 1000)
    return f"{thousandths}m" if rest else binary(whole) if name == "memory" else str(whole)


def _equal(at: Level, name: str) -> bool:
    limit = at.limit(name)
    return bool(limit) and at.request(name) == limit
