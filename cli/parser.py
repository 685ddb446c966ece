"""The parser of the command's words: what is misspelt gets a hint, and help ends in examples."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from cli.output import stderr
from cli.terminal import screen

BAD_INPUT = 2
WIDEST = 100
"""Columns of the widest line of help: longer ones are hard to follow."""
Example = tuple[str, str]
"""What a command does, and the command, in which ``%(prog)s`` stands for ``berth try``."""


class Parser(argparse.ArgumentParser):
    """A parser of the command or of a subcommand; it has ``--color``. Options are not known by their beginnings: a new option would give
    another meaning to the ones that scripts use."""

    def __init__(self, *args: Any, examples: Iterable[Example] = (), **settings: Any) -> None:
        super().__init__(*args, **{"formatter_class": Help, "allow_abbrev": False, "exit_on_error": False, **settings})
        self.examples = tuple((what, line % {"prog": self.prog}) for what, line in examples)
        self._positionals.title = "arguments"
        help_ = "when to use colour: auto (default; only on a terminal, unless NO_COLOR is set), always or never"
        self.add_argument("--color", choices=screen.CHOICES, default=argparse.SUPPRESS, metavar="WHEN", help=help_)

    @property
    def subcommand(self) -> str:
        """``try`` of ``berth try``; empty for the command itself."""
        return "" if self._subparsers is not None else self.prog.rpartition(" ")[2]

    @property
    def subcommands(self) -> Mapping[str, Parser]:
        """The parsers of the subcommands by their names; none for a subcommand."""
        if self._subparsers is None:
            return {}
        (action,) = (one for one in self._subparsers._group_actions if isinstance(one, argparse._SubParsersAction))
        return action.choices

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the words. What is not known is wrong already here: there the subcommand is known."""
        if args is not None:
            self._choose_colour(args)
            self._check_options(args)
        try:
            found, rest = super().parse_known_args(args, namespace)
        except argparse.ArgumentError as error:
            if error.argument_name is None:
                self.error(error.message)
            self._wrong(f"{error.argument_name}: {error.message}")
        if rest:
            what = "unknown option" if rest[0].startswith("-") else "unexpected argument"
            self._wrong(f'{what} "{rest[0]}"; see {self.prog} --help')
        return found, rest

    def _choose_colour(self, words: Sequence[str]) -> None:
        """Take what ``--color`` says, before anything is said of the words, wherever it stands among them."""
        for word, after in zip(words, [*words[1:], ""], strict=False):
            option, equals, value = word.partition("=")
            wanted = value if equals else after
            if option == "--color" and wanted in screen.CHOICES:
                screen.choose(wanted)

    def _check_options(self, words: Sequence[str]) -> None:
        """Check the long options, before a word that is missing for want of one is complained about."""
        for word in words:
            if word == "--" or (self._subparsers is not None and not word.startswith("-")):
                return
            option = word.partition("=")[0]
            if word.startswith("--") and " " not in word and option not in self._option_string_actions:
                self._wrong(f'unknown option "{option}"{self._nearest_option(option)}')

    def _nearest_option(self, option: str) -> str:
        from catalog.nearest import nearest

        options = self._option_string_actions
        known = {name.lstrip("-"): name for name, action in options.items() if name.startswith("--") and action.help != argparse.SUPPRESS}
        word = option.lstrip("-")
        begun = [name for name in known if word and name.startswith(word)]
        near = begun[0] if len(begun) == 1 else nearest(word, known)
        return f"; see {self.prog} --help" if near is None else f'; did you mean "{known[near]}"?'

    def _wrong(self, sentence: str) -> NoReturn:
        stderr.wrong(f"{self.subcommand}: {sentence}" if self.subcommand else sentence)
        self.exit(BAD_INPUT)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Check a word of few: a subcommand, or a choice."""
        from catalog.nearest import hint

        if action.choices is None or value in action.choices:
            return
        if isinstance(action, argparse._SubParsersAction):
            self._wrong(f'unknown command "{value}"{hint(value, action.choices)}')
        name = "/".join(sorted(action.option_strings, key=len)) or str(action.metavar or action.dest)
        self._wrong(f'{name}: invalid value "{value}"{hint(str(value), map(str, action.choices))}')

    def error(self, message: str) -> NoReturn:
        """Print which words are missing and how the command is used, and exit."""
        stderr.wrong(f"{self.subcommand}: {message}" if self.subcommand else message)
        self.exit(BAD_INPUT, self.format_usage())

    def _print_message(self, message: str, file: Any = None) -> None:
        """Write a text. Overrides argparse's method, which ignores errors: help that nobody got would be a success."""
        (file or sys.stderr).write(message)

    def format_help(self) -> str:
        """Return the help, with examples that stand on lines of their own, to be copied."""
        shown = "\n".join(f"  # {what}\n  {line}" for what, line in self.examples)
        return super().format_help() + (f"\nexamples:\n{shown}\n" if shown else "")


class Help(argparse.HelpFormatter):
    """Help whose usage has the words without the options, which are listed below it: some subcommands have forty."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        columns = min(WIDEST, shutil.get_terminal_size().columns)
        super().__init__(*args, **{"width": columns - 2, "max_help_position": 28, **settings})

    def add_usage(self, usage: str | None, actions: Iterable[argparse.Action], groups: Any, prefix: str | None = None) -> None:
        """Add ``berth try [OPTION ...] FILE [FILE ...]``."""
        words = [action for action in actions if not action.option_strings]
        super().add_usage(" ".join(("%(prog)s [OPTION ...]", *self._words(words))), [], [], prefix)

    def _words(self, actions: Iterable[argparse.Action]) -> Iterator[str]:
        for action in actions:
            if isinstance(action, argparse._SubParsersAction):
                yield f"{action.metavar} ..."
            else:
                yield self._format_args(action, self._get_default_metavar_for_positional(action))

    def _format_action_invocation(self, action: argparse.Action) -> str:
        """Return ``-o, --output {diff,yaml}``."""
        if not action.option_strings:
            return super()._format_action_invocation(action)
        flags = ", ".join(sorted(action.option_strings, key=len))
        value = self._format_args(action, self._get_default_metavar_for_optional(action))
        return flags if action.nargs == 0 else f"{flags} {value}"

    def _split_lines(self, text: str, width: int) -> list[str]:
        """Return the lines of an option's help. Options such as --cert-secret are not broken at hyphens, so that they can be copied."""
        import textwrap

        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Return a description as lines."""
        return "\n".join(f"{indent}{line}" for line in self._split_lines(text, width - len(indent)))
