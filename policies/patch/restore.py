"""A pod that is applied again as its author wrote it: kubectl, Helm and `replace` send its lists without what policies wrote, and no update
may take that away. Such an update keeps it. No policy is read, so it makes no difference whether they have changed since.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kube.pod import DEFAULT_SCHEDULER, GRACE, SCHEDULER
from kube.tree import Raw, map_at
from policies.patch.record import APPLIED, intact_entries, steps
from policies.patch.valid_entries import ValidEntries, Whole, before


def restore_pod(old: Raw, new: Raw, whole: Whole) -> tuple[Raw, ...]:
    """Return the operations that give an update the stored value of each field of the spec that it sends as it was before policies
    wrote it, and the record; none for a field that really changes."""
    record = map_at(old, "metadata", "annotations").get(APPLIED)
    entries = intact_entries(old)
    if not entries:
        return ()
    stored, sent, bare = (map_at(one, "spec") for one in (old, new, before(old, ValidEntries(entries, None), whole)))
    # how long the grace was before nobody knows, and no update may change it
    fields = {steps(entry["path"])[1] for entry in entries if entry["path"].startswith("/spec/")}
    changed = (name for name in sorted(fields) if sent.get(name) != stored.get(name))
    again = [name for name in changed if name == GRACE or _as_absent(name, sent) == _as_absent(name, bare)]
    found = [{"op": "add", "path": f"/spec/{name}", "value": stored[name]} for name in again]
    return (*found, *restore_record(new, record)) if found else ()


def _as_absent(name: str, spec: Mapping[str, Any]) -> Any:
    """Return a field of the spec, or None where it says no more than its absence does."""
    value = spec.get(name)
    return None if name == SCHEDULER[-1] and value == DEFAULT_SCHEDULER else _without_empty(value)


def _without_empty(value: Any) -> Any:
    """Return a value without maps and lists that are empty, which ``before`` leaves out where policies wrote into them; None for one."""
    if isinstance(value, dict):
        return {key: kept for key, item in value.items() if (kept := _without_empty(item)) is not None} or None
    if isinstance(value, list):
        return [_without_empty(item) for item in value] or None
    return value


def restore_record(new: Mapping[str, Any], record: object) -> Iterator[Raw]:
    """Yield the operation, if there is one, that gives an object this record."""
    annotations = map_at(new, "metadata").get("annotations")
    if not isinstance(annotations, dict):
        yield {"op": "add", "path": "/metadata/annotations", "value": {APPLIED: record}}
    elif annotations.get(APPLIED) != record:
        yield {"op": "add", "path": f"/metadata/annotations/{APPLIED.replace('/', '~1')}", "value": record}
