"""The command as its parsers have it: subcommands, their options, and what may be typed for each. Completion and the manual page
are made of it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from cli.main import SUBCOMMANDS, parser
from cli.parser import Parser

Kind = Literal["words", "list", "files", "folders", "anything", "nothing"]
"""What is typed for an option or in a place: one of some words, several of them with commas between, files, folders, or what nobody but the
author knows. Nothing is typed for a switch."""
_BY_METAVAR: Mapping[str, Kind] = {"FILE": "files", "PATH": "files", "DIR": "folders"}


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionValue:
    """What is typed for an option, or in a place."""

    kind: Kind
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """An option, or a word or words that are none."""

    flags: tuple[str, ...]
    """Short ones first; empty for what is no option."""
    typed: OptionValue
    name: str
    """What stands for its value in help, such as FILE."""
    help: str
    repeated: bool
    optional: bool

    @property
    def is_switch(self) -> bool:
        return self.typed.kind == "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """The command itself, whose name is empty, or a subcommand."""

    name: str
    summary: str
    options: tuple[Argument, ...]
    places: tuple[Argument, ...]
    parser: Parser


@cache
def commands() -> tuple[Command, ...]:
    """Return the command itself, whose only place is for a subcommand, and the subcommands."""
    root = parser(tuple(SUBCOMMANDS))
    whole = _command("", "", root)
    return (whole, *(_command(name, SUBCOMMANDS[name][1], one) for name, one in root.subcommands.items()))


def command(name: str) -> Command:
    """Return one subcommand, or for the empty name the command itself, and import no other."""
    root = parser((name,) if name else ())
    return _command(name, SUBCOMMANDS[name][1], root.subcommands[name]) if name else _command("", "", root)


def _command(name: str, summary: str, found: Parser) -> Command:
    arguments = [_argument(found, action) for action in found._actions if action.help != argparse.SUPPRESS]
    options = tuple(argument for argument in arguments if argument.flags)
    places = tuple(argument for argument in arguments if not argument.flags)
    return Command(name=name, summary=summary, options=options, places=places, parser=found)


def _argument(command: Parser, action: argparse.Action) -> Argument:
    return Argument(
        flags=tuple(sorted(action.option_strings, key=len)),
        typed=_typed(action),
        name=_name(action),
        help=help_of(command, action),
        repeated=action.nargs in ("+", "*") or isinstance(action, argparse._AppendAction),
        optional=action.nargs in ("?", "*"),
    )


def _name(action: argparse.Action) -> str:
    if action.metavar is None and action.choices is not None:
        return "|".join(map(str, action.choices))
    return str(action.metavar or action.dest.upper())


def help_of(found: argparse.ArgumentParser, action: argparse.Action) -> str:
    """Return the help of an option or a place, on one line."""
    return found._get_formatter()._expand_help(action) if action.help else ""


def _typed(action: argparse.Action) -> OptionValue:
    if action.nargs == 0:
        return OptionValue(kind="nothing")
    if action.choices is not None:
        return OptionValue(kind="words", words=tuple(map(str, action.choices)))
    if known := _known(str(action.metavar)):
        return known
    return OptionValue(kind=_BY_METAVAR.get(str(action.metavar), "anything"))


def _known(metavar: str) -> OptionValue | None:
    """Return the words of an option whose choices are checked later than by its parser, where the catalog is known."""
    from policies.state.updater import QUEUES
    from policies.verdict import MODES
    from sources.sources import MIG_STRATEGIES

    match metavar:
        case "COMMAND":
            return OptionValue(kind="words", words=tuple(SUBCOMMANDS))
        case "MODEL":
            return OptionValue(kind="words", words=_models())
        case "P,...":
            return OptionValue(kind="list", words=_platforms())
        case "Q,...":
            return OptionValue(kind="list", words=tuple(QUEUES))
    for words in (MODES, MIG_STRATEGIES):
        if metavar == "|".join(words):
            return OptionValue(kind="words", words=tuple(words))
    return None


@cache
def _models() -> tuple[str, ...]:
    from documents.files import read_catalog

    return tuple(sorted(read_catalog([]).model_names))


@cache
def _platforms() -> tuple[str, ...]:
    from documents.files import read_catalog
    from policies.state.updater import AUTO

    return (*sorted(read_catalog([]).platforms), AUTO)
