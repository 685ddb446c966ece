"""`berth serve`: the admission server."""

from __future__ import annotations

import argparse
from dataclasses import fields, replace
from typing import Any

from cli import VERSION
from cli.options import add_snapshot_options, names, sources_from
from cli.output import stderr
from server.limits import BOUNDS, Limits, flag
from webhook.settings import DEFAULT_HEALTH, DEFAULT_LEASE, DEFAULT_LISTEN, DEFAULT_SECRET, DEFAULT_WATCH

CERTIFICATE_LIVES = {
    "--ca-life": "lifetime of a CA of --cert-secret (default: 8760h); replaced when a third of it is left",
    "--leaf-life": "lifetime of a serving certificate of --cert-secret (default: 168h); renewed when a third of it is left",
    "--ca-overlap": "how long the old and the new CA are both trusted during a rotation (default: 1h)",
}


def add_parser(subcommands: Any) -> None:
    """Add ``serve`` to the command's subparsers."""
    parser: argparse.ArgumentParser = subcommands.add_parser(
        "serve",
        help="run the admission server",
        description="Run the admission server until SIGTERM or Ctrl-C: /mutate, /validate and /advise over TLS, and /livez, /readyz and "
        "/metrics on a second port. Changes of policies and certificates need no restart. "
        "Exit code 0: stopped, 1: a background task ended, 2: invalid input.",
        examples=(
            (
                "For development: self-signed certificates, policies from a folder",
                "%(prog)s --self-signed .berth/tls --policies policies/library",
            ),
            (
                "In a cluster: policies are read from the API server",
                "%(prog)s --in-cluster --cert-secret berth-system/berth-certificates --listen 0.0.0.0:8443",
            ),
            ("Emergency brake: report what policies would do, enforce nothing", "%(prog)s --in-cluster --max-mode Audit"),
        ),
    )
    add_snapshot_options(parser)
    _add_cluster(parser)
    group = parser.add_argument_group("network")
    addresses = (
        ("--listen", DEFAULT_LISTEN, "address that the API server calls"),
        ("--health", DEFAULT_HEALTH, "address of health checks and metrics, without TLS"),
    )
    for option, address, meaning in addresses:
        help_ = f"{meaning} (default: {address}; port 0: any free port)"
        group.add_argument(option, metavar="HOST:PORT", default=address, help=help_)
    group.add_argument("--tls-cert", metavar="FILE", help="serving certificate with its intermediates (PEM)")
    group.add_argument("--tls-key", metavar="FILE", help="key of the serving certificate (PEM, no passphrase)")
    group.add_argument("--self-signed", metavar="DIR", help="for development: create a CA in DIR and serve with a certificate it issues")
    help_ = (
        f"Secret in which all replicas share a CA and a certificate, for example {DEFAULT_SECRET}; "
        "Berth writes the CA to its webhook configurations"
    )
    group.add_argument("--cert-secret", metavar="NAMESPACE/NAME", help=help_)
    help_ = "who maintains that Secret: Berth (ours, the default), or cert-manager or you (theirs; Berth only reads it)"
    group.add_argument("--cert-source", choices=("ours", "theirs"), default="ours", help=help_)
    group.add_argument(
        "--names",
        type=names,
        default=(),
        metavar="NAME,...",
        help="additional DNS names for the certificate, for example berth.berth-system.svc",
    )
    for option, meaning in CERTIFICATE_LIVES.items():
        group.add_argument(option, metavar="DURATION", help=meaning)
    help_ = "accept only callers with a client certificate from these CAs (PEM); default: accept every caller"
    group.add_argument("--client-ca", metavar="FILE", help=help_)
    help_ = "with --client-ca, accept only certificates with one of these common or alternative names; default: any name"
    group.add_argument("--client-names", type=names, default=(), metavar="NAME,...", help=help_)
    help_ = "address of the console, for example https://berth.example.com; denials and warnings then end with a link to it"
    group.add_argument("--console-url", metavar="URL", default="", help=help_)
    _add_limits(parser)


def _add_cluster(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("cluster", "watch policies and facts in a cluster, instead of --policies and --from")
    group.add_argument("--kubeconfig", metavar="FILE", help="kubeconfig of the cluster")
    group.add_argument("--context", metavar="NAME", help="context in that kubeconfig; default: the current context")
    group.add_argument("--in-cluster", action="store_true", help="use the service account of the pod that Berth runs in")
    help_ = f"seconds until a watch is renewed and a dead connection is noticed (default: {DEFAULT_WATCH})"
    group.add_argument("--watch", metavar="N", default=str(DEFAULT_WATCH), help=help_)
    help_ = f"Lease that selects the replica that writes the statuses (default: {DEFAULT_LEASE})"
    group.add_argument("--lease", metavar="NAMESPACE/NAME", default=DEFAULT_LEASE, help=help_)


def _add_limits(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("limits")
    for field in fields(Limits):
        bound = BOUNDS[field.name]
        meaning = f"{bound.what} ({bound.least} to {bound.most} {bound.unit}; default: {field.default})"
        group.add_argument(flag(field.name), metavar="N", help=f"{meaning}. {bound.reason}")


def run(args: argparse.Namespace) -> int:
    """Serve until stopped, and return the exit code."""
    from webhook import serve
    from webhook.process import BAD_INPUT
    from webhook.settings import ServeSettings, SettingsError

    try:
        settings = ServeSettings.from_args(args, replace(sources_from(args), dumped_policies=False), VERSION)
    except SettingsError as error:
        for line in str(error).splitlines():
            stderr.say(line)
        return BAD_INPUT
    return serve.run(settings)
