"""The program ``kubectl_complete-berth``, which kubectl's own completion asks how the words after ``kubectl berth`` go on: kubectl finds it
on the PATH by its name (KEP-2379, "Shell Completion Support"; since kubectl 1.26).

It prints a line for each candidate, with a tab and a description, and at the end a colon and a number, as programs made with Cobra do.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from cli.help.tree import Argument, Command, Kind, OptionValue, command
from cli.main import SUBCOMMANDS, find_subcommand, guarded

FILES, NO_SPACE, NOTHING, FOLDERS = 0, 2, 4, 16
"""ShellCompDirective of github.com/spf13/cobra (completions.go): what the shell does besides; the numbers are bits."""
_DIRECTIVES: dict[Kind, int] = {"list": NOTHING | NO_SPACE, "files": FILES, "folders": FOLDERS}
_Candidate = tuple[str, str]
"""A word and what it means."""


def main() -> int:
    """Print the candidates for the last of the words that the program was called with."""
    return guarded(_print_candidates)


def _print_candidates() -> int:
    found, directive = candidates(sys.argv[1:])
    print("\n".join(f"{word}\t{about}" if about else word for word, about in found))
    print(f":{directive}")
    return 0


def candidates(words: Sequence[str]) -> tuple[list[_Candidate], int]:
    """Return what the last word can become, and the directive."""
    *before, current = words or [""]
    known = command(next(iter(find_subcommand(before)), ""))
    flag, equals, begun = current.partition("=")
    if equals and (option := _valued(known, flag)) is not None:
        found, directive = _of(option.typed, begun)
        return [(f"{flag}={word}", about) for word, about in found], directive
    if before and (option := _valued(known, before[-1])) is not None:
        return _of(option.typed, current)
    if current.startswith("-"):
        flags = ((flag, one.help) for one in known.options for flag in one.flags)
        return _begun(flags, current), NOTHING
    return _in_place(known, current)


def _valued(known: Command, flag: str) -> Argument | None:
    return next((one for one in known.options if flag in one.flags and not one.is_switch), None)


def _in_place(known: Command, current: str) -> tuple[list[_Candidate], int]:
    if not known.name:
        return _begun(((name, about) for name, (_, about) in SUBCOMMANDS.items()), current), NOTHING
    found = [_of(place.typed, current) for place in known.places]
    return [one for some, _ in found for one in some], min((directive for _, directive in found), default=NOTHING)


def _of(typed: OptionValue, begun: str) -> tuple[list[_Candidate], int]:
    before, comma, last = begun.rpartition(",") if typed.kind == "list" else ("", "", begun)
    words = _begun(((word, "") for word in typed.words), last)
    return [(f"{before}{comma}{word}", "") for word, _ in words], _DIRECTIVES.get(typed.kind, NOTHING)


def _begun(found: Iterator[_Candidate], begun: str) -> list[_Candidate]:
    return [one for one in found if one[0].startswith(begun)]
