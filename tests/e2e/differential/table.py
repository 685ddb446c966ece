"""The figures of a differential run, what broke with all that is needed to try it offline, and what would make the run hollow."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property

from tests.e2e.differential.default_worlds import WORLDS
from tests.e2e.differential.laws import KEPT, LAWS, PLACEMENT, Broken, Finding, Observed
from tests.e2e.differential.offline import item

SHOWN = 3
"""broken cases of each law that are shown whole"""
LEAST = {
    "no_error": 1.0,
    "nothing_broken": 0.7,
    "nothing_let_in": 0.08,
    "as_offline": 0.7,
    "settled": 0.55,
    "none_denied_that_fits": 0.4,
    "none_outside": 0.3,
    "none_made_pending": 0.3,
    "none_inside_closed": 0.25,
    "none_outside_open": 0.1,
    "untouched": 0.03,
    "defaults_hold": 0.02,
}
"""Part of all pods of which each law must tell"""
LEAST_BOUND, LEAST_PENDING, LEAST_DENIED, LEAST_MISPLACED = 0.4, 0.1, 0.07, 0.03
"""Part of all pods that must be bound, pending, denied by Berth, and denied for where they may run"""


class Table:
    """What became of the pods of each world, and what each law found."""

    def __init__(self, observed: Sequence[Observed]) -> None:
        self.observed = observed
        self.findings: dict[str, list[tuple[Observed, Finding]]] = {
            name: [(one, law(one)) for one in observed] for name, law in LAWS.items()
        }

    def broken(self, law: str) -> list[tuple[Observed, Broken]]:
        """Each case in which it is."""
        return [(one, finding) for one, finding in self.findings[law] if isinstance(finding, Broken)]

    def __str__(self) -> str:
        lines = [f"{'world':16}{'pods':>8}{'invalid':>8}{'denied':>8}{'bound':>8}{'pending':>8}"]
        for name in (*(world.name for world in WORLDS), "all"):
            became = Counter(_became(one) for one in self.observed if name in ("all", one.case.world.name))
            figures = (became.total(), *(became[what] for what in ("invalid", "denied", "bound", "pending")))
            lines.append(f"{name:16}{''.join(f'{figure:8}' for figure in figures)}")
        for law, found in self.findings.items():
            rows = Counter("broken" if isinstance(finding, Broken) else finding for _, finding in found)
            lines.append(f"{law}: {', '.join(f'{row} {number}' for row, number in rows.most_common())}")
        return "\n".join([*lines, f"denied with: {dict(self._codes.most_common())}"])

    @cached_property
    def _codes(self) -> Counter[str]:
        """Pods denied with each code."""
        return Counter(code for one in self.observed for code in dict.fromkeys(one.denied))

    def failures(self) -> list[str]:
        """Empty where every law holds."""
        return [line for law in self.findings for line in self._failures(law)]

    def _failures(self, law: str) -> Iterator[str]:
        broken = self.broken(law)
        if broken:
            yield f"{law} is broken by {len(broken)} pods, such as:"
        for one, finding in broken[:SHOWN]:
            case = one.case
            yield f"  pod {case.number} in {case.world.name} (--platforms {','.join(case.world.platforms)}): {finding.how}"
            yield f"    policies: {json.dumps(case.world.objects) if case.world.objects else 'the shipped library'}"
            yield f"    for berth try: {json.dumps(item(case) if case.plain.ok else case.pod)}"
            yield f"    stored: {json.dumps(case.stored['spec']) if case.judged.ok else 'no'}"

    def hollow(self) -> list[str]:
        """What too few pods told to mean anything; empty where none."""
        became = Counter(map(_became, self.observed))
        misplaced = sum(1 for one in self.observed if not set(PLACEMENT).isdisjoint(one.denied))
        counts = {law: sum(1 for _, f in found if f == KEPT or isinstance(f, Broken)) for law, found in self.findings.items()}
        wanted = [(law, counts[law], part) for law, part in LEAST.items()]
        wanted += [("bound", became["bound"], LEAST_BOUND), ("pending", became["pending"], LEAST_PENDING)]
        wanted += [("denied", became["denied"], LEAST_DENIED), ("denied for where", misplaced, LEAST_MISPLACED)]
        return [f"{what}: {number} of {len(self.observed)} pods" for what, number, part in wanted if number < part * len(self.observed)]


def _became(observed: Observed) -> str:
    if not observed.case.plain.ok:
        return "invalid"
    if not observed.case.judged.ok:
        return "denied"
    return "bound" if observed.node("judged") is not None else "pending"
