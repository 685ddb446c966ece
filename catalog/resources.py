"""Types for resource names: what is read from one, and the patterns by which the catalog knows them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

OF_A_CLASS = "deviceclass.resource.kubernetes.io/"
"""The prefix of the extended resource that every DeviceClass has (k8s.io/api/resource/v1 ResourceDeviceClassPrefix)."""
ResourceKind = Literal["gpu", "shared", "mig", "partition", "part", "dra", "passthrough", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """The facts about one resource name, read from the name."""

    name: str
    vendor: str
    kind: ResourceKind
    """``other``: an accelerator that is no GPU (Neuron, TPU, Gaudi): counted, tolerated, never placed.
    ``passthrough``: a whole GPU for a virtual machine or sandbox: counted, tolerated, never placed.
    ``part``: memory or cores of an accelerator, of which a container requests many."""
    profile: str | None = None
    """The MIG profile as in the name of the resource (``1g.10gb.me``), else None."""
    parts: tuple[int, ...] | None = None
    """The numbers of parts into which one GPU is divided, which differ by model; None: not in the name."""
    unit: int | None = None
    """Of a ``part``: how many of it one device has; None: all those of a container are of one device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A resource name, or a glob of names, by which containers request an amount of a device rather than
    devices."""

    name: str
    unit: int | None = None
    """The same as ``Resource.unit``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourcePattern:
    pattern: re.Pattern[str]
    """The anchored pattern; its group named ``profile``, if any, becomes Resource.profile."""
    vendor: str
    kind: ResourceKind
    profile: str | None = None
    """The profile of a renamed resource."""
    name: str | None = None
    """The literal name, if the data gives one instead of a pattern."""
    parts: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Text of the group named ``mode`` -> Resource.parts."""
