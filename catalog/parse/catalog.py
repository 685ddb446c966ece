"""Parse catalog data into a typed ``Catalog``: every mistake is found, with its path, and all are raised at
once.

This module takes mappings, as a YAML reader returns them, and opens no file. ``catalog/catalog.yaml`` shows each
section by example, and ``merge`` describes how a second file is laid over it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from catalog.catalog import Catalog
from catalog.parse.check import checked
from catalog.parse.devices import gpus, machines
from catalog.parse.drivers import published
from catalog.parse.kinds import between, parse_workload
from catalog.parse.merge import layered
from catalog.parse.platforms import platform, scheme
from catalog.parse.reader import Fields, Notes, show_yaml
from catalog.platforms import AcceleratorTaint, Capacity, GraceCap, Protection, Words
from catalog.reserved_keys import ReservedKeys
from catalog.resources import Measure, ResourceKind, ResourcePattern
from kube.taints import Taint

_CAPACITIES: tuple[Capacity, ...] = get_args(Capacity)
_KINDS: tuple[ResourceKind, ...] = get_args(ResourceKind)
_EFFECTS: tuple[Literal["NoSchedule", "PreferNoSchedule", "NoExecute"], ...] = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_PLACES: tuple[Literal["annotations", "labels"], ...] = ("annotations", "labels")


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
    resources, drivers = top.records("resources", _resource), top.records("draDrivers", published)
    return Catalog(
        gpus=devices,
        machines=machines(top, devices, whole),
        platforms=top.named("platforms", platform),
        schemes=top.named("schemes", lambda _, entry: scheme(entry)),
        resources=resources,
        whole=whole,
        misspellings=_misspellings(top, {resource.name for resource in resources}),
        not_accelerators=_column(top, "notAccelerators", "name"),
        measures=top.records("measures", _measure),
        taints=top.records("taints", _taint),
        spot_taints=top.records("spotTaints", _taint),
        never_tolerate=_column(top, "neverTolerate", "key"),
        protections=top.records("protections", _protection),
        workloads=top.records("workloads", parse_workload),
        grace_caps=top.records("graceCaps", _grace_cap),
        between=top.records("between", between),
        podless_groups=frozenset(_column(top, "podlessGroups", "group")),
        excluded_namespaces=_column(top, "excludedNamespaces", "name"),
        dra_drivers={one.driver: one.vendor for one in drivers},
        published={one.driver: one for one in drivers},
        accelerator_domains=_column(top, "acceleratorDomains", "domain"),
        other_drivers=frozenset(_column(top, "otherDrivers", "driver")),
        foreign_schedulers=_pairs(top, "schedulers", "name", "system"),
        retired_families=_column(top, "retiredFamilies", "name"),
        prices=top.named("prices", lambda _, entry: entry.text("where")),
        label_aliases=_pairs(top, "labelAliases", "old", "key"),
        workload_labels=_column(top, "workloadLabels", "label"),
        reserved_keys=top.records("reservedKeys", _reserved_keys),
        words=top.records("words", _words),
        pod_makers=frozenset(_column(top, "podMakers", "user")),
        other_platforms=top.named("otherPlatforms", lambda _, entry: entry.labels("labels")),
    )


def _column(top: Fields, section: str, field: str) -> tuple[str, ...]:
    return top.records(section, lambda entry: entry.text(field))


def _pairs(top: Fields, section: str, left: str, right: str) -> dict[str, str]:
    return dict(top.records(section, lambda entry: (entry.text(left), entry.text(right))))


def _misspellings(top: Fields, renamed: set[str | None]) -> dict[str, str]:
    """Return wrong name -> right one; a name that somebody's device plugin really advertises is no
    misspelling."""
    return {wrong: right for wrong, right in _pairs(top, "misspellings", "wrong", "right").items() if wrong not in renamed}


def _measure(entry: Fields) -> Measure:
    return Measure(name=entry.text("name"), unit=entry.whole("unit") or None)


def _resource(entry: Fields) -> ResourcePattern:
    name = entry.maybe_text("name")
    pattern = entry.maybe_text("pattern")
    if (name is None) == (pattern is None):
        entry.notes.append(f"{entry.path}: expected either a name or a pattern")
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
        entry.notes.append(f"{entry.at('pattern')}: expected a regular expression, got {show_yaml(pattern)}: {error}")
        return re.compile("^$")


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


def _words(entry: Fields) -> Words:
    return Words(
        where=entry.choice("where", _PLACES),
        key=entry.text("key"),
        values=entry.texts("values"),
        several=entry.flag("several"),
        boolean=entry.flag("boolean"),
    )


def _reserved_keys(entry: Fields) -> ReservedKeys:
    return ReservedKeys(
        reader=entry.text("reader"),
        prefix=entry.text("prefix"),
        labels=frozenset(entry.texts("labels")),
        annotations=frozenset(entry.texts("annotations")),
        others=frozenset(entry.texts("others")),
        slips=entry.labels("slips") if "slips" in entry else {},
    )


def _grace_cap(entry: Fields) -> GraceCap:
    return GraceCap(
        name=entry.text("name"),
        seconds=entry.whole("seconds") or 0,
        capacity=entry.maybe_choice("capacity", _CAPACITIES),
        platforms=entry.texts("platforms"),
    )
