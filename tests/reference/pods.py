"""Who a pod is and what it asks for, read the long way (design section 4's table, the counting rule of section 2)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from policies.catalog import Catalog, Resource
from policies.cluster_facts import ClusterFacts
from policies.policy import Match
from policies.quantity import QuantityError, parse

Raw = dict[str, Any]
SIDES = ("limits", "requests")
GPU_KINDS = ("gpu", "shared", "mig", "partition", "dra")


@dataclass(frozen=True, kw_only=True)
class Container:
    raw: Raw
    init: bool
    sidecar: bool

    def side(self, name: str) -> Raw:
        return (self.raw.get("resources") or {}).get(name) or {}

    def names(self) -> list[str]:
        return sorted({*self.side("limits"), *self.side("requests")})

    def amount(self, name: str) -> Any:
        return self.side("limits").get(name, self.side("requests").get(name))

    def asks(self, name: str) -> bool:
        return any(name in self.side(s) and number(self.side(s)[name]) != 0 for s in SIDES)


def number(value: object) -> Fraction | None:
    """None: not a quantity."""
    try:
        return parse(value)
    except QuantityError:
        return None


def duration(text: str | None) -> float | None:
    """Seconds of a Go duration; None: it is none."""
    units = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
    sign, body = (-1, text[1:]) if text and text[0] == "-" else (1, (text or "").removeprefix("+"))
    parts = re.findall(r"(\d+\.?\d*|\.\d+)(ms|us|ns|h|m|s)", body)
    if "".join(map("".join, parts)) != body or not body:
        return 0 if body == "0" else None
    return sign * sum(float(amount) * units[unit] for amount, unit in parts)


def guaranteed(pod: Raw) -> bool:
    """Whether the QoS class is Guaranteed: the pod's own resources decide where it has any."""
    own = (pod.get("spec") or {}).get("resources")
    levels = containers(pod) if own is None else [Container(raw={"resources": own}, init=False, sidecar=False)]
    for name in ("cpu", "memory"):
        limits = [number(level.side("limits").get(name, 0)) for level in levels]
        asked = [number(level.side("requests").get(name, level.side("limits").get(name, 0))) for level in levels]
        if any(limit is None or limit <= 0 for limit in limits) or None in asked:
            return False
        if sum(max(a, Fraction(0)) for a in asked if a is not None) != sum(limit for limit in limits if limit is not None):
            return False
    return bool(levels)


def is_count(value: object) -> bool:
    amount = number(value)
    return amount is not None and amount >= 0 and amount.denominator == 1


def containers(pod: Raw) -> list[Container]:
    spec = pod.get("spec") or {}
    init = [Container(raw=c, init=True, sidecar=c.get("restartPolicy") == "Always") for c in spec.get("initContainers") or ()]
    return init + [Container(raw=c, init=False, sidecar=False) for c in spec.get("containers") or ()]


def accelerators(pod: Raw, catalog: Catalog) -> dict[str, Resource]:
    """Every accelerator resource that some container asks for."""
    found = {}
    for container in containers(pod):
        for name in container.names():
            resource = catalog.resource(name)
            if resource is not None and container.asks(name):
                found[name] = resource
    return found


def devices(pod: Raw, name: str) -> int | None:
    """Devices of one name at once: an init container runs beside the sidecars before it, the others beside all sidecars."""
    amounts = []
    for container in containers(pod):
        amount = number(0 if container.amount(name) is None else container.amount(name))
        if amount is None or amount < 0 or amount.denominator != 1:
            return None
        amounts.append((container, int(amount)))
    moments = [sum(n for c, n in amounts if c.sidecar or not c.init)]
    for at, (container, count) in enumerate(amounts):
        if container.init:
            moments.append(count + sum(n for c, n in amounts[:at] if c.sidecar))
    return max(moments)


def claims(pod: Raw, namespace: str, cluster: ClusterFacts) -> list[tuple[str, int]] | None:
    """(device class, count) of every resource claim; None where one is not known or asks for all."""
    out: list[tuple[str, int]] = []
    for claim in (pod.get("spec") or {}).get("resourceClaims") or ():
        template = claim.get("resourceClaimTemplateName")
        kind = "ResourceClaimTemplate" if template else "ResourceClaim"
        asked = cluster.claims.get((kind, namespace, template or claim.get("resourceClaimName")))
        if asked is None or any(count == 0 for _, count in asked):
            return None
        out += asked
    return out


def vendor_of_class(device_class: str, catalog: Catalog, cluster: ClusterFacts) -> str | None:
    return catalog.dra_drivers.get(cluster.device_classes.get(device_class) or device_class)


def metadata(pod: Raw, field: str) -> Mapping[str, str]:
    return (pod.get("metadata") or {}).get(field) or {}


def owner(pod: Raw) -> Raw:
    return next((o for o in (pod.get("metadata") or {}).get("ownerReferences") or () if o.get("controller")), {})


def workloads(pod: Raw, catalog: Catalog) -> set[str]:
    """Names of the workloads whose signature the pod carries."""
    labels, who = metadata(pod, "labels"), owner(pod)
    group = str(who.get("apiVersion", "")).rpartition("/")[0]
    found = set()
    for workload in catalog.workloads:
        by_label = any(
            key in labels and (not equals or labels[key] == value) for key, equals, value in (one.partition("=") for one in workload.labels)
        )
        if (group, who.get("kind", "")) in workload.owners or by_label:
            found.add(workload.name)
    return found


def matches(match: Match, pod: Raw, catalog: Catalog, gpus: int | None) -> bool:
    """Everything but the namespace selector. ``gpus``: devices asked for; None: can't be read."""
    if match.pod_selector is not None and not match.pod_selector.matches(metadata(pod, "labels")):
        return False
    if match.workloads and not workloads(pod, catalog) & set(match.workloads):
        return False
    if match.gpus is None:
        return True
    low, high = match.gpus.min, match.gpus.max
    return gpus is not None and (low is None or gpus >= low) and (high is None or gpus <= high)


@dataclass(kw_only=True)
class Row:
    """What the actor table lets happen to this pod."""

    mirror: bool = False
    tolerations: bool = True
    driver_only: bool = False
    affinity: str = "write"
    rename: bool = True
    repair: bool = True
    grace: str = "yes"
    annotations: str = "yes"
    refuses: set[str] | None = None
    """None: everything"""


def row(pod: Raw, catalog: Catalog, queues: tuple[str, ...], asked: bool) -> Row:
    """Of the edits the least, of the refusals the most."""
    spec, labels, annotations = pod.get("spec") or {}, metadata(pod, "labels"), metadata(pod, "annotations")
    who, out = owner(pod), Row()
    refusals: list[set[str] | None] = []
    if "kubernetes.io/config.mirror" in annotations:
        return Row(mirror=True)
    kinds = {w.name: w for w in catalog.workloads}
    scheduler = spec.get("schedulerName")
    if any(kinds[w].service for w in workloads(pod, catalog)) or who.get("kind") in ("ReplicaSet", "StatefulSet"):
        out.grace = out.annotations = "named"
        refusals.append(None)
    if pinned(pod) is not None:
        out.affinity, out.rename, out.repair, out.grace, out.annotations = "no", False, False, "no", "no"
        refusals.append({"mismatch", "node"})
    if spec.get("nodeName"):
        out.tolerations, out.affinity, out.rename, out.grace, out.annotations = False, "no", False, "no", "no"
        refusals.append({"mismatch", "node"})
    queued = who and ("kueue.x-k8s.io/queue-name" in labels or "kueue.x-k8s.io/podset" in labels)
    if scheduler in ("kai-scheduler", "volcano", "runai-scheduler") or queued:
        out.rename = False
        refusals.append(None)
    flavors = "kueue" if labels.get("kueue.x-k8s.io/pod-group-name") else "slurm-bridge" if scheduler == "slurm-bridge-scheduler" else ""
    if flavors and flavors in queues:
        out.rename = False
        out.affinity = "judge" if out.affinity == "write" else out.affinity
        refusals.append({"left"})
    if not asked and ("gpu-fraction" in annotations or "gpu-memory" in annotations):
        out.affinity, out.rename, out.repair = "no", False, False
        refusals.append(set())
    elif not asked and spec.get("resourceClaims"):
        out.affinity, out.rename, out.driver_only = "no", False, True
        refusals.append({"counts"})
    if refusals and None not in refusals:
        out.refuses = set().union(*(r for r in refusals if r is not None))
    return out


def pinned(pod: Raw) -> str | None:
    """The one node that every required term names."""
    terms = (((pod.get("spec") or {}).get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    ) or {}
    names = set()
    for term in terms.get("nodeSelectorTerms") or ():
        field = next(
            (f for f in term.get("matchFields") or () if f["key"] == "metadata.name" and f["operator"] == "In" and len(f["values"]) == 1),
            None,
        )
        names.add(None if field is None else field["values"][0])
    return names.pop() if len(names) == 1 else None
