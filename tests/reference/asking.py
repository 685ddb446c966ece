"""What a pod asks for, as (at least, at most): by resource name, by claim, and as a part of a GPU
(``docs/laws.md``, law 10: "guardrails hold for every author").

Written apart from ``policies.planning.devices`` and ``kube.pod``. Nothing that can't be read counts for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from fractions import Fraction
from math import ceil
from typing import Any

from catalog import Catalog, Resource
from policies.facts.cluster_facts import ClusterFacts
from tests.reference import pods
from tests.reference.pods import Container, Raw, number

Span = tuple[int, int | None]
"""(at least, at most); None: nobody can say"""
OPEN: Span = (0, None)
PARTS = ("gpu-fraction", "gpu-memory")
"""annotations by which KAI and Run:ai give a pod a part of a GPU"""
PARTS_OF = (".gpu-memory.request", ".gpu-memory.limit", ".gpu-memory.portion.limit")
"""ends of KAI's annotations for one container"""
HAMI = {
    "nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores",
    "volcano.sh/vgpu-memory", "volcano.sh/vgpu-memory-percentage", "volcano.sh/vgpu-cores",
}  # fmt: skip
"""resource names by which HAMi, and Volcano with its device plugin, give a container a part of a GPU"""
MOST_DIGITS = 9


def together(spans: Iterable[Span]) -> Span:
    """One sum of all."""
    spans = list(spans)
    return sum(least for least, _ in spans), _most([most for _, most in spans], sum)


def larger(spans: Iterable[Span]) -> Span:
    """The largest, at either end."""
    spans = list(spans)
    return max(least for least, _ in spans), _most([most for _, most in spans], max)


def _most(ends: list[int | None], take: Any) -> int | None:
    known = [end for end in ends if end is not None]
    return int(take(known)) if len(known) == len(ends) else None


# --- by resource name --------------------------------------------------------------------------------------------------


def meaning(name: str, catalog: Catalog, cluster: ClusterFacts) -> Resource | None:
    """What a resource name stands for, by the catalog, else by the DeviceClass that offers its devices under it (KEP-5004)."""
    listed = catalog.resource(name)
    if listed is not None and listed.kind != "dra":
        return listed
    classes = class_behind(name, catalog, cluster)
    if not classes:
        return Resource(name=name, vendor="", kind="other") if looks_like_one(name, catalog) else None
    if not is_accelerator(classes[0], catalog, cluster):
        return None
    vendor = vendor_of_class(classes[0], catalog, cluster)
    return replace(listed, vendor=vendor) if listed is not None else Resource(name=name, vendor=vendor, kind="dra")


WORDS = {"cuda", "vcuda", "mig", "accelerator", "gaudi", "neuron", "neuroncore", "neurondevice", "ascend", "trainium"}
THREE = {"npu", "tpu", "xpu", "hpu", "dcu", "mlu", "gcu", "ppu", "vpu"}


def looks_like_one(name: str, catalog: Catalog) -> bool:
    """Whether a name in no list says that it is an accelerator: by a word, or by the domain of who makes nothing else."""
    domain, slash, _ = name.partition("/")
    if not slash or name in catalog.misspellings or domain.endswith("kubernetes.io"):
        return False
    if any(fnmatchcase(name.lower(), glob) for glob in catalog.not_accelerators):
        return False
    made = any(domain == maker or domain.endswith("." + maker) for maker in catalog.accelerator_domains)
    return made or any(_says_so(word) for word in re.split("[^a-z]+", name.lower()))


def _says_so(word: str) -> bool:
    """In the singular, in the plural, or as the number of them."""
    stems = {word, word.removesuffix("s"), word.removesuffix("num")}
    return any(s in WORDS or (s[-3:] == "gpu" and len(s) <= 5) or (s[-3:] in THREE and len(s) <= 4) for s in stems)


def class_behind(name: str, catalog: Catalog, cluster: ClusterFacts) -> list[str]:
    """The classes that offer their devices under a name; the first is meant."""
    if catalog.resource(name) is not None:
        return [name.partition("/")[2]]
    return [c for c, known in cluster.device_classes.items() if "/" in name and known.extended == name]


def accelerators(pod: Raw, catalog: Catalog, cluster: ClusterFacts) -> dict[str, Resource]:
    """Every accelerator resource that some container asks for."""
    found = {}
    for container in pods.containers(pod):
        for name in container.names():
            resource = meaning(name, catalog, cluster)
            if resource is not None and container.asks(name):
                found[name] = resource
    return found


def devices(pod: Raw, name: str, *, by_both: bool = False) -> Span:
    """Devices of one name at once: an init container runs beside the sidecars before it, the others beside all sidecars.
    ``by_both``: where request and limit may differ, it is one of the two."""
    spans = [(container, amount(container, name, by_both=by_both)) for container in pods.containers(pod)]
    moments = [together(span for c, span in spans if c.sidecar or not c.init)]
    for at, (container, span) in enumerate(spans):
        if container.init:
            moments.append(together([span, *(other for c, other in spans[:at] if c.sidecar)]))
    return larger(moments)


def amount(container: Container, name: str, *, by_both: bool) -> Span:
    amounts = [container.side(side)[name] for side in pods.SIDES if container.side(side).get(name) is not None]
    spans = [whole(value) for value in amounts]
    if not spans:
        return 0, 0
    return (min(least for least, _ in spans), larger(spans)[1]) if by_both else spans[0]


def whole(value: object) -> Span:
    """Rounded up, as the scheduler does."""
    read = number(value)
    return OPEN if read is None or read < 0 else (ceil(read), ceil(read))


# --- by claim ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Claimed:
    """One request of one claim."""

    there: bool
    span: Span
    vendors: frozenset[str]
    """"": a class that nobody knows"""


def claims(pod: Raw, namespace: str, catalog: Catalog, cluster: ClusterFacts) -> list[Claimed]:
    """What the claims ask for in accelerators; one that is not there may ask for anything."""
    out = []
    for claim in (pod.get("spec") or {}).get("resourceClaims") or ():
        template = claim.get("resourceClaimTemplateName")
        kind = "ResourceClaimTemplate" if template else "ResourceClaim"
        requests = cluster.claims.get((kind, namespace, template or claim.get("resourceClaimName") or ""))
        if requests is None:
            out.append(Claimed(there=False, span=OPEN, vendors=frozenset({""})))
        for choices in requests or ():
            counted = [c for c in choices if is_accelerator(c.device_class, catalog, cluster)]
            spans = [(c.least, c.most) if c in counted else (0, 0) for c in choices]
            if counted:
                vendors = frozenset(vendor_of_class(c.device_class, catalog, cluster) for c in counted)
                out.append(Claimed(there=True, span=(min(least for least, _ in spans), larger(spans)[1]), vendors=vendors))
    return out


def driver(device_class: str, cluster: ClusterFacts) -> str:
    """Of a class that doesn't tell, its own name: published classes are called by their driver."""
    known = cluster.device_classes.get(device_class)
    return known.driver if known is not None and known.driver else device_class


def is_accelerator(device_class: str, catalog: Catalog, cluster: ClusterFacts) -> bool:
    """All but those whose class says that its driver is another's: its name says nothing."""
    known = cluster.device_classes.get(device_class)
    return catalog.is_accelerator_driver(device_class if known is None else known.driver)


def vendor_of_class(device_class: str, catalog: Catalog, cluster: ClusterFacts) -> str:
    """ "" where nobody knows."""
    name = driver(device_class, cluster)
    brought = [one for one, devices in catalog.published.items() if name in devices.classes]
    return catalog.dra_drivers.get(brought[0] if brought else name, "")


def shared_in_class(device_class: str, catalog: Catalog, cluster: ClusterFacts) -> set[str]:
    """How devices of a class may be shared: as the type that it selects is, where its driver has types; else nobody tells, and they are
    taken for whole ones."""
    name, known = driver(device_class, cluster), cluster.device_classes.get(device_class)
    for one, devices in catalog.published.items():
        if devices.type is not None and (one == name or name in devices.classes):
            key = devices.type if "/" in devices.type else f"{one}/{devices.type}"
            selected = dict(known.equal).get(key, "") if known is not None else devices.classes.get(device_class, "")
            ways = {way for way, values in devices.sharing.items() if selected in values and way != "TimeSliced"}
            return ways or {"Exclusive", "MIG"}
    return {"Exclusive"}


# --- a part of a GPU ---------------------------------------------------------------------------------------------------


def by_annotation(pod: Raw) -> bool:
    return any(name in PARTS or name.endswith(PARTS_OF) for name in pods.metadata(pod, "annotations"))


def in_part(pod: Raw) -> bool:
    """Whether the pod gets parts of GPUs, as KAI, Run:ai or HAMi give them."""
    return by_annotation(pod) or any(HAMI.intersection(c.names()) for c in pods.containers(pod))


def parted(pod: Raw) -> Span:
    """Of how many GPUs it gets a part by annotation."""
    if not by_annotation(pod):
        return 0, 0
    annotations = pods.metadata(pod, "annotations")
    count, part = str(annotations.get("gpu-fraction-num-devices", "1")), str(annotations.get("gpu-fraction", "1"))
    if not (count.isascii() and count.isdecimal() and len(count) <= MOST_DIGITS) or not _is_a_part(part):
        return 1, None
    containers = {name[: -len(end)] for name in annotations for end in PARTS_OF if name.endswith(end)}
    return max(1, int(count)), max(1, int(count) * max(1, len(containers)))


def _is_a_part(text: str) -> bool:
    """A decimal of at most one."""
    return re.fullmatch(r"\d*\.?\d+", text, re.ASCII) is not None and Fraction(text) <= 1


# --- all of it ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Asking:
    """All that a pod asks for."""

    resources: dict[str, Resource]
    spans: dict[str, Span]
    claims: list[Claimed]
    parted: Span
    in_part: bool

    @property
    def anything(self) -> bool:
        """Any accelerator, or a part of one."""
        return bool(self.resources or self.claims) or self.parted != (0, 0)

    @property
    def units(self) -> Span:
        """As ``match.gpus`` counts: a slice, a partition, a part of a GPU is one. A part beside anything else may be none."""
        asked = [*self.spans.values(), *(c.span for c in self.claims)]
        return together([*asked, (0, self.parted[1]) if asked else self.parted])

    def wholes(self, catalog: Catalog) -> Span:
        """As ``gpusPerPod`` counts: slices and partitions by the part of a device that they are, one device's part alone for nothing."""
        low = high = Fraction(0)
        for name, (least, most) in self.spans.items():
            small, large = _part(self.resources[name], catalog)
            low, high = low + small * least, high + large * (most or 0)
        named = (int(low), None if any(most is None for _, most in self.spans.values()) else int(high))
        return together([named, *(c.span for c in self.claims), (0, 0) if self.parted == (1, 1) else self.parted])

    def vendors(self) -> set[str]:
        """Whose devices, as far as anybody knows."""
        found = {r.vendor for r in self.resources.values()}.union(*(c.vendors for c in self.claims))
        if self.parted != (0, 0) and not self.resources:
            found.add("nvidia")
        return found - {"", "any"}


def asking(pod: Raw, namespace: str, catalog: Catalog, cluster: ClusterFacts, *, stored: bool) -> Asking:
    """``stored``: as the API server will store it, so that nothing is repaired any more."""
    found = accelerators(pod, catalog, cluster)
    return Asking(
        resources=found,
        spans={name: devices(pod, name, by_both=stored and resource.kind == "dra") for name, resource in found.items()},
        claims=claims(pod, namespace, catalog, cluster),
        parted=parted(pod),
        in_part=in_part(pod),
    )


def _part(resource: Resource, catalog: Catalog) -> tuple[Fraction, Fraction]:
    """The least and the most of a device that one of these is: a slice is as large as its compute or its memory, whichever is more."""
    if resource.parts:
        return Fraction(1, max(resource.parts)), Fraction(1, min(resource.parts))
    if resource.kind != "mig":
        return Fraction(1), Fraction(1)
    sizes = []
    for gpu in catalog.gpus:
        for profile in gpu.mig:
            if profile.name.replace("+", ".") == resource.profile:
                compute = Fraction(profile.compute, max(p.compute for p in gpu.mig))
                sizes.append(max(compute, Fraction(profile.memory_gb, max(p.memory_gb for p in gpu.mig))))
    return (min(sizes), max(sizes)) if sizes else (Fraction(0), Fraction(1))
