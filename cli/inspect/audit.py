"""`berth audit`: what policies say of the GPU pods that exist, by namespace and policy, read from a cluster as it is
now. Nothing is written, and nothing need be installed.

Exit code 0: answered; 2: bad input, with advice what to type.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cli import VERSION
from cli.options import add_snapshot_options, snapshot_from, sources_from
from cli.output import stderr
from cli.output.audit import answer, html
from cli.output.audit.answer import Answer
from documents.prices import read_prices
from policies.audit.assessment import Assessment
from policies.audit.ledger import Ledger
from policies.audit.prices import Prices, prices
from policies.document import InputError
from policies.scan.exposure import exposure
from policies.state.snapshot import Snapshot
from policies.state.updater import AUTO, Options, Updater
from webhook.reload.sources import options
from webhook.settings import DEFAULT_AUDIT_LEASE as DEFAULT_LEASE
from webhook.settings import DEFAULT_HEALTH, DEFAULT_WATCH

if TYPE_CHECKING:
    from cli.given.whole_cluster import WholeCluster  # with the client of Kubernetes, which takes half a second


def add_parser(subcommands: Any) -> None:
    """Add `audit` to the command's subparsers."""
    parser: argparse.ArgumentParser = subcommands.add_parser(
        "audit",
        help="what policies say of the GPU pods that exist",
        description="Judge the GPU pods of a cluster: what each policy in Audit or Warn would change or refuse, which pods are not as "
        "policies in Enforce make them, and which would be refused today. With --policies those of files, else the cluster's own. "
        "Exit code 0: answered, 2: bad input.",
    )
    add = parser.add_argument
    add("--namespace", "-n", metavar="NS", help="pods of one namespace; default: of all")
    add("--output", "-o", choices=("table", "json", "csv", "html"), default="table", help="form of the output; default: table")
    add("--prices", metavar="FILE", help="USD an hour by instance type, or by model for one device, as YAML or JSON")
    add("--enforce-preview", metavar="POLICY", help="what switching this one to Enforce would do to what runs, and to recorded creations")
    add("--recordings", action="append", default=[], metavar="PATH", help="for that: audit logs or reviews, as berth replay reads them")
    add("--kubeconfig", metavar="FILE", help="the cluster to read; default: as kubectl finds it")
    add("--context", metavar="NAME", help="of the kubeconfig; default: its current one")
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
    if args.serve:
        return _serve(args)
    if args.recordings and not args.enforce_preview:
        raise InputError(file="--recordings", message="are judged for a preview: give --enforce-preview POLICY too, or use berth replay")
    if args.in_cluster:
        raise InputError(file="--in-cluster", message="is for a service that runs in a pod: give --serve too, or --kubeconfig FILE instead")
    from cli.given import whole_cluster
    from cli.given.scanned_cluster import age

    if args.facts:
        raise InputError(file="--facts", message="the facts are the cluster's; leave it out")
    sources = replace(sources_from(args), policies=(), platforms=args.platforms or (AUTO,), mig_strategy=args.mig_strategy or AUTO)
    catalog, chosen = options(sources)
    cost = prices(catalog, read_prices(args.prices, catalog) if args.prices else None)
    found = whole_cluster.read(args.kubeconfig, args.context, args.namespace, catalog, stderr.progress)
    for reason in found.unread.values():
        stderr.say(f"{reason}: what rests on it is not known")
    if args.policies:
        args.platforms, args.mig_strategy = sources.platforms, sources.mig_strategy
        snapshot: Snapshot = snapshot_from(args, found.facts, all_nodes=found.all_nodes)
    elif found.installed:
        snapshot = Updater(catalog, chosen).apply(found.changes(), all_nodes=found.all_nodes).snapshot
    else:
        message = "Berth is not installed there; name policies to audit by: berth audit --policies PATH"
        raise InputError(file="cluster", message=message)
    if args.enforce_preview:
        return _preview(args, found, snapshot, cost, chosen)
    ledger, assessment = Ledger(), Assessment(snapshot, cost, found.owners)
    for pod in found.pods:
        if (audited := assessment.of(pod)) is not None:
            ledger.put(audited)
    shown = Answer(ledger=ledger, snapshot=snapshot, exposure=lambda pod: exposure(pod, snapshot, age(pod.created)))
    sys.stdout.write(html.text(shown) if args.output == "html" else answer.text(args.output, shown))
    return 0


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
        for one in processes.judged(pieces(args.recordings), compared, processes.cores()):
            if isinstance(one, InputError):
                recorded.fail(one)
            else:
                recorded.add(*one)
        for error in recorded.errors:
            print(stderr.line(error), file=sys.stderr)
    sys.stdout.writelines(f"{line}\n" for line in preview.lines(name, runs, recorded))
    return 2 if recorded is not None and recorded.wrong else 0


def _serve(args: argparse.Namespace) -> int:
    from webhook.audit import serve
    from webhook.audit.settings import AuditSettings
    from webhook.settings import SettingsError

    try:
        settings = AuditSettings.from_args(args, sources_from(args), VERSION)
    except SettingsError as error:
        raise InputError(file="audit", message=str(error)) from None
    return serve.run(settings)
