"""What the selectors that policies write let through, read from their text alone; and what policies require of a device, read from
the policies alone. Written apart from the code under test."""

from __future__ import annotations

import re
from typing import Any

from catalog import Gpu

Raw = dict[str, Any]
_LIST = re.compile(r'device\.attributes\["([^"]+)"\]\.(\w+)(\.replace\(" ", "-"\))? in \[(.*)\]\)?$')
_LEAST = re.compile(r'device\.capacity\["([^"]+)"\]\.(\w+)\.compareTo\(quantity\("(\d+)Mi"\)\) >= 0$')


def passes(text: str, device: Raw) -> bool:
    """Whether a device passes a selector that policies write. An author's own passes everything."""
    if not text.startswith("device.driver == ") or " && has(" not in text:
        return True
    driver, _, test = text.split(" && ", 2)
    if driver != f'device.driver == "{device["driver"]}"':
        return False
    if (least := _LEAST.match(test)) is not None:
        value = device["capacity"].get(least[2])
        return value is not None and int(value["value"].removesuffix("Gi")) * 1024 >= int(least[3])
    found = _LIST.search(test)
    assert found is not None, text
    published = device["attributes"].get(found[2])
    if published is None:
        return False
    value = published["string"].replace(" ", "-") if found[3] else published["string"]
    return (value in re.findall(r'"([^"]*)"', found[4])) is not test.startswith("!(")


def allowed(require: Raw, gpu: Gpu, sharing: str) -> bool:
    """Whether a device of this model, shared like this, is inside what one policy requires."""
    names = {"families": {gpu.family}, "models": {gpu.model, *gpu.groups}}
    for field, own in names.items():
        wanted = require.get(field) or {}
        if (wanted.get("in") and not own & set(wanted["in"])) or own & set(wanted.get("notIn", ())):
            return False
    memory = require.get("gpuMemory")
    if memory is not None and (gpu.memory_gb is None or not memory.get("min", 0) <= gpu.memory_gb <= memory.get("max", 10**6)):
        return False
    return sharing in require.get("sharing", [sharing])
