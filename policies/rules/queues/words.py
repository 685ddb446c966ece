"""Words: what a queue system or a sharing scheduler reads of a pod, and would ignore in silence.

Reads   the labels and annotations that the catalog lists under ``words``; the annotations of a part of a GPU, and spec.schedulerName
Writes  nothing
Judges  nothing: the pod's author is told, with the nearest right word
Never   warns of a value whose grammar is not listed
"""

from __future__ import annotations

from collections.abc import Iterator

from catalog.nearest import nearest
from catalog.platforms import Words
from kube.pod import DEFAULT_SCHEDULER, NONE
from kube.tree import Path
from policies.messages import At, phrase
from policies.objects.wording import cut_text
from policies.planning.plan import Plan
from policies.pods.permissions import fraction_keys
from policies.pods.queue_systems import KAI
from policies.request import Request
from policies.verdict import Remark

NAME = "queue_words"
_BOOLEANS = frozenset(("1", "t", "T", "TRUE", "true", "True", "0", "f", "F", "FALSE", "false", "False"))
"""What Go's strconv.ParseBool reads."""
_SHOWN = 30


def mutate(request: Request, plan: Plan) -> Iterator[Remark]:
    """Tell the author of each word that is none."""
    for words in plan.snapshot.catalog.words:
        value = (plan.pod.labels if words.where == "labels" else plan.pod.annotations).get(words.key)
        wrong = _wrong(words, value) if isinstance(value, str) else None
        if wrong is not None:
            path: Path = ("metadata", words.where, words.key)
            near = nearest(wrong, words.values)
            shown = {"path": At(path), "value": cut_text(wrong, _SHOWN)}
            found = phrase("known words", **shown, values=words.values) if near is None else phrase("near", **shown, near=near)
            yield Remark(code="BERTH-228", found=found, rule=NAME, path=path)
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
    yield Remark(code="BERTH-256", found=found, rule=NAME, path=path)


def _wrong(words: Words, value: str) -> str | None:
    """Return the first word of the value that is none; None if all are."""
    given = [part.strip() for part in value.split(",")] if words.several else [value]
    return next((one for one in given if one not in words.values and not (words.boolean and one in _BOOLEANS)), None)
