"""Exec plugins of a kubeconfig: one that gives no credentials is told in one line, and nothing is called without them."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import shlex
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cli.main import main
from cluster.client import access as accesses
from cluster.client import exec_plugins
from cluster.client.access import Access
from cluster.client.errors import AccessError
from tests.cluster.client.test_access import changed
from tests.support.cluster.fake_api import kubeconfig
from tests.testcluster.calls import PATIENCE

VERSION = "client.authentication.k8s.io/v1"
SERVER = "http://127.0.0.1:9"
"""Nobody listens there, and it needs no TLS: without the plugin calls would go on without credentials."""


def credential(**status: str) -> str:
    return json.dumps({"apiVersion": VERSION, "kind": "ExecCredential", "status": status})


def with_plugin(folder: Path, script: str, **more: Any) -> str:
    """A kubeconfig whose user has a plugin that is this shell script."""
    plugin = {"apiVersion": VERSION, "command": "sh", "args": ["-c", script], **more}
    return changed(kubeconfig(folder, SERVER), "user", exec=plugin)


def load(file: str) -> accesses.LoadedAccess:
    return asyncio.run(Access(file).load())


def test_a_plugin_gets_its_environment_and_gives_a_token(tmp_path: Path) -> None:
    """What the kubeconfig sets, and what it may do: it can't ask anybody."""
    script = 'test "$GIVEN" = value && case "$KUBERNETES_EXEC_INFO" in *\'"interactive": false\'*) echo ' + shlex.quote(
        credential(token="abc")
    )
    file = with_plugin(tmp_path, f"{script};; esac", env=[{"name": "GIVEN", "value": "value"}])
    assert load(file).authorization == "Bearer abc"


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo no session >&2; echo; exit 3", "it ended with exit code 3: no session"),
        ("echo nothing", "it printed no JSON"),
        ("echo []", "it printed no ExecCredential with a status"),
        (f"echo '{credential()}'", "it printed a status without them"),
        (f"echo '{credential(token='')}'", "it printed a status without them"),
        (f"echo '{credential(clientCertificateData='x')}'", "it printed a status without them"),
        (f"echo '{credential(token='x').replace('/v1', '/v1beta1')}'", "it printed apiVersion client.authentication.k8s.io/v1beta1"),
    ],
)
def test_a_plugin_that_fails_is_told_in_one_line(script: str, message: str, tmp_path: Path) -> None:
    """Its name, the reason, how to install it, and what to type; and there are no credentials to go on without."""
    file = with_plugin(tmp_path, script, installHint="Install it\nfrom there.")
    with pytest.raises(AccessError) as raised:
        load(file)
    text = str(raised.value)
    assert f"the exec plugin sh gives no token and no client certificate: {message}" in text
    assert "Install it from there." in text
    assert f"try kubectl --kubeconfig {file} get namespaces" in text
    assert "\n" not in text


def test_a_plugin_that_is_not_there_ends_a_command_with_2(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """With one line on standard error."""
    file = with_plugin(tmp_path, "", command="no-such-plugin")
    assert main(["scan", "--kubeconfig", file]) == 2
    told = capfd.readouterr()
    assert told.out == ""
    (line,) = told.err.splitlines()
    assert "the exec plugin no-such-plugin gives no token and no client certificate: it can't be run: No such file or directory" in line


@pytest.mark.parametrize("way", ["hangs", "has ended, and a child of it holds its output"])
def test_a_plugin_that_hangs_is_killed_with_its_children(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once it is given up: else each reload of the credentials would leave some."""
    monkeypatch.setattr(accesses, "LOADING", 1.0)
    sleeper = f"{shlex.quote(sys.executable)} -c 'import time; time.sleep(600)'"
    end = "wait" if way == "hangs" else "exit 0"
    file = with_plugin(tmp_path, f"{sleeper} & echo $! > {tmp_path}/child; echo $$ > {tmp_path}/plugin; {end}")
    with pytest.raises(AccessError, match="its credentials did not arrive within 1 s"):
        load(file)
    gc.collect()
    for name in ("child", "plugin"):
        _wait_for_the_end(int((tmp_path / name).read_text()))


def test_a_child_that_leaves_its_session_holds_nobody_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may live on, as it wants to; the plugin is given up in time, and nothing of it stays open."""
    monkeypatch.setattr(accesses, "LOADING", 2.0)
    monkeypatch.setattr(exec_plugins, "ENDS", 0.1)
    child = f"import os, time; os.setsid(); open({str(tmp_path / 'child')!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    file = with_plugin(tmp_path, f"{shlex.quote(sys.executable)} -c {shlex.quote(child)} & while ! test -s {tmp_path}/child; do :; done")
    with pytest.raises(AccessError, match="its credentials did not arrive"):
        load(file)
    gc.collect()  # what is open still would warn, and warnings are errors
    if (tmp_path / "child").exists():  # else it was killed before it could leave
        os.kill(int((tmp_path / "child").read_text()), signal.SIGKILL)


def _wait_for_the_end(pid: int) -> None:
    until = time.monotonic() + PATIENCE
    while _runs(pid):
        assert time.monotonic() < until, f"process {pid} lives on"
        time.sleep(0.01)


def _runs(pid: int) -> bool:
    """Return whether a process runs; one that nobody has waited for yet does not."""
    try:
        os.kill(pid, 0)
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
