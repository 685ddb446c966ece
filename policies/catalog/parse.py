"""Catalog data to a typed ``Catalog``: every mistake is found, with its path, and raised at once.

Takes mappings, as a YAML reader gives them; opens no file. ``catalog.yaml`` shows each section by example, and
``catalog_merge`` says how a second file is laid over it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeVar, get_args

from policies.catalog import (
    AcceleratorTaint,
    Catalog,
    Expression,
    GraceCap,
    Measure,
    Operator,
    Platform,
    Possible,
    Protection,
    ResourceKind,
    ResourcePattern,
    SharingScheme,
    Variant,
)
from policies.catalog.check import checked
from policies.catalog.devices import gpus, machines
from policies.catalog.kinds import workload
from policies.catalog.merge import layered
from policies.catalog.reader import Fields, Notes, label_value, meant, record, shown
from policies.policy import Capacity, Sharing, Taint

T = TypeVar("T")
C = TypeVar("C", bound=str)

_CAPACITIES: tuple[Capacity, ...] = get_args(Capacity)
_SHARINGS: tuple[Sharing, ...] = get_args(Sharing)
_KINDS: tuple[ResourceKind, ...] = get_args(ResourceKind)
_OPERATORS: tuple[Operator, ...] = get_args(Operator)
_EFFECTS: tuple[Literal["NoSchedule", "PreferNoSchedule", "NoExecute"], ...] = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_STRATEGIES: tuple[Literal["mixed", "single"], ...] = ("mixed", "single")
_PLACES: tuple[Literal["annotations", "labels"], ...] = ("annotations", "labels")


class CatalogError(ValueError):
    """The catalog data is not understood. ``notes`` has every mistake as ``path: what is wrong``; str() has one a line."""

    def __init__(self, notes: Sequence[str]) -> None:
        super().__init__("\n".join(notes))
        self.notes = tuple(notes)


def from_mappings(base: Mapping[str, Any], *overlays: Mapping[str, Any], names: Sequence[str] = ()) -> Catalog:
    """The catalog that ``base`` describes with ``overlays`` laid over it, the last on top.

    ``names`` are what messages call the overlays (their files); ``overlay 1`` and so on without.
    Raises CatalogError with every mistake.
    """
    notes = Notes()
    titles = names or [f"overlay {number}" for number in range(1, len(overlays) + 1)]
    data = layered([("", base), *zip(titles, overlays, strict=True)], notes)
    catalog = _catalog(Fields(data, "", notes))
    if not notes:
        checked(catalog, notes)
    if notes:
        raise CatalogError(notes)
    return catalog


def _catalog(top: Fields) -> Catalog:
    whole = top.named("vendors", lambda _, entry: entry.text("whole"))
    devices = gpus(top)
    resources = top.records("resources", _resource)
    return Catalog(
        gpus=devices,
        machines=machines(top, devices, whole),
        platforms=top.named("platforms", _platform),
        schemes=top.named("schemes", lambda _, entry: _scheme(entry)),
        resources=resources,
        whole=whole,
        misspellings=_misspellings(top, {resource.name for resource in resources}),
        not_accelerators=_column(top, "notAccelerators", "name"),
        measures=top.records("measures", _measure),
        taints=top.records("taints", _taint),
        spot_taints=top.records("spotTaints", _taint),
        never_tolerate=_column(top, "neverTolerate", "key"),
        protections=top.records("protections", _protection),
        workloads=top.records("workloads", workload),
        grace_caps=top.records("graceCaps", _grace_cap),
        podless_groups=frozenset(_column(top, "podlessGroups", "group")),
        excluded_namespaces=_column(top, "excludedNamespaces", "name"),
        dra_drivers=_pairs(top, "draDrivers", "driver", "vendor"),
        accelerator_domains=_column(top, "acceleratorDomains", "domain"),
        other_drivers=frozenset(_column(top, "otherDrivers", "driver")),
        foreign_schedulers=_pairs(top, "schedulers", "name", "system"),
        retired_families=_column(top, "retiredFamilies", "name"),
        prices=top.named("prices", lambda _, entry: entry.text("where")),
        label_aliases=_pairs(top, "labelAliases", "old", "key"),
        other_platforms=top.named("otherPlatforms", lambda _, entry: entry.labels("labels")),
    )


def _column(top: Fields, section: str, field: str) -> tuple[str, ...]:
    return top.records(section, lambda entry: entry.text(field))


def _pairs(top: Fields, section: str, left: str, right: str) -> dict[str, str]:
    return dict(top.records(section, lambda entry: (entry.text(left), entry.text(right))))


def _misspellings(top: Fields, renamed: set[str | None]) -> dict[str, str]:
    """Wrong name to right one; a name that somebody's device plugin really advertises is no misspelling."""
    return {wrong: right for wrong, right in _pairs(top, "misspellings", "wrong", "right").items() if wrong not in renamed}


def _measure(entry: Fields) -> Measure:
    return Measure(name=entry.text("name"), unit=entry.whole("unit") or None)


def _resource(entry: Fields) -> ResourcePattern:
    name = entry.maybe_text("name")
    pattern = entry.maybe_text("pattern")
    if (name is None) == (pattern is None):
        entry.notes.append(f"{entry.path}: wanted either a name or a pattern")
    return ResourcePattern(
        name=name,
        pattern=_anchored(re.escape(name or "") if pattern is None else pattern, entry),
        vendor=entry.text("vendor"),
        kind=entry.choice("kind", _KINDS),
        profile=entry.maybe_text("profile"),
        parts={mode: _numbers(item, path, entry.notes) for mode, item, path in entry.mapped("parts")} if "parts" in entry else {},
    )


def _numbers(item: object, path: str, notes: Notes) -> tuple[int, ...]:
    if isinstance(item, list) and item and all(type(number) is int and number > 0 for number in item):
        return tuple(item)
    notes.wanted(path, "a list of whole numbers, at least 1", item)
    return (1,)


def _anchored(pattern: str, entry: Fields) -> re.Pattern[str]:
    try:
        return re.compile(f"^(?:{pattern})$", re.ASCII)
    except re.error as error:
        entry.notes.append(f"{entry.at('pattern')}: wanted a regular expression, got {shown(pattern)}: {error}")
        return re.compile("^$")


def _platform(name: str, entry: Fields) -> Platform:
    return Platform(
        name=name,
        cloud=entry.maybe_text("cloud"),
        creates_nodes=entry.flag("createsNodes"),
        makes_slices=entry.flag("makesSlices"),
        slices=entry.texts("slices"),
        anchor=entry.text("anchor"),
        anchor_value=entry.maybe_text("anchorValue") or "",
        not_with=entry.texts("notWith"),
        type_prefix=entry.maybe_text("typePrefix") or "",
        node_classes=entry.texts("nodeClasses"),
        gpu_pools={key: _values(item, path, entry.notes) for key, item, path in entry.mapped("gpuPools")},
        labels=entry.labels("labels"),
        after_boot=entry.labels("afterBoot"),
        machine_keys=tuple(_key_list(item, path, entry.notes) for item, path in entry.listed("machineKeys")),
        capacity=_by_choice(entry, "capacity", _CAPACITIES, _labels),
        capacity_keys=entry.texts("capacityKeys"),
        sharing=entry.text("sharing"),
        protect_durations=entry.flag("protectDurations"),
    )


def _values(item: object, path: str, notes: Notes) -> tuple[str, ...]:
    if isinstance(item, list) and item:
        return tuple(label_value(value, path, notes) for value in item)
    notes.wanted(path, "a list of label values", item)
    return ()


def _key_list(item: object, path: str, notes: Notes) -> tuple[str, ...]:
    if isinstance(item, list) and item and all(isinstance(key, str) for key in item):
        return tuple(item)
    notes.wanted(path, "a list of label keys", item)
    return ()


def _by_choice(entry: Fields, key: str, among: tuple[C, ...], read: Callable[[Any, str, Notes], T]) -> dict[C, T]:
    """A map whose keys are among a few words."""
    found: dict[C, T] = {}
    for name, item, path in entry.mapped(key):
        word = next((word for word in among if word == name), None)
        if word is None:
            entry.notes.append(f"{path}: unknown, wanted one of {', '.join(among)}{meant(name, among)}")
        else:
            found[word] = read(item, path, entry.notes)
    return found


def _labels(item: object, path: str, notes: Notes) -> dict[str, str]:
    if isinstance(item, Mapping):
        return {str(key): label_value(value, f"{path}.{key}", notes) for key, value in item.items()}
    notes.wanted(path, "a map of labels", item)
    return {}


def _scheme(entry: Fields) -> SharingScheme:
    return SharingScheme(
        variants=tuple(variant for group in entry.records("variants", _variants) for variant in group),
        exclude=_by_choice(entry, "exclude", _SHARINGS, _expressions),
        only=_by_choice(entry, "only", _SHARINGS, _expressions),
        slice_key=entry.maybe_text("sliceKey"),
    )


def _variants(entry: Fields) -> tuple[Variant, ...]:
    """One for each of ``resources``, where a line names several; else one."""
    names: tuple[str | None, ...] = entry.texts("resources") or (entry.maybe_text("resource"),)
    plain = Variant(
        sharing=entry.choice("sharing", _SHARINGS),
        vendor=entry.text("vendor"),
        strategy=entry.maybe_choice("strategy", _STRATEGIES),
        per_profile=entry.flag("perProfile"),
        suffix=entry.maybe_text("suffix") or "",
        labels={key: _possible(item, path, entry.notes) for key, item, path in entry.mapped("labels")},
    )
    return tuple(replace(plain, resource=name) for name in names)


def _possible(item: object, path: str, notes: Notes) -> Possible:
    if isinstance(item, list) and item:
        return tuple(None if value is None else label_value(value, path, notes) for value in item)
    notes.wanted(path, "a list of the values that the label may have, null for absent", item)
    return (None,)


def _expressions(item: object, path: str, notes: Notes) -> tuple[Expression, ...]:
    if isinstance(item, list):
        return tuple(record(each, f"{path}[{place}]", notes, _expression) for place, each in enumerate(item))
    notes.wanted(path, "a list of expressions", item)
    return ()


def _expression(entry: Fields) -> Expression:
    return Expression(key=entry.text("key"), operator=entry.choice("operator", _OPERATORS), values=entry.texts("values"))


def _taint(entry: Fields) -> AcceleratorTaint:
    effect = entry.maybe_choice("effect", _EFFECTS) or "NoSchedule"
    taint = Taint(key=entry.text("key"), value=entry.maybe_text("value") or "", effect=effect)
    return AcceleratorTaint(vendor=entry.text("vendor"), taint=taint, platforms=entry.texts("platforms"))


def _protection(entry: Fields) -> Protection:
    return Protection(
        where=entry.choice("where", _PLACES),
        key=entry.text("key"),
        value=entry.text("value"),
        durations=entry.flag("durations"),
        platforms=entry.texts("platforms"),
        any_value=entry.flag("anyValue"),
        only_judged=entry.flag("onlyJudged"),
    )


def _grace_cap(entry: Fields) -> GraceCap:
    return GraceCap(
        name=entry.text("name"),
        seconds=entry.whole("seconds") or 0,
        capacity=entry.maybe_choice("capacity", _CAPACITIES),
        platforms=entry.texts("platforms"),
    )
