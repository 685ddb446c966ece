"""`berth console`: pages that show the impact of policies, node groups, and why a pod is pending. Read-only.

Exit code 0: stopped; 2: bad input, with advice what to type.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

from cli.options import add_cluster_options, add_snapshot_options, assumed_platforms, names, origin_from, sources_from
from cli.output import stderr
from console.settings import LISTEN
from policies.document import InputError

EVERY = 15.0


def add_parser(subcommands: Any) -> None:
    """Add `console` to the command's subparsers."""
    parser: argparse.ArgumentParser = subcommands.add_parser(
        "console",
        help="open the web console: policy impact, GPU nodes, why a job waits",
        description="Serve a web console that shows the impact of policies, the GPU nodes, and why a job waits. It changes nothing. "
        "It reads the cluster of the kubeconfig with your permissions, or no cluster with --from or --files. "
        "Exit code 0: stopped, 2: invalid input.",
        examples=(
            ("The cluster of the kubeconfig", "%(prog)s"),
            ("Show what policies from files would do in that cluster", "%(prog)s --policies policies/library"),
            ("Use files dumped from a cluster", "%(prog)s --from docs/examples/cluster.yaml --policies policies/library"),
        ),
    )
    add = parser.add_argument
    add("--listen", metavar="HOST:PORT", default=LISTEN, help=f"address of the console (default: {LISTEN}; port 0: any free port)")
    add("--every", type=float, metavar="SECONDS", default=EVERY, help=f"how often the cluster is read (default: {EVERY:g})")
    add(
        "--recordings",
        action="append",
        default=[],
        metavar="PATH",
        help="audit logs or AdmissionReviews whose pods are evaluated too; repeatable",
    )
    add("--files", action="store_true", help="do not read a cluster, even without --from")
    add_cluster_options(parser, pods_of_all=True)
    _add_options_of_a_cluster(parser)
    add_snapshot_options(parser)
    parser.set_defaults(run=run)


def _add_options_of_a_cluster(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("in a cluster (docs/console.md)")
    add = group.add_argument
    add("--in-cluster", action="store_true", help="read the cluster of this pod; users sign in and see what their own permissions allow")
    add("--session", metavar="DURATION", help="how long a user stays signed in, at most until their token expires; default: 1h")
    help_ = "required audience of tokens, instead of the API server's; repeatable"
    add("--audience", action="append", default=[], metavar="NAME", help=help_)
    add("--url", metavar="URL", help="address that users open, if there is a proxy; for example https://console.example")
    add("--tls-cert", metavar="FILE", help="serving certificate (PEM); reloaded when it changes")
    add("--tls-key", metavar="FILE", help="key of the serving certificate (PEM); reloaded when it changes")
    add("--self-signed", metavar="DIR", help="create a CA in DIR and serve with a certificate it issues")
    add("--names", type=names, default=(), metavar="NAME,...", help="additional DNS names of the console, for example of its Service")
    add("--insecure-http", action="store_true", help="serve plain HTTP to other machines, behind a proxy that terminates TLS")


def run(args: argparse.Namespace) -> int:
    """Serve until stopped. Raises InputError and SourcesError if it cannot start."""
    try:
        from console import serve
    except ModuleNotFoundError as error:
        if error.name not in ("jinja2", "markupsafe"):
            raise
        raise InputError(file="console", message="needs extra packages that are not installed: pip install 'gpu-berth[console]'") from None
    if args.every <= 0:
        raise InputError(file="--every", message=f"must be more than 0 seconds; got {args.every:g}")
    origin_from(args)  # raises if files and a cluster are named
    sources = sources_from(args)
    if (args.files or args.dumps) and not (sources.platforms or sources.facts):
        sources = replace(sources, platforms=assumed_platforms())
    return serve.run(args, sources, stderr.say)
