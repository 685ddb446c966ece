"""`berth scan`: what is wrong with the GPUs of a cluster, read as it is now: pods that wait, runs that may be cut short, devices held for
little, settings of node pools that hurt. Nothing is written there, and nothing need be installed.

Exit code 0: answered; 2: bad input, with advice what to type.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from analysis.admission_preview import Admission
from analysis.conditions.server_options import as_served, used_platforms
from analysis.scan.objects_read import Cluster
from analysis.scan.report import scan
from analysis.scan.seen import see
from analysis.scan.suggestions.written import WrittenSuggestion, comment, suggestions
from catalog import Catalog
from catalog.prices import prices
from cli.options import add_cluster_options, add_from_option, names, origin_from, say_ignored
from cli.output import stderr
from cli.terminal import screen
from cli.terminal.progress import reading
from documents import yaml_writer
from documents.prices import read_prices
from documents.printable import printable
from policies.document import InputError
from policies.state.snapshot import Snapshot
from policies.state.updater import Options, Updater
from sources.sources import DEFAULT_POLICIES, Sources, of_a_cluster, options

LIBRARY = DEFAULT_POLICIES.parent
WIDTH = 118
"""Columns of the comment above a suggested policy."""


def add_parser(subcommands: Any) -> None:
    """Add `scan` to the command's subparsers."""
    parser: argparse.ArgumentParser = subcommands.add_parser(
        "scan",
        help="find problems with the GPUs of a cluster",
        description="Find GPU problems in a cluster: pending pods, unprotected runs, oversized notebooks, risky NodePool settings and "
        "wrong labels, with their cost. Read-only; Berth does not need to be installed. "
        "Exit code 0: success, 2: invalid input.",
        examples=(
            ("Scan the current cluster", "%(prog)s"),
            ("Write a report as one HTML file", "%(prog)s -o html > gpus.html"),
            ("Scan dumps, without a cluster", "%(prog)s --from nodes.yaml --from pods.yaml"),
            ("Write policies in Audit for this cluster", "%(prog)s --suggest policies/"),
        ),
    )
    add = parser.add_argument
    add("--output", "-o", choices=("text", "json", "html"), default="text", help="output format; default: text")
    add("--diff", action="store_true", help="show what the shipped policies would have changed, by workload")
    add("--suggest", metavar="DIR", help="write policies for this cluster to DIR, in mode Audit")
    add("--catalog", metavar="FILE", help="file that extends the GPU catalog: new GPUs, labels, resource names")
    add(
        "--platforms",
        type=names,
        default=(),
        metavar="P,...",
        help="node platforms of the cluster; default: detect them from Nodes and NodePools",
    )
    add_from_option(parser)
    add_cluster_options(parser, pods_of_all=True)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the answer. Raises InputError and SourcesError if there is none."""
    from cli.output import scan_output
    from cluster.watch.kinds import key_of
    from sources.scanned_cluster import read_scanned

    if args.diff and args.output != "text":
        raise InputError(file="--diff", message=f"prints text; remove -o {args.output}")
    origin = origin_from(args)
    catalog, chosen = options(of_a_cluster(Sources(catalog=args.catalog, platforms=args.platforms)))
    cost = prices(catalog, read_prices(args.prices, catalog) if args.prices else None)
    with reading() as progress:
        cluster = read_scanned(origin, args.namespace, catalog, progress.read)
    say_ignored(cluster.ignored)
    served = as_served(chosen, {key_of(value["kind"], value): value for value in cluster.policies}, catalog)
    snapshot = shipped(catalog, served, cluster)
    seen, admission = see(cluster, snapshot, cost), Admission(snapshot)
    with reading() as progress:
        progress.show("evaluating")
        report = replace(scan(seen, admission), platforms=used_platforms(snapshot, chosen, served, cluster.unread))
    if args.suggest:
        write_suggestions(args.suggest, suggestions(seen, report.hits, chosen))
    if args.diff:
        sys.stdout.write(scan_output.format_scan_diff(report.hits, admission, screen.output()))
    elif args.output == "text":
        sys.stdout.write(scan_output.format_scan(report, screen.output()))
    else:
        sys.stdout.write(scan_output.format_scan_html(report) if args.output == "html" else scan_output.as_json(report))
    return 0


def shipped(catalog: Catalog, chosen: Options, cluster: Cluster) -> Snapshot:
    """Return the snapshot of the shipped policies over the facts of a cluster."""
    from documents.files import read_policies

    policy_set, errors, _ = read_policies([str(LIBRARY)], catalog)
    assert not errors, errors
    return Updater(catalog, chosen).replace_all(policy_set, cluster.facts).snapshot


def write_suggestions(folder: str, found: Iterable[WrittenSuggestion]) -> None:
    """Write them into a folder, which is made if it is not there.

    Raises InputError, and writes nothing, if the folder has another file of such a name.
    """
    place = Path(folder)
    texts = {place / f"{one.suggestion.name}.yaml": format_suggestion(one) for one in found}
    if not texts:
        stderr.say("found no GPU node and no GPU pod, so there is no policy to suggest")
        return
    try:
        taken = [file for file, content in texts.items() if file.exists() and file.read_text() != content]
        if taken:
            more = f", as do {len(taken) - 1} more of these files" if len(taken) > 1 else ""
            message = f"exists with different content{more}; nothing was written; choose another folder, or move the file"
            raise InputError(file=str(taken[0]), message=message)
        place.mkdir(exist_ok=True)
        for file, content in texts.items():
            file.write_text(content)
    except OSError as error:
        raise InputError(
            file=folder, message=f"cannot be written: {error.strerror or error}; choose a folder that you can write to"
        ) from None
    stderr.say(f"wrote {len(texts)} policies in Audit to {folder}; to preview them: berth audit --policies {folder}")


def format_suggestion(one: WrittenSuggestion) -> str:
    """Return a policy as YAML with its comment."""
    lines = [line for sentence in comment(one) for line in textwrap.wrap(printable(sentence), WIDTH)]
    return "".join(f"# {line}\n" for line in lines) + yaml_writer.write_yaml(one.suggestion.manifest())
