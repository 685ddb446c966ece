"""``make run``: a server with the shipped policies that admits a pod of a recorded GPU Job.

It starts ``berth serve`` as a separate process, sends it a review recorded from kube-apiserver 1.36 over
verified TLS, and shows the answer. Beside it ``berth console`` shows a recorded cluster in a browser. Then both
run until Ctrl-C (with BERTH_RUN_ONCE=1 they stop at once).
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import shlex
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from analysis.admission.patch_applier import apply_patch
from cli.terminal import screen
from documents.diff import unified

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = Path("tests/reviews/pods-create-train-llama.json")
LIBRARY = Path("policies/library")
TLS = Path(".berth/tls")
PLATFORM = "karpenter-aws"
PORT = 8443
CONSOLE_PORT = 8480
RECORDED = Path("docs/examples/cluster.yaml")
AUDITED = Path("docs/examples/at-most-eight.yaml")
"""A policy in Audit beside the library, so that the console has something that is not enforced yet."""
CALL_TIMEOUT = 10
"""Timeout in seconds: the API server's default for a webhook."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoServer:
    """The address of the demo's server."""

    host: str
    port: int
    ca: Path

    def post(self, path: str, review: dict[str, Any]) -> dict[str, Any]:
        """Send a review over TLS verified with the CA, and return the ``response`` of the answer.

        Raises OSError and http.client's errors.
        """
        context = ssl.create_default_context(cafile=str(self.ca))
        connection = http.client.HTTPSConnection(self.host, self.port, context=context, timeout=CALL_TIMEOUT)
        try:
            connection.request("POST", path, json.dumps(review), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            body = answer.read().decode()
        finally:
            connection.close()
        if answer.status != 200:
            raise ConnectionError(f"{path} answered {answer.status}: {body.strip()}")
        response: dict[str, Any] = json.loads(body)["response"]
        return response


def main() -> int:
    """Run the demo from the project's folder; 0 once stopped, the server's own code when it could not
    start."""
    os.chdir(ROOT)
    for number in (signal.SIGTERM, signal.SIGINT):  # SIGINT too: shells start background jobs with it ignored
        signal.signal(number, _interrupt)
    port = free_port(PORT)
    if port != PORT:
        print(f"port {PORT} is in use; using port {port} instead")
    try:
        with _serving(port) as process, _console(free_port(CONSOLE_PORT)) as address:
            ready = _ready(process)
            if ready is None:
                return process.wait()
            print(f"serving {ready['url']} (/mutate, /validate, /advise), {ready['policies']} policies")
            print(f"        {ready['health']} (/livez, /readyz, /metrics)")
            show(DemoServer(host="127.0.0.1", port=port, ca=TLS / "ca.crt"))
            print(f"  curl {ready['health']}/readyz", flush=True)
            print(f"\nThe console shows a recorded cluster ({RECORDED}). Open it in a browser on this machine:\n  {address()}")
            if os.environ.get("BERTH_RUN_ONCE") != "1":
                print("\nThe server and the console run until Ctrl-C. Below is the server's log, one line per decision.", flush=True)
                return process.wait()
    except KeyboardInterrupt:
        print()
    return 0


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


@contextmanager
def _serving(port: int) -> Iterator[subprocess.Popen[str]]:
    """Run the server's process, and end it on exit of the context."""
    listen = ["--listen", f"127.0.0.1:{port}", "--health", "127.0.0.1:0"]
    command = ["serve", "--policies", str(LIBRARY), "--platforms", PLATFORM, "--self-signed", str(TLS), *listen]
    print(f"$ berth {shlex.join(command)}", flush=True)
    process = subprocess.Popen([sys.executable, "-m", "cli.main", *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)  # stops at once: on SIGTERM it would wait for callers to go elsewhere
        process.wait()


@contextmanager
def _console(port: int) -> Iterator[Callable[[], str]]:
    """Run the console's process, and end it on exit of the context; yield what waits for its address."""
    files = ["--from", str(RECORDED), "--policies", str(LIBRARY), "--policies", str(AUDITED)]
    command = [sys.executable, "-m", "cli.main", "console", *files, "--listen", f"127.0.0.1:{port}"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    lines = process.stdout
    try:
        yield lambda: lines.readline().strip()
    finally:
        process.terminate()
        process.wait()
        lines.close()


def _ready(process: subprocess.Popen[str]) -> dict[str, Any] | None:
    """Wait for the log event with the server's addresses and return it; return None if the server ends
    before.

    All other log lines are passed on, now and later.
    """
    assert process.stderr is not None
    for line in process.stderr:
        event = _event(line)
        if event.get("event") == "serving":
            threading.Thread(target=_pass_on, args=(process.stderr,), daemon=True).start()
            return event
        print(line, end="", file=sys.stderr, flush=True)
    return None


def _event(line: str) -> dict[str, Any]:
    """Return the fields of a log line; none for any other line."""
    try:
        event = json.loads(line)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}


def _pass_on(lines: Iterable[str]) -> None:
    for line in lines:
        print(line, end="", file=sys.stderr, flush=True)


def free_port(wanted: int) -> int:
    """Return ``wanted`` if nothing listens on that port of the loopback address, else any free port."""
    for port in (wanted, 0):
        try:
            with socket.create_server(("127.0.0.1", port)) as listener:
                return int(listener.getsockname()[1])
        except OSError:
            continue
    raise OSError("no free port on 127.0.0.1")


def show(server: DemoServer) -> None:
    """Post the sample to both paths as the API server would, and print the result."""
    review = json.loads(SAMPLE.read_text())
    pod = review["request"]["object"]
    mutate = server.post("/mutate", review)
    admitted = apply_patch(pod, _patch(mutate))
    validate = server.post("/validate", {**review, "request": {**review["request"], "object": admitted}})
    owner = pod["metadata"]["ownerReferences"][0]
    print(f"\nWhat Berth changes in a pod of {owner['kind']} {owner['name']} (recorded from kube-apiserver: {SAMPLE}) on {PLATFORM}:\n")
    diff = unified(_shown(pod), _shown(admitted), "the pod")
    print("\n".join(screen.output().paint_diff(diff)))
    for line in outcome(mutate, validate):
        print(line)
    curl = f"curl --cacert {server.ca} -H 'Content-Type: application/json' --data @{SAMPLE} https://{server.host}:{server.port}/mutate"
    print(f"\nTry it yourself:\n  {curl}\n  .venv/bin/berth try --policies {LIBRARY} -o diff {SAMPLE}", flush=True)


def _shown(pod: dict[str, Any]) -> dict[str, Any]:
    """Return the pod without managedFields, which nobody reads."""
    metadata = {key: value for key, value in pod["metadata"].items() if key != "managedFields"}
    return {**pod, "metadata": metadata}


def outcome(mutate: dict[str, Any], validate: dict[str, Any]) -> Iterator[str]:
    """Yield the warnings of both answers, each once, and a line that says whether the pod is admitted."""
    warnings = dict.fromkeys([*mutate.get("warnings", ()), *validate.get("warnings", ())])
    yield from (f"warning: {text}" for text in warnings)
    for path, response in (("/mutate", mutate), ("/validate", validate)):
        if not response["allowed"]:
            yield f"denied by {path}: {response['status']['message']}"
            return
    yield f"admitted: {len(_patch(mutate))} patch operations from /mutate, accepted by /validate"


def _patch(response: dict[str, Any]) -> list[dict[str, Any]]:
    operations: list[dict[str, Any]] = json.loads(base64.b64decode(response["patch"])) if "patch" in response else []
    return operations


if __name__ == "__main__":
    sys.exit(main())
