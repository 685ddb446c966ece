"""`berth replay`: what policies decide of recorded pods, held against what was decided of them then. Nothing is written
anywhere.

Exit code 0: nothing is decided otherwise; 1: something is; 2: bad input, with advice what to type.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analysis.audit.assessment import Assessment
from catalog.prices import prices
from cli.options import (
    add_cluster_options,
    add_snapshot_options,
    as_of_a_cluster,
    assumed_platforms,
    no_policies,
    origin_from,
    read_cluster,
    snapshot_from,
    sources_from,
)
from cli.output import stderr
from cli.replaying import existing, output, processes
from cli.replaying.comparison import Comparison
from cli.replaying.total import Total
from cli.terminal import screen
from documents.prices import read_prices
from policies.state.snapshot import Snapshot
from policies.state.updater import AUTO, Updater
from sources.sources import load_sources, options

if TYPE_CHECKING:
    from sources.state import ClusterState

SAME, OTHERWISE, BAD_INPUT = 0, 1, 2


def add_parser(subcommands: Any) -> None:
    """Add `replay` to the command's subparsers."""
    parser: argparse.ArgumentParser = subcommands.add_parser(
        "replay",
        help="re-evaluate recorded pods and show what would change",
        description="Evaluate recorded pods again and compare with the earlier decisions. Recordings are API server audit logs at level "
        "Request or AdmissionReviews, as JSON lines, JSON or YAML, also compressed. Without FILE, the pods of a cluster are used. "
        "Exit code 0: no decision differs, 1: a decision differs, 2: invalid input.",
        examples=(
            ("Show what these policies would have decided for last week's pods", "%(prog)s --policies policies/ /var/log/kubernetes/"),
            ("Compare new policies with the old ones, with diffs", "%(prog)s --policies new/ --against old/ --diff reviews.jsonl.gz"),
            ("Compare policies from files with the cluster's own, for its pods", "%(prog)s --policies policies/"),
            ("Annotate a pull request", "%(prog)s --policies policies/ -o github recorded/"),
        ),
    )
    add = parser.add_argument
    add("files", nargs="*", metavar="FILE", help="recording, folder, or - for standard input; default: the pods of a cluster")
    add_snapshot_options(parser)
    add("--against", action="append", default=[], metavar="PATH", help="old policies, for recordings without decisions")
    add("--output", "-o", choices=("text", "json", "junit", "github"), default="text", help="output format; default: text")
    add("--diff", action="store_true", help="show a diff of one pod for each difference")
    add("--processes", type=_count, default=0, metavar="N", help="worker processes; default: the number of cores")
    add_cluster_options(parser, pods_of_all=True)
    parser.set_defaults(run=run)


def _count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= 1024:
        raise argparse.ArgumentTypeError(f'"{text}" is not a number of processes, 1 to 1024')
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Print the answer. Raises InputError and SourcesError if there is none."""
    from_files = args.files and args.policies
    total = processes.replay_files(args.files, _from_files(args), args.processes) if from_files else _of_cluster(args)
    if total.reports:
        _add_reported(args, total)
    for error in total.errors:
        print(stderr.line(error), file=sys.stderr)
    if (nothing := output.nothing_to_judge(total)) is not None:
        raise nothing
    told = [*output.passed_over(total), *output.uncompared(total)]
    if args.output in ("text", "json"):
        for line in told:
            stderr.say(line)
    sys.stdout.writelines(f"{line}\n" for line in _lines(args.output, total, told))
    return BAD_INPUT if total.wrong else OTHERWISE if total.tally.all.otherwise else SAME


def _lines(form: str, total: Total, told: list[str]) -> Iterable[str]:
    if form == "json":
        return [output.as_json(total).rstrip("\n")]
    if form == "junit":
        return [output.junit(total, told).rstrip("\n")]
    if form == "github":
        return output.github(total, told)
    return output.format_text(total, screen.output())


def _from_files(args: argparse.Namespace) -> Comparison:
    """Return what is compared, of files alone."""
    args = argparse.Namespace(**vars(args))
    if not args.platforms:
        args.platforms = (AUTO,) if args.dumps else assumed_platforms()
    now = snapshot_from(args)
    return _compared(args, now, _old(args) if args.against else None)


def _compared(args: argparse.Namespace, now: Snapshot, then: Snapshot | None) -> Comparison:
    cost = prices(now.catalog, read_prices(args.prices, now.catalog) if args.prices else None)
    return Comparison(now=now, then=then, prices=cost, diffs=args.diff, namespace=args.namespace)


def _old(args: argparse.Namespace, cluster: ClusterState | None = None) -> Snapshot:
    """Return the policies of then, with the facts of now, those of --from by default: no recording says which facts there were then."""
    sources = replace(sources_from(args), policies=tuple(args.against))
    if cluster is None:
        return load_sources(sources).snapshot
    return load_sources(replace(sources, facts=()), cluster.facts, all_nodes=cluster.all_nodes).snapshot


def _of_cluster(args: argparse.Namespace) -> Total:
    """Judge the pods of a cluster; or those of files, by the cluster's policies."""
    args = as_of_a_cluster(args)
    found, own, now = _cluster(args)
    then = _old(args, found) if args.against else own if args.policies and not args.files else None
    chosen = _compared(args, now, then)
    if args.files:
        return processes.replay_files(args.files, chosen, args.processes)
    return existing.count_existing(found.pods, found.owners, chosen)


def _add_reported(args: argparse.Namespace, total: Total) -> None:
    """Add the pods of the cluster, of which reports say what was found then."""
    args = as_of_a_cluster(args)
    found, _, now = _cluster(args)
    assessment = Assessment(now, _compared(args, now, None).prices, found.owners)
    existing.add_reported(total, found.pods, assessment)


def _cluster(args: argparse.Namespace) -> tuple[ClusterState, Snapshot | None, Snapshot]:
    """Return what was read of a cluster, its own policies if it has any, and those to judge by, with its facts."""
    origin = origin_from(args)
    catalog, settings = options(sources_from(args))
    found = read_cluster(args, catalog)
    own = Updater(catalog, settings).apply(found.objects, all_nodes=found.all_nodes).snapshot if found.installed else None
    now = snapshot_from(args, state=found.facts, all_nodes=found.all_nodes) if args.policies else own
    if now is None:
        raise no_policies(origin, "berth replay --policies PATH")
    return found, own, now
