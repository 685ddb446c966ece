"""`berth why`: why a pod or workload does not run, by place, in whose words, and the smallest change that mends it; why its
pods are denied; or what policies made of it. Nothing is written to a cluster.

Exit code 0: answered; 2: bad input, with advice what to type.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from analysis.admission.manifests import Manifest
from analysis.admission_preview import Admission
from analysis.conditions.server_options import UsedPlatforms, as_served, selected_platforms, used_platforms
from analysis.why.surroundings import Surroundings, made_of
from catalog import Catalog
from catalog.nearest import list_known
from catalog.prices import prices
from cli.options import (
    add_cluster_options,
    add_snapshot_options,
    as_of_a_cluster,
    origin_from,
    say_capped,
    say_ignored,
    snapshot_from,
    sources_from,
)
from cli.output import stderr
from cli.terminal import screen
from cli.terminal.progress import reading
from documents.files import read_objects
from kube.templates import full_kind
from kube.tree import Raw
from policies.document import InputError
from policies.facts.device_modes import published
from policies.objects import definition
from policies.placement.fleet import OUTLOOKS, Fleet, fleet_of
from policies.state.snapshot import Snapshot
from policies.state.updater import Options, Updater
from sources.sources import options

MOST_OBJECTS = 4
"""Objects of a file that an error names."""
OUTCOMES = (None, *OUTLOOKS, "denied")
"""What may come of a workload of a file, the worst last."""


def add_parser(subcommands: Any) -> None:
    """Add `why` to the command's subparsers."""
    parser: argparse.ArgumentParser = subcommands.add_parser(
        "why",
        help="explain why a pod or workload does not run, and suggest a fix",
        description="Explain why a pod or workload does not run: what blocks it on each node group, the messages of the scheduler, "
        "Karpenter and Kueue, which policy denies it, and the smallest change that fixes it. Changes nothing in the cluster. "
        "Exit code 0: success, 2: invalid input.",
        examples=(
            ("Explain why a pod is pending", "%(prog)s pod/train-0 -n research"),
            ("Explain why a Job has no pods, and write the fix to a file", "%(prog)s job/train --fix fix.yaml"),
            ("Check a manifest before you create it, against a dump of a cluster", "%(prog)s -f train.yaml --from dump.yaml"),
        ),
    )
    add = parser.add_argument
    add(
        "target",
        nargs="*",
        metavar="TYPE/NAME",
        help="pod/NAME or pod NAME, deploy/NAME, job/NAME, or another kind of workload, such as pytorchjob/NAME",
    )
    add(
        "--file",
        "-f",
        metavar="FILE",
        help="explain a manifest that is not created yet, or of several the TYPE/NAME; -: standard input; with --from, no cluster is read",
    )
    add("--namespace", "-n", metavar="NS", help="namespace; default: that of the kubeconfig context")
    add("--output", "-o", choices=("text", "json"), default="text", help="output format; default: text")
    add("--fix", metavar="FILE", help="write the fixed object to FILE")
    add_cluster_options(parser)
    add_snapshot_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the answer. Raises InputError and SourcesError if there is none."""
    from analysis.why import values
    from cli.inspect import why_text as text

    if not args.target and args.file is None:
        raise InputError(file="why", message="needs TYPE/NAME or -f FILE, for example: berth why pod/train-0")
    args = as_of_a_cluster(args)
    catalog, chosen = options(sources_from(args))
    found = _of_file(args, catalog, chosen) if args.file else _of_cluster(args, catalog, chosen)
    sys.stdout.write(
        values.format_explanation(found) if args.output == "json" else text.format_why(found, datetime.now(UTC), screen.output())
    )
    if args.fix:
        _fix(args.fix, found.value)
    return 0


def _of_cluster(args: argparse.Namespace, catalog: Catalog, chosen: Options) -> Any:
    from sources.surroundings import kind_of, read_surroundings

    title, (type_, name) = "/".join(args.target), _target(args.target)
    kind_of(type_, catalog)
    with reading() as progress:
        asked = read_surroundings(origin_from(args, both=True), args.namespace, (type_, name), catalog, progress.read)
    explainer = _explainer(args, asked, catalog, chosen, asked.pods)
    return explainer.of_object(title, asked, made_of(asked, catalog))


def _target(words: Sequence[str]) -> tuple[str, str]:
    """Return the type and the name, which are written as kubectl takes them: ``pod/train-0`` or ``pod train-0``. Raises InputError."""
    written = " ".join(words)
    parts = words[0].split("/") if len(words) == 1 else list(words)
    if len(parts) > 2:
        raise InputError(file=written, message="names more than one object; explain one at a time, for example pod/train-0")
    if len(parts) < 2 or not all(parts):
        raise InputError(file=written, message=f"is not TYPE/NAME; write for example pod/{parts[0] or 'train-0'}")
    if "/" in "".join(parts):
        raise InputError(file=written, message=f"has a type twice; write {parts[0].partition('/')[0]}/{parts[1].rpartition('/')[2]}")
    return parts[0], parts[1]


def _of_file(args: argparse.Namespace, catalog: Catalog, chosen: Options) -> Any:
    """Return the explanation of the workload of a file that was named, or else of the one with the worst outcome."""
    from analysis.admission.manifests import read_manifest

    manifests = [read_manifest(item, catalog, args.namespace or "default") for item in read_objects([args.file])]
    workloads = {f"{manifest.kind.lower()}/{manifest.name}": manifest for manifest in manifests if manifest.subjects}
    if not workloads:
        raise InputError(file=args.file, message=f"has no pod and no workload that creates pods{_podless(manifests, catalog, chosen)}")
    say_ignored(Counter(full_kind(other.value) for other in manifests if not other.subjects))
    pods = [subject.review.pod for manifest in workloads.values() for subject in manifest.subjects]
    read = _FileReader(args, catalog, chosen, pods)
    if args.target or len(workloads) == 1:
        title = _named(args.target, workloads, args.file, catalog) if args.target else next(iter(workloads))
        return read.explain(title, workloads[title])
    explanations = {title: read.explain(title, manifest) for title, manifest in workloads.items()}
    outcomes = {title: "denied" if result.state == "denied" else result.outlook for title, result in explanations.items()}
    worst = max(outcomes, key=lambda title: OUTCOMES.index(outcomes[title]))
    return replace(explanations[worst], beside={title: outcome for title, outcome in outcomes.items() if title != worst})


def _podless(manifests: Sequence[Manifest], catalog: Catalog, chosen: Options) -> str:
    """Return what the objects of a file are and why they have no pods, as a part of a sentence."""
    from analysis.admission import manifest_results, report

    admission = Admission(Updater(catalog, chosen).apply({}).snapshot)
    results = [manifest_results.admit_manifest(manifest, admission) for manifest in manifests[:MOST_OBJECTS]]
    objects = [f"{result.manifest.kind} {result.manifest.name}: {report.describe_podless(result)}" for result in results]
    more = f"; and {len(manifests) - MOST_OBJECTS} more objects" if len(manifests) > MOST_OBJECTS else ""
    return f"; {'; '.join(objects)}{more}" if objects else ""


def _named(words: Sequence[str], workloads: Mapping[str, Manifest], file: str, catalog: Catalog) -> str:
    """Return the title of the workload that TYPE/NAME names. Raises InputError if the file has none."""
    from sources.surroundings import kind_of

    type_, name = _target(words)
    kinds = {workload.kind.lower() for workload in kind_of(type_, catalog)} | ({"pod"} if type_.lower() in ("pod", "pods", "po") else set())
    title = next((title for title, manifest in workloads.items() if manifest.kind.lower() in kinds and manifest.name == name), None)
    if title is None:
        raise InputError(file=file, message=f"has no {type_}/{name}; it has {list_known(workloads, MOST_OBJECTS)}")
    return title


class _FileReader:
    """Explains workloads of a file, and reads the policies and places of each namespace once."""

    def __init__(self, args: argparse.Namespace, catalog: Catalog, chosen: Options, pods: Sequence[Raw]) -> None:
        """``pods``: those of all workloads of the file."""
        self._args, self._catalog, self._chosen, self._pods = args, catalog, chosen, pods
        self._explainers: dict[str, Any] = {}

    def explain(self, title: str, manifest: Manifest) -> Any:
        """Return the explanation of one workload."""
        from sources.surroundings import DEPLOYMENT, read_surroundings

        target = (DEPLOYMENT, manifest.name) if manifest.kind == DEPLOYMENT and manifest.name else None
        origin = origin_from(self._args, both=True)
        with reading() as progress:
            around = read_surroundings(origin, manifest.namespace, target, self._catalog, progress.read, may_lack=True)
        if manifest.namespace not in self._explainers:
            self._explainers[manifest.namespace] = _explainer(self._args, around, self._catalog, self._chosen, self._pods)
        return self._explainers[manifest.namespace].of_manifest(title, manifest, list(around.unread.values()), around)


def _explainer(args: argparse.Namespace, around: Surroundings, catalog: Catalog, chosen: Options, pods: Sequence[Raw]) -> Any:
    from analysis.why.explain import Explainer

    served = as_served(chosen, around.objects, catalog)
    snapshot, advised = _snapshot(args, around, catalog, chosen, served), None
    used = used_platforms(snapshot, chosen, served, around.unread)
    platforms = selected_platforms(pods, catalog) if used.source == "unread" else served.platforms
    if not args.policies and ("ClusterGPUPolicy" in around.unread or not around.installed or used.source == "unread"):
        advised = Admission(_of_default(args, around, replace(served, platforms=platforms)))
        used = UsedPlatforms(platforms, "selected") if used.source == "unread" and platforms else used
    return Explainer(Admission(snapshot), _fleet(around, snapshot), prices(catalog), advised=advised, platforms=used)


def _snapshot(args: argparse.Namespace, asked: Surroundings, catalog: Catalog, chosen: Options, served: Options) -> Snapshot:
    """Return the policies of --policies over the facts, or the cluster's own: none where Berth is not installed. For a manifest, and files
    without policies in place of a cluster, the default policy."""
    say_ignored(asked.ignored)
    origin = origin_from(args, both=True)
    if args.policies or (args.file and origin.dumps and not origin.is_cluster and not asked.installed):
        if not args.policies:
            stderr.say(f"{', '.join(origin.dumps)}: has no policies, so berth-default is used; to use others, add --policies PATH")
        return _of_default(args, asked, served)
    snapshot = Updater(catalog, served).apply(asked.objects).snapshot
    say_capped(snapshot, chosen)
    return snapshot


def _of_default(args: argparse.Namespace, around: Surroundings, served: Options) -> Snapshot:
    """Return the policies of --policies, or the default policy, over the facts."""
    args = argparse.Namespace(**{**vars(args), "platforms": served.platforms, "queues": served.queues})
    facts = [value for key, value in around.objects.items() if value and key[0] not in definition.KINDS]
    return snapshot_from(args, state=facts)


def _fleet(asked: Surroundings, snapshot: Snapshot) -> Fleet | None:
    """Return the places; None if neither nodes nor NodePools are known."""
    if not asked.places and ("Node" in asked.unread or not asked.objects):
        return None
    open_ended = True if "Node" in asked.unread or "NodePool" in asked.unread else None
    return fleet_of(
        asked.places,
        catalog=snapshot.catalog,
        tables=snapshot.tables,
        occupants=asked.occupants,
        published=published(snapshot.cluster),
        open_ended=open_ended,
    )


def _fix(file: str, value: Any) -> None:
    """Write the object with the change, if there is one. Raises InputError if the file can't be written."""
    from documents import yaml_writer

    if value is None:
        stderr.say(f"{file} was not written: there is no change to make")
        return
    try:
        Path(file).write_text(yaml_writer.write_yaml(value), encoding="utf-8")
    except OSError as error:
        raise InputError(file=file, message=f"cannot be written: {error.strerror}") from None
    stderr.say(f"wrote {file}")
