"""What is judged of a claim: each way to satisfy each of its requests that may be met by accelerators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from catalog import Catalog
from catalog.published_devices import PublishedDevices
from kube.tree import Path, dotted, map_at
from policies.facts import device_requests
from policies.facts.device_requests import Claim, RequestChoice
from policies.lru import LruCache
from policies.request import Phase
from policies.state.snapshot import NamespaceFacts, Snapshot

SCHEDULER = "system:kube-scheduler"
EXTENDED = "resource.kubernetes.io/extended-resource-claim"
"""Annotation (k8s.io/api/resource/v1 ExtendedResourceClaimAnnotation)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRequest:
    """One claim or template that is being created. ``made`` is the object as decoded; it is never changed."""

    user: str = ""
    kind: str = "ResourceClaim"
    made: Mapping[str, Any] = field(default_factory=dict)
    phase: Phase = "mutate"

    @property
    def claim(self) -> Claim:
        """The requests."""
        return device_requests.claim(self.kind, self.made)

    @property
    def chosen(self) -> bool:
        """True for the claim that kube-scheduler makes for a pod's extended resources (KEP-5004): it has chosen the devices by then, and no
        selector would be asked. Told by its user, for anybody may write the annotation."""
        return self.user == SCHEDULER and map_at(self.made, "metadata", "annotations").get(EXTENDED) == "true"


class ClaimPart(NamedTuple):
    """One way to satisfy one request, of an accelerator."""

    path: Path
    """The path of the map that has its selectors."""
    choice: RequestChoice
    vendor: str
    """"" if the class is unknown."""
    devices: PublishedDevices | None
    """What the class's driver publishes; None if its driver is unknown."""
    type: str
    """The type of the class's devices, as its driver calls it; "" if it is unknown or any."""
    plain: bool
    """True if the class is known and selects nothing but a driver and a type: it says nothing of models."""
    texts: tuple[str, ...]
    """The CEL of its selectors."""

    @property
    def request(self) -> Path:
        """The path of the request that it satisfies."""
        return self.path[: self.path.index("requests") + 2]

    @property
    def where(self) -> str:
        """``spec.devices.requests[0]``, or ``spec.devices.requests[0].firstAvailable[1]``."""
        return dotted(self.path[:-1] if self.path[-1] == "exactly" else self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatedClaim:
    """A claim whose parts are judged."""

    request: ClaimRequest
    parts: tuple[ClaimPart, ...]
    least: int
    most: int | None
    """The devices that it asks for, in all; None if that is not known."""
    catalog: Catalog
    merged: LruCache[Any]
    """What was found for a class of devices and a set of policies before (``Snapshot.merged``)."""

    @property
    def several(self) -> bool:
        """True if a request has several alternatives."""
        return any(part.path[-2] == "firstAvailable" for part in self.parts)


def parts(request: ClaimRequest, facts: NamespaceFacts) -> Iterator[ClaimPart]:
    """Yield every way to satisfy every request, except those by devices that are no accelerators."""
    for one in device_requests.written_requests(request.kind, request.made):
        choice = device_requests.choice(one.value)
        if facts.snapshot.counts(choice.device_class):
            yield part_of(one.path, choice, device_requests.expressions(one.value), facts.snapshot)


def part_of(path: Path, choice: RequestChoice, texts: tuple[str, ...], snapshot: Snapshot) -> ClaimPart:
    """Return one way with these expressions, and what is known of its class."""
    name, vendor = choice.device_class, snapshot.class_vendor(choice.device_class)
    devices = snapshot.catalog.published.get(snapshot.catalog.driver(snapshot.cluster.driver(name)))
    known = snapshot.cluster.device_classes.get(name)
    if devices is None:
        return ClaimPart(path, choice, vendor, None, "", plain=False, texts=texts)
    if known is None:
        return ClaimPart(path, choice, vendor, devices, devices.classes.get(name, ""), plain=False, texts=texts)
    demanded = dict(known.equal)
    type_ = demanded.pop(devices.type_key, "")
    return ClaimPart(path, choice, vendor, devices, type_, known.plain and not demanded, texts)
