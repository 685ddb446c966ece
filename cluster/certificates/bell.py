"""Watches that only wake a loop: what has changed is then read anew."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Iterable

from cluster.client.api_client import Client
from cluster.client.errors import Failure

LASTS = 300
"""Seconds of one watch."""
AGAIN = 5.0
"""Seconds before a watch that failed is opened again; meanwhile the loop looks by itself."""
NEXT = 0.5
"""Seconds before the next watch where one has ended: a server that ends all of them at once is not flooded."""


SETTLES = 0.05
"""Least seconds between two looks, so that several changes take one."""


async def look_at_changes(client: Client, objects: Iterable[tuple[str, str]], look: Callable[[], Awaitable[float]]) -> None:
    """Call ``look`` for ever: whenever one of the objects (folder, name) changes, and after the seconds that it returned."""
    bell = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for folder, name in objects:
            group.create_task(ring(client, folder, name, bell))
        while True:
            bell.clear()
            pause = await look()
            await asyncio.sleep(SETTLES * random.uniform(1, 2))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause * random.uniform(0.9, 1.1)):
                    await bell.wait()


async def ring(client: Client, folder: str, name: str, bell: asyncio.Event) -> None:
    """Set ``bell`` whenever the object of this name changes, for ever.

    ``folder``: the path of its kind. Rights on one name alone are enough for such a watch.
    """
    query = {"watch": "1", "fieldSelector": f"metadata.name={name}", "timeoutSeconds": str(LASTS)}
    while True:
        try:
            async with client.stream(folder, query, LASTS + 10.0) as lines:
                while await lines.batch():
                    bell.set()
            await asyncio.sleep(NEXT)
        except (Failure, TimeoutError):
            await asyncio.sleep(AGAIN * random.uniform(0.8, 1.2))
