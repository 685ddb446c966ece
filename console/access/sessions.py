"""Sessions, in memory alone: a restart of the console signs everybody out.

A browser has a random id. What is stored under its hash opens nothing: the token that was typed is encrypted with a key that only the
id gives, so that it is there in clear only while a request is answered.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from console.access.people import Person, expiry

MOST = 1000
"""Sessions at a time: of these the oldest goes first. Each takes some 10 KB."""
MOST_OF_ONE = 10
"""Of one person: a token does not suffice to sign everybody else out."""
_NONCE = 12
"""Bytes that AES-GCM wants (NIST SP 800-38D, 5.2.1.1)."""


@dataclass(slots=True, kw_only=True)
class Session:
    """One sign-in. Times are seconds of ``time.monotonic``."""

    person: Person
    ends: float
    reviewed: float
    """When the API server was asked about its token last."""
    sealed: bytes = field(repr=False)
    reviewing: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)


class Sessions:
    """Sessions by id, which live for ``lasts`` seconds and never longer than their tokens."""

    def __init__(self, lasts: float, clock: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time) -> None:
        self._lasts = lasts
        self._clock = clock
        self._wall = wall
        self._sessions: dict[bytes, Session] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, token: str, person: Person) -> tuple[str, int]:
        """Begin a session of who has this token, under a new id. Returns the id, and how many seconds it lives for."""
        self._make_room(person)
        id_, now, until = secrets.token_urlsafe(32), self._clock(), expiry(token)
        lasts = self._lasts if until is None else max(0.0, min(self._lasts, until - self._wall()))
        self._sessions[_hash(id_)] = Session(person=person, ends=now + lasts, reviewed=now, sealed=_sealed(id_, token))
        return id_, int(lasts)

    def find(self, id_: str) -> Session | None:
        """Return the session with this id, None if there is none, or none any more. What is looked up is a hash: how long that takes
        says nothing of ids."""
        key = _hash(id_)
        found = self._sessions.get(key)
        if found is not None and self._clock() >= found.ends:
            del self._sessions[key]
            return None
        return found

    def token(self, id_: str) -> str:
        """Return the token of a session. Raises KeyError if there is none."""
        sealed = self._sessions[_hash(id_)].sealed
        return AESGCM(_key(id_)).decrypt(sealed[:_NONCE], sealed[_NONCE:], None).decode()

    def end(self, id_: str) -> None:
        """End a session, if there is one."""
        self._sessions.pop(_hash(id_), None)

    def _make_room(self, person: Person) -> None:
        now = self._clock()
        for key in [key for key, one in self._sessions.items() if now >= one.ends]:
            del self._sessions[key]
        own = [key for key, one in self._sessions.items() if one.person.name == person.name]
        for key in own[: max(0, len(own) - MOST_OF_ONE + 1)]:
            del self._sessions[key]
        if len(self._sessions) >= MOST:
            del self._sessions[next(iter(self._sessions))]


def _hash(id_: str) -> bytes:
    return hashlib.sha256(b"id\0" + id_.encode()).digest()


def _key(id_: str) -> bytes:
    return hashlib.sha256(b"token\0" + id_.encode()).digest()


def _sealed(id_: str, token: str) -> bytes:
    nonce = os.urandom(_NONCE)
    return nonce + AESGCM(_key(id_)).encrypt(nonce, token.encode(), None)
