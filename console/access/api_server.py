"""Reviews that the API server is asked for with the console's own account."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from cluster.client.api_client import Client
from cluster.client.errors import Unreachable
from cluster.client.new_errors import NewErrors
from documents.printable import cut
from telemetry import log

AT_ONCE = 32
"""Calls at a time: what one person may see in 60 namespaces is some 200, and more at once are no faster."""
SECONDS = 5.0
"""Of one call: somebody looks at an empty page meanwhile."""
GIVE_RIGHTS = (
    "upgrade the Helm release of Berth with console.enabled=true: it grants the console's service account the right to create reviews"
)


class ApiServer:
    """Asks for reviews. What goes wrong is logged, and told to people without addresses and reasons: the one who asks may be nobody
    that the cluster knows."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._at_once = asyncio.Semaphore(AT_ONCE)
        self._errors = NewErrors()
        self._answered = datetime.now(UTC)
        self.calls = 0
        """How many were made."""

    async def review(self, group: str, kind: str, plural: str, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the status of a review. Raises Unreachable, with since when, if there is none."""
        path, body = f"/apis/{group}/v1/{plural}", {"apiVersion": f"{group}/v1", "kind": kind, "spec": spec}
        try:
            async with self._at_once:
                self.calls += 1
                reply = await self._client.call("POST", path, body=body, seconds=SECONDS)
        except Unreachable as error:
            raise self._silent(str(error)) from error
        if not reply.ok:
            raise self._silent(f"POST {path}: {reply.status} {reply.message}{f'; {GIVE_RIGHTS}' if reply.status == 403 else ''}")
        self._answered = datetime.now(UTC)
        self._errors.forget()
        status = reply.body.get("status") if isinstance(reply.body, dict) else None
        return status if isinstance(status, dict) else {}

    def _silent(self, reason: str) -> Unreachable:
        if self._errors.is_new(reason):
            log.write("review_failed", "error", error=cut(reason))
        return Unreachable(f"It has not answered permission checks since {self._answered:%Y-%m-%d %H:%M:%S} UTC")
