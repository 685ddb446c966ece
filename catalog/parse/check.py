"""Check a catalog across its sections, beyond the names that the shapes of records check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from catalog.catalog import Catalog
from catalog.nearest import hint
from catalog.parse.kinds import unreachable
from catalog.platforms import Platform

BUILT_IN = ("type", "family", "count", "product", "gpuFamily", "vendor")
"""Attributes that a label may show besides those that machines carry (``Platform.labels``)."""


def checked(catalog: Catalog) -> Iterator[str]:
    """Yield, as ``path: what is wrong``, each name that nothing defines, GPU name with two meanings and unreachable workload."""
    yield from _doubled(catalog)
    for driver in sorted(catalog.other_drivers.intersection(catalog.dra_drivers)):
        yield f"otherDrivers: {driver} is one of draDrivers: its devices are accelerators; remove one of the two"
    for platform in catalog.platforms.values():
        yield from _loose(catalog, platform)
    for machine in catalog.machines:
        for name in machine.optional - machine.attributes.keys():
            yield f'machines: {machine.type}.optional: unknown attribute "{name}"{hint(name, machine.attributes)}'
    for workload in catalog.workloads:
        yield from unreachable(workload)


def _doubled(catalog: Catalog) -> Iterator[str]:
    models = Counter(gpu.model for gpu in catalog.gpus)
    groups = {group for gpu in catalog.gpus for group in gpu.groups}
    for name, times in models.items():
        if times > 1 or name in groups:
            yield f'gpus: "{name}" is the name of {"several models" if times > 1 else "a model and of a group"}'


def _loose(catalog: Catalog, platform: Platform) -> Iterator[str]:
    where = f"platforms.{platform.name}"
    attributes = {*BUILT_IN, *(name for machine in catalog.machines for name in machine.attributes)}
    for key, value in (*platform.labels.items(), *platform.after_boot.items()):
        attribute = value.rpartition(":")[2]
        if attribute not in attributes:
            yield f'{where}: label {key}: unknown attribute "{attribute}"{hint(attribute, attributes)}'
    for key in (key for keys in platform.machine_keys for key in keys):
        if key not in platform.labels:
            yield f"{where}.machineKeys: {key} is not one of its labels{hint(key, platform.labels)}"
    profiles = {gpu.model: [profile.name for profile in gpu.mig] for gpu in catalog.gpus}
    for model, sizes in platform.partition_sizes.items():
        for size in sizes:
            if size not in profiles[model]:
                yield f'{where}.partitionSizes.{model}: unknown profile "{size}"{hint(size, profiles[model])}'
