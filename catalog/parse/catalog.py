"""Parse catalog data into a typed ``Catalog``: every mistake is found, with its path, and all are raised at
once.

This module takes mappings, as a YAML reader returns them, and opens no file. ``catalog/catalog.yaml`` shows each
section by example, and ``merge`` describes how a second file is laid over it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, get_args

from catalog.catalog import Catalog
from catalog.gpus import Gpu
from catalog.nearest import hint
from catalog.parse.devices import GPU, MACHINE, PLATFORMS, PROFILES, PUBLISHED, RESOURCE, machine
from catalog.parse.fields import COUNT, LABEL, REGEX, PossibleValues, column, pairs, record_of, struct_of
from catalog.parse.kinds import BETWEEN, WORKLOAD, unreachable
from catalog.parse.records import Record, RecordReader, SectionNames
from catalog.platforms import (
    AcceleratorTaint,
    DevicePlugin,
    GpuLabel,
    GraceCap,
    Operator,
    Platform,
    Protection,
    Sharing,
    SharingScheme,
    Variant,
)
from catalog.published_devices import PublishedDevices
from catalog.resources import Measure, ResourcePattern
from catalog.shapes.scalars import ANY_MAP, TEXT, Name, WordChoice, wants
from catalog.shapes.structs import Field, Items, Mapped, Struct, field_of, listed, mapped
from kube.labels import Expression
from kube.taints import Taint
from kube.tree import Path


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


# --- platforms, their ways of sharing GPUs, and the taints of their nodes ----------------------------------------------


def named_platforms(pairs: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, Platform]:
    return {name: Platform(name=name, **given) for name, given in pairs}


PLATFORM = struct_of(
    Platform,
    build=dict,
    name=None,
    partition_sizes=mapped(listed(TEXT), keys=Name(noun="GPU model", known="models")),
    gpu_pools=mapped(listed(LABEL, least=1)),
    accelerator_pools=mapped(listed(LABEL, least=1)),
    machine_keys=listed(listed(TEXT, least=1)),
    sharing=Name(noun="scheme", known="schemes"),
)


def _variants(*, resources: tuple[str, ...] = (), resource: str | None = None, **given: Any) -> tuple[Variant, ...]:
    """Return one variant for each of ``resources`` if a line names several; else one."""
    return tuple(Variant(resource=name, **given) for name in resources or (resource,))


_VARIANT = struct_of(Variant, field_of("resources", listed(TEXT)), build=_variants, labels=mapped(PossibleValues()))
_EXPRESSION = Struct(
    build=Expression,
    fields=(
        field_of("key", required=True),
        field_of("operator", WordChoice(values=get_args(Operator)), required=True),
        field_of("values", listed(TEXT)),
    ),
)
_EXPRESSIONS = mapped(listed(_EXPRESSION), keys=WordChoice(values=get_args(Sharing)))
SCHEME = struct_of(
    SharingScheme,
    variants=listed(_VARIANT, lambda variants: tuple(chain.from_iterable(variants))),
    exclude=_EXPRESSIONS,
    only=_EXPRESSIONS,
)


def _taint(*, vendor: str, platforms: tuple[str, ...] = (), **given: Any) -> AcceleratorTaint:
    return AcceleratorTaint(vendor=vendor, taint=Taint(**given), platforms=platforms)


TAINT = struct_of(
    AcceleratorTaint,
    field_of("key", required=True),
    field_of("value"),
    field_of("effect", WordChoice(values=("NoSchedule", "PreferNoSchedule", "NoExecute"))),
    build=_taint,
    taint=None,
    platforms=PLATFORMS,
)
PROTECTION = struct_of(Protection, platforms=PLATFORMS)
GRACE_CAP = struct_of(GraceCap, platforms=PLATFORMS)


# --- the whole ----------------------------------------------------------------------------------------------------------


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
    arch_taints=listed(TAINT),
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
    gpu_labels=listed(struct_of(GpuLabel)),
    device_plugins=listed(struct_of(DevicePlugin)),
    ignored_resources=pairs("name", "maker"),
    retired_families=column("name"),
    workload_labels=column("label"),
    pod_makers=column("user", frozenset),
    nouns=mapped(record_of("noun")),
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


# --- files laid over each other: records by their natural key, maps key by key, plain lists by adding what is new -------
#
# So one line in a ``--catalog`` file adds a GPU, another gives a platform its slices, and neither repeats the shipped data. An overlay
# removes nothing, and every record remembers the file and place where it was last written.

KEYS: Mapping[str, tuple[str, ...]] = {
    "machines": ("cloud", "type|model"),
    "resources": ("name|pattern",),
    "taints": (),
    "spotTaints": (),
    "archTaints": (),
    "protections": ("where", "key"),
    "gpuLabels": ("key", "value"),
    "between": ("group", "kind"),
    "reservedKeys": ("prefix",),
    "words": ("where", "key"),
}
"""Sections whose records are distinguished by other fields than the first: of ``type|model`` by the one that is set, by all of them
if none is named here."""
SOURCES = "sources"
"""The section with the sources of facts: for people, and not read by any code."""
_NESTED = (dict, list)


def layered(layers: Sequence[tuple[str, object]], sections: Mapping[str, Field], reader: RecordReader) -> Record:
    """Return all ``(name, data)`` layers as one record, later ones over earlier. ``reader`` collects what is no section."""
    empty = {name: [] if isinstance(section.shape, Items) else Record({}, ("", name)) for name, section in sections.items()}
    merged = Record(empty, ("",))
    for name, data in layers:
        if not isinstance(data, Mapping):
            reader.wrong((name or "catalog",), str(wants("a map of sections", data, "gpus: [...]")))
            continue
        for section, value in data.items():
            if section in sections and value is not None:
                records = _located(value, (name, section))
                if _are_records(records, sections[section], (name, section), reader):
                    merged[section] = _section(sections[section], merged[section], records)
            elif section not in (SOURCES, *sections):
                reader.wrong((name, str(section)), f"unknown section{hint(str(section), sections)}")
    return merged


def _are_records(value: object, section: Field, path: Path, reader: RecordReader) -> bool:
    """Return whether a section is a list or a map of maps, as its records have to be; else note why not."""
    assert isinstance(section.shape, Items | Mapped)
    return reader.read(replace(section.shape, of=ANY_MAP, build=list), value, path, section.written()) is not None


def _located(value: Any, path: Path) -> Any:
    """Return ``value`` with the place of every map recorded in it."""
    if isinstance(value, dict):
        items = ((str(key), item) for key, item in value.items())
        return Record({key: _located(item, (*path, key)) if isinstance(item, _NESTED) else item for key, item in items}, path)
    if isinstance(value, list):
        return [_located(item, (*path, index)) if isinstance(item, _NESTED) else item for index, item in enumerate(value)]
    return value


def _section(section: Field, under: Any, over: Any) -> Any:
    """Return both layers of a section; a record of ``over`` is merged into the one of ``under`` with the same natural key."""
    names = _key_fields(section)
    if not names:
        return _laid(under, over)
    result = list(under)
    places = {_key(names, record): place for place, record in enumerate(under)}
    for record in over:
        place = places.get(_key(names, record))
        if place is None:
            result.append(record)
        else:
            result[place] = _laid(result[place], record)
    return result


def _key_fields(section: Field) -> tuple[str, ...]:
    """Return the fields that distinguish the records of a list; none of a map."""
    records = section.shape.of if isinstance(section.shape, Items) else None
    return KEYS.get(section.name, (records.fields[0].name,)) if isinstance(records, Struct) else ()


def _key(names: tuple[str, ...], record: Record) -> tuple[str, ...]:
    return tuple(next((f"{part}={record[part]!r}" for part in name.split("|") if record.get(part) is not None), "") for name in names)


def _laid(under: Any, over: Any) -> Any:
    if isinstance(under, Record) and isinstance(over, Record):
        shared = {key: _laid(under[key], item) if key in under else item for key, item in over.items()}
        return Record({**under, **shared}, over.at)
    if isinstance(under, list) and isinstance(over, list):
        return [*under, *(item for item in over if item not in under)]
    return over
