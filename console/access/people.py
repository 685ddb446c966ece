"""Who somebody is, as the API server says of their token (TokenReview)."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from console.access.api_server import ApiServer

LONGEST_TOKEN = 16 * 2**10
"""Characters. A service account's has 1,000, one of an identity provider with hundreds of groups 8,000."""
ANONYMOUS = "system:anonymous"


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody with all by which an authorizer may know them."""

    name: str
    uid: str
    groups: tuple[str, ...]
    extra: tuple[tuple[str, tuple[str, ...]], ...]


class People:
    """Asks who has a token. ``audiences``: whom tokens must be meant for; none: the API server itself."""

    def __init__(self, server: ApiServer, audiences: Sequence[str] = ()) -> None:
        self._server = server
        self._audiences = list(audiences)

    async def of(self, token: str) -> Person | None:
        """Return who has this token, None if it is nobody's. Raises Unreachable."""
        if not is_token(token):
            return None
        spec = {"token": token} | ({"audiences": self._audiences} if self._audiences else {})
        status = await self._server.review("authentication.k8s.io", "TokenReview", "tokenreviews", spec)
        if status.get("authenticated") is not True or status.get("error"):
            return None
        # an authenticator that knows of no audiences returns none: then the token is meant for the API server alone
        if self._audiences and not set(self._audiences) & set(status.get("audiences") or ()):
            return None
        return _person(status.get("user"))


def is_token(text: str) -> bool:
    """Return whether a text could be a bearer token at all: RFC 6750 has printable ASCII without spaces."""
    return 0 < len(text) <= LONGEST_TOKEN and text.isascii() and text.isprintable() and " " not in text


def expiry(token: str) -> float | None:
    """Return when a JSON Web Token ends, in seconds of the epoch; None if it is none, or does not say. Its signature is for the API
    server to check, which must have been asked before."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        return None
    found = claims.get("exp") if isinstance(claims, dict) else None
    return float(found) if isinstance(found, int | float) and not isinstance(found, bool) and 0 <= found < 1e12 else None


def _person(user: Any) -> Person | None:
    if not isinstance(user, dict) or not user.get("username") or user["username"] == ANONYMOUS:
        return None
    extra = user.get("extra") or {}
    return Person(
        name=str(user["username"]),
        uid=str(user.get("uid") or ""),
        groups=tuple(map(str, user.get("groups") or ())),
        extra=tuple(sorted((str(key), tuple(map(str, values or ()))) for key, values in extra.items())),
    )
