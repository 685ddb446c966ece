"""`berth serve`: the admission server."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from cli.options import add_snapshot_options, sources_from


def add_parser(subcommands: Any) -> None:
    """Adds ``serve`` to the command's subparsers."""
    parser: argparse.ArgumentParser = subcommands.add_parser(
        "serve",
        help="answer admission reviews over HTTPS",
        description="Serve /mutate and /validate over TLS until SIGTERM or Ctrl-C. Exit code 0: stopped, 2: bad input.",
    )
    add_snapshot_options(parser)
    group = parser.add_argument_group("network")
    group.add_argument("--listen", metavar="HOST:PORT", default="127.0.0.1:8443", help="default: 127.0.0.1:8443; port 0: any free one")
    group.add_argument("--tls-cert", metavar="FILE", help="serving certificate, PEM")
    group.add_argument("--tls-key", metavar="FILE", help="its key, PEM, without a passphrase")
    group.add_argument("--self-signed", metavar="DIR", help="make a CA and a certificate, and keep them in DIR")


def run(args: argparse.Namespace) -> int:
    """Serves; returns the exit code."""
    from webhook import serve
    from webhook.settings import Settings, SettingsError

    try:
        settings = Settings.from_args(args, sources_from(args))
    except SettingsError as error:
        print(f"berth: {error}", file=sys.stderr)
        return serve.BAD_INPUT
    if not settings.sources.platforms:
        print("berth: no --platforms: placement is judged for contradictions but not written", file=sys.stderr)
    return serve.run(settings)
