"""Accelerators that nodes should have, as their machine or their labels say, and do not offer; and whether what should offer them runs
there: the DaemonSet of a device plugin."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from analysis.scan.finding import FindingValues, PlaceReason, obstacle_of
from analysis.scan.seen import GpuNode, ScannedCluster
from kube.labels import MIG_STATE
from kube.scheduling import Blocker, Wants, of_node, wants
from kube.tree import map_at, maps_in, text_of
from policies.placement.expected_devices import SLICES, MissingDevices

YOUNG = 600
"""Seconds for which a node may still be set up: a driver that is compiled there takes minutes."""
_OF_PLACE = ("taint", "label", "name")
"""What keeps a DaemonSet's pods off a node; they tolerate taints about its state (pkg/controller/daemon/util
AddOrUpdateDaemonPodTolerations)."""
GFD = "nvidia.com/gpu."


class DeviceDaemon(NamedTuple):
    """The DaemonSet of a device plugin."""

    name: str
    """``gpu-operator/nvidia-device-plugin-daemonset``"""
    vendor: str
    wants: Wants | None
    """Where its pods may run; None if only pods of it are known."""


class Missing:
    """Tells what each node lacks. ``is_stale``: whether the labels of GPU Feature Discovery on a node are left behind."""

    def __init__(self, seen: ScannedCluster, is_stale: Callable[[GpuNode], bool]) -> None:
        self._seen = seen
        self._is_stale = is_stale
        self._daemons = tuple(_daemons(seen))
        classes = seen.cluster.facts.device_classes.values()
        dra = {seen.catalog.dra_drivers.get(known.driver, "") for known in classes} - {""}
        self._unpublished = frozenset() if any(seen.cluster.slices.values()) else frozenset(dra)

    def devices(self, node: GpuNode) -> FindingValues | None:
        """Return the values of the finding on a node that offers none of its devices, or fewer."""
        missing = next((device for device in self._lacking(node) if device.key and not self._is_slice(device)), None)
        if missing is None or (missing.key.startswith(GFD) and self._is_stale(node)):
            return None
        resource = self._seen.catalog.resource(missing.resource)
        vendor = "" if resource is None else resource.vendor
        if vendor in self._unpublished:  # a DRA driver may publish them, which was not read
            return None
        said = ("label", missing.key), ("says", missing.value), ("expected", missing.expected), ("offered", missing.capacity)
        resources = (missing.resource,) if missing.resource else ()
        return (*said, ("resources", resources), ("vendor", vendor), *self._cause(node, vendor))

    def unhealthy(self, node: GpuNode) -> FindingValues | None:
        """Return the values of the finding on a node of whose devices pods may hold fewer than there are."""
        missing = next((device for device in self._lacking(node) if not device.key), None)
        if missing is None:
            return None
        return ("resources", (missing.resource,)), ("capacity", missing.capacity), ("allocatable", missing.allocatable)

    def slices(self, node: GpuNode) -> FindingValues | None:
        """Return the values of the finding on a node that offers fewer slices than its labels count."""
        missing = next((device for device in self._lacking(node) if device.key and self._is_slice(device)), None)
        if missing is None or self._is_stale(node):
            return None
        said = ("label", missing.key), ("says", missing.value), ("expected", missing.expected), ("offered", missing.capacity)
        return (*said, ("resources", (missing.resource,)))

    def _is_slice(self, missing: MissingDevices) -> bool:
        resource = self._seen.catalog.resource(missing.resource)
        return resource is not None and resource.kind in SLICES

    def _lacking(self, node: GpuNode) -> tuple[MissingDevices, ...]:
        """Return what a node lacks; nothing while it starts."""
        age = self._seen.cluster.age(node.place.created) if node.place.created else None
        return () if not node.place.settled or (age is not None and age < YOUNG) else node.missing

    def _cause(self, node: GpuNode, vendor: str) -> FindingValues:
        if (state := node.labels.get(MIG_STATE)) not in (None, "success"):
            return ("cause", "mig"), ("state", str(state))
        mine = [daemon for daemon in self._daemons if not vendor or daemon.vendor == vendor]
        here = self._of_pods(node.name)
        if (running := next((daemon for daemon in mine if daemon.name in here), None)) is not None:
            return ("cause", "runs"), ("plugin", running.name)
        if not self._seen.cluster.daemons:
            return (("cause", "elsewhere"), ("plugin", mine[0].name)) if mine else (("cause", "unknown"),)
        if not mine:
            return (("cause", "none"),)
        kept_off = [(daemon, _blockers(daemon.wants, node)) for daemon in mine if daemon.wants is not None]
        free = next((daemon for daemon, blockers in kept_off if not blockers), None)
        if free is not None:
            return ("cause", "runs"), ("plugin", free.name)
        daemon, blockers = min(kept_off, key=lambda pair: len(pair[1]))
        reasons = (PlaceReason((), 1, tuple(map(obstacle_of, blockers))),)
        return ("cause", "kept-off"), ("plugin", daemon.name), ("reasons", reasons)

    def _of_pods(self, node: str) -> frozenset[str]:
        """Return the DaemonSets that have pods on a node, as far as pods are known."""
        owned = (plain for plain in self._seen.cluster.plain if plain.node == node and plain.owner is not None)
        return frozenset(f"{plain.namespace}/{plain.owner.name}" for plain in owned if plain.owner is not None)


def _daemons(seen: ScannedCluster) -> Iterator[DeviceDaemon]:
    """Yield the DaemonSets of device plugins: all of them, or where those are not known the owners of pods."""
    if not seen.cluster.daemons:
        owners = {(plain.namespace, plain.owner.name) for plain in seen.cluster.plain if plain.owner and plain.owner.kind == "DaemonSet"}
        for namespace, name in sorted(owners):
            if vendor := _vendor(name, seen):
                yield DeviceDaemon(f"{namespace}/{name}", vendor, None)
        return
    for daemon in seen.cluster.daemons:
        metadata, template = map_at(daemon, "metadata"), map_at(daemon, "spec", "template")
        name = f"{text_of(metadata.get('namespace'))}/{text_of(metadata.get('name'))}"
        if vendor := _vendor(" ".join((name, *_images(template))), seen):
            yield DeviceDaemon(name, vendor, wants(template))


def _images(template: Mapping[Any, Any]) -> Iterator[str]:
    for container in maps_in(map_at(template, "spec").get("containers")):
        yield text_of(container.get("image"))
        yield text_of(container.get("name"))


def _vendor(text: str, seen: ScannedCluster) -> str:
    """Return the vendor of the device plugin that this text names; "" if it names none."""
    return next((plugin.vendor for plugin in seen.catalog.device_plugins if plugin.text in text), "")


def _blockers(wanted: Wants | None, node: GpuNode) -> list[Blocker]:
    if wanted is None:
        return []
    return [blocker for blocker in of_node(wanted, node.place) if blocker.kind in _OF_PLACE and not blocker.passing]
