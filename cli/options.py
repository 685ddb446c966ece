"""The options that subcommands share: the sources from which a snapshot is built."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from cli.output import stderr
from policies.state.snapshot import Snapshot
from policies.verdict import MODES
from webhook.reload.sources import MIG_STRATEGIES, QUEUES, Sources, load


def add_snapshot_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--policies`` to ``--max-mode``.

    Options that name files take one each and may be repeated: with several values ``berth try --policies DIR
    FILE`` would take the manifest for a policy.
    """
    group = parser.add_argument_group("policies and facts")
    add = group.add_argument
    add("--policies", action="append", default=[], metavar="PATH", help="policy file or folder; may be repeated; default: berth-default")
    add(
        "--facts",
        action="append",
        default=[],
        metavar="PATH",
        help="dumped Namespaces, Nodes, NodePools, DeviceClasses, claims; repeatable",
    )
    add("--catalog", metavar="FILE", help="a file laid over the catalog: new GPUs, labels, resource names")
    help_ = "who makes the GPU nodes: karpenter-aws, gke, gfd, ...; auto: as Nodes and NodePools tell"
    add("--platforms", type=names, default=(), metavar="P,...", help=help_)
    add("--mig-strategy", default="", metavar="|".join(MIG_STRATEGIES), help="the device plugin's; default: mixed, in a cluster auto")
    add("--queues", type=names, default=(), metavar="Q,...", help=f"queue systems in use: {', '.join(QUEUES)}")
    add("--max-mode", default="Enforce", metavar="|".join(MODES), help="no policy does more than this; default: Enforce")


def sources_from(args: argparse.Namespace) -> Sources:
    """Return the sources that the options name; nothing is checked yet."""
    return Sources(
        policies=tuple(args.policies),
        facts=tuple(args.facts),
        catalog=args.catalog,
        platforms=args.platforms,
        mig_strategy=args.mig_strategy,
        queues=args.queues,
        max_mode=args.max_mode,
    )


def snapshot_from(args: argparse.Namespace, given: Sequence[object] = (), *, all_nodes: bool = False) -> Snapshot:
    """Build the snapshot from the options, and print warnings to standard error.

    ``given``: objects that are facts in addition to those of --facts; ``all_nodes``: there are no other nodes and NodePools.

    Raises SourcesError with every InputError; the command then exits with 2.
    """
    loaded = load(sources_from(args), given, all_nodes=all_nodes)
    for line in loaded.warnings:
        stderr.say(line)
    return loaded.snapshot


def names(text: str) -> tuple[str, ...]:
    """Return ``a,b`` as a tuple, each name once."""
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
