"""How values stand in messages."""

from __future__ import annotations


def cut(text: str, most: int) -> str:
    """At most so many characters, the last three of them dots where it was longer."""
    return text if len(text) <= most else f"{text[: most - 3]}..."
