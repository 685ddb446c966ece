"""Check a catalog across its sections: every name that one entry uses must be defined by another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from catalog import Catalog, Platform
from catalog.nearest import hint
from catalog.parse.kinds import unreachable
from catalog.parse.reader import Notes

BUILT_IN = ("type", "family", "count", "product", "gpuFamily", "vendor")
"""Attributes that a label may show besides those that machines carry (``Platform.labels``)."""


def checked(catalog: Catalog, notes: Notes) -> None:
    """Note every name that nothing defines, and every GPU name that has two meanings."""
    notes.extend(_doubled(catalog))
    notes.extend(_vendorless(catalog))
    notes.extend(_both(catalog))
    for platform in catalog.platforms.values():
        notes.extend(_loose(catalog, platform))
    notes.extend(_strangers(catalog))
    for workload in catalog.workloads:
        notes.extend(unreachable(workload))


def _doubled(catalog: Catalog) -> Iterator[str]:
    models = Counter(gpu.model for gpu in catalog.gpus)
    groups = {group for gpu in catalog.gpus for group in gpu.groups}
    for name, times in models.items():
        if times > 1 or name in groups:
            yield f'gpus: "{name}" is the name of {"several models" if times > 1 else "a model and of a group"}'


def _vendorless(catalog: Catalog) -> Iterator[str]:
    for gpu in catalog.gpus:
        if gpu.vendor not in catalog.whole:
            yield f'gpus: {gpu.model}: unknown vendor "{gpu.vendor}"{hint(gpu.vendor, catalog.whole)}'


def _both(catalog: Catalog) -> Iterator[str]:
    """Yield a mistake per DRA driver that is listed both as making accelerators and as making none."""
    for driver in sorted(catalog.other_drivers.intersection(catalog.dra_drivers)):
        yield f"otherDrivers: {driver} is one of draDrivers: its devices are accelerators; remove one of the two"


def _loose(catalog: Catalog, platform: Platform) -> Iterator[str]:
    if platform.sharing not in catalog.schemes:
        yield f'platforms.{platform.name}.sharing: unknown scheme "{platform.sharing}"{hint(platform.sharing, catalog.schemes)}'
    attributes = {*BUILT_IN, *(name for machine in catalog.machines for name in machine.attributes)}
    for key, value in (*platform.labels.items(), *platform.after_boot.items()):
        attribute = value.rpartition(":")[2]
        if attribute not in attributes:
            yield f'platforms.{platform.name}: label {key}: unknown attribute "{attribute}"{hint(attribute, attributes)}'
    for key in (key for keys in platform.machine_keys for key in keys):
        if key not in platform.labels:
            yield f"platforms.{platform.name}.machineKeys: {key} is not one of its labels{hint(key, platform.labels)}"
    profiles = {gpu.model: [profile.name for profile in gpu.mig] for gpu in catalog.gpus}
    for model, sizes in platform.partition_sizes.items():
        where = f"platforms.{platform.name}.partitionSizes"
        if model not in profiles:
            yield f'{where}: unknown model "{model}"{hint(model, profiles)}'
        for size in sizes:
            if size not in profiles.get(model, sizes):
                yield f'{where}.{model}: unknown profile "{size}"{hint(size, profiles[model])}'


def _strangers(catalog: Catalog) -> Iterator[str]:
    """Yield a mistake per platform that an entry names and nobody defines."""
    known = [*catalog.platforms, *catalog.other_platforms]
    named: list[tuple[str, Iterable[str]]] = [
        *((f"taints: {taint.taint.key}", taint.platforms) for taint in (*catalog.taints, *catalog.spot_taints)),
        *((f"protections: {protection.key}", protection.platforms) for protection in catalog.protections),
        *((f"graceCaps: {cap.name}", cap.platforms) for cap in catalog.grace_caps),
        *((f"machines: {machine.type}", (*machine.not_on, *machine.uncounted)) for machine in catalog.machines),
    ]
    for where, platforms in named:
        for name in platforms:
            if name not in known:
                yield f'{where}: unknown platform "{name}"{hint(name, known)}'
    for machine in catalog.machines:
        for name in machine.optional - machine.attributes.keys():
            yield f'machines: {machine.type}.optional: unknown attribute "{name}"{hint(name, machine.attributes)}'
