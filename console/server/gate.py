"""What decides who asks."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Protocol

from starlette.requests import Request
from starlette.responses import Response

from analysis.world.world import World
from console.world.scope import ListedKind, Scope


class Visitor(Protocol):
    """Somebody who may see pages."""

    @property
    def name(self) -> str:
        """As the API server knows them; "" on a laptop."""

    @property
    def leaves(self) -> bool:
        """True if they can sign out."""

    async def scope(self, world: World, named: Collection[str] = ()) -> Scope:
        """Return what they may list. Raises Unreachable if the API server does not say."""

    async def may_list(self, kinds: Iterable[ListedKind], namespace: str) -> Collection[ListedKind]:
        """Return those of the kinds that they may list in a namespace. Raises Unreachable if the API server does not say."""


class Gate(Protocol):
    """Tells who asks."""

    async def admit(self, request: Request) -> Visitor | Response:
        """Return who asks, or the answer that they get in place of a page. Raises Unreachable if the API server does not say."""
