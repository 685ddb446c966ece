"""The texts of a status: lists that are cut, and one line each on what a policy does and where."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from documents.printable import counted
from policies.messages import cut_text
from policies.objects.wording import condition, describe_scope, summarize_object
from policies.offers.constraints import Compiled
from policies.policy import NodeTemplate
from policies.state.objects import ObjectEntry

MOST_MESSAGE = 2_000
"""Characters of a condition's message: the API allows 32,768, but nobody reads them, and every watcher
holds ten thousand objects."""
MOST_LINE = 120
"""Characters of ``what`` and ``describe_match``, which stand side by side in columns of `kubectl get gpu`; the spec
has the whole."""
MOST_PLACE = 80
"""Characters of these that namespaces may take."""
MOST_LISTED = 4
"""Items of a list in such a line."""
MOST_NAMED = 5
"""Other objects that are named."""
_TAIL = 24
"""Characters reserved for "; and 1000000 more"."""


def sentences(parts: Sequence[str], end: str = "", most: int = MOST_MESSAGE) -> str:
    """Return ``a; b; and 3 more. END``, never longer than ``most``: parts are left out whole, and only the
    first is ever cut."""
    room = most - len(end) - _TAIL
    shown: list[str] = []
    for part in parts:
        room -= len(part) + 2
        if room < 0 and shown:
            break
        shown.append(cut_text(part, most - len(end) - _TAIL))
    rest = len(parts) - len(shown)
    text = "; ".join([*shown, *([f"and {rest} more"] if rest else [])])
    return f"{text}{'' if text.endswith(('?', '.')) else '.'} {end}" if text and end else text or end


def list_names(names: Iterable[str], count: int) -> str:
    """Return ``a, b and c``, or with ``count`` above five ``a, b, c, d, e and 7 more``.

    ``names``: at least the first five.
    """
    shown = [name for name, _ in zip(names, range(MOST_NAMED), strict=False)]
    if count > len(shown):
        return f"{', '.join(shown)} and {count - len(shown)} more"
    return " and ".join(filter(None, (", ".join(shown[:-1]), *shown[-1:])))


def acting_instead(entry: ObjectEntry) -> str:
    """Return what applies in place of an object that was not understood."""
    if not entry.stale:
        return "it has no effect"
    generation = (entry.last_good or {}).get("generation")
    return f"generation {generation} stays in effect" if generation is not None else "its last valid version stays in effect"


# --- what an object does, and where -------------------------------------------------------------------------


def what(compiled: Compiled) -> str:
    """Return, for example, ``require families in [hopper], gpusPerPod max 8; default gracePeriod 30m``."""
    return cut_text(summarize_object(compiled.policy, MOST_LISTED) or "nothing", MOST_LINE)


def what_template(template: NodeTemplate) -> str:
    """Return, for example, ``gpus families in [ampere]; capacity [on-demand]; labels
    karpenter.sh/nodepool=gpu-a100; taints pool=a100:NoSchedule``."""
    return cut_text(summarize_object(template, MOST_LISTED), MOST_LINE)


def describe_match(compiled: Compiled, picked: int) -> str:
    """Return, for example, ``all namespaces; pods of Job that ask for at least 4 GPUs``.

    ``picked``: how many namespaces the selector selects now.
    """
    there = describe_scope(compiled.policy, counted(picked, "namespace"))
    return cut_text("; ".join(filter(None, (cut_text(there, MOST_PLACE), condition(compiled.policy)))), MOST_LINE)
