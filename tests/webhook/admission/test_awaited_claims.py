"""Claims that are not there yet: waited for once, and not for ever."""

from __future__ import annotations

from webhook.admission import awaited_claims
from webhook.admission.awaited_claims import WAIT, AwaitedClaims

MINE = ("ml", "ResourceClaim", "mine")
YOURS = ("ml", "ResourceClaim", "yours")


def test_a_claim_is_waited_for_from_when_it_was_first_asked_for() -> None:
    """Later calls don't begin the wait anew, so that a call is answered before the API server gives up."""
    known = AwaitedClaims()
    assert known.waits([MINE], 10.0)
    assert known.waits([MINE], 10.0 + WAIT / 2)
    assert not known.waits([MINE], 10.0 + WAIT)
    assert not known.waits([MINE], 10.0 + 5)


def test_each_claim_has_its_own_wait() -> None:
    """A pod that names an old and a new missing claim waits for the new one."""
    known = AwaitedClaims()
    assert known.waits([MINE], 10.0)
    assert known.waits([MINE, YOURS], 10.0 + WAIT)
    assert not known.waits([MINE, YOURS], 10.0 + 2 * WAIT)


def test_what_is_remembered_is_bounded() -> None:
    """Names are an author's choice: however many are asked for, no more than a fixed number is remembered."""
    known = AwaitedClaims()
    for number in range(awaited_claims._MOST + 10):
        assert known.waits([("ml", "ResourceClaim", str(number))], 10.0)
    assert len(known) == awaited_claims._MOST
