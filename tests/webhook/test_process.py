"""What every process does alike: one whose background task ends by itself ends too."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.calls.server_process import ROOT
from tests.support.counts import only_in_prove
from tests.testcluster.calls import PATIENCE

KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "x",
    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
    "users": [{"name": "u", "user": {"token": "t"}}],
}
SERVE = ["serve", "--listen", "127.0.0.1:0", "--health", "127.0.0.1:0", "--lame-duck", "0", "--self-signed", "{folder}/ca"]
AUDIT = ["audit", "--serve", "--health", "127.0.0.1:0", "--kubeconfig", "{folder}/kubeconfig"]
CONSOLE = ["console", "--listen", "127.0.0.1:0", "--kubeconfig", "{folder}/kubeconfig"]


RAISE, RETURN = "raise KeyError('gone')", "return"
TASKS = [
    (SERVE, "webhook.reload.file_watcher:PolicyFileWatcher.follow", "policies"),
    (SERVE, "webhook.serve:every_second", "certificate"),
    (AUDIT, "webhook.audit.auditor:Auditor.run", "audit"),
    (CONSOLE, "sources.worlds:WorldFollower.run", "reading"),
    (["console", "--listen", "127.0.0.1:0", "--files", "--self-signed", "{folder}/ca"], "console.serve:every_second", "certificate"),
]


@pytest.mark.parametrize(
    ("command", "place", "task", "ends"),
    [
        pytest.param(*task, ends, id=f"{task[0][0]}-{task[2]}-{ends}", marks=only_in_prove if number % 2 else ())
        for number, (ends, task) in enumerate(itertools.product((RAISE, RETURN), TASKS))
    ],
)
def test_a_background_task_that_ends_is_told_and_ends_the_process(
    command: list[str], place: str, task: str, ends: str, tmp_path: Path
) -> None:
    """With exit code 1 and one line that names it: what would go on without it is not what the operator started. ``make test`` has each
    task and each way to end, not both ways of each."""
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(KUBECONFIG))
    module, _, attribute = place.partition(":")
    program = (
        f"import sys, {module}\nasync def ends(*_):\n    {ends}\n{module}.{attribute} = ends\n"
        "from cli.main import main\nsys.exit(main(sys.argv[1:]))"
    )
    words = [word.format(folder=tmp_path) for word in command]
    done = subprocess.run([sys.executable, "-c", program, *words], cwd=ROOT, capture_output=True, timeout=PATIENCE, check=False)
    lines = [json.loads(line) for line in done.stderr.decode().splitlines() if '"task_ended"' in line]
    assert [(line["task"], line["level"]) for line in lines] == [(task, "error")]
    assert ("KeyError: 'gone'" in lines[0]["error"]) == (ends != "return")
    assert done.returncode == 1
