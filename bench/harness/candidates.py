"""Start what is measured: Berth with its shipped policies, and handlers with the same edits hard-coded (bench/rivals)."""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from bench.harness.generators import on_core
from bench.harness.setting import PATIENCE, BenchSetting, Candidate
from tests.support.machine import BenchError
from tests.testcluster import go_build
from tests.testcluster.addons.berth import LIBRARY, ROOT
from tests.testcluster.controlplane.processes import free_port

RIVALS = ROOT / "bench" / "rivals"
BERTH, NET_HTTP, STARLETTE = "Berth", "net/http", "Starlette"


def berth(setting: BenchSetting, *options: str, name: str = BERTH, tree: Path = ROOT) -> AbstractContextManager[Candidate]:
    """Serve the policies of ``options``, or those that are shipped, with the code of a checkout."""
    port, tls = free_port(), setting.folder / "tls"
    files = ["--tls-cert", f"{tls}/tls.crt", "--tls-key", f"{tls}/tls.key"]
    where = ["--listen", f"127.0.0.1:{port}", "--health", f"127.0.0.1:{free_port()}", "--platforms", "karpenter-aws"]
    policies = [] if "--policies" in options else ["--policies", str(tree / LIBRARY.relative_to(ROOT))]
    command = [sys.executable, "-P", "-m", "cli.main", "serve", *files, *where, *policies, *options]
    return _running(setting, name, command, port, tree)


@contextmanager
def beside_rivals(setting: BenchSetting) -> Iterator[list[Candidate]]:
    """Serve Berth, then each rival; in a quick run the one in Go only if it was built before."""
    programs = {NET_HTTP: _net_http(setting), STARLETTE: [sys.executable, "-P", str(RIVALS / "python" / "handler.py")]}
    with ExitStack() as stack:
        candidates = [stack.enter_context(berth(setting))]
        for name, program in programs.items():
            port, tls = free_port(), setting.folder / "tls"
            command = [*program, "--listen", f"127.0.0.1:{port}", "--cert", f"{tls}/tls.crt", "--key", f"{tls}/tls.key"]
            candidates += [stack.enter_context(_running(setting, name, command, port))] if program else []
        yield candidates


def _net_http(setting: BenchSetting) -> list[str]:
    try:
        is_built = go_build.kept(RIVALS / "go", "rival").exists()
        return [] if setting.quick and not is_built else [str(go_build.built(RIVALS / "go", ".", "rival"))]
    except go_build.NoGo as error:
        raise BenchError(str(error)) from None


@contextmanager
def _running(setting: BenchSetting, name: str, command: Sequence[str], port: int, tree: Path | None = None) -> Iterator[Candidate]:
    """Run on the server's core until the end of the block; the log goes through a pipe to the other core, as in a container."""
    log = setting.folder / f"{name.replace('/', '')}.log"
    with log.open("wb") as kept:
        reader = subprocess.Popen(["tail", "-c", "20000"], stdin=subprocess.PIPE, stdout=kept, preexec_fn=on_core(setting.cores.load))
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=reader.stdin, cwd=tree or setting.folder, preexec_fn=on_core(setting.cores.server),
        env={**os.environ, "GOMAXPROCS": "1", "PYTHONPATH": str(tree or "")},
    )  # fmt: skip
    assert reader.stdin is not None
    reader.stdin.close()
    try:
        candidate = Candidate(name=name, address=f"127.0.0.1:{port}", ca=setting.folder / "tls" / "ca.crt", pid=process.pid)
        body, deadline = (ROOT / "tests" / "reviews" / "pods-create-web.json").read_bytes(), time.monotonic() + PATIENCE
        while True:
            try:
                candidate.post(body)
                break
            except (OSError, BenchError, http.client.HTTPException) as error:
                if process.poll() is not None or time.monotonic() > deadline:
                    process.kill()
                    reader.wait()
                    raise BenchError(f"{name} does not answer ({error}): {log.read_text()[-300:]!r}") from None
                time.sleep(0.05)
        yield candidate
    finally:
        process.kill()
        process.wait()
        reader.wait()
