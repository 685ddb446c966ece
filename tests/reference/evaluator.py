"""The reference: what the policies and ``docs/laws.md`` say should happen to a pod, worked out the slow way, to hold the engine against.

It shares with the engine only the typed inputs (policies, catalog, cluster facts, the request) and quantities.
"""

from __future__ import annotations

from collections.abc import Sequence

from catalog import Catalog
from policies.facts.cluster_facts import ClusterFacts
from policies.policy import MachineFields, PolicySet
from policies.request import Request
from tests.reference import pods
from tests.reference.asking import by_annotation
from tests.reference.case import JUDGED, PLACED, PLACEMENT, Expected, World
from tests.reference.editing import Editing
from tests.reference.nodes import Atlas, Node, tables, terms_of
from tests.reference.queues import Queued


class Reference:
    """One set of policies, compiled into nothing: nodes are listed once, the rest is worked out for each pod."""

    def __init__(
        self,
        policy_set: PolicySet,
        catalog: Catalog,
        *,
        platforms: Sequence[str],
        mig_strategy: str,
        queues: tuple[str, ...],
        cluster: ClusterFacts,
    ) -> None:
        # of an instance family that only a namespace's own policy names there is no machine: nodes are everybody's
        listed = {f for m in _machines(policy_set) if m.instance_families for f in (*m.instance_families.in_, *m.instance_families.not_in)}
        unknown = sorted(listed - {m.family for m in catalog.machines})
        found = tables(catalog, platforms, mig_strategy, policy_set.templates, unknown)
        by_resource: dict[str, list[Node]] = {}
        for node in (n for table in found.values() for n in table.nodes):
            by_resource.setdefault(node.resource, []).append(node)
        self.world = World(
            catalog=catalog,
            cluster=cluster,
            queues=queues,
            placed=bool(platforms),
            policies=sorted(policy_set.policies, key=lambda p: p.id),
            atlas=Atlas(catalog=catalog, tables=found, templates={t.name: t for t in policy_set.templates}),
            by_resource=by_resource,
        )

    def evaluate(self, request: Request) -> Expected:
        """What should happen. The request's pod is well formed."""
        return Judged(self.world, request).decide()

    def judged(self, request: Request) -> Judged:
        """The case itself, once it is decided."""
        case = Judged(self.world, request)
        case.decide()
        return case


def _machines(policy_set: PolicySet) -> list[MachineFields]:
    of_cluster = (p for p in policy_set.policies if p.namespace is None)
    return [m for p in of_cluster for m in (p.require.machine, p.default.machine)] + [t.machine for t in policy_set.templates]


class Judged(Editing, Queued):
    """The whole decision about one pod, step by step."""

    def decide(self) -> Expected:
        spec = self.pod["spec"]
        misspelt = any(n in self.catalog.misspellings for c in pods.containers(self.pod) for n in c.names())
        if not (self.asked or spec.get("resourceClaims") or by_annotation(self.pod) or misspelt):
            return Expected(judged=False)
        self.policies = [p for p in self.world.policies if self.matches(p)]
        self.out.matched = tuple(p.id for p in self.policies)
        self.policies = [p for p in self.policies if p.mode == "Enforce"]
        self.certain = [p for p in self.policies if self.in_bounds(p, every=True)]
        if self.policies and not self.row.mirror:
            self.judge()
        return self.out

    def judge(self) -> None:
        codes: set[str] = set()
        self.moved()
        codes |= self.unreadable()
        codes |= self.mismatches()
        codes |= self.counts()
        codes |= self.names()
        codes |= self.of_no_known_class()
        codes |= self.forbidden()
        codes |= self.walked_past()
        codes |= self.too_long()
        codes |= self.too_short()
        codes |= self.endless()
        codes |= self.past_the_queue()
        codes |= self.placement()
        codes |= self.shared()
        codes -= PLACED - JUDGED[self.row.placement]
        self.out.codes = codes
        if self.request.phase == "mutate" and not codes:
            self.edit()
            self.out.queue = self.queue()

    def placement(self) -> set[str]:
        names = self.now = self.wanted()
        mutating = self.request.phase == "mutate"
        codes = self.chosen_by_all() if mutating else set()
        if self.row.affinity == "no":
            return codes | self.known_node() | self.devices_outside()
        if not names:
            return codes
        possible = self.platforms_left(lambda n: True, names, terms_of(self.pod))
        left = self.platforms_left(self.in_require, self.now, terms_of(self.pod) if self.out.template is None else self.terms)
        if possible and not left:
            codes.add(PLACEMENT)
        else:
            self.out.undecided = self.all_undecided()
        if PLACEMENT not in codes and not mutating and self.row.affinity == "write" and self.world.placed and possible:
            codes |= self.outside(names)
        return codes
