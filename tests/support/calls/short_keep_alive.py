"""``berth serve`` whose ``--keep-alive`` may be seconds, so that a test need not wait for minutes.

The least that the flag takes is above the 90 s of kube-apiserver's client; here it is 1. Nothing else differs.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from server import limits
from tests.support.calls.server_process import ROOT, Running, logged, running, until
from tests.support.calls.webhook_client import NAMES


@contextmanager
def serving_briefly(folder: Path, keep_alive: int) -> Iterator[Running]:
    """A server that ends idle connections after so many seconds."""
    log = folder / "log"
    ports = ["--listen", "127.0.0.1:0", "--health", "127.0.0.1:0", "--self-signed", str(folder / "tls"), *NAMES]
    command = [sys.executable, "-m", "tests.support.calls.short_keep_alive", "serve", *ports, "--keep-alive", str(keep_alive)]
    with log.open("wb") as written, subprocess.Popen(command, cwd=ROOT, stderr=written) as process:
        try:
            yield running(process, log, until(lambda: next((e for e in logged(log) if e["event"] == "serving"), None), "a server"))
        finally:
            process.kill()


if __name__ == "__main__":
    limits.BOUNDS = {**limits.BOUNDS, "keep_alive": replace(limits.BOUNDS["keep_alive"], least=1)}
    from cli.main import main  # only now: who imports BOUNDS gets this one

    sys.exit(main())
