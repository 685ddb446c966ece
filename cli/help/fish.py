"""The completion script for fish, 3.0 and later."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cli.help.tree import Argument, Command, OptionValue

_HEAD = """\
# fish completion for berth, made by: berth completion fish

function __berth_command
    set -l skipped 0
    set -l words (commandline -opc)
    for word in $words[2..]
        if test $skipped = 1
            set skipped 0
        else if test $word = --color
            set skipped 1
        else if not string match -q -- '-*' $word
            echo $word
            return
        end
    end
end

function __berth_is
    set -l command (__berth_command)
    test "$command" = "$argv"
end

complete -c berth -f
"""


def script(commands: Sequence[Command]) -> str:
    """Return the script."""
    lines = [line for one in commands for line in _command(one, commands)]
    return _HEAD + "".join(f"{line}\n" for line in lines)


def _command(command: Command, commands: Sequence[Command]) -> Iterator[str]:
    begun = f"complete -c berth -n {_quoted(f'__berth_is {command.name}'.rstrip())}"
    if not command.name:
        for one in commands[1:]:
            yield f"{begun} -a {one.name} -d {_quoted(one.summary)}"
    else:
        for place in command.places:
            if offered := _offered(place.typed):
                yield f"{begun} {offered} -d {_quoted(place.name)}"
    for option in command.options:
        yield f"{begun} {_option(option)}"


def _option(option: Argument) -> str:
    flags = " ".join(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags)
    value = ""
    if not option.is_switch:
        offered = _offered(option.typed)
        value = f" -r {offered}" if offered == "-F" else f" -x {offered}".rstrip()
    return f"{flags}{value} -d {_quoted(option.help)}"


def _offered(typed: OptionValue) -> str:
    match typed.kind:
        case "words":
            return f"-a {_quoted(' '.join(typed.words))}"
        case "list":
            return f"-a {_quoted('(__fish_append , ' + ' '.join(typed.words) + ')')}"
        case "files":
            return "-F"
        case "folders":
            return f"-a {_quoted('(__fish_complete_directories)')}"
    return ""


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
