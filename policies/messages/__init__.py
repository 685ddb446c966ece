"""Every sentence that Berth writes about an object: one table, a row for each code.

To reword a message is to edit its template here, and changes nothing else: its audience, the outcome that it
counts as and the actors that it denies are columns, and its values travel as data. ``row`` defines the
columns, ``denials`` (BERTH-1xx), ``remarks`` (BERTH-2xx) and ``notices`` (BERTH-00x) are the rows, ``running`` has
those about how a pod runs, ``queues`` those about where it waits, ``claims`` those about a
claim's selectors, ``shared`` the templates that several rows use.
"""

from __future__ import annotations

from collections.abc import Mapping

from policies.messages import claims, denials, notices, queues, remarks, running
from policies.messages.row import SHORTER, At, Audience, Kind, MessageRow, Path, Phrase, Place, Placement, Word, phrase, rendered
from policies.messages.shared import SHARED

__all__ = ["SHARED", "At", "Audience", "Kind", "MessageRow", "Path", "Phrase", "Place", "Placement", "Word", "phrase"]

_DENIALS = sorted((*denials.ROWS, *running.DENIALS, *queues.DENIALS, *claims.DENIALS), key=lambda row: row.code)
_REMARKS = sorted((*remarks.ROWS, *running.REMARKS, *queues.REMARKS, *claims.REMARKS), key=lambda row: row.code)
TABLE: dict[str, MessageRow] = {row.code: row for row in (*_DENIALS, *notices.ROWS, *_REMARKS)}
"""The rows by code, in the order of docs/codes.md."""
OF_EDITS = frozenset(code for code, row in TABLE.items() if row.of_edits)
"""Codes of remarks about edits, which are not given on a pod that is denied."""
_SPARED: Mapping[Placement, frozenset[str]] = {
    placement: frozenset(code for code, row in TABLE.items() if row.placement is not None and placement not in row.placement)
    for placement in ("none", "left", "node", "all")
}


def spared(placement: Placement) -> frozenset[str]:
    """Return the denials that do not apply to an actor of this placement: each becomes a remark."""
    return _SPARED[placement]


def fill_phrase(code: str, one: Phrase, place: Place) -> str:
    """Return a phrase of a code as text, with the paths in it as ``place`` writes them."""
    return rendered(TABLE[code], SHARED, one, place)


def shorter(code: str, one: Phrase) -> Phrase | None:
    """Return the same in fewer words, or None if the table has no shorter template."""
    name = one.name + SHORTER
    return one._replace(name=name) if name in TABLE[code].templates or name in SHARED else None
