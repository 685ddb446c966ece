"""The completion script for zsh, by its own ``_arguments`` (zshcompsys(1))."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cli.help.tree import Argument, Command, OptionValue

_HEAD = """\
#compdef berth kubectl-berth
# zsh completion for berth, made by: berth completion zsh

_berth() {
    local curcontext=$curcontext state line ret=1
    typeset -A opt_args
"""
_TAIL = """\
    esac
    return ret
}

if [[ ${funcstack[1]} == _berth ]]; then
    _berth "$@"
else
    compdef _berth berth kubectl-berth
fi
"""


def script(commands: Sequence[Command]) -> str:
    """Return the script."""
    whole, *subcommands = commands
    offered = " ".join(_quoted(f"{one.name}:{_plain(one.summary, ':')}") for one in subcommands)
    specs = [*map(_option, whole.options), "'1: :->command'", "'*:: :->arguments'"]
    lines = [
        "_arguments -C -S : \\",
        *_continued(specs, " && ret=0"),
        "case $state in",
        f"    command) local -a offered=({offered}); _describe -t commands command offered && ret=0 ;;",
        "    arguments)",
        "        curcontext=${curcontext%:*:*}:berth-$words[1]:",
        "        case $words[1] in",
        *(f"            {line}" for one in subcommands for line in _command(one)),
        "        esac ;;",
    ]
    return _HEAD + "".join(f"    {line}\n" for line in lines) + _TAIL


def _command(command: Command) -> Iterator[str]:
    yield f"{command.name}) _arguments -S : \\"
    yield from _continued([*map(_option, command.options), *map(_place, command.places)], " && ret=0 ;;")


def _continued(specs: Sequence[str], end: str) -> Iterator[str]:
    yield from (f"    {spec} \\" for spec in specs[:-1])
    yield f"    {specs[-1]}{end}"


def _option(option: Argument) -> str:
    """Return the specification of an option: ``'(-o --output)'{-o+,--output=}'[form]:FORM:(diff yaml)'``."""
    excluded = "" if option.repeated else "(- *)" if option.flags[-1] in ("--help", "--version") else f"({' '.join(option.flags)})"
    value = "" if option.is_switch else f":{_plain(option.name, ':')}:{_action(option.typed)}"
    flags = option.flags if option.is_switch else [f"{flag}{'=' if flag.startswith('--') else '+'}" for flag in option.flags]
    rest = f"[{_plain(option.help, '[]:')}]{value}"
    many = "*" if option.repeated else ""
    if len(flags) == 1:
        return _quoted(f"{excluded}{many}{flags[0]}{rest}")
    return f"{_quoted(excluded + many)}{{{','.join(flags)}}}{_quoted(rest)}"


def _place(place: Argument) -> str:
    return _quoted(f"{'*' if place.repeated else ''}:{_plain(place.name, ':')}:{_action(place.typed)}")


def _action(typed: OptionValue) -> str:
    match typed.kind:
        case "words":
            return f"({' '.join(typed.words)})"
        case "list":
            return f"_sequence compadd - {' '.join(typed.words)}"
        case "files":
            return "_files"
        case "folders":
            return "_files -/"
    return " "


def _plain(text: str, special: str) -> str:
    """Return text with the characters escaped that a specification takes for its own."""
    return "".join(f"\\{one}" if one in special or one == "\\" else one for one in text)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
