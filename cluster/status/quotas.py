"""The ResourceQuotas that statuses need: listed once a minute by the elected replica, not watched by all
replicas."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cluster.client.api_client import Client
from cluster.client.errors import Garbled, Rejected

PAGE = 500
MOST_PAGES = 200
"""Most pages that are read: a hundred thousand quotas."""
PATH = "/api/v1/resourcequotas"


async def quotas(client: Client) -> dict[str, list[dict[str, str]]]:
    """Return namespace -> ``spec.hard`` of each of its ResourceQuotas. Raises Failure."""
    found: dict[str, list[dict[str, str]]] = {}
    query = {"limit": str(PAGE)}
    for _ in range(MOST_PAGES):
        reply = await client.call("GET", PATH, query=query)
        if not reply.ok:
            raise Rejected(f"GET {PATH}", reply)
        if not isinstance(reply.body, dict):
            raise Garbled(f"GET {PATH}: no list")
        for namespace, hard in _hards(reply.body.get("items") or ()):
            found.setdefault(namespace, []).append(hard)
        going_on = (reply.body.get("metadata") or {}).get("continue")
        if not going_on:
            break
        query = {"limit": str(PAGE), "continue": str(going_on)}
    return found


def _hards(items: Iterable[Any]) -> Iterable[tuple[str, dict[str, str]]]:
    for item in items:
        hard = (item.get("spec") or {}).get("hard")
        if isinstance(hard, dict):
            yield str(item["metadata"].get("namespace", "")), {str(name): str(amount) for name, amount in hard.items()}
