"""`berth audit`: evaluate policies against existing GPU pods, by namespace and policy, read from a cluster as it is
now. Nothing is written, and nothing need be installed.

Exit code 0: answered; 2: bad input, with advice what to type.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analysis.audit.assessment import Assessment
from analysis.audit.ledger import Ledger
from analysis.conditions.server_options import as_served, used_platforms
from catalog.prices import Prices, prices
from cli import VERSION
from cli.options import (
    add_cluster_options,
    add_mode_option,
    add_snapshot_options,
    as_of_a_cluster,
    in_mode,
    no_policies,
    origin_from,
    read_cluster,
    say_capped,
    snapshot_from,
    sources_from,
)
from cli.output import stderr
from cli.terminal import screen
from cli.terminal.progress import each, reading
from documents.prices import read_prices
from policies.document import InputError
from policies.state.snapshot import Snapshot
from policies.state.updater import Options, Updater
from sources.sources import options
from webhook.settings import DEFAULT_AUDIT_LEASE as DEFAULT_LEASE
from webhook.settings import DEFAULT_HEALTH, DEFAULT_WATCH

if TYPE_CHECKING:
    from sources.state import ClusterState  # imports aiohttp, which takes a tenth of a second


_INSTEAD = "; or use Berth's reports, which needs only permission to list them: berth audit --reports"
_JUDGING = ("serve", "policies", "dumps", "as_mode", "prices", "recordings", "catalog", "platforms", "mig_strategy", "queues")
"""Options that say how pods are judged."""


def add_parser(subcommands: Any) -> None:
    """Add `audit` to the command's subparsers."""
    parser: argparse.ArgumentParser = subcommands.add_parser(
        "audit",
        help="evaluate policies against existing GPU pods",
        description="Evaluate policies against the existing GPU pods of a cluster. Shows what each policy in Audit or Warn would change or "
        "deny, which pods differ from the policies in Enforce, and which pods would be denied today. Uses the cluster's policies, "
        "or files with --policies. Changes nothing. Exit code 0: success, 2: invalid input.",
        examples=(
            ("Show what the cluster's policies in Audit and Warn would do to existing pods", "%(prog)s"),
            ("Show what policies from files would do, before you install them", "%(prog)s --policies policies/ --as Audit"),
            (
                "Preview a policy in Enforce, for existing pods and for last week's pods",
                "%(prog)s --enforce-preview ClusterGPUPolicy/training --recordings /var/log/kubernetes/",
            ),
            ("Summarize the cluster's reports as CSV", "%(prog)s --reports -n research -o csv"),
        ),
    )
    add = parser.add_argument
    add("--output", "-o", choices=("table", "json", "csv", "html"), default="table", help="output format; default: table")
    add("--enforce-preview", metavar="POLICY", help="show what this policy would do to existing and recorded pods if it were in Enforce")
    add(
        "--recordings",
        action="append",
        default=[],
        metavar="PATH",
        help="with --enforce-preview: audit logs or AdmissionReviews to evaluate too (see berth replay); repeatable",
    )
    help_ = "summarize Berth's reports instead of reading pods; PATH: files from kubectl get reports -A -o json (default: the cluster's)"
    add("--reports", nargs="*", metavar="PATH", help=help_)
    add_mode_option(parser)
    add_cluster_options(parser, pods_of_all=True)
    add_snapshot_options(parser)
    _add_service(parser)
    parser.set_defaults(run=run)


def _add_service(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("service", "watch the cluster and maintain reports in it")
    group.add_argument("--serve", action="store_true", help="keep reports, status counts and Events up to date until stopped")
    group.add_argument("--in-cluster", action="store_true", help="use the service account of the pod that this runs in")
    group.add_argument(
        "--health", metavar="HOST:PORT", default=DEFAULT_HEALTH, help=f"address of health checks and metrics (default: {DEFAULT_HEALTH})"
    )
    help_ = f"seconds until a watch is renewed and a dead connection is noticed (default: {DEFAULT_WATCH})"
    group.add_argument("--watch", metavar="N", default=str(DEFAULT_WATCH), help=help_)
    help_ = f"Lease that selects the replica that writes (default: {DEFAULT_LEASE})"
    group.add_argument("--lease", metavar="NAMESPACE/NAME", default=DEFAULT_LEASE, help=help_)


def run(args: argparse.Namespace) -> int:
    """Print the answer, or serve. Raises InputError and SourcesError if there is none."""
    if args.reports is not None:
        return _reported(args)
    if args.serve:
        return _serve(args)
    if args.recordings and not args.enforce_preview:
        raise InputError(file="--recordings", message="needs --enforce-preview POLICY; to evaluate only recordings, use berth replay")
    if args.as_mode and args.enforce_preview:
        raise InputError(
            file="--as", message="cannot be combined with --enforce-preview, which changes the mode of one policy: remove --as"
        )
    if args.in_cluster:
        raise InputError(file="--in-cluster", message="needs --serve; to read a cluster once, use --kubeconfig FILE")
    from cli.output.audit import answer  # imports aiohttp

    origin = origin_from(args)
    args = as_of_a_cluster(args)
    catalog, chosen = options(sources_from(args))
    cost = prices(catalog, read_prices(args.prices, catalog) if args.prices else None)
    found = read_cluster(args, catalog, _INSTEAD)
    served = as_served(chosen, found.objects, catalog)
    if args.enforce_preview:  # a preview is of what policies say
        served = replace(served, max_mode=chosen.max_mode)
    if args.policies:
        taken = {"platforms": served.platforms, "queues": served.queues}
        snapshot: Snapshot = snapshot_from(argparse.Namespace(**{**vars(args), **taken}), state=found.facts, all_nodes=found.all_nodes)
    elif found.installed:
        snapshot = Updater(catalog, served).apply(found.objects, all_nodes=found.all_nodes).snapshot
        say_capped(snapshot, chosen)
    else:
        raise no_policies(origin, "berth audit --policies PATH")
    if args.enforce_preview:
        return _preview(args, found, snapshot, cost, served)
    if args.as_mode:
        snapshot = in_mode(snapshot, args.as_mode)
    ledger, assessment = Ledger(), Assessment(snapshot, cost, found.owners)
    for pod in each("evaluated", "pods", found.pods):
        if (audited := assessment.of(pod)) is not None:
            ledger.put(audited)
    sys.stdout.write(
        answer.format_answer(args.output, ledger, snapshot, used_platforms(snapshot, chosen, served, found.unread), screen.output())
    )
    return 0


def _reported(args: argparse.Namespace) -> int:
    """Print what reports say."""
    from cli.output.audit import reported
    from sources import reports

    for name in _JUDGING:
        if getattr(args, name):
            option = {"as_mode": "--as", "dumps": "--from"}.get(name, f"--{name.replace('_', '-')}")
            raise InputError(file="--reports", message=f"reads finished results and evaluates nothing: remove {option}")
    if args.reports:
        found = reports.of_files(args.reports, args.namespace)
    else:
        with reading() as progress:
            found = reports.of_cluster(origin_from(args), args.namespace, progress.read)
    for error in found.errors:
        print(stderr.line(error), file=sys.stderr)
    if found.errors and not found.found:
        return 2
    for note in reported.notes(found):
        stderr.say(note)
    if args.enforce_preview:
        sys.stdout.writelines(f"{line}\n" for line in reported.preview(args.enforce_preview, found, screen.output()))
    else:
        sys.stdout.write(reported.format_reported(args.output, found, screen.output()))
    return 2 if found.errors else 0


def _preview(args: argparse.Namespace, found: ClusterState, snapshot: Snapshot, cost: Prices, chosen: Options) -> int:
    """Print what switching a policy to Enforce would do."""
    from cli.replaying import existing, preview, processes
    from cli.replaying.comparison import Comparison

    name, catalog = args.enforce_preview, snapshot.catalog
    if args.policies:
        now = preview.of_files(args.policies, found, name, catalog, chosen)
    else:
        now = preview.of_cluster(found, name, catalog, chosen)
    compared = Comparison(now=now, then=snapshot, prices=cost, diffs=False, anew=True, namespace=args.namespace)
    runs = existing.count_existing(found.pods, found.owners, compared)
    recorded = processes.replay_files(args.recordings, compared) if args.recordings else None
    for error in recorded.errors if recorded is not None else ():
        print(stderr.line(error), file=sys.stderr)
    sys.stdout.writelines(f"{line}\n" for line in preview.preview_lines(name, runs, recorded, screen.output()))
    return 2 if recorded is not None and recorded.wrong else 0


def _serve(args: argparse.Namespace) -> int:
    from webhook import memory
    from webhook.audit import serve
    from webhook.settings import AuditSettings, SettingsError

    try:
        settings = AuditSettings.from_args(args, sources_from(args), VERSION)
    except SettingsError as error:
        raise InputError(file="audit", message=str(error)) from None
    memory.return_large_blocks()
    return serve.run(settings)
