"""Text that would do something to a terminal, through every command that shows text from outside, on a real terminal."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.main import main
from tests.analysis.audit.test_workload_report import made, outcome
from tests.cli.policy_cases.test_run import case
from tests.cli.replaying.events import event
from tests.cli.terminal.pseudo_terminal import shown_here
from tests.support.counts import only_in_prove
from tests.support.recorded.parts import GPU, node, pod

EVIL = "\x1b]0;owned\x07\x1b[31mred\x9b2J\u202eabc\u2066\u200b\r\x08x\x7f\n\u2028forged"
"""An escape that names the window, one that colours, C1, marks of direction, what has no width, a carriage return, ends of lines."""
MARK = "owned"
Raw = dict[str, Any]
OURS = re.compile(r"\x1b\[(?:0|1|31|32|33|36)m")
POLICY: Raw = {
    "apiVersion": "berth.dev/v1alpha1",
    "kind": "ClusterGPUPolicy",
    "metadata": {"name": "few"},
    "spec": {"mode": "Enforce", "require": {"gpusPerPod": {"max": 2}}, "default": {"gracePeriod": "10m"}},
}


def evil_pod(count: int) -> Raw:
    """A bare pod whose every text is hostile, and that asks for so many GPUs."""
    container = {"name": EVIL, "image": EVIL, "resources": {"limits": {"nvidia.com/gpu": count}}}
    metadata = {"name": EVIL, "namespace": EVIL, "labels": {EVIL: EVIL}, "annotations": {"berth.dev/opt-out": EVIL}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], "nodeSelector": {"zone": EVIL}}}


def files(folder: Path) -> dict[str, str]:
    """Files for the commands, by names; one has a hostile name itself."""

    def write(name: str, value: object) -> str:
        (folder / name).write_text(json.dumps(value) if name.endswith(".json") else yaml.safe_dump(value))
        return str(folder / name)

    report = made(outcome("would-deny", policies=(f"ClusterGPUPolicy/{EVIL}",)), outcome(policies=("ClusterGPUPolicy/b",)))
    report["metadata"]["namespace"] = EVIL
    for result in report["results"]:
        result["message"] = EVIL
    nodes = [node("a", {"zone": EVIL, EVIL: EVIL}, {GPU: 8}, {"key": EVIL, "value": EVIL, "effect": "NoSchedule"})]
    waiting = pod(EVIL, EVIL, {GPU: 9}, nodeSelector={EVIL: EVIL})
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns", "labels": {"team": EVIL}}}
    recorded = event(evil_pod(4))
    return {
        "pod": write("pod.yaml", evil_pod(1)),
        "denied": write("denied.yaml", evil_pod(4)),
        "named": write(f"{EVIL.replace('/', '')}.yaml", evil_pod(4)),
        "policy": write("policy.yaml", POLICY),
        "before": write("before.yaml", {**POLICY, "spec": {**POLICY["spec"], "mode": "Audit"}}),
        "facts": write("facts.yaml", {"kind": "List", "apiVersion": "v1", "items": [*nodes, namespace]}),
        "dump": write("dump.yaml", {"kind": "List", "apiVersion": "v1", "items": [*nodes, waiting]}),
        "reports": write("reports.yaml", {"kind": "List", "apiVersion": "v1", "items": [report]}),
        "audit": write("audit.json", recorded),
        "case": write("case.yaml", case(why=EVIL, pod=evil_pod(8), expect={"edits": [EVIL]})),
        "catalog": write("catalog.yaml", {"gpus": [{EVIL: EVIL, "vendor": EVIL}], EVIL: EVIL}),
        "broken": write("broken.yaml", {"apiVersion": EVIL, "kind": EVIL, "metadata": {"name": "x"}, "spec": EVIL}),
    }


COMMANDS: Mapping[str, Callable[[Mapping[str, str]], list[str]]] = {
    "try": lambda f: ["try", "--policies", f["policy"], f["pod"], f["denied"]],
    "try -o yaml": lambda f: ["try", "-o", "yaml", "--policies", f["policy"], f["pod"]],
    "try -o json": lambda f: ["try", "-o", "json", "--policies", f["policy"], f["pod"]],
    "try -o review": lambda f: ["try", "-o", "review", "--policies", f["policy"], f["denied"]],
    "try, the file's name": lambda f: ["try", "--policies", f["policy"], f["named"]],
    "try, a file that is wrong": lambda f: ["try", f["broken"]],
    "why": lambda f: ["why", "-f", f["pod"], "--facts", f["facts"], "--policies", f["policy"]],
    "why -o json": lambda f: ["why", "-f", f["pod"], "--facts", f["facts"], "-o", "json"],
    "audit": lambda f: ["audit", "--reports", f["reports"]],
    "audit -o csv": lambda f: ["audit", "--reports", f["reports"], "-o", "csv"],
    "audit -o json": lambda f: ["audit", "--reports", f["reports"], "-o", "json"],
    "audit --enforce-preview": lambda f: ["audit", "--reports", f["reports"], "--enforce-preview", f"ClusterGPUPolicy/{EVIL}"],
    "scan": lambda f: ["scan", "--from", f["dump"]],
    "scan --diff": lambda f: ["scan", "--from", f["dump"], "--diff"],
    "effective": lambda f: ["effective", "--policies", f["policy"], "--facts", f["facts"], "-n", "ns"],
    "effective -o json": lambda f: ["effective", "--policies", f["policy"], "--facts", f["facts"], "-n", "ns", "-o", "json"],
    "effective -o yaml": lambda f: ["effective", "--policies", f["policy"], "--facts", f["facts"], "-n", "ns", "-o", "yaml"],
    "replay": lambda f: ["replay", "--diff", "--policies", f["policy"], "--against", f["before"], f["audit"]],
    "replay -o github": lambda f: ["replay", "-o", "github", "--policies", f["policy"], "--against", f["before"], f["audit"]],
    "test": lambda f: ["test", f["case"]],
    "test -o junit": lambda f: ["test", f["case"], "-o", "junit"],
    "gpus, a catalog that is wrong": lambda f: ["gpus", "--catalog", f["catalog"]],
    "gpus, a model": lambda f: ["gpus", EVIL],
    "a command": lambda f: [EVIL],
    "an option": lambda f: ["try", f"--{EVIL.replace(' ', '')}"],
    "a choice": lambda f: ["try", "-o", EVIL, "x"],
    "help": lambda f: ["help", EVIL],
}


COLOURED = ("try", "why", "audit", "scan --diff", "effective", "replay", "test", "an option")
"""commands that are run with colour in ``make test``, one of each form; the others are run without"""


@pytest.mark.parametrize(
    ("name", "colour"),
    [
        *((name, "never") for name in COMMANDS),
        *(pytest.param(name, "always", marks=() if name in COLOURED else only_in_prove) for name in COMMANDS),
    ],
)
def test_no_control_character_reaches_the_terminal(name: str, colour: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What stood there is shown, as escapes, and nothing of it is left to act; Berth's own colours, where asked for, are all there is.
    ``make test`` runs every command without colour."""
    monkeypatch.setenv("TERM", "dumb")
    text = shown_here(lambda: main(["--color", colour, *COMMANDS[name](files(tmp_path))]))
    assert MARK in text, "the hostile text is shown"
    plain = OURS.sub("", text) if colour == "always" else text
    wrong = {one for one in plain if not one.isprintable() and one not in "\n\t"}
    assert wrong == set(), text
    assert not any(line.startswith("forged") for line in text.splitlines())
