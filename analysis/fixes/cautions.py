"""What a change takes back of what the author of a pod asked for: each is named where the change is advised."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from analysis.fixes.targets import TargetDevice
from analysis.scan.machines import Machines
from analysis.scan.seen import GROUP_KEYS
from catalog import Catalog, Resource
from catalog.platforms import Capacity
from catalog.prices import PRODUCT_KEYS
from kube.labels import Expression
from kube.pod import NODE_SELECTOR, TOLERATIONS
from kube.scheduling import Wants, wants
from kube.tree import ReadOnly, map_at, text_of, value_at
from policies.offers.table import Table
from policies.pods.annotations import SLICE
from policies.verdict import Edit


class Caution(NamedTuple):
    """One thing that the author may not want."""

    kind: Literal["memory", "slice", "shared", "spot", "label", "taint"]
    """``memory``: less than they ask for, in GB. ``slice``, ``shared``: not a whole device any more. ``spot``: the node may be taken
    away at any time. ``label``: another value of a label than they wrote. ``taint``: the nodes are kept for somebody."""
    key: str = ""
    before: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorRequests:
    """What the author asks for, as far as it is about devices."""

    memory_gb: int | None
    """The least that the words of the author admit; None if they say nothing of it."""
    shape: str
    spot: bool
    """True if the pod may already be on spot."""
    selector: Mapping[str, str]
    terms: Mapping[tuple[str | int, ...], Expression]


def read_author_requests(
    pod: ReadOnly, name: Resource, device: TargetDevice | None, catalog: Catalog, tables: Mapping[str, Table]
) -> AuthorRequests:
    """Return what the author asks for. ``device``: what the pod gets as it is."""
    wanted = wants(pod)
    terms = {one.path: one for term in wanted.terms or () for one in term.labels}
    words = (*wanted.selector, *terms.values())
    spot = any("spot" in one.values or "SPOT" in one.values for one in words if one.operator == "In")
    return AuthorRequests(
        memory_gb=_memory(pod, name, wanted, words, catalog, tables),
        shape="slice" if name.kind == "mig" else "shared" if name.kind == "shared" else "whole" if device is None else device.shape,
        spot=spot,
        selector={one.key: one.values[0] for one in wanted.selector},
        terms=terms,
    )


def find_cautions(
    edits: tuple[Edit, ...],
    asked: AuthorRequests,
    resource: Resource,
    device: TargetDevice | None,
    capacity: Capacity | None,
    catalog: Catalog,
) -> Iterator[Caution]:
    """Yield what the edits take back. ``resource``, ``device``, ``capacity``: what the pod then gets."""
    memory = None if device is None else device.memory_gb
    if asked.memory_gb is not None and (memory is None or memory < asked.memory_gb):
        yield Caution("memory", resource.name, str(asked.memory_gb), "" if memory is None else str(memory))
    shape = "slice" if resource.kind == "mig" else "shared" if resource.kind == "shared" else "whole" if device is None else device.shape
    if shape == "slice" and asked.shape == "whole":
        yield Caution("slice", resource.name, "", "" if memory is None else str(memory))
    if shape == "shared" and asked.shape != "shared":
        yield Caution("shared", resource.name)
    if capacity == "spot" and not asked.spot:
        yield Caution("spot")
    for edit in edits:
        if edit.path[:2] == NODE_SELECTOR and edit.op == "replace":
            key = str(edit.path[2])
            yield Caution("label", key, asked.selector.get(key, ""), text_of(edit.value))
        elif edit.path[-1] == "values" and (before := asked.terms.get(edit.path[:-1])) is not None:
            added = [text_of(one) for one in edit.value if one not in before.values]
            yield Caution("label", before.key, ", ".join(before.values), ", ".join(added))
        elif edit.path[:2] == TOLERATIONS and not _for_devices(text_of(edit.value.get("key")), catalog):
            yield Caution("taint", text_of(edit.value.get("key")), "", text_of(edit.value.get("value")))


def _for_devices(key: str, catalog: Catalog) -> bool:
    """Return whether a taint keeps nothing away but pods without devices, or tells spot: it is nobody's."""
    return any(one.taint.key == key for one in (*catalog.taints, *catalog.spot_taints))


def is_placement(key: str, catalog: Catalog) -> bool:
    """Return whether a label is about machines or groups of them: one that may have another value in an alternative."""
    if key in PRODUCT_KEYS or any(key == group for _, group in GROUP_KEYS):
        return True
    return any(key in one.labels or key in one.after_boot or key in one.capacity_keys for one in catalog.platforms.values())


def _memory(
    pod: ReadOnly, name: Resource, wanted: Wants, words: tuple[Expression, ...], catalog: Catalog, tables: Mapping[str, Table]
) -> int | None:
    """Return the least memory of a device that the author's words admit: the annotation, the name of a slice, labels."""
    annotation = text_of(map_at(value_at(pod, ("metadata",)) or {}, "annotations").get(SLICE))
    if annotation.endswith("gb") and annotation[:-2].isdecimal():
        return int(annotation[:-2])
    if name.kind == "mig":
        sizes = [gpu.slices[name.profile].memory_gb for gpu in catalog.gpus if name.profile in gpu.slices]
        return min(sizes, default=None)
    machines = Machines(catalog)
    found = [gpu.memory_gb for one in words if one.operator == "In" for value in one.values if (gpu := machines.gpu({one.key: value}))]
    for table in tables.values():
        found += _of_rows(table, wanted)
    return min((one for one in found if one is not None), default=None)


def _of_rows(table: Table, wanted: Wants) -> Iterator[int]:
    """Yield the memory of the smallest model that nodeSelector and terms leave of a platform; nothing if they leave all models."""
    rows = _narrowed(table, wanted.selector, table.all)
    if wanted.terms:
        any_of = 0
        for term in wanted.terms:
            any_of |= _narrowed(table, term.labels, table.all)
        rows &= any_of
    if rows == table.all or not rows:
        return
    models = {offer.host.gpu.model: offer.host.gpu.memory_gb or 0 for offer in table.offers_in(rows) if offer.host.gpu is not None}
    if models and len(models) < len({offer.host.gpu.model for offer in table.offers if offer.host.gpu is not None}):
        yield min(models.values())


def _narrowed(table: Table, words: tuple[Expression, ...], rows: int) -> int:
    for one in words:
        rows &= table.select(one.key, one.operator, one.values)[0]
    return rows
