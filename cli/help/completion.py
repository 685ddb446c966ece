"""`berth completion`: the script that teaches a shell how the words of the command go on."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from cli.help.tree import Argument, Command, OptionValue, commands


def add_parser(subcommands: Any) -> None:
    """Add `completion` to the command's subparsers."""
    parser: argparse.ArgumentParser = subcommands.add_parser(
        "completion",
        help="print the completion script for bash, zsh or fish",
        description="Print a script that completes berth's commands, options, values, GPU models and files. Completion does "
        "not contact a cluster. Print the script again after an upgrade. Completion of kubectl berth needs the program "
        "kubectl_complete-berth, which is installed with berth.",
        examples=(
            ("For the current shell only", "source <(%(prog)s bash)"),
            ("For bash, with the package bash-completion", "%(prog)s bash > ~/.local/share/bash-completion/completions/berth"),
            ("For zsh, in a folder of $fpath", '%(prog)s zsh > "${fpath[1]}/_berth"'),
            ("For fish", "%(prog)s fish > ~/.config/fish/completions/berth.fish"),
        ),
    )
    parser.add_argument("shell", choices=tuple(SCRIPTS), metavar="SHELL", help="bash, zsh or fish")


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    print(SCRIPTS[args.shell](commands()), end="")
    return 0


# --- bash ---

_BASH_HEAD = """\
# bash completion for berth, made by: berth completion bash

# Each offers nothing else: -o default completes files where nothing is offered. bash 3.2 has no compopt, and goes on to files.
_berth_words() {
    local IFS=$' \\t\\n'
    COMPREPLY=($(compgen -W "$1" -- "$cur"))
    compopt +o default 2>/dev/null
}

_berth_list() {
    local IFS=$' \\t\\n' before=
    [[ $cur == *,* ]] && before=${cur%,*},
    COMPREPLY=($(compgen -W "$1" -P "$before" -- "${cur##*,}"))
    compopt +o default -o nospace 2>/dev/null
}

_berth() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= options= i
    COMPREPLY=()
    # bash takes --output=json for three words
    if [[ $cur == = ]]; then
        cur=
    elif [[ $prev == = ]]; then
        prev=${COMP_WORDS[COMP_CWORD-2]}
    fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
            --color) [[ ${COMP_WORDS[i+1]} == = ]] && ((i++)); ((i++)) ;;
            -* | =) ;;
            *) command=${COMP_WORDS[i]}; break ;;
        esac
    done
    case $command in
"""
_BASH_TAIL = """\
        *) compopt +o default 2>/dev/null; return ;;
    esac
}

complete -o default -F _berth berth kubectl-berth
"""


def _bash_script(commands: Sequence[Command]) -> str:
    """Return the script for bash, 3.2 and later; the package bash-completion is not needed."""
    return _BASH_HEAD + "".join(f"        {line}\n" for one in commands for line in _bash_command(one)) + _BASH_TAIL


def _bash_command(command: Command) -> Iterator[str]:
    yield f"{command.name or repr('')})"
    yield f'    options="{" ".join(flag for option in command.options for flag in option.flags)}"'
    valued = [option for option in command.options if not option.is_switch]
    yield "    case $prev in"
    for option in valued:
        yield f"        {' | '.join(option.flags)}) {_bash_offer(option.typed)}; return ;;"
    yield "    esac"
    yield "    case $cur in"
    yield '        -*) _berth_words "$options" ;;'
    words = [word for place in command.places for word in place.typed.words]
    kinds = {place.typed.kind for place in command.places}
    offered = OptionValue(kind="words", words=tuple(words)) if words else OptionValue(kind="files" if "files" in kinds else "anything")
    yield f"        *) {_bash_offer(offered)} ;;"
    yield "    esac"
    yield "    ;;"


def _bash_offer(typed: OptionValue) -> str:
    """Return the command that offers it."""
    match typed.kind:
        case "words":
            return f'_berth_words "{" ".join(typed.words)}"'
        case "list":
            return f'_berth_list "{" ".join(typed.words)}"'
        case "files":
            return ":"
        case "folders":
            return "compopt +o default -o dirnames 2>/dev/null"
    return "compopt +o default 2>/dev/null"


# --- zsh ---

_ZSH_HEAD = """\
#compdef berth kubectl-berth
# zsh completion for berth, made by: berth completion zsh

_berth() {
    local curcontext=$curcontext state line ret=1
    typeset -A opt_args
"""
_ZSH_TAIL = """\
    esac
    return ret
}

if [[ ${funcstack[1]} == _berth ]]; then
    _berth "$@"
else
    compdef _berth berth kubectl-berth
fi
"""


def _zsh_script(commands: Sequence[Command]) -> str:
    """Return the script for zsh, by its own ``_arguments`` (zshcompsys(1))."""
    whole, *subcommands = commands
    offered = " ".join(_zsh_quoted(f"{one.name}:{_zsh_plain(one.summary, ':')}") for one in subcommands)
    specs = [*map(_zsh_option, whole.options), "'1: :->command'", "'*:: :->arguments'"]
    lines = [
        "_arguments -C -S : \\",
        *_zsh_continued(specs, " && ret=0"),
        "case $state in",
        f"    command) local -a offered=({offered}); _describe -t commands command offered && ret=0 ;;",
        "    arguments)",
        "        curcontext=${curcontext%:*:*}:berth-$words[1]:",
        "        case $words[1] in",
        *(f"            {line}" for one in subcommands for line in _zsh_command(one)),
        "        esac ;;",
    ]
    return _ZSH_HEAD + "".join(f"    {line}\n" for line in lines) + _ZSH_TAIL


def _zsh_command(command: Command) -> Iterator[str]:
    yield f"{command.name}) _arguments -S : \\"
    yield from _zsh_continued([*map(_zsh_option, command.options), *map(_zsh_place, command.places)], " && ret=0 ;;")


def _zsh_continued(specs: Sequence[str], end: str) -> Iterator[str]:
    yield from (f"    {spec} \\" for spec in specs[:-1])
    yield f"    {specs[-1]}{end}"


def _zsh_option(option: Argument) -> str:
    """Return the specification of an option: ``'(-o --output)'{-o+,--output=}'[form]:FORM:(diff yaml)'``."""
    excluded = "" if option.repeated else "(- *)" if option.flags[-1] in ("--help", "--version") else f"({' '.join(option.flags)})"
    value = "" if option.is_switch else f":{_zsh_plain(option.name, ':')}:{_zsh_action(option.typed)}"
    flags = option.flags if option.is_switch else [f"{flag}{'=' if flag.startswith('--') else '+'}" for flag in option.flags]
    rest = f"[{_zsh_plain(option.help, '[]:')}]{value}"
    many = "*" if option.repeated else ""
    if len(flags) == 1:
        return _zsh_quoted(f"{excluded}{many}{flags[0]}{rest}")
    return f"{_zsh_quoted(excluded + many)}{{{','.join(flags)}}}{_zsh_quoted(rest)}"


def _zsh_place(place: Argument) -> str:
    return _zsh_quoted(f"{'*' if place.repeated else ''}:{_zsh_plain(place.name, ':')}:{_zsh_action(place.typed)}")


def _zsh_action(typed: OptionValue) -> str:
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


def _zsh_plain(text: str, special: str) -> str:
    """Return text with the characters escaped that a specification takes for its own."""
    return "".join(f"\\{one}" if one in special or one == "\\" else one for one in text)


def _zsh_quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


# --- fish ---

_FISH_HEAD = """\
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


def _fish_script(commands: Sequence[Command]) -> str:
    """Return the script for fish, 3.0 and later."""
    lines = [line for one in commands for line in _fish_command(one, commands)]
    return _FISH_HEAD + "".join(f"{line}\n" for line in lines)


def _fish_command(command: Command, commands: Sequence[Command]) -> Iterator[str]:
    begun = f"complete -c berth -n {_fish_quoted(f'__berth_is {command.name}'.rstrip())}"
    if not command.name:
        for one in commands[1:]:
            yield f"{begun} -a {one.name} -d {_fish_quoted(one.summary)}"
    else:
        for place in command.places:
            if offered := _fish_offered(place.typed):
                yield f"{begun} {offered} -d {_fish_quoted(place.name)}"
    for option in command.options:
        yield f"{begun} {_fish_option(option)}"


def _fish_option(option: Argument) -> str:
    flags = " ".join(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags)
    value = ""
    if not option.is_switch:
        offered = _fish_offered(option.typed)
        value = f" -r {offered}" if offered == "-F" else f" -x {offered}".rstrip()
    return f"{flags}{value} -d {_fish_quoted(option.help)}"


def _fish_offered(typed: OptionValue) -> str:
    match typed.kind:
        case "words":
            return f"-a {_fish_quoted(' '.join(typed.words))}"
        case "list":
            return f"-a {_fish_quoted('(__fish_append , ' + ' '.join(typed.words) + ')')}"
        case "files":
            return "-F"
        case "folders":
            return f"-a {_fish_quoted('(__fish_complete_directories)')}"
    return ""


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


SCRIPTS = {"bash": _bash_script, "zsh": _zsh_script, "fish": _fish_script}
