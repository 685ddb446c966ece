"""`berth serve`: the admission server."""

from __future__ import annotations

import argparse
from dataclasses import fields
from typing import Any

from cli import VERSION
from cli.options import add_snapshot_options, names, sources_from
from cli.output import stderr
from webhook.server.limits import BOUNDS, Limits, flag
from webhook.settings import DEFAULT_HEALTH, DEFAULT_LEASE, DEFAULT_LISTEN, DEFAULT_SECRET, DEFAULT_WATCH

CERTIFICATE_LIVES = {
    "--ca-life": "how long a CA of --cert-secret lives (default: 8760h); the next one is made when a third is left",
    "--leaf-life": "how long its serving certificates live (default: 168h); renewed when a third is left",
    "--ca-overlap": "how long an old and a new CA are trusted side by side (default: 1h)",
}


def add_parser(subcommands: Any) -> None:
    """Add ``serve`` to the command's subparsers."""
    parser: argparse.ArgumentParser = subcommands.add_parser(
        "serve",
        help="answer admission reviews over HTTPS",
        description="Serve /mutate, /validate and /advise over TLS, and /livez, /readyz and /metrics on a second port, "
        "until SIGTERM or Ctrl-C. Policies and certificates are followed while it runs. Exit code 0: stopped, 2: bad input.",
        examples=(
            (
                "For development: certificates of its own, the policies of a folder",
                "%(prog)s --self-signed .berth/tls --policies policies/library",
            ),
            (
                "In a cluster: policies are objects there",
                "%(prog)s --in-cluster --cert-secret berth-system/berth-certificates --listen 0.0.0.0:8443",
            ),
            ("The emergency brake: nothing is enforced, all is reported", "%(prog)s --in-cluster --max-mode Audit"),
        ),
    )
    add_snapshot_options(parser)
    _add_cluster(parser)
    group = parser.add_argument_group("network")
    for option, address in (("--listen", DEFAULT_LISTEN), ("--health", DEFAULT_HEALTH)):
        group.add_argument(option, metavar="HOST:PORT", default=address, help=f"default: {address}; port 0: any free one")
    group.add_argument("--tls-cert", metavar="FILE", help="serving certificate, PEM")
    group.add_argument("--tls-key", metavar="FILE", help="its key, PEM, without a passphrase")
    group.add_argument("--self-signed", metavar="DIR", help="for development: make a CA, keep it in DIR and serve certificates of it")
    help_ = f"share a CA and a certificate with the other replicas in this Secret, and publish the CA; such as {DEFAULT_SECRET}"
    group.add_argument("--cert-secret", metavar="NAMESPACE/NAME", help=help_)
    help_ = "ours: Berth makes and renews what is in that Secret (the default); theirs: cert-manager or a person does, Berth only reads it"
    group.add_argument("--cert-source", choices=("ours", "theirs"), default="ours", help=help_)
    group.add_argument(
        "--names", type=names, default=(), metavar="NAME,...", help="more names of that certificate, such as berth.berth-system.svc"
    )
    for option, meaning in CERTIFICATE_LIVES.items():
        group.add_argument(option, metavar="DURATION", help=meaning)
    help_ = "answer only callers with a client certificate of these CAs, PEM; default: anybody who reaches the port"
    group.add_argument("--client-ca", metavar="FILE", help=help_)
    help_ = "and with one of these names in it, common or alternative; default: any"
    group.add_argument("--client-names", type=names, default=(), metavar="NAME,...", help=help_)
    help_ = "where people open the console; denials and warnings then end with an address there, such as https://berth.example.com"
    group.add_argument("--console-url", metavar="URL", default="", help=help_)
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
        meaning = f"{bound.unit} that {bound.what} ({bound.least} to {bound.most}; default: {field.default})"
        group.add_argument(flag(field.name), metavar="N", help=f"{meaning}: {bound.reason}")


def run(args: argparse.Namespace) -> int:
    """Serve until stopped, and return the exit code."""
    from webhook import serve
    from webhook.process import BAD_INPUT
    from webhook.settings import Settings, SettingsError

    try:
        settings = Settings.from_args(args, sources_from(args), VERSION)
    except SettingsError as error:
        for line in str(error).splitlines():
            stderr.say(line)
        return BAD_INPUT
    return serve.run(settings)
