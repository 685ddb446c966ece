"""Find requirements that leave nothing together, so that every pod that matches them is denied, whatever its
author writes.

The status of a policy of the cluster names only other policies of the cluster: a team that requires something
odd in its own namespace neither spoils nor touches the status of a guardrail. The team's own policy names
those that it excludes. Nor does a policy that only audits touch the status of another: it is compared alone with
those in Enforce.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import and_

from analysis.conditions.differences import MOST_PAIRS, STEP
from analysis.conditions.reach import Reach
from analysis.conditions.sets import Demand, emptied_by, excluding
from analysis.conditions.words import MOST_NAMED, list_names
from kube.labels import LabelSelector
from policies.offers.constraints import Compiled

MOST_BLOCKS = 20_000
"""Groups of namespaces with the same requirements that are examined: in the largest cluster, one per
namespace."""


@dataclass(slots=True)
class Exclusions:
    """Sentences by policy on one thing that is required: offers, numbers of GPUs, or grace periods."""

    demand: Callable[[Compiled], Demand | None]
    thing: str
    """The noun for messages: ``GPU``."""
    reach: Reach
    sentences: dict[Compiled, list[str]] = field(default_factory=dict)
    impossible: dict[Compiled, str] = field(default_factory=dict)
    """Policies whose requirements leave nothing by themselves, with the text of these."""
    unjudged: dict[Compiled, str] = field(default_factory=dict)
    """Policies that were not compared with all others, because there are too many."""
    _cluster: list[Demand] = field(default_factory=list)
    """Of the cluster's policies in Enforce."""
    _by_mask: dict[int, int] = field(default_factory=dict)
    """Bit set of namespaces -> what is left by the policies in ``_cluster`` that apply in exactly these."""

    def cluster_steps(self, policies: Sequence[Compiled]) -> Iterator[None]:
        """Compare the cluster's policies; must be done before ``own_steps``."""
        trials: list[Demand] = []
        yield from self._read(policies, self._cluster, trials)
        for demand in self._cluster:
            where = self.reach.of[demand.by]
            self._by_mask[where] = self._by_mask.get(where, -1) & demand.inside
        blocks: list[int] = []
        yield from self._blocks(blocks)
        if blocks:
            yield from self._pairs(self._cluster, self._cluster)
        for block in blocks[:STEP]:
            self._groups([d for d in self._cluster if self.reach.of[d.by] & block])
            yield
        yield from self._try(trials, self._cluster, reduce(and_, self._by_mask.values(), -1))

    def _read(self, policies: Iterable[Compiled], enforced: list[Demand], trials: list[Demand]) -> Iterator[None]:
        """Add the demands of policies in Enforce, and of those that only audit."""
        for compiled in policies:
            demand = self.demand(compiled)
            if demand is not None and not demand.inside:
                self.impossible[compiled] = demand.text
            elif demand is not None:
                (enforced if compiled.mode == "Enforce" else trials).append(demand)
            yield

    def _try(self, trials: Sequence[Demand], enforced: Sequence[Demand], left: int) -> Iterator[None]:
        """Compare each policy that only audits with those in Enforce. ``left``: what all of these leave together."""
        suspects = [demand for demand in trials if not demand.inside & left]
        yield from self._pairs(suspects, enforced)
        for demand in suspects[:STEP]:
            if demand.by not in self.sentences:
                self._groups([demand, *(d for d in enforced if self.reach.together(demand.by, d.by))], of=demand.by)
            yield

    def _blocks(self, empty: list[int]) -> Iterator[None]:
        """Add to ``empty`` the groups of namespaces in which all cluster policies leave nothing to a pod
        that matches them all."""
        blocks = {self.reach.namespaces.all: -1}
        for where, inside in self._by_mask.items():
            yield
            halves = (half for block, left in blocks.items() for half in ((block & where, left & inside), (block & ~where, left)))
            split = {block: left for block, left in halves if block}
            blocks = split if len(split) <= MOST_BLOCKS else blocks
        empty.extend(block for block, left in blocks.items() if not left)

    def own_steps(self, namespace: str, own: Sequence[Compiled]) -> Iterator[None]:
        """Compare one namespace's own policies with each other and with those of the cluster."""
        mine: list[Demand] = []
        trials: list[Demand] = []
        yield from self._read(own, mine, trials)
        here = self.reach.namespaces.bit[namespace]
        left = -1
        for where, inside in self._by_mask.items():
            left &= inside if where & here else -1
        for demand in mine:
            left &= demand.inside
        others = [d for d in self._cluster if self.reach.of[d.by] & here]
        if mine and not left:
            yield from self._pairs(mine, [*others, *mine])
            for demand in mine:
                if demand.by not in self.sentences:
                    self._groups([demand, *others, *(d for d in mine if d is not demand and _takes_all(d))], of=demand.by)
                    yield
        yield from self._try(trials, [*others, *mine], left)

    def _pairs(self, demands: Sequence[Demand], others: Sequence[Demand]) -> Iterator[None]:
        done = 0
        for demand in demands:
            against: list[Demand] = []
            shared = count = 0
            for other in others:
                together = 0 if demand.inside & other.inside else self.reach.together(demand.by, other.by)
                if together and other is not demand:
                    shared, count = shared or together, count + 1
                    against.extend([other][: MOST_NAMED - len(against)])
                done += 1
                if done % STEP == 0:
                    yield
            if against:
                self._say_pair(demand, against, count, shared)
            if done >= 2 * MOST_PAIRS:
                self.unjudged.update(dict.fromkeys((d.by for d in demands if d.by not in self.sentences), "require"))
                return

    def _say_pair(self, demand: Demand, against: Sequence[Demand], count: int, shared: int) -> None:
        mine = excluding(demand, against[0])[0]
        others = list_names((f"{d.by.id} ({excluding(demand, d)[1]})" for d in against), count)
        self._say(demand.by, f"no {self.thing} satisfies both this {mine} and the requirements of {others}", shared)

    def _groups(self, demands: Sequence[Demand], of: Compiled | None = None) -> None:
        """Find three or more that leave nothing only together, for each number of GPUs from which on a
        policy matches."""
        for gpus in sorted({_least(d) for d in demands}):
            group = sorted(emptied_by([d for d in demands if _takes(d, gpus)]), key=lambda d: d.by.id)
            if len(group) < 3 or (of is not None and of not in [d.by for d in group]):
                continue
            for demand in group if of is None else [d for d in group if d.by is of]:
                others = [d for d in group if d is not demand]
                shared = self.reach.of[demand.by]
                for d in others:
                    shared &= self.reach.of[d.by]
                text = list_names((f"{d.by.id} ({d.text})" for d in others), len(others))
                if shared and demand.by not in self.sentences:
                    self._say(demand.by, f"no {self.thing} satisfies this {demand.text} together with the requirements of {text}", shared)

    def _say(self, compiled: Compiled, text: str, shared: int) -> None:
        example = self.reach.namespaces.first(shared)
        self.sentences.setdefault(compiled, []).append(
            f"{text}, for example in namespace {example}: a pod that matches all of them is denied"
        )


def _takes_all(demand: Demand) -> bool:
    """Return whether the policy matches pods by nothing but the number of GPUs."""
    match = demand.by.policy.match
    return not match.workloads and match.pod_selector in (None, LabelSelector())


def _least(demand: Demand) -> int:
    gpus = demand.by.policy.match.gpus
    return 1 if gpus is None or gpus.min is None else gpus.min


def _takes(demand: Demand, number: int) -> bool:
    gpus = demand.by.policy.match.gpus
    return gpus is None or ((gpus.min is None or gpus.min <= number) and (gpus.max is None or number <= gpus.max))
