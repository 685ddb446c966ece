"""What the author of a pod says by annotation: how long it runs, which template or slice it wants, what it opts out of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from policies import duration
from policies.catalog import Catalog
from policies.pod import Pod
from policies.policy import GROUP, LongRuns
from policies.verdict import Violation

TEMPLATE = f"{GROUP}/node-template"
SLICE = f"{GROUP}/mig-slice"
DURATION = f"{GROUP}/expected-duration"
OPT_OUT = f"{GROUP}/opt-out"
NO_SLICE = "none"
"""value of the annotation of a slice: a whole GPU, whatever a default says"""
_SLICE = re.compile(r"([1-9]\d{0,3})gb", re.ASCII)


@dataclass(frozen=True, slots=True)
class Author:
    """One pod's."""

    seconds: Fraction | None = None
    """how long the pod runs: the annotation, else activeDeadlineSeconds, else None; what a default goes by"""
    longest: Fraction | None = None
    """the longer of the two, None where neither is said: what ``require`` judges by, for of two words the worse one counts"""
    template: str | None = None
    slice_gb: int | None = None
    no_slice: bool = False
    """asks for a whole GPU"""
    opt_out_grace: bool = False
    violations: tuple[Violation, ...] = ()
    """annotations that can't be read"""


def is_long(seconds: Fraction | int | None, long_runs: LongRuns) -> bool:
    """Whether a run of this duration (None: unknown) is long."""
    return long_runs.unknown_is_long if seconds is None else seconds > long_runs.over


def read(pod: Pod, catalog: Catalog) -> Author:
    """What this pod's author says."""
    said, deadline = _expected(pod), _deadline(pod)
    if not pod.annotations:
        return Author(deadline, deadline)
    return Author(
        seconds=deadline if said is None else said,
        longest=max((one for one in (said, deadline) if one is not None), default=None),
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
    """Any duration above zero that Go reads."""
    said = duration.read(_text(pod, DURATION))
    return None if said is None or said <= 0 else said


def _deadline(pod: Pod) -> Fraction | None:
    deadline = pod.spec.get("activeDeadlineSeconds")
    return Fraction(deadline) if isinstance(deadline, int) and not isinstance(deadline, bool) else None


def _slice_gb(pod: Pod) -> int | None:
    match = _SLICE.fullmatch(_text(pod, SLICE) or "")
    return int(match.group(1)) if match else None


def _opted_out(pod: Pod) -> list[str]:
    return [part.strip() for part in (_text(pod, OPT_OUT) or "").split(",") if part.strip()]


def _unreadable(pod: Pod, catalog: Catalog) -> Iterator[Violation]:
    lasts, slice_text = _text(pod, DURATION), _text(pod, SLICE)
    if lasts is not None and _expected(pod) is None:
        yield _wrong(DURATION, lasts, "write a duration such as 90m, 6h or 1h30m", "node_affinity")
    sizes = sorted({p.memory_gb for gpu in catalog.gpus for p in gpu.mig}) if slice_text is not None else []
    if slice_text is not None and slice_text != NO_SLICE and _slice_gb(pod) not in sizes:
        nearest = min(sizes, key=lambda gb: (abs(gb - (_slice_gb(pod) or 10)), gb), default=10)
        known = ", ".join(f"{gb}gb" for gb in sizes)
        yield _wrong(
            SLICE,
            slice_text,
            f"write the nominal size of a slice that exists, such as {nearest}gb, or none",
            "mig_resources",
            f"Known sizes: {known}.",
        )
    for part in _opted_out(pod):
        if part != "grace":
            yield _wrong(OPT_OUT, part, "write grace, the only thing to opt out of", "checkpoint_grace")


def _wrong(key: str, value: str, fix: str, rule: str, detail: str = "") -> Violation:
    fact = f'metadata.annotations["{key}"] is "{value[:40]}"'
    return Violation(code="BERTH-151", fact=fact, fix=fix, detail=detail, rule=rule)
