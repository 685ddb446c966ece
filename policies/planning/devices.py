"""The accelerators that a pod asks for and how many, as intervals: by resource name, by claim, and as a
fraction by annotation.

Every accelerator counts. An amount that cannot be counted (not a quantity, a claim that does not exist,
``allocationMode: All``) makes the upper bound open and takes nothing from the lower one.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor

from catalog import Catalog, Resource
from kube.pod import ANY_NUMBER, NONE, ONE, Container, CountInterval, Pod, is_requested, of_amounts
from kube.tree import Raw
from policies.facts.device_requests import UNREAD_CLAIM, Claim, RequestChoice
from policies.fixes import Fix, amount_paths, request_fewer
from policies.pods import unlisted_accelerators
from policies.pods.fractions import FRACTION_DEVICES, FRACTION_ENDS, FRACTIONS, annotated_fraction, fraction_keys
from policies.state.snapshot import NamespaceFacts, Snapshot


@dataclass(frozen=True, slots=True)
class RequestedDevice:
    """One accelerator resource name that the pod asks for."""

    resource: Resource
    count: CountInterval
    """The number of devices at once."""
    containers: tuple[Container, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """The devices that one request of one resource claim asks for."""

    kind: str
    """ResourceClaim or ResourceClaimTemplate."""
    name: str
    count: CountInterval
    vendors: frozenset[str]
    """The vendors of the classes that may serve it; "" for an unknown class."""
    found: bool = True
    """False if the claim does not exist, so that nothing of it is known."""
    unread: bool = False
    """True if Berth keeps nothing but the name of the claim."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedDevices:
    """All accelerators that a pod asks for."""

    asked: tuple[RequestedDevice, ...]
    """The devices asked for by resource name, sorted by it."""
    claimed: tuple[Claimed, ...]
    """The requests for accelerators alone, in the pod's order."""
    fraction: CountInterval
    """The number of devices of which the pod takes a part by annotation."""
    vendors: frozenset[str]
    """The vendors of the devices, as far as they are known."""

    @property
    def any(self) -> bool:
        """True if the pod asks for an accelerator, or a part of one, in any way."""
        return bool(self.asked or self.claimed) or self.fraction != NONE

    @property
    def missing(self) -> tuple[tuple[str, str], ...]:
        """The (kind, name) of every claim that does not exist."""
        return tuple(dict.fromkeys((claim.kind, claim.name) for claim in self.claimed if not claim.found))

    @property
    def units(self) -> CountInterval:
        """The number of devices, where a slice or a replica counts as one. Policies match by this number,
        so that renaming a resource changes no match. Beside devices, an annotation makes nothing certain:
        the default scheduler ignores it, so nobody escapes a match by it."""
        fraction = CountInterval(0, self.fraction.most) if self.asked or self.claimed else self.fraction
        return _sum((*(a.count for a in self.asked), *(c.count for c in self.claimed), fraction))

    def whole(self, catalog: Catalog) -> CountInterval:
        """Return the number of devices as ``gpusPerPod`` counts them: slices and partitions by the part of
        a device that each may be, added up and rounded down; a fraction of one device alone is less than
        one."""
        whole = [a.count for a in self.asked if not _is_divided(a.resource)]
        parts = [(a.count, *share(a.resource, catalog)) for a in self.asked if _is_divided(a.resource)]
        least = sum((least * amount.least for amount, least, _ in parts), Fraction(0)) if parts else 0
        unknown = any(amount.most is None for amount, _, _ in parts)
        most = None if unknown else floor(sum((most * (amount.most or 0) for amount, _, most in parts), Fraction(0))) if parts else 0
        fraction = NONE if self.fraction == ONE else self.fraction
        return _sum((CountInterval(floor(least), most), *whole, *(c.count for c in self.claimed), fraction))

    def at_least(self, catalog: Catalog) -> Fraction:
        """Return the devices that the pod certainly takes, slices and partitions by the part of a device
        that each is at least: what it costs."""
        parts = ((a.count.least, share(a.resource, catalog)[0] if _is_divided(a.resource) else 1) for a in self.asked)
        return Fraction(sum(count * part for count, part in parts)) + sum(claim.count.least for claim in self.claimed)


def _sum(counts: Iterable[CountInterval]) -> CountInterval:
    total = NONE
    for one in counts:
        total += one
    return total


def read_devices(pod: Pod, facts: NamespaceFacts, *, final: bool = False) -> RequestedDevices:
    """Return what this pod asks for, under a namespace's facts. ``final``: no repair will make its
    requests equal to its limits any more."""
    by_name, claimed, part = requested_names(pod, facts.snapshot, final=final), tuple(_claimed(pod, facts)), fraction(pod)
    vendors = {a.resource.vendor for a in by_name}.union(*(claim.vendors for claim in claimed))
    if not by_name and part != NONE:
        vendors.add("nvidia")  # KAI and Run:ai share NVIDIA GPUs alone
    return RequestedDevices(asked=by_name, claimed=claimed, fraction=part, vendors=frozenset(vendors - {"", "any"}))


def requested_names(pod: Pod, snapshot: Snapshot, *, final: bool = False) -> tuple[RequestedDevice, ...]:
    """Return the accelerator resource names of which the pod asks for more than zero, sorted."""
    found: dict[str, tuple[Resource, list[Container]]] = {}
    for container in pod.containers:
        for name in container.resource_names:
            resource = snapshot.resource(name)
            if resource is not None and is_requested(container, name):
                found.setdefault(name, (resource, []))[1].append(container)
    return tuple(
        RequestedDevice(resource, _counted(pod, resource, found, final=final), tuple(containers))
        for name, (resource, containers) in sorted(found.items(), key=lambda item: item[0])
    )


def needs_evaluation(raw: Raw, snapshot: Snapshot) -> bool:
    """Return whether the engine evaluates a pod, of any size; at once if it does. Raises PodError."""
    pod = Pod(raw)
    return bool(pod.claims or annotated_fraction(pod)) or any(
        name in snapshot.catalog.misspellings or (snapshot.resource(name) is not None and is_requested(container, name))
        for container in pod.containers
        for name in container.resource_names
    )


def _counted(pod: Pod, resource: Resource, found: Mapping[str, tuple[Resource, list[Container]]], *, final: bool) -> CountInterval:
    """Return the devices asked for by one resource name. If it is a part that no list measures, the number
    is unknown."""
    if unlisted_accelerators.is_part(resource):
        return ANY_NUMBER
    if resource.kind != "part":
        return pod.devices(resource.name, both=final and resource.kind == "dra")
    maker = resource.name.partition("/")[0]
    return pod.at_once(lambda c: _behind(c, resource, [found[n][0] for n in c.resource_names if n in found and n.startswith(f"{maker}/")]))


def _behind(container: Container, resource: Resource, made: Sequence[Resource]) -> CountInterval:
    """Return the devices of which a container asks for a part by this name. Devices that it also asks for
    (``made``: all resources of one maker) are counted by their own names. Of several parts only the first
    name counts, with the largest number that any of them gives."""
    parts = [one for one in made if one.kind == "part"]
    if not parts or parts[0] != resource or len(parts) < len(made):
        return NONE
    counts = [_of_part(one, of_amounts(container.limits.get(one.name), container.requests.get(one.name))) for one in parts]
    return functools.reduce(operator.or_, counts)


def _of_part(part: Resource, amount: CountInterval) -> CountInterval:
    if part.unit is None:
        return ONE
    return CountInterval(-(-amount.least // part.unit), None if amount.most is None else -(-amount.most // part.unit))


def _claimed(pod: Pod, facts: NamespaceFacts) -> Iterator[Claimed]:
    claims, snapshot = facts.snapshot.cluster.claims, facts.snapshot
    seen = set[tuple[str, str]]()
    for kind, name in pod.claims:
        if kind == "ResourceClaim" and (kind, name) in seen:
            continue  # one claim, however often the pod names it; of a template, each makes another
        seen.add((kind, name))
        requests = claims.get((kind, facts.namespace, name))
        if requests is None:
            yield Claimed(kind=kind, name=name, count=ANY_NUMBER, vendors=frozenset({""}), found=False)
        if requests == UNREAD_CLAIM:
            yield Claimed(kind=kind, name=name, count=ANY_NUMBER, vendors=frozenset({""}), unread=True)
            continue
        for choices in requests or ():
            vendors = frozenset(snapshot.class_vendor(c.device_class) for c in choices if snapshot.counts(c.device_class))
            if vendors:
                yield Claimed(kind=kind, name=name, count=of_request(choices, snapshot), vendors=vendors)


def of_request(choices: Sequence[RequestChoice], snapshot: Snapshot) -> CountInterval:
    """Return the accelerators that one request of a claim asks for, from the alternative with the fewest
    to the one with the most."""
    counts = [CountInterval(c.least, c.most) if snapshot.counts(c.device_class) else NONE for c in choices]
    if not counts:
        return NONE
    most = [count.most for count in counts if count.most is not None]
    return CountInterval(min(count.least for count in counts), max(most) if len(most) == len(counts) else None)


def of_claim(claim: Claim, snapshot: Snapshot) -> CountInterval:
    """Return the accelerators that a whole claim asks for."""
    return _sum(of_request(choices, snapshot) for choices in claim)


def fraction(pod: Pod) -> CountInterval:
    """Return the devices of which KAI or Run:ai gives the pod a part: one, or as many as its annotation
    requests, for each container that its annotations name. An annotation that is no part of one device, or that
    cannot be read, may stand for any number."""
    keys = fraction_keys(pod.annotations)
    if not keys:
        return NONE
    containers = {key.removesuffix(end) for key in keys for end in FRACTION_ENDS if key.endswith(end)}
    number = str(pod.annotations.get(FRACTION_DEVICES, "1"))
    part = str(pod.annotations.get(FRACTIONS[0], "1"))
    if not _NUMBER.fullmatch(number) or not _PART.fullmatch(part):
        return CountInterval(1, None)
    return CountInterval(int(number), max(1, len(containers)) * int(number)) | ONE


_NUMBER = re.compile(r"[0-9]{1,9}")
"""At most nine digits: more devices than any cluster has."""
_PART = re.compile(r"0*\.[0-9]{1,18}|0*1(\.0{0,18})?|0+")
"""A decimal number of at most one."""


def _is_divided(resource: Resource) -> bool:
    return resource.parts is not None or resource.kind == "mig"


def share(resource: Resource, catalog: Catalog) -> tuple[Fraction, Fraction]:
    """Return the (least, most) part of a whole device that one of this resource may be. A slice of no
    known model may be nearly nothing, or all of it."""
    if resource.parts is not None:
        return Fraction(1, max(resource.parts)), Fraction(1, min(resource.parts))
    if resource.kind != "mig":
        return Fraction(1), Fraction(1)
    return catalog.slice_shares.get(resource.profile or "", (Fraction(0), Fraction(1)))


def fix_counts(requested: RequestedDevices, allowed: Sequence[int], catalog: Catalog) -> Iterator[Fix]:
    """Yield the fixes by which a pod requests one of these numbers of devices, as ``gpusPerPod`` counts them: more or fewer of a name that
    one container requests, fewer of one that several do."""
    for device in requested.asked:
        name, count = device.resource.name, device.count.most or device.count.least
        others = replace(requested, asked=tuple(other for other in requested.asked if other is not device)).whole(catalog)
        part = share(device.resource, catalog)[1]
        numbers = sorted(floor((number - (others.most or others.least)) / part) for number in allowed)
        paths = amount_paths(device.containers[0], name) if len(device.containers) == 1 else ()
        yield from (Fix("lower", paths, value=str(number)) for number in numbers if paths and number > count)
        yield from request_fewer(name, count, *reversed(numbers))
