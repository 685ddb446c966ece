"""Every sentence that Berth writes about an object: one table, a row for each code.

To reword a message is to edit its template here, and changes nothing else: its audience, the outcome that it
counts as and the actors that it denies are columns, and its values travel as data. ``row`` defines the
columns, ``denials`` (BERTH-1xx), ``remarks`` (BERTH-2xx) and ``notices`` (BERTH-00x) are the rows, ``SHARED``
the templates that several rows use.
"""

from __future__ import annotations

from collections.abc import Mapping

from policies.messages import denials, notices, remarks
from policies.messages.row import SHORTER, At, Audience, Kind, MessageRow, Path, Phrase, Place, Placement, Word, cut_text, phrase, rendered

__all__ = ["SHARED", "At", "Audience", "Kind", "MessageRow", "Path", "Phrase", "Place", "Placement", "Word", "cut_text", "phrase"]

SHARED = {
    "spared": "{fact}; {fix} (not denied: it is {actor:and})",
    # what the author wrote
    "container": 'container "{name}"',
    "selector": "{where} {key}={value}",
    "expression": "{where} {key} {operator}",
    "expression with values": "{where} {key} {operator} {values}",
    "claim unread": '{kind} "{claim}" is too large for Berth, or there are too many claims',
    "claim missing": '{kind} "{claim}" does not exist',
    "of size": "{gigabytes}gb",
    "of usable size": "of at least {mebibytes} MiB usable",
    "none": "none",
    # what policies require
    "constraint": "{policy} {field} ({text})",
    "required": "Required: {constraints:and}.",
    "the policies changed": "Likely cause: the policies changed while the pod was being created, or Berth did not mutate it.",
    # what to type
    "set": "set {path} to {value}",
    "set shorter": "set it to {value} in {around}",
    "an amount": "an amount",
    "one of": "one of {values}",
    "one of more": "one of {values} ...",
    "use": "use {allowed}",
    "remove": "remove it",
    "create the claim": "create the claim first",
    "shorten the claim": "shorten it, or delete unused claims in the namespace",
    "fix the policies": "ask the platform team to fix it",
    # of claims
    "claim has more": "the claim requests {count} {noun}, more than the {most} that one pod may have here",
    "claim outside": 'no device that {kind} "{claim}" requests meets {demands:and}',
    "claim asks for all": "{request} requests all devices, and one pod may have {most} here",
    "ask for fewer": "request at most {most}, or split the work over more pods",
    "ask for allowed": "ask the platform team which counts are allowed",
    "write a count": "write allocationMode: ExactCount and a count of at most {most}",
    "any way": "The firstAvailable alternative with the most devices counts.",
}
"""Templates that several rows use: what the author wrote, what is required, what to type."""
TABLE: dict[str, MessageRow] = {row.code: row for row in (*denials.ROWS, *notices.ROWS, *remarks.ROWS)}
"""The rows by code, in the order of docs/codes.md."""
OF_EDITS = frozenset(code for code, row in TABLE.items() if row.of_edits)
"""Codes of remarks about edits, which are not given on a pod that is denied."""
SPARED: Mapping[Placement, frozenset[str]] = {
    placement: frozenset(code for code, row in TABLE.items() if row.placement is not None and placement not in row.placement)
    for placement in ("none", "left", "node", "all")
}
"""The denials that do not apply to an actor of a placement: each becomes a remark."""


def fill_phrase(code: str, one: Phrase, place: Place) -> str:
    """Return a phrase of a code as text, with the paths in it as ``place`` writes them."""
    return rendered(TABLE[code], SHARED, one, place)


def shorter(code: str, one: Phrase) -> Phrase | None:
    """Return the same in fewer words, or None if the table has no shorter template."""
    name = one.name + SHORTER
    return one._replace(name=name) if name in TABLE[code].templates or name in SHARED else None
