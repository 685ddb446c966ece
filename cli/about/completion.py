"""`berth completion`: the script that teaches a shell how the words of the command go on."""

from __future__ import annotations

import argparse
from typing import Any

SHELLS = ("bash", "zsh", "fish")


def add_parser(subcommands: Any) -> None:
    """Add `completion` to the command's subparsers."""
    parser: argparse.ArgumentParser = subcommands.add_parser(
        "completion",
        help="shell completion for bash, zsh and fish",
        description="Print the script by which a shell completes berth's commands, options, choices, GPU models and files. It "
        "asks nothing while you type; print it again after an upgrade. For kubectl berth, kubectl itself asks the program "
        "kubectl_complete-berth, which is installed beside berth.",
        examples=(
            ("For this shell alone", "source <(%(prog)s bash)"),
            ("For bash, with the package bash-completion", "%(prog)s bash > ~/.local/share/bash-completion/completions/berth"),
            ("For zsh, in a folder of $fpath", '%(prog)s zsh > "${fpath[1]}/_berth"'),
            ("For fish", "%(prog)s fish > ~/.config/fish/completions/berth.fish"),
        ),
    )
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help="bash, zsh or fish")


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    from cli.about import bash, fish, zsh
    from cli.about.tree import commands

    scripts = {"bash": bash.script, "zsh": zsh.script, "fish": fish.script}
    print(scripts[args.shell](commands()), end="")
    return 0
