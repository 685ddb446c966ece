"""Who is measured: Berth with its shipped policies, and three handlers with the same edits hard-coded (bench/rivals).

controller-runtime   Go, what authors of webhooks write
net/http             Go, the standard library alone, the patch made by hand
kopf                 Python, in a virtual environment of its own
"""

from __future__ import annotations

import hashlib
import http.client
import socket
import ssl
import subprocess
import sys
import time
import venv
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.measuring.pinned import ROOT, Pinned, pinned
from tests.support import certificate_files
from tests.support.machine import BenchError, Cores
from tests.testcluster import go_build

BERTH, CONTROLLER_RUNTIME, NET_HTTP, KOPF = "Berth", "controller-runtime", "net/http", "kopf"
STOCK = "Berth on stock uvicorn"
RIVALS = (CONTROLLER_RUNTIME, NET_HTTP, KOPF)
_RIVALS = ROOT / "bench" / "rivals"
LIBRARY = ROOT / "policies" / "library"
START = 120
"""seconds that a start may take: ten thousand policies take some twenty"""
PATIENCE = 60
"""seconds for one answer"""
JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One that answers."""

    name: str
    address: str
    """host:port of the calls"""
    health: str
    """host:port of Berth's second port"""
    ca: Path
    process: Pinned
    tls: bool = True

    @property
    def url(self) -> str:
        return f"http{'s' if self.tls else ''}://{self.address}"

    def post(self, body: bytes) -> bytes:
        """One call on a connection of its own. Raises BenchError where the answer is not 200."""
        connection = self._connection()
        try:
            connection.request("POST", "/mutate?timeout=5s", body, JSON)
            answer = connection.getresponse()
            answer_body = answer.read()
        finally:
            connection.close()
        if answer.status != 200:
            raise BenchError(f"{self.name} answered {answer.status}: {answer_body[:200]!r}")
        return answer_body

    def _connection(self) -> http.client.HTTPConnection:
        if not self.tls:
            return http.client.HTTPConnection(self.address, timeout=PATIENCE)
        return http.client.HTTPSConnection(self.address, context=ssl.create_default_context(cafile=str(self.ca)), timeout=PATIENCE)


def certificate(folder: Path) -> Path:
    """A folder with ca.crt, tls.crt and tls.key: all candidates serve this one."""
    certificate_files.serving_files(folder, ("127.0.0.1", "localhost"))
    return folder


def programs(names: Sequence[str], *, build: bool = True) -> dict[str, list[str]]:
    """For each rival the start of its command. Without ``build`` only those that were built before."""
    found = {name: _program(name, build=build) for name in names if name != BERTH}
    return {name: command for name, command in found.items() if command is not None}


def _program(name: str, *, build: bool) -> list[str] | None:
    try:
        return _kopf(build=build) if name == KOPF else _go(name.replace("/", "").replace("-", ""), build=build)
    except go_build.NoGo as error:
        raise BenchError(str(error)) from None


def _go(name: str, *, build: bool) -> list[str] | None:
    module = _RIVALS / "go"
    if not build and not go_build.kept(module, name).exists():
        return None
    return [str(go_build.built(module, f"./{name}", name))]


def _kopf(*, build: bool) -> list[str] | None:
    lock = _RIVALS / "kopf" / "requirements.txt"
    folder = go_build.CACHE / "venv" / hashlib.sha256(lock.read_bytes() + sys.version.encode()).hexdigest()[:16]
    python, whole = folder / "bin" / "python", folder / "whole"
    if not whole.exists():
        if not build:
            return None
        venv.create(folder, with_pip=True, clear=True)
        pip = [str(python), "-m", "pip", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "--quiet", "--no-deps", "--require-hashes", "-r", str(lock)], check=True)
        whole.touch()
    return [str(python), str(_RIVALS / "kopf" / "handler.py")]


@contextmanager
def serving(name: str, program: Sequence[str], cores: Cores, folder: Path, *options: str, tls: bool = True) -> Iterator[Server]:
    """A candidate on the server's core, answering; ended on leaving. ``folder`` has the certificate in ``tls``."""
    address, health, pair = _free(), _free(), [str(folder / "tls" / file) for file in ("tls.crt", "tls.key")]
    command = [*program, "--listen", address, "--cert", pair[0], "--key", pair[1]]
    if name.startswith(BERTH):
        files = ["--tls-cert", pair[0], "--tls-key", pair[1]]
        command = [*(program or _BERTH), "serve", *files, "--listen", address, "--health", health, "--platforms", "karpenter-aws", *options]
    with pinned(name.replace("/", ""), command, cores.server, cores.load, folder) as process:
        server = Server(name=name, address=address, health=health, ca=folder / "tls" / "ca.crt", process=process, tls=tls)
        _until_ready(server)
        yield server


_BERTH = (sys.executable, "-m", "cli.main")


@contextmanager
def all_serving(programs: dict[str, list[str]], cores: Cores, folder: Path, *, stock: bool = False) -> Iterator[list[Server]]:
    """Berth with the shipped library, then each rival. ``stock``: Berth on stock Starlette and uvicorn too."""
    with ExitStack() as stack:
        policies = ("--policies", str(LIBRARY))
        berth = [stack.enter_context(serving(BERTH, (), cores, folder, *policies))]
        if stock:
            berth.append(stack.enter_context(serving(STOCK, (sys.executable, "-m", "bench.handlers.stock"), cores, folder, *policies)))
        yield [*berth, *(stack.enter_context(serving(name, program, cores, folder)) for name, program in programs.items())]


def _free() -> str:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{taken.getsockname()[1]}"


def _until_ready(server: Server) -> None:
    body = (ROOT / "tests" / "reviews" / "pods-create-web.json").read_bytes()
    deadline = time.monotonic() + START
    while True:
        try:
            server.post(body)
            return
        except (OSError, BenchError, http.client.HTTPException) as error:
            if not server.process.alive() or time.monotonic() > deadline:
                raise BenchError(f"{server.name} does not answer ({error}); its log: {server.process.log}") from None
            time.sleep(0.05)
