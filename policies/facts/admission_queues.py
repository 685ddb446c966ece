"""What is read of Kueue's LocalQueues, ClusterQueues and ResourceFlavors (kueue.x-k8s.io v1beta1 and v1beta2, which have the same
names for it). No content of an object makes a reader raise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from kube.labels import LabelSelector, selector_of
from kube.requests import is_native, to_units
from kube.taints import Taint, taints_in
from kube.tree import map_at, maps_in, text_of, texts_at

GROUP = "kueue.x-k8s.io"
KINDS = ("LocalQueue", "ClusterQueue", "ResourceFlavor")
FOLLOWED = "followed"
"""Stands in place of a kind: an entry of this kind says that all objects are known of the kind that it is named after."""
_STOPS = ("Hold", "HoldAndDrain")


class Toleration(NamedTuple):
    """A toleration that Kueue gives the pods of a flavor, as it is written there; "" for what is absent."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""

    def written(self) -> dict[str, str]:
        """Return it as a pod has it."""
        return {name: text for name, text in self._asdict().items() if text}


class Flavor(NamedTuple):
    """A ResourceFlavor: a kind of node."""

    labels: tuple[tuple[str, str], ...] = ()
    """``spec.nodeLabels``, sorted: pods that get it are confined to nodes with all of them."""
    taints: tuple[Taint, ...] = ()
    tolerations: tuple[Toleration, ...] = ()


class Quotas(NamedTuple):
    """A resource group of a ClusterQueue, as far as it is about devices."""

    resources: tuple[str, ...] = ()
    """The extended resources among ``coveredResources``."""
    flavors: tuple[str, ...] = ()
    """In the order in which Kueue tries them."""


class FlavorQuota(NamedTuple):
    """How much of a resource a ClusterQueue has in one flavor, in the units of ``kube.requests``."""

    flavor: str
    resource: str
    nominal: int
    borrowing: int | None = None
    """The most that it may borrow from its cohort; None: any amount."""
    lending: int | None = None
    """The most that it lends to its cohort; None: all."""


class ClusterQueue(NamedTuple):
    """A ClusterQueue."""

    groups: tuple[Quotas, ...] = ()
    stopped: str = ""
    """``Hold`` or ``HoldAndDrain``, under which nothing more is admitted; else ""."""
    takes: LabelSelector | None = LabelSelector()
    """The namespaces whose workloads it admits; None for null, which is none of them. One that can't be read is any."""

    quotas: tuple[FlavorQuota, ...] = ()
    cohort: str = ""
    reserved: tuple[tuple[tuple[str, str], int], ...] | None = None
    """((flavor, resource), what workloads have reserved), sorted; None if that is not known: the server does not follow it."""

    def covering(self, resource: str) -> Quotas | None:
        """Return the group of a resource: at most one covers it (the CRD's own rule)."""
        return next((group for group in self.groups if resource in group.resources), None)


class LocalQueue(NamedTuple):
    """A LocalQueue."""

    cluster_queue: str = ""
    stopped: str = ""


def is_kueues(thing: Any) -> bool:
    """Return whether an object is of Kueue's API group. One without apiVersion is one that is gone."""
    version = text_of(map_at(thing).get("apiVersion"))
    return not version or version.partition("/")[0] == GROUP


def flavor(thing: Any) -> Flavor:
    """Return a ResourceFlavor."""
    spec = map_at(thing, "spec")
    return Flavor(
        tuple(sorted(texts_at(spec, "nodeLabels").items())),
        tuple(taints_in(spec.get("nodeTaints"))),
        tuple(Toleration(*(text_of(one.get(name)) for name in Toleration._fields)) for one in maps_in(spec.get("tolerations"))),
    )


def cluster_queue(thing: Any) -> ClusterQueue:
    """Return a ClusterQueue."""
    groups = tuple(_quotas(group) for group in maps_in(map_at(thing, "spec").get("resourceGroups")))
    return ClusterQueue(
        tuple(group for group in groups if group.resources),
        _stopped(thing),
        _takes(map_at(thing, "spec")),
        tuple(quota for group in maps_in(map_at(thing, "spec").get("resourceGroups")) for quota in _flavor_quotas(group)),
        text_of(map_at(thing, "spec").get("cohortName")) or text_of(map_at(thing, "spec").get("cohort")),
        _reserved(map_at(thing, "status")),
    )


def local_queue(thing: Any) -> LocalQueue:
    """Return a LocalQueue."""
    return LocalQueue(text_of(map_at(thing, "spec").get("clusterQueue")), _stopped(thing))


def slimmed(thing: Any) -> dict[str, Any]:
    """Return the part of a ClusterQueue's spec that is read."""
    spec = map_at(thing, "spec")
    return {field: spec[field] for field in ("resourceGroups", "namespaceSelector", "stopPolicy", "cohort", "cohortName") if field in spec}


def followed(kinds: Iterable[str], among: Iterable[str] = KINDS) -> dict[tuple[str, str, str], Mapping[str, Any] | None]:
    """Return the changes by which all objects of these kinds, and of no others of those ``among`` which they are, are known from now on."""
    whole = frozenset(kinds)
    return {(FOLLOWED, "", kind): {} if kind in whole else None for kind in among}


def _quotas(group: Mapping[Any, Any]) -> Quotas:
    covered = group.get("coveredResources")
    resources = tuple(name for name in map(text_of, covered) if not is_native(name)) if isinstance(covered, list) else ()
    return Quotas(resources, tuple(text_of(one.get("name")) for one in maps_in(group.get("flavors"))))


def _flavor_quotas(group: Mapping[Any, Any]) -> Iterator[FlavorQuota]:
    for offered in maps_in(group.get("flavors")):
        for quota in maps_in(offered.get("resources")):
            resource = text_of(quota.get("name"))
            nominal, *bounds = (to_units(resource, quota.get(name)) for name in ("nominalQuota", "borrowingLimit", "lendingLimit"))
            if nominal is not None:
                yield FlavorQuota(text_of(offered.get("name")), resource, nominal, *bounds)


def _reserved(status: Mapping[Any, Any]) -> tuple[tuple[tuple[str, str], int], ...] | None:
    if "flavorsReservation" not in status:
        return None
    totals = {
        (text_of(flavor.get("name")), resource): total
        for flavor in maps_in(status.get("flavorsReservation"))
        for usage in maps_in(flavor.get("resources"))
        if (total := to_units(resource := text_of(usage.get("name")), usage.get("total"))) is not None
    }
    return tuple(sorted(totals.items()))


def _takes(spec: Mapping[Any, Any]) -> LabelSelector | None:
    if spec.get("namespaceSelector") is None:
        return None
    return selector_of(map_at(spec, "namespaceSelector"))


def _stopped(thing: Any) -> str:
    policy = map_at(thing, "spec").get("stopPolicy")
    return next((one for one in _STOPS if one == policy), "")
