"""Words and keys: what a queue system or a sharing scheduler reads of a pod, and would ignore in silence.

Reads   the labels and annotations that the catalog lists under ``words``, and those beneath the prefixes under ``reservedKeys``; the
        annotations of a part of a GPU, and spec.schedulerName
Writes  nothing
Checks  nothing: the author is told, with the nearest right word or the key that is meant
Never   warns of a value whose grammar is not listed, nor of a key that its reader defines, where it reads it, or that is like none of
        them
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from catalog import Catalog
from catalog.nearest import nearest
from catalog.platforms import Words
from catalog.reserved_keys import PLACES, Where
from kube.pod import DEFAULT_SCHEDULER, NONE
from kube.tree import Path, map_at, text_of
from policies.messages import At, cut_text, phrase
from policies.planning.plan import Plan
from policies.pods.fractions import fraction_keys
from policies.pods.queue_systems import KAI
from policies.request import Request
from policies.verdict import Remark

WORDS, KEYS = "queue_words", "queue_keys"
_BOOLEANS = frozenset(("1", "t", "T", "TRUE", "true", "True", "0", "f", "F", "FALSE", "false", "False"))
"""What Go's strconv.ParseBool reads."""
_SHOWN = 30
_MOST = 16
"""The most keys beneath such prefixes that are looked at, of labels and of annotations: an author may write thousands."""


def mutate_words(request: Request, plan: Plan) -> Iterator[Remark]:
    """Tell the author of each word that is none."""
    for words in plan.snapshot.catalog.words:
        value = (plan.pod.labels if words.where == "labels" else plan.pod.annotations).get(words.key)
        wrong = _wrong(words, value) if isinstance(value, str) else None
        if wrong is not None:
            path: Path = ("metadata", words.where, words.key)
            near = nearest(wrong, words.values)
            shown = {"path": At(path), "value": cut_text(wrong, _SHOWN)}
            found = phrase("known words", **shown, values=words.values) if near is None else phrase("near", **shown, near=near)
            yield Remark(code="BERTH-228", found=found, rule=WORDS, path=path)
    yield from _part(plan)


def _part(plan: Plan) -> Iterator[Remark]:
    """Yield a remark on a part of a GPU that the pod's scheduler does not give.

    Berth could name KAI's scheduler, but too late: its admission webhook, which prepares the pod, is called before, and the API server
    calls none again that has not been called at first (apiserver pkg/admission/plugin/webhook/mutating/dispatcher.go).
    """
    if plan.asked or plan.devices.fraction == NONE or plan.pod.scheduler not in ("", DEFAULT_SCHEDULER):
        return
    path: Path = ("metadata", "annotations", fraction_keys(plan.pod.annotations)[0])
    found = phrase("fact", path=At(path), scheduler=DEFAULT_SCHEDULER, field=At(("spec", "schedulerName")), kai=KAI.scheduler)
    yield Remark(code="BERTH-256", found=found, rule=WORDS, path=path)


def _wrong(words: Words, value: str) -> str | None:
    """Return the first word of the value that is none; None if all are."""
    given = [part.strip() for part in value.split(",")] if words.several else [value]
    return next((one for one in given if one not in words.values and not (words.boolean and one in _BOOLEANS)), None)


# --- keys -------------------------------------------------------------------------------------------------------------


def mutate_keys(request: Request, plan: Plan) -> Iterator[Remark]:
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
    yield Remark(code="BERTH-246", found=found, rule=KEYS, path=path)
