"""The nearest known name, for messages. A hint never suggests another GPU than the one that was named."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from difflib import get_close_matches

_MOST_LISTED = 20
"""Longer lists bury the message; the reference and ``berth gpus`` have them whole."""


_LONGEST = 128
"""The most characters of a name that is looked up: twice the longest known one; to compare a megabyte
takes a quarter of a second."""
_SLICE = re.compile(r"nvidia\.com/mig-(\d+g)\.(\d+)gb")
_WORD = re.compile(r"[a-z0-9]+")
_SIZE = re.compile(r"\d+gb")
_VERSION = re.compile(r"v\d")
"""of Azure's sizes: it tells models apart (NC24rs_v2, NC24rs_v3), and names none"""
_LOOKALIKES = str.maketrans("oil", "011")
_FORM = 3
"""The least number of letters in a suffix written to a model's name without a dash: h100sxm5, h100pcie.
One or two make another model: l40s, p5en."""


def nearest(name: str, known: Iterable[str], codes: frozenset[str] = frozenset()) -> str | None:
    """Return the known name that ``name`` was probably meant to be, or None. Case is ignored.

    ``codes``: words that distinguish models (``Catalog.codes``). A hint has those that the name has, and no
    other, unless a character of it was left out, or letters changed places: H100-SXM4 is not A100-SXM4. Nor
    has it another memory size, if both name one.
    """
    return None if len(name) > _LONGEST else _nearest(name, frozenset(known), codes)


@functools.lru_cache(maxsize=2048)
def _nearest(name: str, known: frozenset[str], codes: frozenset[str]) -> str | None:
    """Cached, because a pod is judged several times over, on each platform: the comparison takes a
    millisecond with two hundred names."""
    same = next((candidate for candidate in sorted(known) if _letters(candidate) == _letters(name)), None)
    if same is not None:
        return same
    folded = {candidate.lower(): candidate for candidate in sorted(known, reverse=True) if not codes or _alike(name, candidate, codes)}
    found = get_close_matches(name.lower(), sorted(folded), n=1, cutoff=0.6)
    return folded[found[0]] if found else None


def nearest_slice(name: str, known: Iterable[str]) -> str | None:
    """Return the MIG slice with as much compute and the nearest memory (3g.71gb for 3g.70gb), else the nearest name."""
    known, parts = list(known), _SLICE.fullmatch(name)
    sizes = [size for size in map(_SLICE.fullmatch, known) if size and parts and size[1] == parts[1]]
    if parts is None or not sizes:
        return nearest(name, known)
    return min(sizes, key=lambda size: (abs(int(size[2]) - int(parts[2])), size[0]))[0]


def slipped(name: str, known: Iterable[str]) -> str | None:
    """Return the one known name from which ``name`` differs by one or two slips of a typist (one in a short name), or None.

    A slip is a character too much, too few or another one, or two that changed places; case, and whether words are
    joined by ``-``, ``_``, ``.`` or nothing, is none.
    """
    return None if len(name) > _LONGEST else _slipped(name, frozenset(known))


@functools.lru_cache(maxsize=2048)
def _slipped(name: str, known: frozenset[str]) -> str | None:
    plain = _plain(name)
    near = [(_slips(plain, _plain(one)), one) for one in sorted(known) if abs(len(plain) - len(_plain(one))) <= _MOST_SLIPS]
    fewest = min((slips for slips, _ in near), default=_MOST_SLIPS + 1)
    found = [one for slips, one in near if slips == fewest]
    most = _MOST_SLIPS if all(len(_plain(one)) >= _SHORT for one in found) else 1
    return found[0] if len(found) == 1 and fewest <= most else None


_MOST_SLIPS, _SHORT = 2, 6
_JOINTS = str.maketrans("", "", "-_.")


def _plain(name: str) -> str:
    return name.lower().translate(_JOINTS)


def _letters(name: str) -> str:
    """Return a name without case and joints, and with digits for the letters that look like them: ``h100`` of ``H-1oo``."""
    return _plain(name).translate(_LOOKALIKES)


def _slips(one: str, other: str) -> int:
    """Return the least number of slips between two names (optimal string alignment)."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, left in enumerate(one, start=1):
        earlier, before, row = before, row, [i]
        for j, right in enumerate(other, start=1):
            least = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (left != right))
            if i > 1 and j > 1 and left == other[j - 2] and one[i - 2] == right:
                least = min(least, earlier[j - 2] + 1)
            row.append(least)
    return row[-1]


def of_model(name: str, known: Iterable[str], codes: frozenset[str]) -> list[str]:
    """Return the known names of the model that the name identifies, sorted; none if it identifies none."""
    named = frozenset(code for code in _codes(name, codes) if not _VERSION.fullmatch(code)) if len(name) <= _LONGEST else frozenset()
    return sorted(candidate for candidate in known if named and named <= _codes(candidate, codes))


def _alike(name: str, candidate: str, codes: frozenset[str]) -> bool:
    named, theirs = _codes(name, codes), _codes(candidate, codes)
    sizes = [{word for word in _WORD.findall(one.lower()) if _SIZE.fullmatch(word)} for one in (name, candidate)]
    if all(sizes) and sizes[0].isdisjoint(sizes[1]):
        return False
    slips = [word for word in _WORD.findall(name.lower()) if word not in codes]
    return named <= theirs and all(any(_slip(word, code) for word in slips) for code in theirs - named)


def _codes(name: str, codes: frozenset[str]) -> frozenset[str]:
    return frozenset(code for word in _WORD.findall(name.lower()) for code in _in(word, codes))


def _in(word: str, codes: frozenset[str]) -> Iterable[str]:
    if word in codes:
        return (word,)
    return (word[:at] for at in range(2, len(word) - _FORM + 1) if word[:at] in codes and word[at:].rstrip("0123456789").isalpha())


def _slip(word: str, code: str) -> bool:
    """Return whether ``word`` is ``code`` with two characters swapped, a letter for the digit that looks
    like it, or one of its digits left out."""
    word, code = word.translate(_LOOKALIKES), code.translate(_LOOKALIKES)
    if len(word) == len(code):
        return sorted(word) == sorted(code)
    return len(word) + 1 == len(code) and any(code[at].isdigit() and word == code[:at] + code[at + 1 :] for at in range(len(code)))


def hint(name: str, known: Iterable[str], codes: frozenset[str] = frozenset()) -> str:
    """Return ``; did you mean "hopper"?``, else the known names: ``; known: ampere, hopper``."""
    names = sorted(known)
    near = nearest(name, names, codes)
    if near is not None:
        return f'; did you mean "{near}"?'
    return f"; known: {list_known(of_model(name, names, codes) or names)}" if names else ""


def list_known(names: Iterable[str], most: int = _MOST_LISTED) -> str:
    """Return ``a, b, c``, or for more than ``most`` names ``a, b and 7 more``."""
    shown = list(names)
    rest = len(shown) - most
    return ", ".join(shown[:most]) + (f" and {rest} more" if rest > 0 else "")
