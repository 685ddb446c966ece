"""A world that does not change: that of files."""

from __future__ import annotations

from analysis.world.world import World


class Fixed:
    """The source of one world."""

    stale = ""
    near = None

    def __init__(self, world: World) -> None:
        self.world = world

    async def first(self) -> None:
        """Return at once."""
