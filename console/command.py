"""`berth console`: pages that show the impact of policies, node groups, and why a pod is pending. Read-only.

Exit code 0: stopped; 2: bad input, with advice what to type.
"""

from __future__ import annotations

import argparse
from typing import Any

from cli.options import add_cluster_options, add_snapshot_options, names, sources_from
from console.settings import LISTEN
from policies.document import InputError

EVERY = 15.0


def add_parser(subcommands: Any) -> None:
    """Add `console` to the command's subparsers."""
    parser: argparse.ArgumentParser = subcommands.add_parser(
        "console",
        help="pages in a browser: policy impact, nodes, why a job is pending",
        description="Serve pages that show what policies would do, where GPU pods can run and why a pod is pending. The console changes "
        "nothing. It reads the cluster of your kubeconfig with your rights, or files with --facts or --files. "
        "Exit code 0: stopped, 2: bad input.",
        examples=(
            ("The cluster of the kubeconfig", "%(prog)s"),
            ("What policies from files would do in it", "%(prog)s --policies policies/library"),
            ("A dump of a cluster", "%(prog)s --facts docs/examples/cluster.yaml --policies policies/library"),
        ),
    )
    add = parser.add_argument
    add("--listen", metavar="HOST:PORT", default=LISTEN, help=f"default: {LISTEN}; port 0: any free port")
    add("--every", type=float, metavar="SECONDS", default=EVERY, help=f"how often to read the cluster (default: {EVERY:g})")
    add(
        "--recordings",
        action="append",
        default=[],
        metavar="PATH",
        help="audit logs or reviews whose pod creations are evaluated too; repeatable",
    )
    add("--files", action="store_true", help="read no cluster, even without --facts")
    add_cluster_options(parser, pods_of_all=True)
    _add_options_of_a_cluster(parser)
    add_snapshot_options(parser)
    parser.set_defaults(run=run)


def _add_options_of_a_cluster(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("in a cluster (docs/console.md)")
    add = group.add_argument
    add("--in-cluster", action="store_true", help="read the cluster of this pod; users sign in and see what they may list")
    add("--session", metavar="DURATION", help="how long a user stays signed in, at most until the token expires; default: 1h")
    help_ = "audience that tokens must have, instead of the API server's; repeatable"
    add("--audience", action="append", default=[], metavar="NAME", help=help_)
    add("--url", metavar="URL", help="the address that users type, if a proxy is in front: https://console.example")
    add("--tls-cert", metavar="FILE", help="PEM file with the certificate of the port; reloaded when it changes")
    add("--tls-key", metavar="FILE", help="PEM file with its key; reloaded when it changes")
    add("--self-signed", metavar="DIR", help="create a CA in DIR and a certificate signed by it, instead of files")
    add("--names", type=names, default=(), metavar="NAME,...", help="more host names to accept, such as that of a Service")
    add("--insecure-http", action="store_true", help="allow plain HTTP from other machines: for use behind a proxy that terminates TLS")


def run(args: argparse.Namespace) -> int:
    """Serve until stopped. Raises InputError and SourcesError if it cannot start."""
    try:
        from console import serve
    except ModuleNotFoundError as error:
        if error.name not in ("jinja2", "markupsafe"):
            raise
        raise InputError(file="console", message="needs an extra that is not installed: pip install 'gpu-berth[console]'") from None
    if args.every <= 0:
        raise InputError(file="--every", message=f"must be more than 0 seconds; got {args.every:g}")
    return serve.run(args, sources_from(args))
