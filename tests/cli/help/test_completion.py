"""What the real shells offer, with the scripts that ``berth completion`` prints."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cli.help.completion import SCRIPTS
from cli.help.tree import command, commands
from cli.main import SUBCOMMANDS, main
from documents.files import read_catalog
from tests.cli.terminal.pseudo_terminal import Terminal

Shell = Callable[[str], Terminal]
AUDIT = {"table", "json", "csv", "html"}


def wants(shell: str) -> str:
    """Return the shell's program, or skip the test, and say so."""
    if (found := shutil.which(shell)) is None:
        pytest.skip(f"{shell} is not installed: its completion is not tested on this machine")
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a manifest, a folder, and the scripts."""
    (tmp_path / "train run.yaml").touch()
    (tmp_path / "policies").mkdir()
    for shell, script in SCRIPTS.items():
        (tmp_path / f"completion.{shell}").write_text(script(commands()))
    return tmp_path


@pytest.mark.parametrize("shell", SCRIPTS)
def test_the_command_prints_the_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    """On standard output alone, to be sourced."""
    assert main(["completion", shell]) == 0
    assert capsys.readouterr() == (SCRIPTS[shell](commands()), "")


@pytest.mark.parametrize("shell", SCRIPTS)
def test_the_shell_reads_the_script(shell: str, folder: Path) -> None:
    """Without a word."""
    done = subprocess.run([wants(shell), "-n", folder / f"completion.{shell}"], capture_output=True, text=True, check=True)
    assert done.stdout + done.stderr == ""


def test_every_subcommand_and_option_is_in_the_tree() -> None:
    """The parsers are the only source."""
    assert [one.name for one in commands()] == ["", *SUBCOMMANDS]
    (output,) = (option for option in command("try").options if "--output" in option.flags)
    assert (output.flags, output.typed.words) == (("-o", "--output"), ("diff", "yaml", "json", "review"))


# --- bash and zsh, typed into ---------------------------------------------------------------------------------------------------------

STARTS = {
    "bash": ("--norc --noprofile -i", "bind 'set bell-style none'; bind 'set enable-bracketed-paste off'"),
    "zsh": ("-f -i", "unsetopt PROMPT_SP BEEP; zle_bracketed_paste=(); autoload -U compinit && compinit -D -u"),
}


@pytest.fixture(params=STARTS)
def typed(request: pytest.FixtureRequest, folder: Path) -> Iterator[Shell]:
    """Types into a shell in which ``berth`` prints its words."""
    shell = request.param
    options, settings = STARTS[shell]
    echo = "berth() { printf '<%s>' \"$@\"; echo .; }"
    environ = {"HOME": str(folder), "PS1": "$ ", "HISTFILE": "", "INPUTRC": "/dev/null", "ZDOTDIR": str(folder)}
    with Terminal([wants(shell), *options.split()], 200, environ, folder) as terminal:
        terminal.type(f"{settings}; source ./completion.{shell}; {echo}; PS1='$ '; echo rea''dy\n")
        terminal.read_until("ready\r\n")

        def typing(keys: str) -> Terminal:
            terminal.type(keys)
            return terminal

        yield typing


BEGUN = (
    ("berth tr\t", "try"),
    ("berth try --ou\t", "try --output"),
    ("berth try -o j\t", "try -o json"),
    ("berth try --output=j\t", "try --output=json"),
    ("berth audit -o c\t", "audit -o csv"),
    ("berth --color al\tver\t", "--color always version"),
    ("berth --color=always ver\t", "--color=always version"),
    ("berth gpus A100-4\t", "gpus A100-40GB"),
    ("berth try --max-mode En\t", "try --max-mode Enforce"),
    ("berth try trai\t", "try 'train run.yaml'"),
    ("berth try --policies pol\tx.yaml", "try --policies policies/x.yaml"),
    ("berth completion f\t", "completion fish"),
    ("berth help wh\t", "help why"),
)
"""keys, and the words that they become"""


def test_what_is_begun_is_finished(typed: Shell) -> None:
    """One Tab, where one thing can be meant."""
    for keys, words in BEGUN:
        printed = typed(f"{keys}\n").read_until(">.\r\n")
        assert printed.endswith("".join(f"<{word}>" for word in shlex.split(words)) + ".\r\n"), keys


def test_what_can_be_meant_is_listed(typed: Shell) -> None:
    """Two Tabs."""
    terminal = typed("berth audit -o \t\t")
    for word in sorted(AUDIT):
        terminal.seen = terminal.read_until(word) + terminal.seen


def test_several_names_with_commas(typed: Shell) -> None:
    """Each is completed."""
    assert "<gke,aks" in typed("berth try --platforms gke,ak\t x\n").read_until(">.\r\n")


# --- fish -----------------------------------------------------------------------------------------------------------------------------


def of_fish(folder: Path, line: str) -> set[str]:
    """What fish offers for a line."""
    asked = f"source completion.fish; complete -C {shlex.quote(line)}"
    env = {"HOME": str(folder / ".home"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([wants("fish"), "--no-config", "-c", asked], cwd=folder, env=env, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return {one.split("\t")[0] for one in done.stdout.splitlines()}


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("berth tr", {"try"}),
        ("berth try --ou", {"--output"}),
        ("berth audit -o ", AUDIT),
        ("berth audit --output=", {f"--output={word}" for word in AUDIT}),
        ("berth --color always ver", {"version"}),
        ("berth gpus A100-4", {"A100-40GB"}),
        ("berth try trai", {"train run.yaml"}),
        ("berth try --policies pol", {"policies/"}),
        ("berth scan --suggest ", {"policies/"}),
        ("berth try --platforms gke,ak", {"gke,aks"}),
        ("berth why ", set()),
        ("berth try -n ", set()),
        ("berth help wh", {"why"}),
    ],
)
def test_what_fish_offers(folder: Path, line: str, offered: set[str]) -> None:
    """Commands, options, choices, files, folders, and names with commas between."""
    assert of_fish(folder, line) == offered


def test_all_models_are_offered(folder: Path) -> None:
    """Those of the catalog, and their groups."""
    assert of_fish(folder, "berth gpus ") == set(read_catalog([]).model_names)


def test_a_deprecated_option_is_not_offered() -> None:
    """--facts is accepted, but only --from is completed."""
    flags = {flag for subcommand in commands() for option in subcommand.options for flag in option.flags}
    assert "--from" in flags
    assert "--facts" not in flags
