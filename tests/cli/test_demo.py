"""``make run``: the sample is admitted, the server is left running, and it stops without a trace."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import ssl
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from cli import demo
from tests.support.counts import only_in_prove
from tests.testcluster.calls import PATIENCE

ROOT = Path(__file__).parent.parent.parent


def start(**environ: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "cli.demo"]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environ})


def opened(address: str) -> int:
    """The status of the answer to whoever opens the console's address."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.netloc, timeout=PATIENCE)
    try:
        connection.request("GET", f"{parts.path}?{parts.query}")
        return connection.getresponse().status
    finally:
        connection.close()


def test_it_shows_an_admitted_pod_and_stops_when_told_to_run_once() -> None:
    """The command, the ready line, the diff, the outcome, and what to type by hand."""
    out, _ = (process := start(BERTH_RUN_ONCE="1")).communicate(timeout=PATIENCE)
    assert process.returncode == 0
    parts = ["$ berth serve", "serving https://127.0.0.1:", "+++ the pod (as admitted)", "\nadmitted: ", "curl --cacert .berth/tls/ca.crt"]
    assert [part for part in parts if part not in out] == []
    assert "managedFields" not in out


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=only_in_prove)])
def test_it_stays_until_it_is_told_to_stop(number: signal.Signals) -> None:
    """The server answers after the sample; Ctrl-C ends both with exit code 0, and nothing is left behind. SIGTERM, which
    ``make prove`` sends, has the same handler."""
    with start(BERTH_RUN_ONCE="") as process:
        assert process.stdout is not None
        lines = iter(process.stdout)
        ready = next(line for line in lines if line.startswith("serving "))
        port = int(ready.split(" ")[1].rpartition(":")[2])
        address = next(line.strip() for line in lines if line.startswith("  http://127.0.0.1:"))
        next(line for line in lines if line.startswith("The server and the console run"))
        assert opened(address) == 303
        context = ssl.create_default_context(cafile=str(ROOT / demo.TLS / "ca.crt"))
        with socket.create_connection(("127.0.0.1", port)) as raw, context.wrap_socket(raw, server_hostname="localhost"):
            pass
        process.send_signal(number)
        try:
            _, err = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    assert process.returncode == 0
    assert "Traceback" not in err
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), timeout=1)


def test_a_port_in_use_is_passed_over() -> None:
    """Another free one is taken."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert demo.free_port(port) not in (0, port)


def test_a_free_port_is_taken() -> None:
    """The one that was wanted, where nobody has it."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert demo.free_port(port) == port


def test_a_denial_is_shown_with_its_message() -> None:
    """Where somebody changed the library so that the sample is denied, the demo says by which path and why."""
    denied = {"allowed": False, "status": {"message": "BERTH-104: no"}, "warnings": ["w"]}
    assert list(demo.outcome(denied, {"allowed": True})) == ["warning: w", "denied by /mutate: BERTH-104: no"]
    assert list(demo.outcome({"allowed": True}, denied)) == ["warning: w", "denied by /validate: BERTH-104: no"]
