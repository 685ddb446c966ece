"""`berth try`: judges manifests by the policies, without a cluster.

Standard output has the manifests (a diff, YAML, JSON) or the AdmissionReview answers; standard error has one
line per object, with violations and warnings for its author. Exit code 0: all admitted; 1: something denied;
2: bad input (everything that could be read is still judged).
"""

from __future__ import annotations

import argparse
import errno
import os
import sys
from dataclasses import dataclass, field, replace
from typing import Any, TextIO

from analysis.admission import report
from analysis.admission.manifest_results import ManifestResult, admit_manifest
from analysis.admission.manifests import read_manifest
from analysis.admission.namespace_limits import find_unchecked
from analysis.admission.patch_applier import apply_patch
from analysis.admission_preview import Admission
from cli.options import add_mode_option, add_snapshot_options, assumed_platforms, in_mode, snapshot_from
from cli.output import manifests, stderr
from cli.terminal import screen
from cli.terminal.stdout import OutputError
from policies.document import Document, InputError, objects
from policies.placement import unchecked
from policies.state.snapshot import Snapshot
from sources.inputs import Inputs, unfilled

ADMITTED, DENIED, BAD_INPUT = 0, 1, 2
_NO_PLATFORM = (
    "--platforms auto finds no platform: no Node or NodePool in the input shows one, so what policies say of nodes is not written;"
    " name it, such as --platforms karpenter-aws, or add --from nodes.yaml"
)


def add_parser(subcommands: Any) -> None:
    """Add `try` to the command's subparsers."""
    parser: argparse.ArgumentParser = subcommands.add_parser(
        "try",
        help="show how policies change manifests, or why they deny them",
        description="Check manifests as the admission server would, and show the changes. Reads no cluster. "
        "Exit code 0: everything admitted, 1: something denied, 2: invalid input.",
        examples=(
            ("Show what Berth would change, as a diff", "%(prog)s -o diff train.yaml"),
            (
                "With your own policies, on GKE, as if all were in Enforce",
                "%(prog)s --policies policies/ --platforms gke --as Enforce train.yaml",
            ),
            ("Check what Helm would install", "helm template chart/ | %(prog)s -n research -"),
            ("Apply the admitted manifest", "%(prog)s train.yaml | kubectl apply -f -"),
        ),
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="YAML or JSON file, folder, or - for standard input")
    add_snapshot_options(parser)
    parser.add_argument("--namespace", "-n", metavar="NS", help="namespace of objects that set none (default: default)")
    help_ = "labels of the namespace: of --namespace, or without it of the only one that the objects set"
    parser.add_argument("--namespace-labels", metavar="K=V,...", type=_labels, default={}, help=help_)
    add_mode_option(parser)
    parser.add_argument(
        "--output", "-o", choices=("diff", "yaml", "json", "review"), help="output format (default: diff on a terminal, else yaml)"
    )
    parser.set_defaults(run=run)


def _labels(text: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in text.split(",") if part]
    for key, equals, _ in pairs:
        if not key or not equals:
            raise argparse.ArgumentTypeError(f'"{text}" is not a list of labels; write for example team=research,tier=dev')
    return {key: value for key, _, value in pairs}


def run(args: argparse.Namespace) -> int:
    """Judge, print and return the exit code. Raises InputError for unreadable policies, facts or catalog."""
    if not args.platforms:
        args.platforms = assumed_platforms()
    inputs = Inputs.of_files(args.files, args.namespace or "default")
    snapshot = snapshot_from(args, inputs.facts)
    if not snapshot.placed and any(c.require or c.machine or c.capacity or c.capacity_long for c in snapshot.policies):
        stderr.say(_NO_PLATFORM)
    trial = Trial(
        admission=Admission(_supposed(snapshot, args, inputs.namespaces), apply_patch),
        inputs=inputs,
        as_served=args.output == "review",
        out=manifests.output(args.output, sys.stdout),
        err=sys.stderr,
    )
    try:
        code = trial.run()
        sys.stdout.flush()
    except OutputError as error:
        if error.errno != errno.EPIPE:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return trial.code
    return code


def _supposed(snapshot: Snapshot, args: argparse.Namespace, namespaces: frozenset[str]) -> Snapshot:
    """Return the snapshot with the modes of --as and the labels of --namespace-labels. ``namespaces``: those of the objects."""
    if args.as_mode:
        snapshot = in_mode(snapshot, args.as_mode)
    if args.namespace_labels:
        labelled = args.namespace or (min(namespaces) if len(namespaces) == 1 else "default")
        for other in sorted(namespaces - {labelled}):
            stderr.say(f"--namespace-labels are the labels of namespace {labelled}, not of {other}; for those, add -n {other}")
        known = snapshot.cluster.namespaces
        labels = {**known.get(labelled, {}), **args.namespace_labels}
        snapshot = snapshot.with_facts(replace(snapshot.cluster, namespaces={**known, labelled: labels}))
    return snapshot


@dataclass(slots=True, kw_only=True)
class Trial:
    """One run over all files, with its output and its results so far."""

    admission: Admission
    inputs: Inputs
    as_served: bool
    """True if reviews are read as the server reads them."""
    out: manifests.Output
    err: TextIO
    code: int = field(default=ADMITTED)
    platform: dict[str, None] = field(default_factory=dict)
    """The lines for the platform team, each once, in order."""
    unchecked: set[unchecked.Unchecked] = field(default_factory=set)
    """What decides about the pods and was not checked: places never are."""

    def run(self) -> int:
        for found in self.inputs.found:
            if isinstance(found, InputError):
                self._tell(found)
            else:
                self._document(found)
        self.err.write("".join(f"{line}\n" for line in self.platform))
        if self.unchecked:
            self.err.write(f"not checked: {unchecked.words(self.unchecked)}; to check them: {stderr.name()} why -f FILE\n")
        self.out.end()
        return self.code

    def _document(self, document: Document) -> None:
        """Judge each object of a document; one that cannot be judged is passed through unchanged."""
        outcomes = []
        for item in objects(document):
            try:
                outcomes.append(self._judged(item))
            except InputError as error:
                self._tell(error)
        self.out.document(document, outcomes)

    def _judged(self, item: Document | InputError) -> ManifestResult:
        if isinstance(item, InputError):
            raise item
        if (error := next(unfilled(item, self.admission.snapshot), None)) is not None:
            raise error
        namespace, catalog = self.inputs.namespace, self.admission.snapshot.catalog
        manifest = read_manifest(item, catalog, namespace, as_served=self.as_served, around=self.inputs.around)
        outcome = admit_manifest(manifest, self.admission)
        self.code = max(self.code, DENIED if outcome.denied else ADMITTED)
        style: screen.Style | None = "bad" if outcome.denied else "good" if any(pod.is_evaluated for pod in outcome.pods) else None
        lines = report.report_lines(outcome, lambda verdict: screen.errors().paint(style, verdict))
        self.err.write("".join(f"{line}\n" for line in lines))
        self.platform.update(dict.fromkeys(report.of_platform(outcome)))
        if any(pod.is_evaluated for pod in outcome.pods):
            self.unchecked.update(("nodes", *find_unchecked(manifest.namespace, self.admission.snapshot.cluster)))
        return outcome

    def _tell(self, error: InputError) -> None:
        self.code = BAD_INPUT
        self.err.write(f"{stderr.line(error)}\n")
