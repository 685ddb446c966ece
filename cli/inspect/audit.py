"""`berth audit`: what policies say of the GPU pods that exist, by namespace and policy, read from a cluster as it is
now. Nothing is written, and nothing need be installed.

Exit code 0: answered; 2: bad input, with advice what to type.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from cli import VERSION
from cli.options import (
    add_cluster_options,
    add_mode_option,
    add_snapshot_options,
    as_of_a_cluster,
    in_mode,
    say_capped,
    snapshot_from,
    sources_from,
)
from cli.output import stderr
from cli.output.audit import answer, html
from cli.output.audit.answer import Answer
from cli.terminal import screen
from cli.terminal.progress import each, reading
from documents.prices import read_prices
from policies.audit.assessment import Assessment
from policies.audit.ledger import Ledger
from policies.catalog.prices import Prices, prices
from policies.document import InputError
from policies.findings.server_mode import as_served
from policies.scan.exposure import exposure
from policies.state.snapshot import Snapshot
from policies.state.updater import Options, Updater
from webhook.reload.sources import options
from webhook.settings import DEFAULT_AUDIT_LEASE as DEFAULT_LEASE
from webhook.settings import DEFAULT_HEALTH, DEFAULT_WATCH

if TYPE_CHECKING:
    from cli.given.whole_cluster import WholeCluster  # imports aiohttp, which takes a tenth of a second


_INSTEAD = "; or read what Berth's reports say, which takes the right to list them alone: berth audit --reports"
_JUDGING = ("serve", "policies", "facts", "as_mode", "prices", "recordings", "catalog", "platforms", "mig_strategy", "queues")
"""Options that say how pods are judged."""


def add_parser(subcommands: Any) -> None:
    """Add `audit` to the command's subparsers."""
    parser: argparse.ArgumentParser = subcommands.add_parser(
        "audit",
        help="what policies say of the GPU pods that exist",
        description="Judge the GPU pods of a cluster: what each policy in Audit or Warn would change or deny, which pods are not as "
        "policies in Enforce make them, and which would be denied today. With --policies those of files, else the cluster's own. "
        "Exit code 0: answered, 2: bad input.",
        examples=(
            ("What the cluster's policies in Audit and Warn would do to the pods that run", "%(prog)s"),
            ("What policies of files would do, before they are installed", "%(prog)s --policies policies/ --as Audit"),
            (
                "What switching one to Enforce would do, to what runs and to last week's creations",
                "%(prog)s --enforce-preview ClusterGPUPolicy/training --recordings /var/log/kubernetes/",
            ),
            ("By reports alone, for a spreadsheet", "%(prog)s --reports -n research -o csv"),
        ),
    )
    add = parser.add_argument
    add("--output", "-o", choices=("table", "json", "csv", "html"), default="table", help="form of the output; default: table")
    add("--enforce-preview", metavar="POLICY", help="what switching this one to Enforce would do to what runs, and to recorded creations")
    add("--recordings", action="append", default=[], metavar="PATH", help="for that: audit logs or reviews, as berth replay reads them")
    help_ = "what Berth's reports say, in place of judging pods: the cluster's, or those of files (kubectl get reports -A -o json)"
    add("--reports", nargs="*", metavar="PATH", help=help_)
    add_mode_option(parser)
    add_cluster_options(parser, pods_of_all=True)
    add_snapshot_options(parser)
    _add_service(parser)
    parser.set_defaults(run=run)


def _add_service(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("service", "reports in the cluster, followed, in place of one answer")
    group.add_argument("--serve", action="store_true", help="keep reports, counts in statuses and Events up to date until stopped")
    group.add_argument("--in-cluster", action="store_true", help="by the service account of the pod that this runs in")
    group.add_argument("--health", metavar="HOST:PORT", default=DEFAULT_HEALTH, help=f"default: {DEFAULT_HEALTH}; port 0: any free one")
    help_ = f"seconds that one watch lasts, and so how long silence is believed (default: {DEFAULT_WATCH})"
    group.add_argument("--watch", metavar="N", default=str(DEFAULT_WATCH), help=help_)
    help_ = f"the Lease whose holder writes, of several that run (default: {DEFAULT_LEASE})"
    group.add_argument("--lease", metavar="NAMESPACE/NAME", default=DEFAULT_LEASE, help=help_)


def run(args: argparse.Namespace) -> int:
    """Print the answer, or serve. Raises InputError and SourcesError if there is none."""
    if args.reports is not None:
        return _reported(args)
    if args.serve:
        return _serve(args)
    if args.recordings and not args.enforce_preview:
        raise InputError(file="--recordings", message="are judged for a preview: give --enforce-preview POLICY too, or use berth replay")
    if args.as_mode and args.enforce_preview:
        raise InputError(file="--as", message="a preview puts one policy in Enforce and leaves the others as they are: leave --as out")
    if args.in_cluster:
        raise InputError(file="--in-cluster", message="is for a service that runs in a pod: give --serve too, or --kubeconfig FILE instead")
    from cli.given import whole_cluster
    from cli.given.scanned_cluster import age

    if args.facts:
        raise InputError(file="--facts", message="the facts are the cluster's; leave it out")
    args = as_of_a_cluster(args)
    catalog, chosen = options(sources_from(args))
    cost = prices(catalog, read_prices(args.prices, catalog) if args.prices else None)
    with reading() as progress:
        found = whole_cluster.read(args.kubeconfig, args.context, args.namespace, catalog, progress.read, _INSTEAD)
    for reason in found.unread.values():
        stderr.say(f"{reason}: what rests on it is not known")
    if args.policies:
        snapshot: Snapshot = snapshot_from(args, found.facts, all_nodes=found.all_nodes)
    elif found.installed:
        served = chosen if args.enforce_preview else as_served(chosen, found.policies)  # a preview is of what policies say
        snapshot = Updater(catalog, served).apply(found.changes(), all_nodes=found.all_nodes).snapshot
        say_capped(snapshot, chosen)
    else:
        message = "Berth is not installed there; name policies to audit by: berth audit --policies PATH"
        raise InputError(file="cluster", message=message)
    if args.enforce_preview:
        return _preview(args, found, snapshot, cost, chosen)
    if args.as_mode:
        snapshot = in_mode(snapshot, args.as_mode)
    ledger, assessment = Ledger(), Assessment(snapshot, cost, found.owners)
    for pod in each("judged", "pods", found.pods):
        if (audited := assessment.of(pod)) is not None:
            ledger.put(audited)
    shown = Answer(ledger=ledger, snapshot=snapshot, exposure=lambda pod: exposure(pod, snapshot, age(pod.created)))
    sys.stdout.write(html.text(shown) if args.output == "html" else answer.text(args.output, shown, screen.output()))
    return 0


def _reported(args: argparse.Namespace) -> int:
    """Print what reports say."""
    from cli.given import reports
    from cli.output.audit import reported

    for name in _JUDGING:
        if getattr(args, name):
            option = f"--{'as' if name == 'as_mode' else name.replace('_', '-')}"
            raise InputError(file="--reports", message=f"they say what was found, and nothing is judged: leave {option} out")
    if args.reports:
        found = reports.of_files(args.reports, args.namespace)
    else:
        with reading() as progress:
            found = reports.of_cluster(args.kubeconfig, args.context, args.namespace, progress.read)
    for error in found.errors:
        print(stderr.line(error), file=sys.stderr)
    if found.errors and not found.found:
        return 2
    for note in reported.notes(found):
        stderr.say(note)
    if args.enforce_preview:
        sys.stdout.writelines(f"{line}\n" for line in reported.preview(args.enforce_preview, found, screen.output()))
    else:
        sys.stdout.write(reported.text(args.output, found, screen.output()))
    return 2 if found.errors else 0


def _preview(args: argparse.Namespace, found: WholeCluster, snapshot: Snapshot, cost: Prices, chosen: Options) -> int:
    """Print what switching a policy to Enforce would do."""
    from cli.replaying import existing, preview, processes
    from cli.replaying.comparison import Comparison
    from cli.replaying.total import Total
    from documents.recordings.pieces import Piece, pieces

    name, catalog = args.enforce_preview, snapshot.catalog
    if args.policies:
        now = preview.of_files(args.policies, found, name, catalog, chosen)
    else:
        now = preview.of_cluster(found, name, catalog, chosen)
    compared = Comparison(now=now, then=snapshot, prices=cost, diffs=False, anew=True, namespace=args.namespace)
    runs = Total()
    runs.add(Piece("cluster", "documents"), existing.counted(found.pods, found.owners, compared.start(), now.cluster.nodes))
    recorded = Total() if args.recordings else None
    if recorded is not None:
        for one in each("judged", "pieces of the recordings", processes.judged(pieces(args.recordings), compared, processes.cores())):
            if isinstance(one, InputError):
                recorded.fail(one)
            else:
                recorded.add(*one)
        for error in recorded.errors:
            print(stderr.line(error), file=sys.stderr)
    sys.stdout.writelines(f"{line}\n" for line in preview.lines(name, runs, recorded, screen.output()))
    return 2 if recorded is not None and recorded.wrong else 0


def _serve(args: argparse.Namespace) -> int:
    from webhook import memory
    from webhook.audit import serve
    from webhook.audit.settings import AuditSettings
    from webhook.settings import SettingsError

    try:
        settings = AuditSettings.from_args(args, sources_from(args), VERSION)
    except SettingsError as error:
        raise InputError(file="audit", message=str(error)) from None
    memory.return_large_blocks()
    return serve.run(settings)
