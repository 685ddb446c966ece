"""Devices of DRA drivers, as a test publishes them: DeviceClasses and ResourceSlices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Raw = dict[str, Any]
API_VERSION = "resource.k8s.io/v1"


def class_of(driver: str, extended: str | None = None, type_: str | None = None) -> Raw:
    """The DeviceClass of a driver's devices, or of one type of them, as NVIDIA's chart has it. ``extended``: the extended resource by which
    pods may ask for them too (KEP-5004)."""
    expression = f"device.driver == '{driver}'" + (f" && device.attributes['{driver}'].type == '{type_}'" if type_ else "")
    spec: Raw = {"selectors": [{"cel": {"expression": expression}}]}
    if extended is not None:
        spec["extendedResourceName"] = extended
    return {"apiVersion": API_VERSION, "kind": "DeviceClass", "metadata": {"name": driver}, "spec": spec}


def slice_of(node: str, driver: str, listed: Sequence[Raw]) -> Raw:
    """The ResourceSlice of a driver on a node, with these devices."""
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": driver, "nodeName": node, "pool": pool, "devices": [*listed]}
    return {"apiVersion": API_VERSION, "kind": "ResourceSlice", "metadata": {"name": f"{node}-{driver}"}, "spec": spec}
