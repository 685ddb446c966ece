"""Parse catalog data on GPUs, their MIG profiles and the machines that carry them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from catalog import Gpu, MachineType, MigProfile
from catalog.nearest import hint
from catalog.parse.reader import MARKS, Fields, Notes, label_value

_PROFILE = re.compile(r"(\d+)g\.(\d+)gb([+-][a-z]+(?:\.[a-z]+)*)?", re.ASCII)
"""A profile as nvidia-smi writes it. A compute instance of a slice (``1c.3g.20gb``) has no resource name,
so it does not match."""

Counts = tuple[tuple[str, int], ...]


def gpus(top: Fields) -> tuple[Gpu, ...]:
    """Return the section ``gpus``, with MIG profiles taken from ``migSets`` where a line names a set."""
    sets = top.named("migSets", lambda _, entry: _counts(entry, "profiles"))
    return top.records("gpus", lambda entry: _gpu(entry, sets))


def _gpu(entry: Fields, sets: Mapping[str, Counts]) -> Gpu:
    return Gpu(
        model=entry.text("model"),
        groups=entry.texts("groups"),
        vendor=entry.text("vendor"),
        family=entry.text("family"),
        memory_gb=entry.whole("memoryGB"),
        memory_mib=entry.whole("memoryMiB"),
        products=entry.texts("products"),
        compute_capability=entry.maybe_text("computeCapability"),
        mig=_profiles(entry, sets),
    )


def _profiles(entry: Fields, sets: Mapping[str, Counts]) -> tuple[MigProfile, ...]:
    usable = _usable(entry)
    found = [_profile(name, count, usable.pop(name, None), entry) for name, count in _mig(entry, sets)]
    for name in usable:
        entry.notes.append(f"{entry.at('usableMiB')}.{name}: not a MIG profile of this GPU")
    return tuple(profile for profile in found if profile is not None)


def _mig(entry: Fields, sets: Mapping[str, Counts]) -> Counts:
    if not isinstance(entry.raw("mig"), str):
        return _counts(entry, "mig")
    name = entry.text("mig")
    if name not in sets:
        entry.notes.append(f'{entry.at("mig")}: no set "{name}" in migSets{hint(name, sets)}')
    return sets.get(name, ())


def _counts(entry: Fields, key: str) -> Counts:
    return tuple(_numbers(entry, key))


def _usable(entry: Fields) -> dict[str, int]:
    """Return usable MiB by profile, without figures that were not read in a primary source
    (``docs/laws.md``, "MIG memory")."""
    figures = dict(_numbers(entry, "usableMiB"))
    mark = entry.maybe_choice("usableMark", MARKS)
    return figures if mark == "verified" else {}


def _numbers(entry: Fields, key: str) -> Iterator[tuple[str, int]]:
    for name, number, path in entry.mapped(key):
        if isinstance(number, int) and not isinstance(number, bool) and number > 0:
            yield name, number
        else:
            entry.notes.wanted(path, "a whole number above 0", number)


def _profile(name: str, count: int, usable: int | None, entry: Fields) -> MigProfile | None:
    parts = _PROFILE.fullmatch(name)
    if parts is None:
        entry.notes.append(f'{entry.at("mig")}: expected MIG profiles such as 1g.10gb or 1g.10gb+me, got "{name}"')
        return None
    compute, memory, attribute = parts.groups()
    return MigProfile(name=name, count=count, compute=int(compute), memory_gb=int(memory), attribute=attribute, usable_mib=usable)


def machines(top: Fields, devices: tuple[Gpu, ...], whole: Mapping[str, str]) -> tuple[MachineType, ...]:
    """Return the section ``machines``; what the type's name tells by its cloud's pattern need not be
    written."""
    clouds = top.named("clouds", lambda _, entry: _pattern(entry))
    vendors = {gpu.model: gpu.vendor for gpu in devices}
    return top.records("machines", lambda entry: _machine(entry, clouds, vendors, whole))


def _pattern(entry: Fields) -> re.Pattern[str]:
    text = entry.text("type")
    try:
        return re.compile(text, re.ASCII)
    except re.error as error:
        entry.notes.append(f'{entry.at("type")}: expected a regular expression, got "{text}": {error}')
        return re.compile("")


def _machine(entry: Fields, clouds: Mapping[str, re.Pattern[str]], vendors: Mapping[str, str], whole: Mapping[str, str]) -> MachineType:
    cloud, model, type_ = entry.text("cloud"), entry.text("model"), entry.maybe_text("type")
    _known(cloud, clouds, entry.at("cloud"), "cloud", entry.notes)
    _known(model, vendors, entry.at("model"), "GPU model", entry.notes)
    vendor = vendors.get(model, "")
    by_name = _named_attributes(clouds.get(cloud), type_)
    family = entry.maybe_text("family") or by_name.get("family")
    return MachineType(
        cloud=cloud,
        type=type_,
        types=entry.texts("types"),
        family=family,
        model=model,
        count=entry.whole("count"),
        resource=entry.maybe_text("resource") or whole.get(vendor, ""),
        attributes={"manufacturer": vendor, **by_name, **_attributes(entry)},
        optional=frozenset(entry.texts("optional")),
        usd_per_hour=entry.number("usdPerHour"),
        not_on=entry.texts("notOn"),
        uncounted=entry.texts("uncounted"),
        network=dict(_numbers(entry, "network")),
    )


def _known(name: str, among: Mapping[str, object], path: str, what: str, notes: Notes) -> None:
    if name and name not in among:
        notes.append(f'{path}: unknown {what} "{name}"{hint(name, among)}')


def _named_attributes(pattern: re.Pattern[str] | None, type_: str | None) -> dict[str, str]:
    """Return the attributes in the name of an instance type: ``p4d.24xlarge`` is family p4d, category p,
    generation 4, size 24xlarge."""
    found = pattern.fullmatch(type_) if pattern is not None and type_ is not None else None
    return {key: value for key, value in found.groupdict().items() if value is not None} if found else {}


def _attributes(entry: Fields) -> dict[str, str]:
    return {name: label_value(value, path, entry.notes) for name, value, path in entry.mapped("attributes")}
