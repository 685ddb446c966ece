"""How many columns of a terminal text takes."""

from __future__ import annotations

from unicodedata import combining, east_asian_width


def width(text: str) -> int:
    """Return the columns of printable text: two for a wide character (Unicode Standard Annex 11: W and F), none for a combining one."""
    if text.isascii():
        return len(text)
    return sum(_of(one) for one in text)


def _of(one: str) -> int:
    if combining(one) or "\ufe00" <= one <= "\ufe0f":  # variation selectors are in no class of combining characters
        return 0
    return 2 if east_asian_width(one) in "WF" else 1


def padded(text: str, columns: int) -> str:
    """Return the text, filled up to so many columns."""
    return text + " " * (columns - width(text))


def fit_width(text: str, columns: int) -> str:
    """Return as much of the text as fits."""
    if width(text) <= columns:
        return text
    taken, room = "", columns - 3
    for one in text:
        room -= _of(one)
        if room < 0:
            break
        taken += one
    return f"{taken}..."[: max(0, columns)]


def wrapped(text: str, columns: int) -> list[str]:
    """Return the text in lines of at most so many columns, broken at blanks alone: a longer word is a line."""
    if width(text) <= columns:
        return [text]
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if lines[-1] and width(longer) > columns:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines
