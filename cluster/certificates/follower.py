"""The loop of a replica that follows the Secret of its certificates, and the registration that has to trust them.

The clock is the API server's, as told by its answers: it is the one that verifies.
"""

from __future__ import annotations

import abc
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from cluster.certificates.bell import SETTLES, look_at_changes
from cluster.certificates.registrations import GROUP, KINDS, Configuration, Registrations
from cluster.certificates.secret_store import SecretStore, StoredSecret
from cluster.client.api_client import Client
from cluster.client.errors import GIVE_RIGHTS, Failure, Rejected
from cluster.client.new_errors import NewErrors
from cluster.watch.store import Tell

LOOK = 10.0
"""Seconds between two looks, if no watch rings earlier."""
AGAIN = 1.0
"""Seconds before the next look after one that failed, doubled with each failure up to LOOK: at an installation, rights come a moment
after the pods. Where another replica was faster, ``bell.SETTLES`` seconds are doubled instead."""
SKEW = timedelta(seconds=5)
"""A difference of clocks that is no more than the age of an answer and its rounding to seconds."""

Pair = tuple[bytes, bytes]
"""A certificate with its intermediates, and its key, both in PEM form."""


class SecretFollower(abc.ABC):
    """Follows one Secret. ``run`` is a task of its own; the public attributes can be read at any time."""

    pair: Pair | None = None
    """What is to be served; None until it is known."""
    ca_expires: datetime | None = None
    """When the CA of that certificate expires, if it is known."""
    trusted: bool | None = None
    """Whether the registration trusts that CA; None if there is no registration, or it is not known which CA."""
    error = "not read yet"
    """The last failure, in one sentence; "" after a look that worked."""

    def __init__(self, client: Client, store: SecretStore, registrations: Registrations, tell: Tell) -> None:
        self._client = client
        self._store = store
        self._registrations = registrations
        self._tell = tell
        self._errors = NewErrors()
        self._skew = timedelta()
        self._unsettled = 0
        """Looks in a row that failed or have to be followed by another one."""

    @abc.abstractmethod
    async def look(self) -> bool:
        """Read, and do what is due; return whether to look again soon. Raises Failure."""

    async def run(self) -> None:
        """Look for ever: whenever a watch rings, and at intervals."""
        configurations = ((f"{GROUP}/{plural}", self._registrations.name) for plural in KINDS.values())
        await look_at_changes(self._client, [(self._store.folder, self._store.name), *configurations], self._look_and_pause)

    async def _look_and_pause(self) -> float:
        return self.pause(soon=await self.looked())

    def pause(self, *, soon: bool) -> float:
        """Return the seconds until the next look, unless a watch rings. ``soon``: the last look was not the end of it."""
        self._unsettled = self._unsettled + 1 if soon or self.error else 0
        first = AGAIN if self.error else SETTLES
        return min(LOOK, first * 2.0 ** min(self._unsettled - 1, 10)) if self._unsettled else LOOK

    async def looked(self) -> bool:
        """Look once, and keep the failure as a sentence; return whether to look again soon."""
        try:
            again = await self.look()
        except Failure as error:
            self.error = _sentence(error)
            if self._errors.is_new(self.error):
                self._tell("certificates_failed", error=self.error)
            return False
        self.error = ""
        self._errors.forget()
        return again

    def now(self) -> datetime:
        """Return the time by the API server's clock."""
        return datetime.now(UTC) + self._skew

    async def read(self) -> tuple[StoredSecret, list[Configuration]]:
        """Return the Secret and the registration, and set the clock by them. Raises Failure."""
        stored = await self._store.read()
        self._set_clock(stored)
        return stored, await self._registrations.read()

    def _set_clock(self, stored: StoredSecret) -> None:
        try:
            theirs = parsedate_to_datetime(stored.date)
        except (TypeError, ValueError):
            return
        skew = theirs.replace(tzinfo=theirs.tzinfo or UTC) - datetime.now(UTC)  # HTTP dates are in GMT, whatever a proxy makes of them
        if abs(skew - self._skew) > SKEW:
            self._skew = skew if abs(skew) > SKEW else timedelta()
            if self._skew:
                self._tell(
                    "clock_differs",
                    seconds=round(skew.total_seconds()),
                    text="this node's clock is wrong; certificates use the API server's clock",
                )


def _sentence(error: Failure) -> str:
    if isinstance(error, Rejected) and error.reply.status == 403:
        return f"Berth may not read or write its certificates: {error}; {GIVE_RIGHTS}"
    return str(error)
