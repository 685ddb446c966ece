"""The options that subcommands share: the sources from which a snapshot is built, and the cluster that is read."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from catalog import Catalog
from cli.output import stderr
from cli.terminal.progress import reading
from kube.karpenter import describe_removed
from policies.document import InputError
from policies.state.snapshot import Snapshot
from policies.state.updater import QUEUES, Options
from policies.verdict import MODES, Mode
from sources.sources import MIG_STRATEGIES, Origin, Sources, load_sources, of_a_cluster

if TYPE_CHECKING:
    from sources.state import ClusterState  # imports aiohttp, which takes a tenth of a second

DEFAULT_PLATFORM = "karpenter-aws"
DUMP_POLICIES = "kubectl get clustergpupolicies,gpupolicies,gpunodetemplates -A -o yaml > policies.yaml"


def add_snapshot_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--policies`` to ``--max-mode``.

    Options that name files take one each and may be repeated: with several values ``berth try --policies DIR
    FILE`` would take the manifest for a policy.
    """
    group = parser.add_argument_group("policies and facts")
    add = group.add_argument
    add(
        "--policies",
        action="append",
        default=[],
        metavar="PATH",
        help="policy file or folder; repeatable; default: the policies of the cluster or of --from; "
        "for a manifest (try, why -f) without any, berth-default",
    )
    add_from_option(group)
    add("--catalog", metavar="FILE", help="file that extends the GPU catalog: new GPUs, labels, resource names")
    help_ = (
        "node platforms of the cluster: karpenter-aws, eks-auto, eks-nodegroup, hyperpod, gke, aks, karpenter-azure, "
        "gfd (your own hardware); auto: detect them from Nodes and NodePools; default in a cluster: those of its server"
    )
    add("--platforms", type=names, default=(), metavar="P,...", help=help_)
    add(
        "--mig-strategy",
        default="",
        metavar="|".join(MIG_STRATEGIES),
        help="MIG strategy of the NVIDIA device plugin; default: mixed, or auto if a cluster is read",
    )
    add("--queues", type=names, default=(), metavar="Q,...", help=f"queue systems that decide where pods run: {', '.join(QUEUES)}")
    help_ = "namespaces of operators, whose service accounts create pods for workloads; kube-system is always included"
    add("--platform-namespaces", type=names, default=(), metavar="NS,...", help=help_)
    help_ = "highest mode of any policy; default: Enforce (effective, why, audit and console: the cap of the cluster's server)"
    add("--max-mode", default="", metavar="|".join(MODES), help=help_)


def add_from_option(parser: argparse._ActionsContainer) -> None:
    """Add ``--from``, and ``--facts``, its name in 0.1, which help does not show."""
    help_ = "file or folder to read instead of a cluster, such as a dump of kubectl get -o yaml; repeatable"
    for option, text in (("--from", help_), ("--facts", argparse.SUPPRESS)):
        parser.add_argument(option, dest="dumps", action="append", default=[], metavar="PATH", help=text)


def add_cluster_options(parser: argparse.ArgumentParser, *, pods_of_all: bool = False) -> None:
    """Add ``--kubeconfig`` and ``--context``; with ``pods_of_all``, for commands that look at all pods of a cluster, ``--namespace`` and
    ``--prices`` too."""
    add = parser.add_argument
    if pods_of_all:
        add("--namespace", "-n", metavar="NS", help="only pods in this namespace; default: all namespaces")
        add("--prices", metavar="FILE", help="YAML or JSON file with USD per hour, by instance type or by GPU model (per device)")
    add("--kubeconfig", metavar="FILE", help="kubeconfig of the cluster; default: the same as kubectl")
    add("--context", metavar="NAME", help="context in the kubeconfig; default: the current context")


def read_cluster(args: argparse.Namespace, catalog: Catalog, instead: str = "") -> ClusterState:
    """Read the cluster that the options name, and print what could not be read. ``instead``: as of ``read_whole``. Raises InputError."""
    from sources.state import read_whole

    with reading() as progress:
        state = read_whole(origin_from(args), args.namespace, catalog, progress.read, instead)
    for reason in state.unread.values():
        stderr.say(f"{reason}; results that depend on it are unknown")
    say_ignored(state.ignored)
    return state


def assumed_platforms() -> tuple[str, ...]:
    """Return the platform of somebody who names none and has no nodes to tell it, and print which."""
    stderr.say(f"assuming --platforms {DEFAULT_PLATFORM}")
    return (DEFAULT_PLATFORM,)


def add_mode_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--as``."""
    parser.add_argument("--as", dest="as_mode", choices=MODES, help="evaluate every policy as if it were in this mode")


def in_mode(snapshot: Snapshot, mode: Mode) -> Snapshot:
    """Return the snapshot with every policy in this mode."""
    return snapshot.with_policies(replace(one, mode=mode, policy=replace(one.policy, mode=mode)) for one in snapshot.policies)


def sources_from(args: argparse.Namespace) -> Sources:
    """Return the sources that the options name; nothing is checked yet."""
    return Sources(
        policies=tuple(args.policies),
        facts=tuple(args.dumps),
        catalog=args.catalog,
        platforms=args.platforms,
        mig_strategy=args.mig_strategy,
        queues=args.queues,
        platform_namespaces=args.platform_namespaces,
        max_mode=args.max_mode,
        console_url=getattr(args, "console_url", ""),
        follows_server=getattr(args, "follows_server", frozenset()),
    )


def origin_from(args: argparse.Namespace, *, both: bool = False) -> Origin:
    """Return where the options say that a cluster is read. ``both``: files and a cluster may be named together. Raises InputError."""
    origin = Origin(kubeconfig=args.kubeconfig, context=args.context, dumps=tuple(args.dumps))
    if origin.dumps and origin.is_cluster and not both:
        raise InputError(file="--from", message="reads files instead of a cluster; remove --kubeconfig and --context")
    return origin


def no_policies(origin: Origin, command: str) -> InputError:
    """Return the error on a cluster, or on files, without policies. ``command``: what to type instead."""
    if origin.dumps:
        message = f"has no policy; dump the cluster's and add --from policies.yaml: {DUMP_POLICIES}; or name policies: {command}"
        return InputError(file=", ".join(origin.dumps), message=message)
    return InputError(file="cluster", message=f"Berth is not installed there; pass the policies to evaluate: {command}")


def as_of_a_cluster(args: argparse.Namespace) -> argparse.Namespace:
    """Return the options, as of a command that reads a cluster (``of_a_cluster``)."""
    sources = of_a_cluster(sources_from(args))
    taken = {"platforms": sources.platforms, "mig_strategy": sources.mig_strategy, "follows_server": sources.follows_server}
    return argparse.Namespace(**{**vars(args), **taken})


def say_capped(snapshot: Snapshot, chosen: Options) -> None:
    """Print that the cluster's server caps the modes of its policies, if it does."""
    if snapshot.max_mode != chosen.max_mode:
        stderr.say(
            f"the server runs with --max-mode {snapshot.max_mode}, which caps every policy; to ignore the cap, add --max-mode Enforce"
        )


def snapshot_from(
    args: argparse.Namespace, given: Sequence[object] = (), *, state: Sequence[object] | None = None, all_nodes: bool = False
) -> Snapshot:
    """Build the snapshot from the options, and print warnings to standard error.

    ``given``: objects that are facts in addition to those of --from; ``state``: all facts, read of a cluster or of --from;
    ``all_nodes``: there are no other nodes and NodePools.

    Raises SourcesError with every InputError; the command then exits with 2.
    """
    sources = sources_from(args) if state is None else replace(sources_from(args), facts=())
    loaded = load_sources(sources, given if state is None else state, all_nodes=all_nodes)
    for line in loaded.warnings:
        stderr.say(line)
    say_ignored(loaded.ignored)
    return loaded.snapshot


def say_ignored(ignored: Mapping[str, int]) -> None:
    """Print the kinds of the files of which nothing was read."""
    if ignored:
        counted = ", ".join(f"{count} {kind}" for kind, count in sorted(ignored.items()))
        stderr.say(f"ignored in the files: {counted}")
    for sentence in describe_removed(ignored):
        stderr.say(sentence)


def names(text: str) -> tuple[str, ...]:
    """Return ``a,b`` as a tuple, each name once."""
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
