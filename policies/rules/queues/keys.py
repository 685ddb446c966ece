"""Keys: a label or an annotation that a queue system or a sharing scheduler ignores, for its key is misspelt or stands in the wrong place.

Reads   the labels and annotations beneath the prefixes that the catalog lists under ``reservedKeys``
Writes  nothing
Judges  nothing: the author is told, with the key that is meant
Never   warns of a key that its reader defines, where it reads it, nor of one that is like none of them
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from catalog import Catalog
from catalog.reserved_keys import PLACES, Where
from kube.tree import Path, map_at, text_of
from policies.messages import At, phrase
from policies.planning.plan import Plan
from policies.request import Request
from policies.verdict import Remark

NAME = "queue_keys"
_MOST = 16
"""The most keys beneath such prefixes that are looked at, of labels and of annotations: an author may write thousands."""


def mutate(request: Request, plan: Plan) -> Iterator[Remark]:
    """Tell the author of each key that is ignored."""
    yield from remark_ignored_keys({"labels": plan.pod.labels, "annotations": plan.pod.annotations}, plan.snapshot.catalog)


def remark_ignored_keys(metadata: Mapping[Where, Mapping[str, Any]], catalog: Catalog) -> Iterator[Remark]:
    """Yield a remark for each key of a pod's or a workload's labels and annotations that is ignored."""
    for where in PLACES:
        there = (key for key in sorted(filter(None, map(text_of, metadata[where]))) if key.startswith(catalog.reserved_prefixes))
        for key in islice((key for key in there if key not in catalog.right_keys[where]), _MOST):
            yield from _of_key(where, key, catalog)


def of_workload(value: Mapping[str, Any], catalog: Catalog) -> tuple[Remark, ...]:
    """Return the remarks on the labels and annotations of a workload itself, where Kueue and KAI read a queue."""
    metadata = map_at(value, "metadata")
    return tuple(remark_ignored_keys({where: map_at(metadata, where) for where in PLACES}, catalog))


def _of_key(where: Where, key: str, catalog: Catalog) -> Iterator[Remark]:
    reserved = next(one for one in catalog.reserved_keys if key.startswith(one.prefix))
    slip = reserved.slip(where, key)
    if slip is None:
        return
    path: Path = ("metadata", where, key)
    right: Path = ("metadata", slip.where, slip.key)
    found = phrase("place" if slip.key == key else "near", path=At(path), reader=slip.reader, right=At(right))
    yield Remark(code="BERTH-246", found=found, rule=NAME, path=path)
