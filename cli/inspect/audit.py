"""`berth audit`: what policies say of the GPU pods that exist, by namespace and policy, read from a cluster as it is
now. Nothing is written, and nothing need be installed.

Exit code 0: answered; 2: bad input, with advice what to type.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import Any

from cli import VERSION
from cli.options import add_snapshot_options, snapshot_from, sources_from
from cli.output import audit_output, stderr
from documents.prices import read_prices
from policies.audit.assessment import Assessment
from policies.audit.ledger import Ledger
from policies.audit.prices import prices
from policies.document import InputError
from policies.state.snapshot import Snapshot
from policies.state.updater import AUTO, Updater
from webhook.reload.sources import options
from webhook.settings import DEFAULT_AUDIT_LEASE as DEFAULT_LEASE
from webhook.settings import DEFAULT_HEALTH, DEFAULT_WATCH


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
    add("--output", "-o", choices=("table", "json", "csv"), default="table", help="form of the output; default: table")
    add("--prices", metavar="FILE", help="USD an hour by instance type, or by model for one device, as YAML or JSON")
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
    if args.in_cluster:
        raise InputError(file="--in-cluster", message="is for a service that runs in a pod: give --serve too, or --kubeconfig FILE instead")
    from cli.given import whole_cluster

    if args.facts:
        raise InputError(file="--facts", message="the facts are the cluster's; leave it out")
    sources = replace(sources_from(args), policies=(), platforms=args.platforms or (AUTO,), mig_strategy=args.mig_strategy or AUTO)
    catalog, chosen = options(sources)
    cost = prices(catalog, read_prices(args.prices, catalog) if args.prices else None)
    found = whole_cluster.read(args.kubeconfig, args.context, args.namespace, catalog, stderr.progress)
    if args.policies:
        args.platforms, args.mig_strategy = sources.platforms, sources.mig_strategy
        snapshot: Snapshot = snapshot_from(args, found.facts)
    elif found.installed:
        snapshot = Updater(catalog, chosen).apply(found.changes()).snapshot
    else:
        message = "Berth is not installed there; name policies to audit by: berth audit --policies PATH"
        raise InputError(file="cluster", message=message)
    ledger, assessment = Ledger(), Assessment(snapshot, cost, found.owners)
    for pod in found.pods:
        if (audited := assessment.of(pod)) is not None:
            ledger.put(audited)
    for reason in found.unread.values():
        stderr.say(f"{reason}: what rests on it is not known")
    sys.stdout.write(audit_output.text(args.output, ledger, snapshot))
    return 0


def _serve(args: argparse.Namespace) -> int:
    from webhook.audit import serve
    from webhook.audit.settings import AuditSettings
    from webhook.settings import SettingsError

    try:
        settings = AuditSettings.from_args(args, sources_from(args), VERSION)
    except SettingsError as error:
        raise InputError(file="audit", message=str(error)) from None
    return serve.run(settings)
