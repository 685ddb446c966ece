"""What somebody may list, as the API server says (SubjectAccessReview): in all namespaces, or else one by one in those of which
something could be shown. Of a namespace whose pods they may not list nothing more is asked, and nothing is shown that they may list there
alone."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from analysis.world.world import World
from cluster.client.errors import Unreachable
from cluster.watch.kinds import REPORTS as REPORT_ROWS
from cluster.watch.kinds import ROWS
from console.access.api_server import ApiServer
from console.access.people import Person
from console.world.scope import ALL, ListableNamespaces, ListedKind, Scope

LASTS = 30.0
"""Seconds for which an answer counts: who is given a right, or loses one, sees it then."""
MOST = 256
"""People whose rights are remembered."""
MOST_ANSWERS = 20_000
"""Answers about one person, after which namespaces that the world does not know are no longer asked about: 4,000 namespaces."""


def _listed(fields: Mapping[str, str]) -> Mapping[str, ListedKind]:
    return {field: ListedKind(ROWS[kind].group, ROWS[kind].plural) for field, kind in fields.items()}


NAMESPACED = _listed({"pods": "Pod", "own_policies": "GPUPolicy", "events": "Event"})
CLUSTER_WIDE = _listed(
    {"cluster_policies": "ClusterGPUPolicy", "node_templates": "GPUNodeTemplate", "nodes": "Node", "node_pools": "NodePool"}
)
REPORTS = tuple(ListedKind(row.group, row.plural) for row in REPORT_ROWS)
"""The field ``reports``: a cluster has the one or the other, and which one was read is not asked here, so both must be allowed."""


@dataclass(slots=True)
class _KnownRights:
    """The answers about one person."""

    at: float
    answers: dict[tuple[ListedKind, str], bool] = field(default_factory=dict)
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)


class Rights:
    """Asks, and remembers for a while."""

    def __init__(self, server: ApiServer, clock: Callable[[], float] = time.monotonic) -> None:
        self._server = server
        self._clock = clock
        self._known: OrderedDict[Person, _KnownRights] = OrderedDict()

    async def of(self, person: Person, world: World, named: Collection[str] = ()) -> Scope:
        """Return what somebody may list of a world. ``named``: namespaces that they ask about, of which the world may know nothing.

        Raises Unreachable where the API server does not say; nothing is guessed then.
        """
        known = self._known_of(person)
        async with known.asking:
            asked = named if len(known.answers) < MOST_ANSWERS else ()
            return await self._scope(person, known.answers, places(world) | frozenset(asked))

    async def may_list(self, person: Person, kinds: Iterable[ListedKind], namespace: str) -> frozenset[ListedKind]:
        """Return those of the kinds that somebody may list in a namespace. Raises Unreachable."""
        known, every = self._known_of(person), frozenset(kinds)
        async with known.asking:
            await self._ask(person, known.answers, [(kind, namespace) for kind in every])
            return frozenset(kind for kind in every if known.answers[kind, namespace])

    def _known_of(self, person: Person) -> _KnownRights:
        known = self._known.get(person)
        if known is None or self._clock() - known.at >= LASTS:
            known = self._known[person] = _KnownRights(self._clock())
        self._known.move_to_end(person)
        while len(self._known) > MOST:
            self._known.popitem(last=False)
        return known

    async def _scope(self, person: Person, answers: dict[tuple[ListedKind, str], bool], where: frozenset[str]) -> Scope:
        several = [*NAMESPACED.values(), *REPORTS]
        await self._ask(person, answers, [(kind, "") for kind in (*several, *CLUSTER_WIDE.values())])

        def may(kind: ListedKind, namespace: str) -> bool:
            return answers[kind, ""] or answers.get((kind, namespace), False)

        async def ask(kinds: Iterable[ListedKind], namespaces: Iterable[str]) -> None:
            every = list(namespaces)
            await self._ask(person, answers, [(kind, one) for kind in kinds if not answers[kind, ""] for one in every])

        pods, (one_form, other_form) = NAMESPACED["pods"], REPORTS
        await ask([pods], where)
        seen = [one for one in where if may(pods, one)]
        await ask([*NAMESPACED.values(), one_form], seen)
        await ask([other_form], [one for one in seen if may(one_form, one)])

        def of(*kinds: ListedKind) -> ListableNamespaces:
            if all(answers[kind, ""] for kind in kinds):
                return ALL
            return ListableNamespaces(names=frozenset(one for one in where if all(may(kind, one) for kind in kinds)))

        return Scope(
            who=person.name,
            reports=of(*REPORTS),
            **{name: of(kind) for name, kind in NAMESPACED.items()},  # type: ignore[arg-type]
            **{name: answers[kind, ""] for name, kind in CLUSTER_WIDE.items()},  # type: ignore[arg-type]
        )

    async def _ask(self, person: Person, answers: dict[tuple[ListedKind, str], bool], asked: Iterable[tuple[ListedKind, str]]) -> None:
        """Ask what is not known yet, together. One that is not answered ends all."""
        missing = [one for one in asked if one not in answers]
        try:
            async with asyncio.TaskGroup() as group:
                tasks = {one: group.create_task(self._may_list(person, *one)) for one in missing}
        except* Unreachable as errors:
            raise errors.exceptions[0] from None
        answers.update({one: task.result() for one, task in tasks.items()})

    async def _may_list(self, person: Person, kind: ListedKind, namespace: str) -> bool:
        what = {"verb": "list", "group": kind.group, "resource": kind.plural, "namespace": namespace}
        spec: dict[str, Any] = {"user": person.name, "resourceAttributes": what}
        spec |= {"uid": person.uid} if person.uid else {}
        spec |= {"groups": list(person.groups)} if person.groups else {}
        spec |= {"extra": {key: list(values) for key, values in person.extra}} if person.extra else {}
        status = await self._server.review("authorization.k8s.io", "SubjectAccessReview", "subjectaccessreviews", spec)
        return status.get("allowed") is True and status.get("denied") is not True


def places(world: World) -> frozenset[str]:
    """Return the namespaces of which a world could show something: those with pods that ask for devices, with policies, Events or
    reports: in a namespace of which every pod is denied there is none."""
    told = {one.namespace for one in world.happenings} | {one.namespace for one in world.reports}
    return frozenset(world.counts.every.keys() | {namespace for _, namespace, _ in world.entries if namespace} | told)
