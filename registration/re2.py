"""Translate patterns of the catalog, which Python reads, for the API server: for Go's regexp, which is RE2.

All that resource names need is the same in both. Syntax that only Python has is refused by name, and a named
group becomes a plain one: in Go no two groups of a pattern may have the same name.
"""

from __future__ import annotations

import re

_WHOLE = re.compile(r"\^\(\?:(.*)\)\$", re.DOTALL)
"""Matches the anchors that ``ResourcePattern`` puts around the catalog's pattern."""
_ONE_CHARACTER = re.compile(r"\\\W|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_ONLY_PYTHON = re.compile(r"\(\?(?!P<\w|:|[ims-]+:)..?|\\[^dDsSwWbBntrfvx]|[*+?}]\+|\{,\d*\}|\{\d*,?\d{4,}\}")
"""Lookarounds, references, conditions, comments and atomic groups; escapes that Go lacks; possessive
repetition; ``{,3}``, which Go takes for text; and more repeats than the 1,000 that RE2 allows."""
_GROUP = re.compile(r"\([^()]*\)")
_LITERALS = re.compile(r"(?:[A-Za-z0-9/_-]|\\\W)*(?![*+?{])")


class PatternError(ValueError):
    """A pattern that only Python reads; the message names the part that Go lacks."""


def re2(pattern: str) -> str:
    """Return ``pattern``, anchored, for Go: it matches the names that Python's ``fullmatch`` does. Raises
    PatternError."""
    inner = _inner(pattern)
    bare = _ONE_CHARACTER.sub("x", inner)
    if found := _ONLY_PYTHON.search(bare):
        raise PatternError(f"resources: the pattern {inner} has {found[0]}, which the API server's regular expressions (RE2) have not")
    plain = re.sub(r"\(\?P<\w+>", "(?:", inner)
    return f"^(?:{plain})$" if _has_alternatives(bare) else f"^{plain}$"


def prefix(pattern: str) -> str:
    """Return the prefix of every name that matches, or "" if it cannot be determined."""
    inner = _inner(pattern)
    if _has_alternatives(_ONE_CHARACTER.sub("x", inner)):
        return ""
    found = _LITERALS.match(inner)
    return re.sub(r"\\(\W)", r"\1", found[0]) if found else ""


def _inner(pattern: str) -> str:
    whole = _WHOLE.fullmatch(pattern)
    return whole[1] if whole else pattern


def _has_alternatives(bare: str) -> bool:
    """Return whether a ``|`` stands outside all groups."""
    while (shorter := _GROUP.sub("x", bare)) != bare:
        bare = shorter
    return "|" in bare
