"""Parse catalog data into a typed ``Catalog``: every mistake is found, with its path, and all are raised at
once.

This module takes mappings, as a YAML reader returns them, and opens no file. ``catalog/catalog.yaml`` shows each
section by example, and ``merge`` describes how a second file is laid over it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from catalog.catalog import Catalog
from catalog.gpus import Gpu
from catalog.nearest import hint
from catalog.parse.devices import GPU, MACHINE, PROFILES, PUBLISHED, RESOURCE, machine
from catalog.parse.fields import COUNT, LABEL, REGEX, column, pairs, record_of, struct_of
from catalog.parse.kinds import BETWEEN, WORKLOAD, unreachable
from catalog.parse.merge import layered
from catalog.parse.platforms import GRACE_CAP, PLATFORM, PROTECTION, SCHEME, TAINT, named_platforms
from catalog.parse.records import Record, RecordReader, SectionNames
from catalog.platforms import Platform
from catalog.published_devices import PublishedDevices
from catalog.resources import Measure, ResourcePattern
from catalog.shapes.structs import Struct, field_of, listed, mapped


class CatalogError(ValueError):
    """The catalog data was not understood. ``notes`` has every mistake as ``path: what is wrong``; str()
    has one a line."""

    def __init__(self, notes: Sequence[str]) -> None:
        super().__init__("\n".join(notes))
        self.notes = tuple(notes)


def from_mappings(base: Mapping[str, Any], *overlays: Mapping[str, Any], names: Sequence[str] = ()) -> Catalog:
    """Return the catalog that ``base`` describes with ``overlays`` laid over it, the last on top.

    ``names`` are the overlays' names in messages (their files); without them ``overlay 1`` and so on. Raises
    CatalogError with every mistake.
    """
    reader = RecordReader()
    titles = names or [f"overlay {number}" for number in range(1, len(overlays) + 1)]
    data = layered([("", base), *zip(titles, overlays, strict=True)], _SECTIONS, reader)
    reader.names = SectionNames(data)
    _write_out_sets(data, reader)
    catalog: Catalog = reader.read(_CATALOG, data, (), "")
    if notes := reader.notes or list(checked(catalog)):
        raise CatalogError(notes)
    return catalog


def _write_out_sets(data: Record, reader: RecordReader) -> None:
    """Replace the name of a set of MIG profiles by its profiles."""
    sets = data["migSets"]
    for place, gpu in enumerate(data["gpus"]):
        if isinstance(name := gpu.get("mig"), str):
            if name not in sets:
                reader.wrong((*gpu.at, "mig"), f'unknown set "{name}" of migSets{hint(name, sets)}')
            data["gpus"][place] = Record({**gpu, "mig": sets.get(name, {}).get("profiles")}, gpu.at)


def _catalog(
    *,
    gpus: tuple[Gpu, ...],
    machines: tuple[Mapping[str, Any], ...],
    clouds: Mapping[str, Any],
    mig_sets: Mapping[str, Any],
    whole: Mapping[str, str],
    resources: tuple[ResourcePattern, ...],
    misspellings: Mapping[str, str],
    published: tuple[PublishedDevices, ...],
    **sections: Any,
) -> Catalog:
    """Return the catalog of these sections. A name that somebody's device plugin really advertises is no misspelling."""
    vendors = {gpu.model: gpu.vendor for gpu in gpus}
    renamed = {resource.name for resource in resources}
    return Catalog(
        gpus=gpus,
        machines=tuple(machine(given, clouds, vendors[given["model"]], whole) for given in machines),
        whole=whole,
        resources=resources,
        misspellings={wrong: right for wrong, right in misspellings.items() if wrong not in renamed},
        dra_drivers={devices.driver: devices.vendor for devices in published},
        published={devices.driver: devices for devices in published},
        **sections,
    )


_CATALOG = struct_of(
    Catalog,
    field_of("clouds", mapped(record_of("type", REGEX))),
    field_of("migSets", mapped(record_of("profiles", PROFILES)), store="mig_sets"),
    build=_catalog,
    gpus=listed(GPU),
    machines=listed(MACHINE),
    platforms=mapped(PLATFORM, build=named_platforms),
    schemes=mapped(SCHEME),
    resources=listed(RESOURCE),
    whole=("vendors", mapped(record_of("whole"))),
    misspellings=pairs("wrong", "right"),
    not_accelerators=column("name"),
    measures=listed(struct_of(Measure, unit=COUNT)),
    taints=listed(TAINT),
    spot_taints=listed(TAINT),
    never_tolerate=column("key"),
    protections=listed(PROTECTION),
    workloads=listed(WORKLOAD),
    grace_caps=listed(GRACE_CAP),
    excluded_namespaces=column("name"),
    dra_drivers=None,
    published=("draDrivers", listed(PUBLISHED)),
    foreign_schedulers=("schedulers", pairs("name", "system")),
    label_aliases=pairs("old", "key"),
    between=listed(BETWEEN),
    podless_groups=column("group", frozenset),
    accelerator_domains=column("domain"),
    other_drivers=column("driver", frozenset),
    retired_families=column("name"),
    workload_labels=column("label"),
    pod_makers=column("user", frozenset),
    prices=mapped(record_of("where")),
    other_platforms=mapped(Struct(build=lambda labels=(): dict(labels), fields=(field_of("labels", mapped(LABEL)),))),
)
_SECTIONS = {section.name: section for section in _CATALOG.fields}


BUILT_IN = ("type", "family", "count", "product", "gpuFamily", "vendor")
"""Attributes that a label may show besides those that machines carry (``Platform.labels``)."""


def checked(catalog: Catalog) -> Iterator[str]:
    """Yield, as ``path: what is wrong``, each name that nothing defines, GPU name with two meanings and unreachable workload."""
    yield from _doubled(catalog)
    for driver in sorted(catalog.other_drivers.intersection(catalog.dra_drivers)):
        yield f"otherDrivers: {driver} is one of draDrivers: its devices are accelerators; remove one of the two"
    for platform in catalog.platforms.values():
        yield from _loose(catalog, platform)
    for kind in catalog.machines:
        for name in kind.optional - kind.attributes.keys():
            yield f'machines: {kind.type}.optional: unknown attribute "{name}"{hint(name, kind.attributes)}'
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
