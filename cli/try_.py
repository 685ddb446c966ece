"""`berth try`: what the policies make of manifests, without a cluster.

Standard output has the manifests (a diff, YAML, JSON) or the AdmissionReview answers; standard error has one line per object and
what its author should know. Exit code 0: all admitted; 1: something refused; 2: bad input (what could be read is still judged).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TextIO

from cli import said, shown
from cli.inputs import Inputs
from cli.judge import Outcome, judge
from cli.manifests import read
from cli.options import add_snapshot_options, snapshot_from
from policies.compiled import Compiled
from policies.document import Document, InputError, objects
from policies.snapshot import Snapshot
from policies.verdict import MODES, Mode

DEFAULT_PLATFORM = "karpenter-aws"
ADMITTED, REFUSED, BAD_INPUT = 0, 1, 2


def add_parser(subcommands: Any) -> None:
    """Adds `try` to the command's subparsers."""
    parser: argparse.ArgumentParser = subcommands.add_parser(
        "try",
        help="show what the policies make of manifests",
        description="Judge manifests as the admission server would, and show its edits. "
        "Exit code 0: all admitted, 1: something refused, 2: bad input.",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="YAML or JSON file, folder, or - for standard input")
    add_snapshot_options(parser)
    parser.add_argument("--namespace", "-n", metavar="NS", default="default", help="for objects that name none (default: default)")
    parser.add_argument("--namespace-labels", metavar="K=V,...", type=_labels, default={}, help="labels of that namespace")
    parser.add_argument("--as", dest="as_mode", choices=MODES, help="judge as if every policy were in this mode")
    parser.add_argument(
        "--output", "-o", choices=("diff", "yaml", "json", "review"), help="form of the output (default: diff on a terminal, else yaml)"
    )
    parser.set_defaults(run=run)


def _labels(text: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in text.split(",") if part]
    for key, equals, _ in pairs:
        if not key or not equals:
            raise argparse.ArgumentTypeError(f'"{text}" is not of the form team=research,tier=dev')
    return {key: value for key, _, value in pairs}


def run(args: argparse.Namespace) -> int:
    """Judges and prints; returns the exit code. Raises InputError for policies, facts or a catalog that cannot be read."""
    if not args.platforms:
        args.platforms = (DEFAULT_PLATFORM,)
        print(f"berth: assuming --platforms {DEFAULT_PLATFORM}", file=sys.stderr)
    inputs = Inputs(args.files, args.namespace)
    trial = Trial(
        snapshot=_supposed(snapshot_from(args, inputs.facts), args),
        inputs=inputs,
        as_served=args.output == "review",
        out=shown.output(args.output, sys.stdout),
        err=sys.stderr,
    )
    try:
        code = trial.run()
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return trial.code
    return code


def _supposed(snapshot: Snapshot, args: argparse.Namespace) -> Snapshot:
    """The snapshot with what --as and --namespace-labels suppose."""
    if args.as_mode:
        snapshot = snapshot.with_policies(_in_mode(snapshot, args.as_mode))
    if args.namespace_labels:
        known = snapshot.cluster.namespaces
        labels = {**known.get(args.namespace, {}), **args.namespace_labels}
        snapshot = snapshot.with_facts(replace(snapshot.cluster, namespaces={**known, args.namespace: labels}))
    return snapshot


def _in_mode(snapshot: Snapshot, mode: Mode) -> Iterator[Compiled]:
    return (replace(c, mode=mode, policy=replace(c.policy, mode=mode)) for c in snapshot.policies)


@dataclass(slots=True, kw_only=True)
class Trial:
    """One run over all files: where it prints, and what it found so far."""

    snapshot: Snapshot
    inputs: Inputs
    as_served: bool
    """reviews are read as the server reads them"""
    out: shown.Output
    err: TextIO
    code: int = field(default=ADMITTED)
    platform: dict[str, None] = field(default_factory=dict)
    """what is for the platform team, each line once, in order"""

    def run(self) -> int:
        for found in self.inputs.found:
            if isinstance(found, InputError):
                self._tell(found)
            else:
                self._document(found)
        self.err.write("".join(f"{line}\n" for line in self.platform))
        self.out.end()
        return self.code

    def _document(self, document: Document) -> None:
        """Judges each object of a document; one that cannot be judged passes through as it is."""
        outcomes = []
        for item in objects(document):
            try:
                outcomes.append(self._judged(item))
            except InputError as error:
                self._tell(error)
        self.out.document(document, outcomes)

    def _judged(self, item: Document | InputError) -> Outcome:
        if isinstance(item, InputError):
            raise item
        if unfilled := next(self._unfilled(item), None):
            raise unfilled
        namespace, catalog = self.inputs.namespace, self.snapshot.catalog
        manifest = read(item, catalog, namespace, as_served=self.as_served, around=self.inputs.around)
        outcome = judge(manifest, self.snapshot)
        self.code = max(self.code, REFUSED if outcome.refused else ADMITTED)
        self.err.write("".join(f"{line}\n" for line in said.lines(outcome)))
        self.platform.update(dict.fromkeys(said.of_platform(outcome)))
        return outcome

    def _unfilled(self, item: Document) -> Iterator[InputError]:
        """A template's placeholders in an object. One in place of an accelerator's amount is judged as the amount that it is not."""
        for error in item.unfilled:
            inside = error.path[: len(item.path)] == item.path
            amount = error.path[-2:-1] in (("limits",), ("requests",)) and self.snapshot.resource(str(error.path[-1])) is not None
            if inside and not amount:
                yield error

    def _tell(self, error: InputError) -> None:
        self.code = BAD_INPUT
        self.err.write(f"{error}\n")
