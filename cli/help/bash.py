"""The completion script for bash, 3.2 and later; the package bash-completion is not needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cli.help.tree import Command, OptionValue

_HEAD = """\
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
_TAIL = """\
        *) compopt +o default 2>/dev/null; return ;;
    esac
}

complete -o default -F _berth berth kubectl-berth
"""


def script(commands: Sequence[Command]) -> str:
    """Return the script."""
    return _HEAD + "".join(f"        {line}\n" for one in commands for line in _command(one)) + _TAIL


def _command(command: Command) -> Iterator[str]:
    yield f"{command.name or repr('')})"
    yield f'    options="{" ".join(flag for option in command.options for flag in option.flags)}"'
    valued = [option for option in command.options if not option.is_switch]
    yield "    case $prev in"
    for option in valued:
        yield f"        {' | '.join(option.flags)}) {_offer(option.typed)}; return ;;"
    yield "    esac"
    yield "    case $cur in"
    yield '        -*) _berth_words "$options" ;;'
    words = [word for place in command.places for word in place.typed.words]
    kinds = {place.typed.kind for place in command.places}
    offered = OptionValue(kind="words", words=tuple(words)) if words else OptionValue(kind="files" if "files" in kinds else "anything")
    yield f"        *) {_offer(offered)} ;;"
    yield "    esac"
    yield "    ;;"


def _offer(typed: OptionValue) -> str:
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
