"""The failures of calls to the API server. Each message is a sentence for a log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

SHOWN = 500
"""Most characters of the server's message that are quoted."""
GIVE_RIGHTS = "upgrade the Helm release of Berth, or type: kubectl apply -f deploy/rbac.yaml"
"""The advice where the API server answers 403: both have the rights of this version."""


class AccessError(Exception):
    """Address or credentials are missing or unusable; the message names a command or flag to try."""


class Failure(Exception):
    """A call that failed."""


class Unreachable(Failure):
    """No usable answer came back: connection refused, timeout, TLS error or rejected credentials."""


class Garbled(Unreachable):
    """The server was reached, but its answer can't be parsed."""


class ResponseTooLarge(Garbled):
    """More bytes in one answer, or in one line of a watch, than are read."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer. ``body``: the parsed JSON, or the text if it is not JSON."""

    status: int
    body: Any
    retry_after: float | None = None
    """Seconds of the Retry-After header."""
    date: str = ""
    """The Date header: the API server's clock."""
    etag: str = ""
    """The ETag header: the name of this state of what was read."""
    size: int = 0
    """Bytes of the body as it came."""

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    def object(self, call: str) -> dict[str, Any]:
        """Return the object of a success. ``call``: the method and the path, for the error. Raises Rejected."""
        if not self.ok or not isinstance(self.body, dict):
            raise Rejected(call, self)
        return self.body

    @property
    def message(self) -> str:
        """The message of a Status, or the beginning of a body that is not JSON; "" for any other object."""
        if isinstance(self.body, dict):
            return str(self.body.get("message", ""))[:SHOWN] if self.body.get("kind") == "Status" else ""
        return str(self.body)[:SHOWN].strip() if isinstance(self.body, str) else ""


class Rejected(Failure):
    """An answer whose status is not a success, where there is nothing to return."""

    def __init__(self, what: str, reply: Reply) -> None:
        super().__init__(f"{what}: {reply.status} {reply.message}".rstrip())
        self.reply = reply
