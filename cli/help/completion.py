"""`berth completion`: the script that teaches a shell how the words of the command go on."""

from __future__ import annotations

import argparse
from typing import Any

SHELLS = ("bash", "zsh", "fish")


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
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help="bash, zsh or fish")


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    from cli.help import bash, fish, zsh
    from cli.help.tree import commands

    scripts = {"bash": bash.script, "zsh": zsh.script, "fish": fish.script}
    print(scripts[args.shell](commands()), end="")
    return 0
