"""Parse catalog data on platforms and on their ways of sharing GPUs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal, TypeVar, get_args

from catalog.parse.reader import Fields, Notes, label_value, meant, record
from catalog.platforms import Capacity, Operator, Platform, Sharing, SharingScheme, Variant
from kube.labels import Expression, Possible

T = TypeVar("T")
C = TypeVar("C", bound=str)

_CAPACITIES: tuple[Capacity, ...] = get_args(Capacity)
_SHARINGS: tuple[Sharing, ...] = get_args(Sharing)
_OPERATORS: tuple[Operator, ...] = get_args(Operator)
_STRATEGIES: tuple[Literal["mixed", "single"], ...] = ("mixed", "single")


def platform(name: str, entry: Fields) -> Platform:
    return Platform(
        name=name,
        cloud=entry.maybe_text("cloud"),
        creates_nodes=entry.flag("createsNodes"),
        makes_slices=entry.flag("makesSlices"),
        slices=entry.texts("slices"),
        partition_sizes={model: _texts(item, path, entry.notes) for model, item, path in entry.mapped("partitionSizes")},
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
        further_capacity=_by_choice(entry, "furtherCapacity", _CAPACITIES, _label_sets),
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
    """Return a map whose keys are among a few words."""
    found: dict[C, T] = {}
    for name, item, path in entry.mapped(key):
        word = next((word for word in among if word == name), None)
        if word is None:
            entry.notes.append(f"{path}: unknown, expected one of {', '.join(among)}{meant(name, among)}")
        else:
            found[word] = read(item, path, entry.notes)
    return found


def _labels(item: object, path: str, notes: Notes) -> dict[str, str]:
    if isinstance(item, Mapping):
        return {str(key): label_value(value, f"{path}.{key}", notes) for key, value in item.items()}
    notes.wanted(path, "a map of labels", item)
    return {}


def _label_sets(item: object, path: str, notes: Notes) -> tuple[dict[str, str], ...]:
    if isinstance(item, list):
        return tuple(_labels(each, f"{path}[{place}]", notes) for place, each in enumerate(item))
    notes.wanted(path, "a list of maps of labels", item)
    return ()


def _texts(item: object, path: str, notes: Notes) -> tuple[str, ...]:
    if isinstance(item, list) and all(isinstance(text, str) for text in item):
        return tuple(item)
    notes.wanted(path, "a list of strings", item)
    return ()


def scheme(entry: Fields) -> SharingScheme:
    return SharingScheme(
        variants=tuple(variant for group in entry.records("variants", _variants) for variant in group),
        exclude=_by_choice(entry, "exclude", _SHARINGS, _expressions),
        only=_by_choice(entry, "only", _SHARINGS, _expressions),
        slice_key=entry.maybe_text("sliceKey"),
    )


def _variants(entry: Fields) -> tuple[Variant, ...]:
    """Return one variant for each of ``resources`` if a line names several; else one."""
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
