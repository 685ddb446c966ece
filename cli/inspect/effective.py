"""`berth effective`: the effect of the policies in a namespace, field by field, from files or from a cluster
as it is now.

Standard output has the answer as a table, JSON or YAML. Exit code 0: answered; 2: bad input, with advice what
to type.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from cli.options import (
    add_cluster_options,
    add_snapshot_options,
    as_of_a_cluster,
    assumed_platforms,
    say_capped,
    snapshot_from,
    sources_from,
)
from cli.output import effective_output, stderr, yaml_writer
from cli.terminal import screen
from cli.terminal.printable import json_text
from policies.catalog import Catalog
from policies.document import InputError
from policies.explain.effective import effective
from policies.explain.effective_probe import Kind, known_as, workload_named
from policies.nearest import hint
from policies.state.objects import Entry
from policies.state.snapshot import Snapshot
from policies.values import duration
from policies.values.duration import DurationError
from webhook.reload.sources import options

_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
"""The form of a label's key and value (k8s.io/apimachinery pkg/util/validation)."""


def add_parser(subcommands: Any) -> None:
    """Add `effective` to the command's subparsers."""
    parser: argparse.ArgumentParser = subcommands.add_parser(
        "effective",
        help="what policies make of a namespace, field by field",
        description="Show what acts on GPU pods of a namespace: each field, its value, who set it, what it clipped or overrode. "
        "Reads the cluster of the current kubeconfig, or with --policies only files. Exit code 0: answered, 2: bad input.",
        examples=(
            ("What acts on GPU pods of a namespace of the cluster", "%(prog)s -n research"),
            ("For Jobs of eight GPUs that run six hours", "%(prog)s -n research --workload Job --gpus 8 --duration 6h"),
            ("Of files, without a cluster", "%(prog)s --policies policies/ --facts namespaces.yaml -n research -o json"),
        ),
    )
    add = parser.add_argument
    add("--namespace", "-n", metavar="NS", help="default: the kubeconfig's, or default")
    add("--workload", metavar="KIND", help="pods of this kind of workload, such as Job or Deployment; Pod: bare ones")
    add("--pod-labels", metavar="K=V,...", type=_labels, help='pods with exactly these labels; "": without any')
    add("--gpus", metavar="N", type=_count, help="pods of so many GPUs")
    add("--duration", metavar="D", type=_seconds, help="pods that say that they run so long, such as 90m or 6h")
    add("--output", "-o", choices=("table", "json", "yaml"), default="table", help="form of the output; default: table")
    add_cluster_options(parser)
    add_snapshot_options(parser)
    parser.set_defaults(run=run)


def _labels(text: str) -> tuple[tuple[str, str], ...]:
    pairs = [part.partition("=") for part in text.split(",") if part]
    for key, equals, value in pairs:
        if not equals or not _KEY.fullmatch(key) or not _VALUE.fullmatch(value):
            raise argparse.ArgumentTypeError(f'"{key}{equals}{value}" is no label; write them as team=research,tier=dev')
    return tuple(sorted({key: value for key, _, value in pairs}.items()))


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:6]) <= 4096 and len(text) < 6):
        raise argparse.ArgumentTypeError(f'"{text}" is no number of GPUs; write a whole number, at least 1')
    return int(text)


def _seconds(text: str) -> int:
    try:
        return duration.seconds(text)
    except DurationError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def run(args: argparse.Namespace) -> int:
    """Print the answer. Raises InputError and SourcesError if there is none."""
    snapshot, namespace, wrong = _of_files(args) if args.policies else _of_cluster(args)
    kind = Kind(workload=_workload(args.workload, snapshot.catalog), labels=args.pod_labels, gpus=args.gpus, seconds=args.duration)
    answer = effective(snapshot.facts_for(namespace), kind)
    if args.output == "table":
        sys.stdout.write(effective_output.table(answer, wrong, screen.output()))
    else:
        value = effective_output.value(answer, wrong)
        sys.stdout.write(yaml_writer.text(value) if args.output == "yaml" else json_text(value) + "\n")
    return 0


_Found = tuple[Snapshot, str, Sequence[Entry]]
"""The snapshot, the namespace, and the objects that are not accepted."""


def _of_files(args: argparse.Namespace) -> _Found:
    if args.kubeconfig or args.context:
        raise InputError(file="--policies", message="files or a cluster: leave out --kubeconfig and --context, or --policies")
    if not args.platforms:
        args.platforms = assumed_platforms()
    snapshot, namespace = snapshot_from(args), args.namespace or "default"
    known = set(snapshot.cluster.namespaces)
    if known and namespace not in known:
        raise InputError(file="--namespace", message=f'"{namespace}" is no namespace of --facts{hint(namespace, known)}')
    return snapshot, namespace, ()


def _of_cluster(args: argparse.Namespace) -> _Found:
    """Read from a cluster. Platforms and the MIG strategy are detected from nodes, as by the servers.

    If nodes may not be read, a platform is assumed and printed.
    """
    from cli.given import from_cluster

    if args.facts:
        raise InputError(file="--facts", message="facts of files go with policies of files: add --policies PATH, or leave it out")
    catalog, chosen = options(sources_from(as_of_a_cluster(args)))
    found = from_cluster.read(args.kubeconfig, args.context, args.namespace, catalog, chosen)
    if not found.snapshot.placed and "Node" in found.unread:
        chosen = replace(chosen, platforms=assumed_platforms())
        found = from_cluster.read(args.kubeconfig, args.context, args.namespace, catalog, chosen)
    elif not found.snapshot.placed:
        stderr.say("no node tells the platform: placement is judged and not written; give --platforms")
    say_capped(found.snapshot, chosen)
    return found.snapshot, found.namespace, found.not_accepted


def _workload(name: str | None, catalog: Catalog) -> str | None:
    if name is None:
        return None
    if workload_named(name, catalog) is not None:
        names = known_as(name, catalog)
        if name not in names:
            known = f"as those of a {' and a '.join(names)}" if names else "by no sign"
            stderr.say(f"pods of a {name} are known {known}: policies that name {name} do not match them")
        return name
    raise InputError(file="--workload", message=f'"{name}" is no kind of workload{hint(name, [w.name for w in catalog.workloads])}')
