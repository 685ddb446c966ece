"""`berth help`: what `--help` shows, of the command or of one subcommand."""

from __future__ import annotations

import argparse
from typing import Any

from catalog.nearest import hint
from cli.main import BAD_INPUT, SUBCOMMANDS, parser
from cli.output import stderr


def add_parser(subcommands: Any) -> None:
    """Add `help` to the command's subparsers."""
    added: argparse.ArgumentParser = subcommands.add_parser(
        "help",
        help="show help for a command",
        description="Show the arguments, options and examples of a command. Without COMMAND, list all commands.",
        examples=(("All commands", "%(prog)s"), ("Options and examples of one command", "%(prog)s try")),
    )
    added.add_argument("topic", nargs="?", metavar="COMMAND", help="a command, such as try")


def run(args: argparse.Namespace) -> int:
    """Print the help; exit code 2 for a command that is not there."""
    if args.topic is None:
        parser(()).print_help()
        return 0
    if args.topic not in SUBCOMMANDS:
        stderr.wrong(f'unknown command "{args.topic}"{hint(args.topic, SUBCOMMANDS)}')
        return BAD_INPUT
    subcommands = parser((args.topic,)).subcommands
    subcommands[args.topic].print_help()
    return 0
