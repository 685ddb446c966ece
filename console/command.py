"""`berth console`: pages that show what policies do, who may land where and why a pod waits, of a cluster or of files. Read-only.

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
        help="pages in a browser: impact of policies, nodes, why a job waits",
        description="Serve pages that show what policies would do, who may land where and why a pod waits. Nothing is changed. With "
        "--facts or --policies alone no cluster is read, else that of the kubeconfig with your rights. Exit code 0: stopped, 2: bad input.",
        examples=(
            ("The cluster of the kubeconfig", "%(prog)s"),
            ("What policies of files would do in it", "%(prog)s --policies policies/library"),
            ("A cluster that was dumped", "%(prog)s --facts docs/examples/cluster.yaml --policies policies/library"),
        ),
    )
    add = parser.add_argument
    add("--listen", metavar="HOST:PORT", default=LISTEN, help=f"default: {LISTEN}; port 0: any free one")
    add("--every", type=float, metavar="SECONDS", default=EVERY, help=f"how often a cluster is read (default: {EVERY:g})")
    add(
        "--recordings",
        action="append",
        default=[],
        metavar="PATH",
        help="audit logs or reviews: creations that are judged too; repeatable",
    )
    add("--files", action="store_true", help="read no cluster even where --facts is not given")
    add_cluster_options(parser, pods_of_all=True)
    _add_options_of_a_cluster(parser)
    add_snapshot_options(parser)
    parser.set_defaults(run=run)


def _add_options_of_a_cluster(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("in a cluster (docs/console.md)")
    add = group.add_argument
    add(
        "--in-cluster", action="store_true", help="read the cluster of this pod; people sign in and see what their own rights let them list"
    )
    add("--session", metavar="DURATION", help="how long somebody stays signed in, and never longer than their token lives; default: 1h")
    help_ = "whom tokens must be meant for, in place of the API server; may be repeated"
    add("--audience", action="append", default=[], metavar="NAME", help=help_)
    add("--url", metavar="URL", help="the address that people type, where a proxy is in front: https://console.example")
    add("--tls-cert", metavar="FILE", help="certificate of the port, PEM; followed, as is the key")
    add("--tls-key", metavar="FILE", help="its key")
    add("--self-signed", metavar="DIR", help="make a CA in DIR, and a certificate of it, in place of files")
    add("--names", type=names, default=(), metavar="NAME,...", help="more names by which it may be asked, such as that of a Service")
    add("--insecure-http", action="store_true", help="plain HTTP to others than this machine: behind a proxy that ends TLS")


def run(args: argparse.Namespace) -> int:
    """Serve until stopped. Raises InputError and SourcesError if it cannot start."""
    try:
        from console import serve
    except ModuleNotFoundError as error:
        if error.name not in ("jinja2", "markupsafe"):
            raise
        raise InputError(file="console", message="needs its extra, which is not installed: pip install 'gpu-berth[console]'") from None
    if args.every <= 0:
        raise InputError(file="--every", message=f"wants seconds, more than 0; got {args.every:g}")
    return serve.run(args, sources_from(args))
