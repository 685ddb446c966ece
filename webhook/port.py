"""What the connections of one port share, and tell it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from webhook.bodies import BodyMemory
from webhook.http import Application
from webhook.limits import Limits

if TYPE_CHECKING:
    from webhook.connection import Connection

SILENT, SHAKING, OPEN = range(3)
"""How far a connection is that had no answer of 200 yet: not a byte came, a handshake has begun, it is done. Without TLS there is
nothing between the first byte and the answer."""


class Port(Protocol):
    """What the connections of one port share."""

    app: Application
    limits: Limits
    bodies: BodyMemory
    loop: asyncio.AbstractEventLoop
    stopping: bool
    """every answer is the last one of its connection"""

    def cut(self, reason: str) -> None:
        """A connection is ended before its time: of ``metrics.CUTS``."""

    def reached(self, connection: Connection, stage: int) -> None:
        """A stage of the way to a call: ``SHAKING``, ``OPEN``."""

    def proven(self, connection: Connection) -> None:
        """It had its first answer that was 200."""

    def gone(self, connection: Connection) -> None:
        """It is lost."""
