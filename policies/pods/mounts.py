"""What a pod mounts at the shared memory of its containers: the one part of its volumes that a decision reads.

Volumes and mounts are many, and some have a name that is unique to each pod (the service account's token), so the
projection has an empty map in place of each that is not read: its index stays.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import Any

from kube.pod import Container, list_at
from kube.tree import Raw

SHARED_MEMORY = "/dev/shm"
VOLUME = "berth-shared-memory"
"""The name of the volume that Berth adds."""


def volume_read(item: Any, _: object) -> Any:
    """Return what the projection has of a volume."""
    return item if not isinstance(item, dict) or item.get("name") == VOLUME else {}


def mount_read(item: Any, _: object) -> Any:
    """Return what the projection has of a mount."""
    if not isinstance(item, dict):
        return item
    return item if item.get("name") == VOLUME or _at_shared_memory(item) else {}


def _at_shared_memory(mount: Raw) -> bool:
    """Return whether a mount is at /dev/shm, below it, or above it where it hides it."""
    at = mount.get("mountPath")
    if not isinstance(at, str) or "dev" not in at:
        return False
    path = posixpath.normpath(f"/{at.lstrip('/')}")
    return path in ("/dev", SHARED_MEMORY) or path.startswith(f"{SHARED_MEMORY}/")


def volumes(spec: Raw) -> list[Raw]:
    """Return the volumes of a pod's spec. Raises PodError."""
    return list_at(spec, "volumes", ("spec",))


def mounts(container: Container) -> Iterator[Raw]:
    """Yield the mounts of a container at its shared memory. Raises PodError."""
    return (mount for mount in list_at(container.raw, "volumeMounts", container.path) if _at_shared_memory(mount))
