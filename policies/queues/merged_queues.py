"""What policies give and require of the queue in which a pod waits, merged.

Of a default the first scope that speaks decides, as of names (``policies.offers.merging``). What several policies
require is what all of them admit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from policies.offers.constraints import Compiled
from policies.offers.merging import NamedValue, by_scope, merge_named
from policies.pods.queue_systems import ANY, SYSTEMS, System, admitted
from policies.policy import QueueName, Queues

Admitted = tuple[tuple[System, str], ...]
"""Systems with a queue of each, or ``*``, in the order of ``SYSTEMS``, then by name."""


@dataclass(frozen=True, slots=True)
class Required:
    """What ``require.queue`` of several policies admits together."""

    admitted: Admitted
    """Empty: they contradict each other."""
    policies: tuple[str, ...]

    def of(self, system: System) -> tuple[str, ...]:
        """Return the queues of one system that are admitted."""
        return tuple(name for one, name in self.admitted if one is system)

    def admits(self, system: System, name: str) -> bool:
        """Return whether a pod may be in this queue."""
        return not {ANY, name}.isdisjoint(self.of(system))


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedQueues:
    default: NamedValue[QueueName] | None
    required: Required | None


def merge_queues(policies: Sequence[Compiled], matches: Sequence[Compiled]) -> MergedQueues:
    """Merge the settings of these policies. ``matches``: those whose defaults act."""
    scopes = by_scope(matches)
    demands = [(queues, c.id) for c in policies if (queues := c.policy.require.queue) is not None]
    return MergedQueues(
        default=merge_named(scopes, lambda default: default.queue),
        required=Required(common(queues for queues, _ in demands), tuple(who for _, who in demands)) if demands else None,
    )


def common(demands: Iterable[Queues]) -> Admitted:
    """Return what all of these admit."""
    first, *others = (dict.fromkeys(admitted(queues)) for queues in demands)
    left = set(first)
    for other in others:
        both = left & set(other)
        left = both | {one for one in left if (one[0], ANY) in other} | {one for one in other if (one[0], ANY) in left}
    return tuple(sorted(left, key=lambda one: (SYSTEMS.index(one[0]), one[1])))
