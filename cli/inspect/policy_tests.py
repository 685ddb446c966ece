"""`berth test`: runs the test cases of policy authors, a pod in and what is expected of it out.

Exit code 0: all pass; 1: a case fails, or too few fields of policies are exercised; 2: bad input.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Mapping
from typing import Any

from cli.options import add_snapshot_options
from cli.output import stderr
from cli.policy_cases import case as cases
from cli.policy_cases import files
from cli.policy_cases.files import Seen
from cli.policy_cases.results import format_results
from cli.policy_cases.run import Fill, Run
from cli.policy_cases.run import run as run_cases
from cli.terminal import screen

PASSED, FAILED, BAD_INPUT = 0, 1, 2
FORMS = ("text", "junit", "json")
LOOK = 1.0
"""Seconds between two looks at the files under --watch: of a thousand only stat is called, which takes some 10 ms."""


def add_parser(subcommands: Any) -> None:
    """Add `test` to the command's subparsers."""
    parser: argparse.ArgumentParser = subcommands.add_parser(
        "test",
        help="run policy test cases",
        description="Run policy test cases. A case has a pod and the expected outcome. Shows a diff for each failed case, and the "
        "policy fields that no case covers. The options for policies and facts are defaults for the cases. "
        "Exit code 0: all cases pass, 1: a case fails or coverage is too low, 2: invalid input.",
        examples=(
            ("Run all cases in a folder", "%(prog)s tests/"),
            ("In CI: write JUnit XML, and fail if a policy field has no case", "%(prog)s tests/ -o junit --min-coverage 100"),
            ("Fill in the expected outcome of new cases", "%(prog)s tests/ --write"),
            ("Run again at each change", "%(prog)s tests/ --watch"),
        ),
    )
    add = parser.add_argument
    add("paths", nargs="+", metavar="PATH", help="file with test cases, or folder: all YAML files below it")
    add("--output", "-o", choices=FORMS, default="text", help="output format; default: text")
    add(
        "--min-coverage",
        type=_percent,
        default=0.0,
        metavar="PERCENT",
        help="fail if the cases cover less than PERCENT of the policy fields",
    )
    add("--write", action="store_true", help="fill in each empty expect with the actual outcome")
    add("--overwrite", action="store_true", help="rewrite every expect that differs, not only empty ones")
    add("--watch", action="store_true", help="run again when a file changes, until Ctrl-C")
    add_snapshot_options(parser)
    parser.set_defaults(run=run)


def _percent(written: str) -> float:
    try:
        value = float(written.removesuffix("%"))
    except ValueError:
        value = -1.0
    if not 0 <= value <= 100:  # NaN is not
        raise argparse.ArgumentTypeError(f'"{written}" is not a percentage from 0 to 100')
    return value


def run(args: argparse.Namespace) -> int:
    """Run once, or again and again, and return the exit code of the last run."""
    defaults = _defaults(args)
    code, seen = _once(args, defaults)
    if args.watch:
        for _ in files.settled(seen, lambda: time.sleep(LOOK)):
            print("--- changed", flush=True)
            code, now = _once(args, defaults)
            seen.clear()
            seen |= now
    return code


def _once(args: argparse.Namespace, defaults: Mapping[str, Any]) -> tuple[int, Seen]:
    fill: Fill = "all" if args.overwrite else "empty" if args.write else "nothing"
    found = run_cases(args.paths, defaults, fill)
    for line in (*found.warnings, *(f"{error.place}: {error.message}" for error in found.errors)):
        stderr.say(line)
    sys.stdout.write(format_results(args.output, found, args.min_coverage, screen.output()))
    sys.stdout.flush()
    return code(found, args.min_coverage), found.seen


def code(found: Run, least: float) -> int:
    """Return the exit code of a run. ``least``: the percentage of fields that must be exercised."""
    if found.errors:
        return BAD_INPUT
    return FAILED if found.failed or found.coverage.percent < least else PASSED


def _defaults(args: argparse.Namespace) -> dict[str, Any]:
    """Return what stands for the keys that a case leaves out."""
    given = {
        "policies": [os.path.abspath(path) for path in args.policies],
        "facts": [os.path.abspath(path) for path in args.dumps],
        "catalog": [os.path.abspath(args.catalog)] if args.catalog else [],
        "platforms": list(args.platforms),
        "migStrategy": args.mig_strategy,
        "queues": list(args.queues),
        "maxMode": args.max_mode,
    }
    return {**cases.DEFAULTS, **{key: value for key, value in given.items() if value}}
