"""Run the commands of docs/guardrails.md in docs/examples/guardrails and compare their output with the page.

Each ```sh block is one command, with its output below it. The page shows standard error of `berth try` as ```text, and may show the diff
as ```diff. It shows all output of other commands as ```text. Blocks that begin with ``# on a cluster`` run at a real control plane, in
order, after the statuses are written as the replica with the Lease writes them. BERTH_WRITE_GUARDRAILS=1 writes the output into the page
instead: read the difference before you commit it.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from analysis.conditions import compute_conditions
from cli.main import BAD_INPUT, main
from cluster.status.patch import patch
from documents.files import read_policies
from policies.objects.definition import KINDS
from policies.policy import API_VERSION
from policies.state.objects import Key
from policies.state.updater import Options, Updater
from tests.docs.test_recipes import BLOCK, NAME
from tests.support.generators.random_worlds import catalog
from tests.testcluster.calls import PATIENCE
from tests.testcluster.controlplane.cluster import Cluster
from tests.testcluster.controlplane.cluster import Options as ClusterOptions
from tests.testcluster.controlplane.starting import apply_crds
from tests.testcluster.fixtures import control_plane

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "guardrails.md"
EXAMPLES = ROOT / "docs" / "examples" / "guardrails"
SWITCH = "BERTH_WRITE_GUARDRAILS"
ON_A_CLUSTER = "# on a cluster\n"
COMMAND = re.compile(r"^```sh\n(?P<command>.*?)\n```\n(?P<shown>(?:\n```(?:text|diff)\n.*?^```\n)*)", re.MULTILINE | re.DOTALL)
AGE = re.compile(r"\b\d+[smh](\d+s)?$", re.MULTILINE)
ASKS_ALONE = {"can-i", "--dry-run=server"}
"""words of commands that change nothing in the cluster"""
SETTLED = 20
"""seconds to wait for the output that the page shows"""
WRONG = ("misspelt.yaml", "unknown-model.yaml")
"""files with a mistake on purpose"""
HINT = f"docs/guardrails.md shows something else; if the output is right: {SWITCH}=1 python -m pytest tests/docs/test_guardrails.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    command: str
    shown: dict[str, str]
    """the text and diff of the page"""


def page() -> str:
    return PAGE.read_text(encoding="utf-8")


def blocks(*, on_a_cluster: bool) -> list[Block]:
    found = [Block(command=m["command"], shown=dict(BLOCK.findall(m["shown"]))) for m in COMMAND.finditer(page())]
    return [one for one in found if one.command.startswith(ON_A_CLUSTER) == on_a_cluster]


def compared(block: Block, came: dict[str, str]) -> None:
    """Compare the output of a command with the page, or write it there. A diff that the page leaves out is left out."""
    came = {kind: text for kind, text in came.items() if text and (kind != "diff" or kind in block.shown)}
    if not os.environ.get(SWITCH):
        assert came == block.shown, HINT
        return
    text = page()
    found = next(m for m in COMMAND.finditer(text) if m["command"] == block.command)
    shown = "".join(f"\n```{kind}\n{body}```\n" for kind, body in came.items())
    PAGE.write_text(text[: found.start("shown")] + shown + text[found.end("shown") :], encoding="utf-8")


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Change to the folder of examples."""
    monkeypatch.chdir(EXAMPLES)


def test_the_page_has_both_kinds_of_commands() -> None:
    """Admission of both teams and `effective` run offline, the rest on a cluster; every block is run."""
    offline, online = ([one.command for one in blocks(on_a_cluster=flag)] for flag in (False, True))
    assert [command.split()[1] for command in offline] == ["try", "try", "effective"]
    assert len(offline) + len(online) == page().count("```sh\n")
    assert len(online) >= 6


def test_the_files_on_the_page_are_those_of_the_folder() -> None:
    """Each file of the folder is shown whole or linked."""
    shown = {named[1]: body for kind, body in BLOCK.findall(page()) if kind == "yaml" and (named := NAME.match(body))}
    files = {file.name: file.read_text(encoding="utf-8") for file in EXAMPLES.glob("*.yaml")}
    assert shown == {name: files.get(name) for name in shown}
    assert [name for name in files if name not in shown and f"](examples/guardrails/{name})" not in page()] == []


def test_the_objects_are_understood() -> None:
    """Policies are valid together, without a warning; the files with a mistake are not."""
    found, errors, warnings = read_policies(["platform.yaml", "research.yaml", "web.yaml"], catalog())
    assert (list(map(str, errors)), warnings) == ([], [])
    assert len(found.policies) == 7
    for name in WRONG:
        assert read_policies(["platform.yaml", name], catalog())[1], name


@pytest.mark.parametrize("block", blocks(on_a_cluster=False), ids=lambda block: block.command[:60])
def test_each_command_shows_what_the_page_shows(block: Block, capsys: pytest.CaptureFixture[str]) -> None:
    """The output is equal to the page."""
    words = shlex.split(block.command)
    code = main(words[1:])
    out, err = capsys.readouterr()
    assert code != BAD_INPUT, err
    compared(block, {"text": err, "diff": out} if words[1] == "try" else {"text": err + out})


def test_each_team_is_admitted_and_denied() -> None:
    """The page shows admitted and denied pods of both teams, and a clipped default."""
    tried = [one.shown["text"] for one in blocks(on_a_cluster=False) if one.command.startswith("berth try")]
    assert all("admitted with" in text and "denied" in text for text in tried)
    assert "BERTH-203" in tried[0]
    assert {code for text in tried for code in re.findall(r"BERTH-1\d\d", text)} == {"BERTH-111", "BERTH-121", "BERTH-141", "BERTH-152"}


def test_every_condition_is_explained() -> None:
    """Each condition type that Berth writes has a row."""
    table = page().split("## Conditions\n")[1].split("## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == [
        "Accepted",
        "Conflicted",
        "Clipped",
        "Inexpressible",
        "QuotaNotCovered",
        "AdvertisedTwice",
        "Ready",
        "Stalled",
    ]


def test_every_link_on_the_page_leads_somewhere() -> None:
    """Links lead to existing files and headings."""
    links = [link for link in re.findall(r"\]\(([^)]+)\)", page()) if "://" not in link]
    assert links
    for link in links:
        file, _, head = link.partition("#")
        target = PAGE.parent / file if file else PAGE
        assert target.exists(), link
        if head:
            titles = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE)
            assert head in {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}, link


# --- on a cluster ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A control plane with Berth's kinds."""
    with control_plane(request.session, ClusterOptions(kubelets=False)) as started:
        apply_crds(started.api, sorted((ROOT / "deploy" / "crds").glob("*.yaml")), started.processes)
        yield started


@dataclass(frozen=True, slots=True)
class StatusWriter:
    """Writes statuses as the replica with the Lease does."""

    cluster: Cluster
    updater: Updater

    def write(self) -> None:
        api = self.cluster.api
        kept = {(API_VERSION, kind) for kind in KINDS} | {("v1", "Namespace")}
        objects: dict[Key, dict[str, Any]] = {}
        for version, kind in sorted(kept):
            for one in api.list(version, kind):
                objects[kind, one["metadata"].get("namespace", ""), one["metadata"]["name"]] = {**one, "apiVersion": version, "kind": kind}
        lived = self.updater.apply(objects)
        for key, finding in compute_conditions(lived.snapshot, lived.entries, {}).items():
            one = objects[key]
            api.patch(one, patch(finding, one.get("status") or {}, one["metadata"]["resourceVersion"]), subresource="status")


def test_each_command_on_a_cluster_shows_what_the_page_shows(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The output is equal to the page, except for ages."""
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    statuses = StatusWriter(cluster, Updater(catalog(), Options(platforms=("karpenter-aws",))))
    for block in blocks(on_a_cluster=True):
        statuses.write()
        words = shlex.split(block.command.removeprefix(ON_A_CLUSTER))
        if words[0] == "berth":
            assert main(words[1:]) == 0
            output = "".join(reversed(capsys.readouterr()))
        else:
            output = _typed(cluster, words)
            if ASKS_ALONE & set(words):
                output = _settled(cluster, words, block, output)
        compared(block, {"text": AGE.sub("5m", output)})


def _typed(cluster: Cluster, words: list[str]) -> str:
    done = subprocess.run(cluster.kubectl(*words[1:]), capture_output=True, text=True, timeout=PATIENCE, check=False)
    return done.stdout + done.stderr


def _settled(cluster: Cluster, words: list[str], block: Block, output: str) -> str:
    """Repeat a command that changes nothing until its output is equal to the page: roles and admission policies take a moment."""
    until = time.monotonic() + SETTLED
    while {"text": output} != block.shown and time.monotonic() < until:
        output = _typed(cluster, words)
    return output


def test_the_roles_that_the_page_names_are_there() -> None:
    """Each role of the page is in deploy/rbac.yaml."""
    roles = {one["metadata"]["name"] for one in yaml.safe_load_all((ROOT / "deploy" / "rbac.yaml").read_text())}
    assert set(re.findall(r"`(berth-[\w-]+)`", page())) <= roles
