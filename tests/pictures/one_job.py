"""The picture of README: one Job, what becomes of it without Berth and with it, and what makes the difference."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from tests.pictures.drawing import ADVANCE, box, picture, text

WIDTH, EDGE, GAP, TOP, PAD = 830.0, 4.0, 28.0, 4.0, 14.0
"""Pixels: as wide as README is shown, so that the type keeps its size."""
SIZE, LEADING = 14.0, 20.0
MOST_SANS = 34
"""Characters of a proportional face at 12.5 pixels that fit a column."""
STYLE = (
    ".card{fill:var(--raised);stroke:var(--line)}.head{font-weight:700}.soft{fill:var(--soft)}.added{fill:var(--good)}.hunk{fill:var(--soft)}"
    ".mark{fill:var(--good-ground)}.arrow{stroke:var(--soft);stroke-width:2;fill:none}.waits{fill:var(--warn-ground);stroke:var(--warn)}"
    ".runs{fill:var(--good-ground);stroke:var(--good)}.waits-ink{fill:var(--warn);font-weight:700}.runs-ink{fill:var(--good);font-weight:700}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a cluster says of the pod of a Job."""

    pod: str
    namespace: str
    phase: str
    """Pending, Running"""
    says: Sequence[str]
    """Sentences: kube-scheduler's reason, or the node that it was bound to"""


def one_job(job: str, without: Outcome, diff: Sequence[str], policies: Sequence[str], with_berth: Outcome) -> str:
    """SVG. ``diff``: lines of the pod's spec as it came and as it was admitted; ``policies``: who asked for them."""
    sides = (WIDTH - 2 * EDGE - 2 * GAP) / 3
    columns = [EDGE + number * (sides + GAP) for number in range(3)]
    left = _outcome(columns[0], sides, "Without Berth", without, "waits")
    right = _outcome(columns[2], sides, "With Berth", with_berth, "runs")
    middle = _difference(columns[1], diff, policies)
    height = max(y for _, y in (left, middle, right)) + 14
    cards = [box(x, TOP + 34, sides, height - TOP - 34, "card") for x in columns]
    arrows = [_arrow(x - GAP + 5, height / 2 + 18, GAP - 10) for x in columns[1:]]
    title = f"{job}: without Berth {without.pod} is {without.phase}; with Berth {with_berth.pod} is {with_berth.phase}"
    head = text(EDGE, TOP + 16, SIZE, f"The same Job, applied twice: {job}", "sans soft")
    return picture(WIDTH, height + 8, title, STYLE, [head, *cards, *arrows, *left[0], *middle[0], *right[0]])


def _outcome(x: float, width: float, head: str, outcome: Outcome, state: str) -> tuple[list[str], float]:
    """Its parts, and where they end."""
    y = TOP + 34 + 30
    wide = len(outcome.phase) * SIZE * ADVANCE + 24
    parts = [text(x + PAD, y, 16, head, "sans head"), box(x + width - wide - PAD, y - 17, wide, 24, state, 12)]
    parts.append(text(x + width - wide - PAD + 12, y, SIZE, outcome.phase, f"mono {state}-ink"))
    y += 34
    parts.append(text(x + PAD, y, SIZE, outcome.pod, "mono"))
    y += LEADING
    parts.append(text(x + PAD, y, 12.5, f"namespace {outcome.namespace}", "sans soft"))
    y += 4
    for sentence in outcome.says:
        y += 6
        for line in textwrap.wrap(sentence, int((width - 2 * PAD) / (12.5 * ADVANCE))):
            y += LEADING - 2
            parts.append(text(x + PAD, y, 12.5, line, "mono soft"))
    return parts, y


def _difference(x: float, diff: Sequence[str], policies: Sequence[str]) -> tuple[list[str], float]:
    y = TOP + 34 + 30
    parts = [text(x + PAD, y, 16, "What Berth added", "sans head")]
    y += 12
    width = (WIDTH - 2 * EDGE - 2 * GAP) / 3
    for line in diff:
        y += LEADING
        kind = {"+": "added", "@": "hunk"}.get(line[:1], "soft")
        if kind == "added":
            parts.append(box(x + 1, y - LEADING + 6, width - 2, LEADING, "mark", 0))
        parts.append(text(x + PAD, y, 13, line, f"mono {kind}"))
    y += 12
    for policy in policies:
        for line in textwrap.wrap(f"added by {policy}", MOST_SANS, break_on_hyphens=False):
            y += LEADING - 2
            parts.append(text(x + PAD, y, 12.5, line, "sans soft"))
    return parts, y


def _arrow(x: float, y: float, width: float) -> str:
    end = x + width
    return f'<path d="M{x:g} {y:g}H{end:g}M{end - 8:g} {y - 6:g}L{end:g} {y:g}L{end - 8:g} {y + 6:g}" class="arrow"/>'
