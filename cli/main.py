"""``berth``, also ``kubectl berth``: finds the subcommand, imports only its module, and turns bad input into lines and exit code
2."""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from cli import VERSION

if TYPE_CHECKING:  # imported where Ctrl-C is handled: see ``guarded``
    from cli.parser import Parser

SUBCOMMANDS = {
    "serve": ("cli.serve", "run the admission server"),
    "try": ("cli.inspect.try_", "show how policies change manifests, or why they deny them"),
    "console": ("cli.console", "open the web console: policy impact, GPU nodes, why a job waits"),
    "gpus": ("cli.inspect.gpus", "list the GPU models in the catalog"),
    "effective": ("cli.inspect.effective", "show the effective policy of a namespace"),
    "audit": ("cli.inspect.audit", "evaluate policies against existing GPU pods"),
    "why": ("cli.inspect.why", "explain why a pod or workload does not run, and suggest a fix"),
    "scan": ("cli.inspect.scan", "find problems with the GPUs of a cluster"),
    "test": ("cli.inspect.policy_tests", "run policy test cases"),
    "replay": ("cli.inspect.replay", "re-evaluate recorded pods and show what would change"),
    "crds": ("cli.crds", "print Berth's CustomResourceDefinitions as YAML"),
    "webhooks": ("cli.webhooks", "print the webhook configurations as YAML"),
    "export": ("cli.inspect.export", "print a scheduler configuration that packs GPU pods"),
    "certs": ("cli.certs", "show, check or rotate Berth's certificates"),
    "completion": ("cli.help.completion", "print the completion script for bash, zsh or fish"),
    "version": ("cli.help.version", "show the versions of Berth, its catalog and its APIs"),
    "help": ("cli.help.help_", "show help for a command"),
}
BAD_INPUT = 2
INTERRUPTED = 130
"""As shells have it: 128 and the number of SIGINT."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand and return its exit code; the parser itself exits with 2 on words it does not know."""
    return guarded(lambda: _run(list(sys.argv[1:] if argv is None else argv)))


def plugin() -> int:
    """Run as kubectl's plugin, from whatever file it was started: the PEX unpacks itself to another one."""

    def run() -> int:
        from cli.output import stderr

        sys.argv[0] = stderr.PLUGIN
        return _run(sys.argv[1:])

    return guarded(run)


def guarded(run: Callable[[], int]) -> int:
    """Return the exit code of ``run``, which has all imports: Ctrl-C and a standard output that can't be written are no
    tracebacks, whose exit code 1 would mean that something was denied."""
    _open_closed_streams()
    handler = signal.getsignal(signal.SIGINT)
    _on_interrupt(_end_at_once)
    from cli.terminal.stdout import OutputError, guarded_output

    try:
        with guarded_output():
            try:
                return run()
            finally:  # also where the parser exits: at the end of the process it would be too late
                _on_interrupt(handler)
                sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except OutputError as error:
        _discard_output()
        if error.errno == errno.EPIPE:  # the reader, such as head, has stopped reading
            return 0
        advice = "redirect it: > FILE" if error.errno == errno.EBADF else "free some space, or write to another file"
        with contextlib.suppress(OSError):
            print(f"berth: cannot write to standard output: {error.strerror}; {advice}", file=sys.stderr)
        return BAD_INPUT


def _on_interrupt(handler: Any) -> None:
    """Handle SIGINT from now on, unless it is ignored, or this is a thread that can't."""
    if (
        signal.getsignal(signal.SIGINT) in (signal.default_int_handler, _end_at_once)
        and threading.current_thread() is threading.main_thread()
    ):
        signal.signal(signal.SIGINT, handler)


def _end_at_once(*_: object) -> None:
    """End the process while it imports: a KeyboardInterrupt would leave modules half imported, from which extensions crash."""
    os._exit(INTERRUPTED)


def _open_closed_streams() -> None:
    """Open what the parent process closed, so that reads and writes of it fail as such and reach no other file."""
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_WRONLY))
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
    if sys.stderr is None:  # print would write to standard output instead
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")


def _discard_output() -> None:
    """Let what is still buffered go nowhere: at the end of the process it would fail once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(words: list[str]) -> int:
    from cli.terminal import screen

    screen.choose("auto")
    command = parser(find_subcommand(words))
    if not words:
        command.print_help(sys.stderr)
        return BAD_INPUT
    args = command.parse_args(words)
    module = importlib.import_module(SUBCOMMANDS[args.command][0])
    _on_interrupt(signal.default_int_handler)
    try:
        code: int = module.run(args)
    except (KeyboardInterrupt, OSError):
        raise
    except Exception as error:
        lines = _bad_input(error)
        if lines is None:
            raise
        print("\n".join(lines), file=sys.stderr)
        return BAD_INPUT
    return code


def _bad_input(error: Exception) -> list[str] | None:
    """Return the lines to print for unusable input; None for any other error, which is a bug of Berth."""
    from cli.output import stderr
    from documents.files import CatalogFilesError
    from policies.document import InputError
    from sources.sources import SourcesError

    if isinstance(error, SourcesError | CatalogFilesError):
        return [stderr.line(one) for one in error.errors]
    return [stderr.line(error)] if isinstance(error, InputError) else None


def find_subcommand(words: Sequence[str]) -> list[str]:
    """Return the subcommand that the words name, if it is one: the first word that is neither an option nor the value of one."""
    rest = iter(words)
    for word in rest:
        if word == "--color":
            next(rest, None)
        elif not word.startswith("-"):
            return [word] if word in SUBCOMMANDS else []
    return []


def parser(subcommands: Sequence[str]) -> Parser:
    """Return the root parser. Only these subcommands are imported, the others show their one line of help."""
    from cli.output import stderr
    from cli.parser import Parser

    root = Parser(
        prog=stderr.name(),
        description="Typed GPU policies for Kubernetes, applied to pods before they are scheduled.",
        examples=(
            ("Show what policies change in a manifest, without a cluster", "%(prog)s try -o diff train.yaml"),
            ("Find problems with the GPUs of a cluster (read-only)", "%(prog)s scan"),
            ("Explain why a pod is pending, and how to fix it", "%(prog)s why pod/train-0"),
            ("Show the options and examples of a command", "%(prog)s help try"),
        ),
    )
    root.add_argument("--version", action="version", version=f"berth {VERSION}", help="show the version and exit")
    subparsers = root.add_subparsers(dest="command", metavar="COMMAND", required=True, prog=root.prog, title="commands")
    for name, (module, summary) in SUBCOMMANDS.items():
        if name in subcommands:
            importlib.import_module(module).add_parser(subparsers)
        else:
            subparsers.add_parser(name, help=summary)
    return root


if __name__ == "__main__":
    code = main()
    _on_interrupt(_end_at_once)  # else Ctrl-C at the very end is a traceback of the interpreter
    sys.exit(code)
