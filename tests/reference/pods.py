"""A pod read the long way: its containers, its owner, the workloads it is known as."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from catalog import Catalog
from kube.quantity import QuantityError, parse
from policies.policy import Match

Raw = dict[str, Any]
SIDES = ("limits", "requests")


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
        if asked != limits or any(limit is None or limit <= 0 for limit in limits):
            return False
    return bool(levels)


def is_count(value: object) -> bool:
    amount = number(value)
    return amount is not None and amount >= 0 and amount.denominator == 1


def containers(pod: Raw) -> list[Container]:
    spec = pod.get("spec") or {}
    init = [Container(raw=c, init=True, sidecar=c.get("restartPolicy") == "Always") for c in spec.get("initContainers") or ()]
    return init + [Container(raw=c, init=False, sidecar=False) for c in spec.get("containers") or ()]


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


def matches(match: Match, pod: Raw, catalog: Catalog) -> bool:
    """Everything but the namespace selector and the number of devices."""
    if match.pod_selector is not None and not match.pod_selector.matches(metadata(pod, "labels")):
        return False
    return not match.workloads or bool(workloads(pod, catalog) & set(match.workloads))


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
