"""The root command: one subcommand is imported, bad input is lines and exit code 2."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cli import VERSION
from cli.inspect.try_ import Trial
from cli.main import SUBCOMMANDS, find_subcommand, guarded, main
from tests.support.counts import only_in_prove

ROOT = Path(__file__).parent.parent.parent
REVIEW = "tests/reviews/pods-create-train-llama.json"


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """berth --version."""
    with pytest.raises(SystemExit) as stopped:
        main(["--version"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out == f"berth {VERSION}\n"


def test_help_names_every_subcommand(capsys: pytest.CaptureFixture[str]) -> None:
    """berth --help is the way in."""
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out
    assert [name for name in SUBCOMMANDS if name not in shown] == []


@pytest.mark.parametrize("words", [["tray"], ["serve", "--nope"]])
def test_unknown_words_are_exit_code_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong command, a wrong option: a line on stderr."""
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 2
    assert capsys.readouterr().err.startswith("berth: ")


@pytest.mark.parametrize(
    ("words", "found"),
    [("try x", ["try"]), ("--color never try", ["try"]), ("--color=never try gpus", ["try"]), ("--help", []), ("tyr", []), ("--color", [])],
)
def test_the_subcommand_is_found_among_the_words(words: str, found: list[str]) -> None:
    """So that its module alone is imported."""
    assert find_subcommand(words.split()) == found


def test_bad_input_is_one_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    """Every wrong source is told, none as a traceback."""
    assert main(["try", "--platforms", "gkee", "--policies", "nowhere.yaml", "-"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(": ")[1] for line in lines] == ["--platforms", "nowhere.yaml"]


def test_a_mistake_of_ours_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only bad input becomes a line; everything else is a traceback to report."""
    monkeypatch.setattr("cli.serve.run", lambda _: (_ for _ in ()).throw(LookupError("ours")))
    with pytest.raises(LookupError, match="ours"):
        main(["serve"])


def test_ctrl_c_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupted is exit code 130, as shells have it."""
    monkeypatch.setattr("cli.serve.run", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
    assert main(["serve"]) == 130


def test_a_reader_that_stops_is_no_traceback() -> None:
    """berth gpus | head -1 ends quietly."""
    done = subprocess.run(f"{sys.executable} -m cli.main gpus | head -1", shell=True, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("MODEL")
    assert done.stderr == ""


@pytest.mark.parametrize(
    "module",
    [
        *("cli.parser", "cli.inspect.try_", "yaml"),
        *(pytest.param(name, marks=only_in_prove) for name in ("cli.terminal.screen", "cli.output.stderr", "catalog.parse")),
    ],
)
def test_ctrl_c_during_an_import_is_no_traceback(module: str) -> None:
    """A command is imported for a quarter of a second: whoever interrupts it then sees what they see later. ``make test`` has
    the first, a middle and the last of these modules."""
    program = (
        "import sys\nclass Interrupts:\n"
        f"    def find_spec(self, name, *_):\n        if name == {module!r}: raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupts())\nfrom cli.main import main\nsys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "try", "--platforms", "gke", REVIEW], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (130, "")


FULL, CLOSED = ("> /dev/full", "No space left on device; free some space"), (">&-", "Bad file descriptor; redirect it")
WRITING = (
    (f"try --platforms gke {REVIEW}", FULL),
    (f"try --platforms gke -o yaml {REVIEW}", CLOSED),
    ("gpus", FULL),
    ("--help", CLOSED),
    ("help try", FULL),
    ("serve --help", FULL),
    ("crds", CLOSED),
    ("version -o json", CLOSED),
)
"""commands, and what ``make test`` makes of their output"""


@pytest.mark.parametrize(
    ("words", "where", "reason"),
    [
        *(pytest.param(words, *where, id=f"{words} {where[0]}") for words, where in WRITING),
        *(
            pytest.param(words, *other, id=f"{words} {other[0]}", marks=only_in_prove)
            for words, where in WRITING
            for other in (FULL, CLOSED)
            if other is not where
        ),
    ],
)
def test_output_that_can_not_be_written_is_no_denial(words: str, where: str, reason: str) -> None:
    """A full disk in CI is a line and exit code 2: with 1 it would read as a pod that is denied. ``make test`` has each command once, with
    a full disk or a closed stream."""
    done = subprocess.run(
        f"{sys.executable} -m cli.main {words} {where}", shell=True, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(f"berth: cannot write to standard output: {reason}")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("number", [errno.EPIPE, errno.EIO, errno.ENOSPC, errno.EBADF], ids=errno.errorcode.get)
def test_an_error_of_another_stream_is_not_one_of_standard_output(number: int) -> None:
    """A broken connection, or a full disk that a file is written to, is no quiet end: it is raised."""

    def run() -> int:
        print("written")
        raise OSError(number, os.strerror(number))

    with pytest.raises(OSError, match=re.escape(os.strerror(number))):
        guarded(run)


def test_try_ends_quietly_where_its_reader_stops_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """`berth try` takes no other broken pipe for that of its output."""

    def broken(self: Trial) -> int:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr(Trial, "run", broken)
    with pytest.raises(BrokenPipeError):
        main(["try", "--platforms", "gke", REVIEW])


def test_other_streams_that_are_closed_are_no_traceback() -> None:
    """Nothing can be read from a closed standard input; what goes to a closed standard error reaches no other file."""
    closed = f"{sys.executable} -m cli.main try --platforms gke - <&-"
    done = subprocess.run(closed, shell=True, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "berth: -: cannot be read: Bad file descriptor\n")
    done = subprocess.run(
        f"{sys.executable} -m cli.main try nowhere.yaml 2>&-", shell=True, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")


def test_try_starts_without_the_server() -> None:
    """Start-up time counts: trying a manifest imports neither httptools nor uvloop nor cryptography."""
    program = (
        "import sys; from cli.main import main; main(['try', 'tests/reviews/pods-create-web.json']);"
        "print(sorted({'httptools', 'uvloop', 'cryptography', 'asyncio', 'ssl'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "[]"
