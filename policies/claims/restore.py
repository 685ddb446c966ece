"""A claim or template that is applied again as its author wrote it: kubectl and Helm send its list of requests without the selectors that
policies wrote, and the spec of both kinds is immutable. Such an update gets the spec that is stored. No policy is read, so it makes
no difference whether they have changed since.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from kube.tree import Raw, map_at
from policies.claims import cel
from policies.patch.record import APPLIED, intact_entries, steps
from policies.patch.restore import restore_record


def restore_claim(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[Raw, ...]:
    """Return the operations that give an update the stored spec and record, if its spec is the stored one without what policies wrote;
    none otherwise: the API server then says what can't be changed."""
    record = map_at(old, "metadata", "annotations").get(APPLIED)
    spec, sent = old.get("spec"), new.get("spec")
    if not isinstance(record, str) or not isinstance(spec, dict) or not isinstance(sent, dict) or spec == sent:
        return ()
    paths = [entry["path"] for entry in intact_entries(old)]
    if (_without(spec, paths) if paths else _bare(spec)) != (sent if paths else _bare(sent)):
        return ()
    return {"op": "replace", "path": "/spec", "value": spec}, *restore_record(new, record)


def _without(spec: Raw, paths: list[str]) -> Raw:
    """Return the spec without the selectors at these paths of the object, and without lists of selectors that are empty then."""
    bare = copy.deepcopy(spec)
    for _, *way, index in sorted((steps(path) for path in paths), key=lambda path: (path[:-1], int(path[-1])), reverse=True):
        parent: Any = bare
        for step in way[:-1]:
            parent = parent[int(step)] if isinstance(parent, list) else parent[step]
        del parent[way[-1]][int(index)]
        if not parent[way[-1]]:
            del parent[way[-1]]
    return bare


def _bare(value: Any) -> Any:
    """Return a spec without all selectors that read as a policy's: the record of many is cut, and names no paths."""
    if isinstance(value, list):
        return [_bare(item) for item in value]
    if not isinstance(value, dict):
        return value
    found = {key: _bare(item) for key, item in value.items() if key != "selectors"}
    selectors = value.get("selectors")
    kept = (
        [one for one in selectors if cel.parse_demand(str(map_at(one, "cel").get("expression"))) is None]
        if isinstance(selectors, list)
        else []
    )
    return {**found, "selectors": kept} if kept else found
