"""Help: the same by ``help`` and ``--help``, with examples that the parsers take."""

from __future__ import annotations

import shlex

import pytest

from cli.help.tree import Command, commands
from cli.main import SUBCOMMANDS, main, parser

SUBS = commands()[1:]
EXAMPLES = [line for one in commands() for _, line in one.parser.examples]
RUN_HERE = ("berth gpus", "berth gpus A100-40GB", "berth version", "berth version -o json", "berth help", "berth help try")
"""Those that need no cluster and no file."""


def helped(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What ``--help`` prints."""
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_both_ways_show_the_same(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """berth help try, berth try --help."""
    assert main(["help", name]) == 0
    assert capsys.readouterr().out == helped(capsys, name, "--help")


def test_without_a_command_all_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """berth help, berth --help."""
    assert main(["help"]) == 0
    assert capsys.readouterr().out == helped(capsys, "--help")


def test_no_word_at_all_is_help_and_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    """On standard error: a script that forgot its words must not go on."""
    assert main([]) == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", helped(capsys, "--help"))


def test_help_on_nothing_known_has_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    """As the command itself would have."""
    assert main(["help", "tyr"]) == 2
    assert capsys.readouterr().err == 'berth: unknown command "tyr"; did you mean "try"?\n'


@pytest.mark.parametrize("one", SUBS, ids=lambda one: one.name)
def test_every_command_has_examples(one: Command) -> None:
    """Two to four, each with what it does, at the end of its help."""
    assert 2 <= len(one.parser.examples) <= 4
    shown = one.parser.format_help().partition("\nexamples:\n")[2]
    assert shown == "".join(f"  # {what}\n  {line}\n" for what, line in one.parser.examples)


def words_of(line: str) -> list[str]:
    """The words of an example after ``berth``, up to where the shell's own begin."""
    words = shlex.split(line.replace("source <(", "").removesuffix(")"))
    words = words[words.index("berth") + 1 :]
    ends = [words.index(sign) for sign in ("|", ">") if sign in words]
    return words[: min(ends, default=len(words))]


@pytest.mark.parametrize("line", EXAMPLES)
def test_an_example_is_taken(line: str) -> None:
    """Every word of it is known, and what it names has the right form."""
    words = words_of(line)
    args = parser((words[0],)).parse_args(words)
    assert args.command == words[0]


@pytest.mark.parametrize("line", RUN_HERE)
def test_an_example_runs(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Those that need nothing but Berth, to their end."""
    assert line in EXAMPLES
    assert main(words_of(line)) == 0
    assert capsys.readouterr().out


@pytest.mark.parametrize("columns", ["60", "80", "200"])
def test_help_fits_the_terminal(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for names of options and the examples, which are there to be copied; on a wide one it stays readable."""
    monkeypatch.setenv("COLUMNS", columns)
    for one in commands():
        lines = one.parser.format_help().partition("\nexamples:\n")[0].splitlines()
        assert [line for line in lines if len(line) > min(100, int(columns)) and len(line.split()) > 2 and "usage:" not in line] == []
