"""Watches that only wake somebody: what has changed is then read anew."""

from __future__ import annotations

import asyncio
import random

from cluster.client.api_client import Client
from cluster.client.errors import Failure

LASTS = 300
"""Seconds of one watch."""
AGAIN = 5.0
"""Seconds before a watch that failed is opened again; meanwhile the loop looks by itself."""
NEXT = 0.5
"""Seconds before the next watch where one has ended: a server that ends all of them at once is not flooded."""


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
