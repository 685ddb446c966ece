"""Words that are misspelt: a hint, exit code 2, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cli.main import SUBCOMMANDS, main, parser

Typed = Callable[..., str]


@pytest.fixture
def wrong(capsys: pytest.CaptureFixture[str]) -> Typed:
    """Types words that are wrong, and returns what is said of them."""

    def typed(*words: str) -> str:
        try:
            code = main(words)
        except SystemExit as stopped:
            code = int(str(stopped.code))
        out, err = capsys.readouterr()
        assert (code, out) == (2, "")
        return err

    return typed


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("tyr", 'unknown command "tyr"; did you mean "try"?'),
        ("efective", 'unknown command "efective"; did you mean "effective"?'),
        ("--verson", 'unknown option "--verson"; did you mean "--version"?'),
        ("--color never tyr", 'unknown command "tyr"; did you mean "try"?'),
        ("try --polices x", 'try: unknown option "--polices"; did you mean "--policies"?'),
        ("try --polices=x y", 'try: unknown option "--polices"; did you mean "--policies"?'),
        ("certs --secrt a/b", 'certs: unknown option "--secrt"; did you mean "--secret"?'),
        ("audit --colour never", 'audit: unknown option "--colour"; did you mean "--color"?'),
        ("gpus --zzzzzz", 'gpus: unknown option "--zzzzzz"; see berth gpus --help'),
        ("try -z x", 'try: unknown option "-z"; see berth try --help'),
        ("try -o jsn x", 'try: -o/--output: invalid value "jsn"; did you mean "json"?'),
        ("why -o tabel pod/p", 'why: -o/--output: invalid value "tabel"; known: json, text'),
        ("certs shw", 'certs: action: invalid value "shw"; did you mean "show"?'),
        ("completion bsh", 'completion: SHELL: invalid value "bsh"; did you mean "bash"?'),
        ("gpus a b", 'gpus: unexpected argument "b"; see berth gpus --help'),
        ("effective --gpus 0", 'effective: --gpus: "0" is not a number of GPUs; write a whole number, at least 1'),
        ("gpus --catalog", "gpus: --catalog: expected one argument"),
    ],
)
def test_what_is_misspelt_has_a_hint(words: str, line: str, wrong: Typed) -> None:
    """Of commands, options, choices and words too many: one line."""
    assert wrong(*words.split()) == f"berth: {line}\n"


def test_a_command_that_nothing_is_like_lists_them(wrong: Typed) -> None:
    """All that there are."""
    assert wrong("xyzzyxyz").startswith('berth: unknown command "xyzzyxyz"; known: audit, certs, ')


def test_words_that_are_missing_are_named_with_the_usage(wrong: Typed) -> None:
    """Which ones, and where they stand."""
    assert wrong("try").splitlines() == [
        "berth: try: the following arguments are required: FILE",
        "usage: berth try [OPTION ...] FILE [FILE ...]",
    ]


def test_options_are_not_known_by_their_beginnings(wrong: Typed) -> None:
    """A script that types --pol would break as soon as another option begins so; the hint says what to type for good."""
    assert wrong("try", "--pol", "x", "y") == 'berth: try: unknown option "--pol"; did you mean "--policies"?\n'


def test_after_two_dashes_no_word_is_an_option(wrong: Typed) -> None:
    """A file may have any name."""
    assert wrong("try", "--", "--xyzzyxyzzy").endswith("berth: --xyzzyxyzzy: there is no such file or folder\n")


@pytest.mark.parametrize("columns", ["60", "80", "100"])
def test_help_breaks_no_option_at_a_hyphen(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No line ends in a hyphen, so that options and names can be copied."""
    monkeypatch.setenv("COLUMNS", columns)
    lines = [line for command in parser(tuple(SUBCOMMANDS)).subcommands.values() for line in command.format_help().splitlines()]
    assert len(lines) > 500
    assert [line for line in lines if line.endswith("-") and not line.endswith(" -")] == []
