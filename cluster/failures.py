"""Why a call to the API server came to nothing. Each message is a sentence for a log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

SHOWN = 500
"""characters of a foreign message that are repeated"""


class AccessError(Exception):
    """No address or no credentials; the message says what to type."""


class Failure(Exception):
    """A call that came to nothing."""


class Unreachable(Failure):
    """Nothing that could be used came back: refused, timed out, TLS, credentials that are not accepted."""


class Garbled(Unreachable):
    """The server was reached, and what it said can't be read."""


class TooLarge(Garbled):
    """More than ``client.MOST`` bytes in one answer, or in one line of a watch."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer. ``body``: what its JSON says, or the text where that is none."""

    status: int
    body: Any
    retry_after: float | None = None
    """seconds, of the header Retry-After"""

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def message(self) -> str:
        """Why it was refused: a Status' message, or the beginning of what was said instead; "" of an object."""
        if isinstance(self.body, dict):
            return str(self.body.get("message", ""))[:SHOWN] if self.body.get("kind") == "Status" else ""
        return str(self.body)[:SHOWN].strip() if isinstance(self.body, str) else ""


class Refused(Failure):
    """A status that is no success, where there is nothing to return."""

    def __init__(self, what: str, reply: Reply) -> None:
        super().__init__(f"{what}: {reply.status} {reply.message}".rstrip())
        self.reply = reply
