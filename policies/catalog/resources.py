"""Resource names: what is read of one, and what the catalog knows them by."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

ResourceKind = Literal["gpu", "shared", "mig", "partition", "part", "dra", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """What one resource name is, read from its name."""

    name: str
    vendor: str
    kind: ResourceKind
    """``other``: an accelerator that is no GPU (Neuron, TPU, Gaudi): counted, tolerated, never placed. ``part``: memory or cores of one, of
    which a container asks for many"""
    profile: str | None = None
    """MIG profile as in the name of the resource (``1g.10gb.me``), else None"""
    parts: tuple[int, ...] | None = None
    """how many of it one GPU is divided into, as models differ; None: not told by the name"""
    unit: int | None = None
    """of a ``part``: how many of it one device has; None: a container's are all of one device"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A resource name, or a glob of names, by which containers ask for so much of a device and not for devices."""

    name: str
    unit: int | None = None
    """as ``Resource.unit``"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourcePattern:
    pattern: re.Pattern[str]
    """anchored; a group named ``profile`` gives Resource.profile"""
    vendor: str
    kind: ResourceKind
    profile: str | None = None
    """for a renamed resource: which profile it is"""
    name: str | None = None
    """the literal name, where the data gives one instead of a pattern"""
    parts: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """what the group named ``mode`` says -> Resource.parts"""
