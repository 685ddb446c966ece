"""The author's settings by annotation: how long the pod runs, which template or slice it asks for, what it
opts out of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from catalog import Catalog
from kube import duration
from kube.pod import Pod
from kube.tree import Path
from policies.fixes import write_or_leave_out
from policies.messages import At, Phrase, phrase
from policies.policy import GROUP, LongRuns
from policies.verdict import Violation

TEMPLATE = f"{GROUP}/node-template"
SLICE = f"{GROUP}/mig-slice"
DURATION = f"{GROUP}/expected-duration"
OPT_OUT = f"{GROUP}/opt-out"
_OURS = frozenset({TEMPLATE, SLICE, DURATION, OPT_OUT})
NO_SLICE = "none"
"""Value of the slice annotation that asks for a whole GPU, whatever a default specifies."""
_SLICE = re.compile(r"([1-9]\d{0,3})gb", re.ASCII)


@dataclass(frozen=True, slots=True)
class Author:
    """The settings of one pod's author."""

    seconds: Fraction | None = None
    """How long the pod runs: the annotation, else activeDeadlineSeconds, else None. Defaults use this."""
    longest: Fraction | None = None
    """The longer of the two, None if neither is given. ``require`` uses this: of two values the less
    favourable one counts."""
    expected: Fraction | None = None
    """The annotation alone."""
    template: str | None = None
    slice_gb: int | None = None
    no_slice: bool = False
    """True if the author asks for a whole GPU."""
    opt_out_grace: bool = False
    violations: tuple[Violation, ...] = ()
    """Violations about annotations that cannot be read."""


def ended(author: Author, seconds: int) -> Author:
    """Return the settings of an author whose pod is given this ``activeDeadlineSeconds``, having none: those that are
    read of it on the next call."""
    last = Fraction(seconds)
    expected = author.expected
    return replace(author, seconds=last if expected is None else expected, longest=last if expected is None else max(expected, last))


def is_long(seconds: Fraction | int | None, long_runs: LongRuns) -> bool:
    """Return whether a run of this duration (None: unknown) is long."""
    return long_runs.unknown_is_long if seconds is None else seconds > long_runs.over


def read_author_settings(pod: Pod, catalog: Catalog) -> Author:
    """Return the settings of this pod's author."""
    deadline = None if pod.deadline is None else Fraction(pod.deadline)
    if _OURS.isdisjoint(pod.annotations):
        return Author(deadline, deadline)
    expected = _expected(pod)
    return Author(
        seconds=deadline if expected is None else expected,
        longest=max((one for one in (expected, deadline) if one is not None), default=None),
        expected=expected,
        template=_text(pod, TEMPLATE),
        slice_gb=_slice_gb(pod),
        no_slice=_text(pod, SLICE) == NO_SLICE,
        opt_out_grace="grace" in _opted_out(pod),
        violations=tuple(_unreadable(pod, catalog)),
    )


def _text(pod: Pod, key: str) -> str | None:
    value = pod.annotations.get(key)
    return None if value is None else str(value)


def _expected(pod: Pod) -> Fraction | None:
    """Return the expected duration: any duration above zero that Go reads."""
    seconds = duration.parse_duration(_text(pod, DURATION))
    return None if seconds is None or seconds <= 0 else seconds


def _slice_gb(pod: Pod) -> int | None:
    match = _SLICE.fullmatch(_text(pod, SLICE) or "")
    return int(match.group(1)) if match else None


def _opted_out(pod: Pod) -> list[str]:
    return [part.strip() for part in (_text(pod, OPT_OUT) or "").split(",") if part.strip()]


def _unreadable(pod: Pod, catalog: Catalog) -> Iterator[Violation]:
    lasts, slice_text = _text(pod, DURATION), _text(pod, SLICE)
    if lasts is not None and _expected(pod) is None:
        yield _wrong(DURATION, lasts, phrase("duration"), "node_affinity")
    sizes = sorted({p.memory_gb for gpu in catalog.gpus for p in gpu.mig}) if slice_text is not None else []
    if slice_text is not None and slice_text != NO_SLICE and _slice_gb(pod) not in sizes:
        nearest = min(sizes, key=lambda gb: (abs(gb - (_slice_gb(pod) or 10)), gb), default=10)
        known = phrase("sizes", sizes=tuple(f"{gb}gb" for gb in sizes))
        yield _wrong(SLICE, slice_text, phrase("size", nearest=nearest), "mig_resources", known, right=f"{nearest}gb")
    for part in _opted_out(pod):
        if part != "grace":
            yield _wrong(OPT_OUT, part, phrase("opt out"), "checkpoint_grace", right="grace")


def _wrong(key: str, value: str, advice: Phrase, rule: str, *more: Phrase, right: str | None = None) -> Violation:
    """Return the violation for the value of an annotation. ``right``: a value to write instead; None if only the author knows it."""
    path: Path = ("metadata", "annotations", key)
    return Violation(
        code="BERTH-151",
        found=phrase("fact", path=At(path), value=value[:40]),
        advice=advice,
        more=more,
        rule=rule,
        path=path,
        fixes=write_or_leave_out(path, right),
    )
