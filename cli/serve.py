"""`berth serve`: the admission server."""

from __future__ import annotations

import argparse
import sys
from dataclasses import fields
from typing import Any

from cli import VERSION
from cli.options import add_snapshot_options, names, sources_from
from webhook.limits import BOUNDS, Limits, flag
from webhook.settings import DEFAULT_HEALTH, DEFAULT_LEASE, DEFAULT_LISTEN, DEFAULT_WATCH


def add_parser(subcommands: Any) -> None:
    """Adds ``serve`` to the command's subparsers."""
    parser: argparse.ArgumentParser = subcommands.add_parser(
        "serve",
        help="answer admission reviews over HTTPS",
        description="Serve /mutate, /validate and /advise over TLS, and /livez, /readyz and /metrics on a second port, "
        "until SIGTERM or Ctrl-C. Policies and certificates are followed while it runs. Exit code 0: stopped, 2: bad input.",
    )
    add_snapshot_options(parser)
    _add_cluster(parser)
    group = parser.add_argument_group("network")
    for option, address in (("--listen", DEFAULT_LISTEN), ("--health", DEFAULT_HEALTH)):
        group.add_argument(option, metavar="HOST:PORT", default=address, help=f"default: {address}; port 0: any free one")
    group.add_argument("--tls-cert", metavar="FILE", help="serving certificate, PEM")
    group.add_argument("--tls-key", metavar="FILE", help="its key, PEM, without a passphrase")
    group.add_argument("--self-signed", metavar="DIR", help="make a CA and a certificate, keep them in DIR and renew the certificate")
    group.add_argument(
        "--names", type=names, default=(), metavar="NAME,...", help="more names of that certificate, such as berth.berth-system.svc"
    )
    _add_limits(parser)


def _add_cluster(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("cluster", "policies and facts from a cluster, followed, in place of --policies and --facts")
    group.add_argument("--kubeconfig", metavar="FILE", help="how the API server is reached")
    group.add_argument("--context", metavar="NAME", help="of that file; default: its current one")
    group.add_argument("--in-cluster", action="store_true", help="by the service account of the pod that this runs in")
    help_ = f"seconds that one watch lasts, and so how long silence is believed (default: {DEFAULT_WATCH})"
    group.add_argument("--watch", metavar="N", default=str(DEFAULT_WATCH), help=help_)
    help_ = f"the Lease whose holder among the replicas writes statuses (default: {DEFAULT_LEASE})"
    group.add_argument("--lease", metavar="NAMESPACE/NAME", default=DEFAULT_LEASE, help=help_)


def _add_limits(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("limits")
    for field in fields(Limits):
        bound = BOUNDS[field.name]
        told = f"{bound.unit} that {bound.what} ({bound.least} to {bound.most}; default: {field.default})"
        group.add_argument(flag(field.name), metavar="N", help=f"{told}: {bound.reason}")


def run(args: argparse.Namespace) -> int:
    """Serves; returns the exit code."""
    from webhook import serve
    from webhook.settings import Settings, SettingsError

    try:
        settings = Settings.from_args(args, sources_from(args), VERSION)
    except SettingsError as error:
        for line in str(error).splitlines():
            print(f"berth: {line}", file=sys.stderr)
        return serve.BAD_INPUT
    return serve.run(settings)
