"""Words and keys: what a queue system, a sharing scheduler or an autoscaler reads of a pod, and would ignore in silence.

Reads   the labels and annotations that the catalog lists under ``words``, and those beneath the prefixes under ``reservedKeys``; the
        annotations of a part of a GPU, and spec.schedulerName
Writes  nothing
Checks  nothing: the author is told, with the nearest right word or the key that is meant
Never   warns of a value whose grammar is not listed, nor of a key that its reader defines, where it reads it, or that is like none of
        them
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from catalog import Catalog
from catalog.nearest import nearest
from catalog.platforms import Words
from catalog.reserved_keys import PLACES, ReservedKeys, Slip, Where
from kube.duration import parse_duration
from kube.pod import DEFAULT_SCHEDULER, NONE
from kube.tree import Path, map_at, text_of, value_at
from policies.messages import At, cut_text, phrase
from policies.planning.plan import Plan
from policies.planning.queues import scheduler_of
from policies.pods.fractions import fraction_keys
from policies.pods.queue_systems import KAI, value_of
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
    return next((word for word in given if word not in words.values and not _is_other_form(words, word)), None)


def _is_other_form(words: Words, word: str) -> bool:
    return (words.boolean and word in _BOOLEANS) or (words.durations and parse_duration(word) is not None)


# --- keys -------------------------------------------------------------------------------------------------------------


def mutate_keys(request: Request, plan: Plan) -> Iterator[Remark]:
    """Tell the author of each key that is ignored."""
    yield from remark_ignored_keys({"labels": plan.pod.labels, "annotations": plan.pod.annotations}, plan.snapshot.catalog)
    system = scheduler_of(plan.pod.scheduler)
    if system is not None and system.former_key in plan.pod.labels and value_of(plan.pod, system) is None:
        slip = Slip(system.title, system.where, system.key)
        yield _ignored(slip, system.former_key, ("metadata", "labels", system.former_key), system.path)


def remark_ignored_keys(metadata: Mapping[Where, Mapping[str, Any]], catalog: Catalog) -> Iterator[Remark]:
    """Yield a remark for each key of a pod's or a workload's labels and annotations that is ignored."""
    for where in PLACES:
        for reserved, key in _reserved(metadata, where, catalog):
            slip = reserved.slip(where, key) if key not in catalog.right_keys[where] else None
            if slip is not None:
                yield _ignored(slip, key, ("metadata", where, key), ("metadata", slip.where, slip.key))


def _reserved(metadata: Mapping[Where, Mapping[str, Any]], where: Where, catalog: Catalog) -> Iterator[tuple[ReservedKeys, str]]:
    """Yield the keys with a reserved prefix, as far as they are looked at."""
    there = (key for key in sorted(filter(None, map(text_of, metadata[where]))) if key.startswith(catalog.reserved_prefixes))
    for key in islice(there, _MOST):
        yield next(reserved for reserved in catalog.reserved_keys if key.startswith(reserved.prefix)), key


def of_workload(value: Mapping[str, Any], catalog: Catalog, templates: Iterable[Path] = ()) -> tuple[Remark, ...]:
    """Return the remarks on the labels and annotations of a workload itself, where Kueue and KAI read a queue.

    ``templates``: the paths of its pod templates. Keys that are read of pods alone belong into the first of these.
    """
    template = next(iter(templates), ())
    own = (remark for remark in remark_ignored_keys(_metadata(value, ()), catalog) if not template or not _is_of_pods(remark, catalog))
    return (*own, *(remark for at in range(len(template)) for remark in _on_the_way(value, template[:at], template, catalog)))


def _metadata(value: Mapping[str, Any], at: Path) -> dict[Where, Mapping[str, Any]]:
    metadata = map_at(value_at(value, at, {}), "metadata")
    return {where: map_at(metadata, where) for where in PLACES}


def _is_of_pods(remark: Remark, catalog: Catalog) -> bool:
    return any(str(remark.path[-1]).startswith(reserved.prefix) for reserved in catalog.reserved_keys if reserved.of_pods)


def _on_the_way(value: Mapping[str, Any], at: Path, template: Path, catalog: Catalog) -> Iterator[Remark]:
    """Yield the remarks on keys of pods in the metadata of one map around the template, unless the template has the right ones."""
    metadata = _metadata(value, at)
    for where in PLACES:
        for reserved, key in _reserved(metadata, where, catalog) if any(metadata.values()) else ():
            known = reserved.of_pods and key.removeprefix(reserved.prefix) not in reserved.others
            slip = (reserved.slip(where, key) or _right(reserved, where, key)) if known else None
            if slip is not None and value_at(value, right := (*template, "metadata", slip.where, slip.key)) is None:
                yield _ignored(slip, key, (*at, "metadata", where, key), right)


def _right(reserved: ReservedKeys, where: Where, key: str) -> Slip | None:
    return Slip(reserved.reader, where, key) if key in reserved.right(where) else None


def _ignored(slip: Slip, key: str, path: Path, right: Path) -> Remark:
    found = phrase("place" if slip.key == key else "near", path=At(path), reader=slip.reader, right=At(right))
    return Remark(code="BERTH-246", found=found, rule=KEYS, path=path)
