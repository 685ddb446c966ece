"""The manual page ``berth(1)``, of the same parsers as ``--help``, in the man macros that every system has (man(7))."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from cli import VERSION
from cli.help.tree import Argument, Command

_ABOUT = (
    "Berth is an admission server for Kubernetes that applies typed GPU policies to pods before the scheduler sees them: it adds "
    "tolerations, node affinity, MIG slices and a grace period for the last checkpoint, and denies pods that no allowed node can "
    "run. This command runs the server. It also previews, explains, audits and tests policies, with or without a cluster. "
    "As a kubectl plugin it is kubectl berth."
)
_EXITS = (
    ("0", "Success. For try: everything is admitted. For test: all cases pass. For replay: no decision differs."),
    ("1", "Something is denied (try), fails (test), is decided differently (replay), or certificates have a problem (certs check)."),
    ("2", "Invalid input. Each line on standard error names the problem, the place, and what to type instead."),
    ("130", "Interrupted by Ctrl-C."),
)
_ENVIRONMENT = (
    ("KUBECONFIG", "The kubeconfig of the cluster. If unset: ~/.kube/config, or in a pod its service account."),
    ("NO_COLOR", "If not empty, disables colour (https://no-color.org)."),
    ("CLICOLOR_FORCE, FORCE_COLOR", "If either is set to anything but 0, enables colour without a terminal too, unless NO_COLOR is set."),
    ("TERM", "If set to dumb, disables colour and progress."),
    ("COLUMNS", "The width of tables on a terminal. Output to a pipe or a file is not wrapped."),
)
_WIDTH = 72
_ON_ALL = ("--help", "--color")
"""Options that every command has."""


def manual_page(commands: Sequence[Command], date: str) -> str:
    """Return the page. ``date``: of the version, as 2026-11-23."""
    whole, *subcommands = commands
    lines = [
        '.\\" Made by make generate from the parsers of the command, not by hand.',
        f'.TH BERTH 1 "{date}" "Berth {VERSION}" "User Commands"',
        ".SH NAME",
        "berth \\- typed GPU policies for Kubernetes",
        ".SH SYNOPSIS",
        ".B berth",
        '.RI [ OPTION " ...] " COMMAND " ..."',
        ".SH DESCRIPTION",
        _text(_ABOUT),
        ".SH OPTIONS",
        *(line for option in whole.options for line in _option(option)),
        ".SH COMMANDS",
        *(line for one in subcommands for line in _command(one)),
        ".SH EXIT STATUS",
        *_listed(_EXITS),
        ".SH ENVIRONMENT",
        *_listed(_ENVIRONMENT),
        ".SH SEE ALSO",
        ".BR kubectl (1)",
    ]
    return "".join(f"{line}\n" for line in lines)


def _command(command: Command) -> Iterator[str]:
    places = " ".join(_usage(place) for place in command.places)
    yield f'.SS "berth {_inline(command.name)}{" " if places else ""}{_inline(places)}"'
    yield _text(command.parser.description or command.summary)
    for place in command.places:
        yield from (".TP", f"\\fI{_inline(place.name)}\\fR", _text(place.help))
    for option in command.options:
        if option.flags[-1] not in _ON_ALL:
            yield from _option(option)
    for what, line in command.parser.examples:
        yield from (".PP", _text(f"{what}:"), ".PP", ".RS 4", ".nf", _inline(line), ".fi", ".RE")


def _usage(place: Argument) -> str:
    name = f"{place.name} ..." if place.repeated else place.name
    return f"[{name}]" if place.optional else name


def _option(option: Argument) -> Iterator[str]:
    flags = ", ".join(f"\\fB{_inline(flag)}\\fR" for flag in option.flags)
    value = "" if option.is_switch else f" \\fI{_inline(option.name)}\\fR"
    yield from (".TP", f"{flags}{value}", _text(option.help))


def _listed(items: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, text in items:
        yield from (".TP", f"\\fB{name}\\fR", _text(text))


def _text(text: str) -> str:
    """Return a paragraph, in lines that are easy to compare."""
    return "\n".join(map(_inline, textwrap.wrap(text, _WIDTH, break_on_hyphens=False, break_long_words=False)))


def _inline(text: str) -> str:
    """Return text of which roff takes no character for its own (groff_char(7))."""
    for one, written in (("\\", "\\e"), ("-", "\\-"), ("'", "\\(aq"), ("`", "\\(ga"), ("^", "\\(ha"), ("~", "\\(ti"), ('"', "\\(dq")):
        text = text.replace(one, written)
    return f"\\&{text}" if text.startswith(".") else text
