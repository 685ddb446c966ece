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

from analysis.conditions.server_options import PlatformSource, UsedPlatforms, as_served, used_platforms
from analysis.effective.effective import effective
from analysis.effective.effective_probe import PodKind, known_as, workload_named
from catalog import Catalog
from catalog.nearest import hint
from cli.options import (
    add_cluster_options,
    add_snapshot_options,
    as_of_a_cluster,
    assumed_platforms,
    no_policies,
    origin_from,
    say_capped,
    say_ignored,
    snapshot_from,
    sources_from,
)
from cli.output import effective_output, stderr
from cli.terminal import screen
from documents import yaml_writer
from documents.printable import json_text
from kube import duration
from kube.duration import DurationError
from policies.document import InputError
from policies.state.objects import ObjectEntry
from policies.state.snapshot import Snapshot
from sources.sources import options

_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
"""The form of a label's key and value (k8s.io/apimachinery pkg/util/validation)."""


def add_parser(subcommands: Any) -> None:
    """Add `effective` to the command's subparsers."""
    parser: argparse.ArgumentParser = subcommands.add_parser(
        "effective",
        help="show the effective policy of a namespace",
        description="Show the effective policy for GPU pods in a namespace: each field, its value, the policy that set it, and what it "
        "clipped or overrode. Reads the cluster of the kubeconfig, or with --from or --policies only files. "
        "Exit code 0: success, 2: invalid input.",
        examples=(
            ("For all GPU pods in a namespace of the cluster", "%(prog)s -n research"),
            ("For Jobs with eight GPUs that run six hours", "%(prog)s -n research --workload Job --gpus 8 --duration 6h"),
            ("From files, without a cluster", "%(prog)s --policies policies/ --from namespaces.yaml -n research -o json"),
        ),
    )
    add = parser.add_argument
    add("--namespace", "-n", metavar="NS", help="namespace; default: that of the kubeconfig context, or default")
    add("--workload", metavar="KIND", help="only pods of this kind of workload, for example Job or Deployment; Pod: bare pods")
    add("--pod-labels", metavar="K=V,...", type=_labels, help='only pods with exactly these labels; "": pods without labels')
    add("--gpus", metavar="N", type=_count, help="only pods with this number of GPUs")
    add(
        "--duration",
        metavar="D",
        type=_seconds,
        help="only pods that declare this duration (berth.dev/expected-duration), for example 90m or 6h",
    )
    add("--output", "-o", choices=("table", "json", "yaml"), default="table", help="output format; default: table")
    add_cluster_options(parser)
    add_snapshot_options(parser)
    parser.set_defaults(run=run)


def _labels(text: str) -> tuple[tuple[str, str], ...]:
    pairs = [part.partition("=") for part in text.split(",") if part]
    for key, equals, value in pairs:
        if not equals or not _KEY.fullmatch(key) or not _VALUE.fullmatch(value):
            raise argparse.ArgumentTypeError(f'"{key}{equals}{value}" is not a label; write for example team=research,tier=dev')
    return tuple(sorted({key: value for key, _, value in pairs}.items()))


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:6]) <= 4096 and len(text) < 6):
        raise argparse.ArgumentTypeError(f'"{text}" is not a number of GPUs; write a whole number, at least 1')
    return int(text)


def _seconds(text: str) -> int:
    try:
        return duration.seconds(text)
    except DurationError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def run(args: argparse.Namespace) -> int:
    """Print the answer. Raises InputError and SourcesError if there is none."""
    snapshot, namespace, wrong, platforms = _of_policy_files(args) if args.policies else _of_cluster(args)
    kind = PodKind(workload=_workload(args.workload, snapshot.catalog), labels=args.pod_labels, gpus=args.gpus, seconds=args.duration)
    answer = replace(effective(snapshot.facts_for(namespace), kind), platforms=platforms)
    if args.output == "table":
        sys.stdout.write(effective_output.table(answer, wrong, screen.output()))
    else:
        value = effective_output.effective_value(answer, wrong)
        sys.stdout.write(yaml_writer.write_yaml(value) if args.output == "yaml" else json_text(value) + "\n")
    return 0


_Found = tuple[Snapshot, str, Sequence[ObjectEntry], UsedPlatforms]
"""The snapshot, the namespace, the objects that are not accepted, and the platforms of the snapshot."""


def _of_policy_files(args: argparse.Namespace) -> _Found:
    if args.kubeconfig or args.context:
        raise InputError(file="--policies", message="reads files, and --kubeconfig and --context read a cluster; use one or the other")
    source: PlatformSource = "given" if args.platforms else "assumed"
    args.platforms = args.platforms or assumed_platforms()
    snapshot, namespace = snapshot_from(args), args.namespace or "default"
    _check_namespace(namespace, snapshot)
    return snapshot, namespace, (), UsedPlatforms(tuple(snapshot.tables), source)


def _check_namespace(name: str, snapshot: Snapshot) -> None:
    """Raise InputError with a hint if files have Namespaces, but not this one."""
    known = set(snapshot.cluster.namespaces)
    if known and name not in known:
        raise InputError(file="--namespace", message=f'"{name}" is not in the files of --from{hint(name, known)}')


def _of_cluster(args: argparse.Namespace) -> _Found:
    """Read from a cluster, or from --from. The platforms are the server's, which statuses show, or those that nodes show.

    If neither may be read, a platform is assumed and printed.
    """
    from sources.state import read_namespace

    origin = origin_from(args)
    catalog, chosen = options(sources_from(as_of_a_cluster(args)))
    state = read_namespace(origin, args.namespace)
    say_ignored(state.ignored)
    if not state.installed:
        raise no_policies(origin, "berth effective --policies PATH")
    update = state.update(catalog, chosen)
    used = used_platforms(update.snapshot, chosen, as_served(chosen, state.objects, catalog), state.unread)
    if origin.dumps:
        _check_namespace(state.namespace, update.snapshot)
    if used.source == "unread":
        assumed = replace(chosen, platforms=assumed_platforms(), follows_server=chosen.follows_server - {"platforms"})
        update = state.update(catalog, assumed)
        used = UsedPlatforms(tuple(update.snapshot.tables), "assumed")
    elif not update.snapshot.placed and used.source == "nodes":
        stderr.say("no node shows the platform, so placement is checked but not written; set --platforms")
    say_capped(update.snapshot, chosen)
    wrong = [entry for _, entry in sorted(update.entries.items()) if entry.understood.errors]
    return update.snapshot, state.namespace, wrong, used


def _workload(name: str | None, catalog: Catalog) -> str | None:
    if name is None:
        return None
    if workload_named(name, catalog) is not None:
        names = known_as(name, catalog)
        if name not in names:
            known = f"as {' and '.join(names)}" if names else "not recognized"
            stderr.say(f"policies that name {name} do not match its pods: admission sees them {known}")
        return name
    raise InputError(
        file="--workload", message=f'"{name}" is not a known kind of workload{hint(name, [w.name for w in catalog.workloads])}'
    )
