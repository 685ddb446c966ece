"""Calls of a server, and how long to wait for what it does. Waiting measures nothing: no test depends on how fast the machine is."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from typing import Any

PATIENCE = 300.0
"""Seconds. The longest of these waits takes fifteen where two cores are idle (a control plane starts); under a quarter of each core, with
another test beside it, that becomes two minutes."""
PATIENT = ("--shed-after", "30000")
"""Options of a server whose callers do not go elsewhere when the machine stands still for a second"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int
    headers: dict[str, str]
    """names in lower case"""
    body: bytes

    @property
    def response(self) -> dict[str, Any]:
        """Of an AdmissionReview."""
        response: dict[str, Any] = json.loads(self.body)["response"]
        return response


def request_once(
    connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
) -> Answer:
    """One request; the connection is closed."""
    try:
        connection.request(method, path, body, headers or {})
        return answer_of(connection)
    finally:
        connection.close()


def answer_of(connection: http.client.HTTPConnection) -> Answer:
    """What the server says to the request that was sent."""
    got = connection.getresponse()
    return Answer(status=got.status, headers={name.lower(): value for name, value in got.getheaders()}, body=got.read())
