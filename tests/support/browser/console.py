"""`berth console` as somebody starts it, and a browser that has opened the address which it prints."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from tests.support.calls.server_process import ROOT, until

COMMAND = (sys.executable, "-P", "-m", "cli.main", "console", "--listen", "127.0.0.1:0")


@contextmanager
def console(folder: Path, *options: str) -> Iterator[str]:
    """The address that it prints, with a token that opens it once. Its output is in ``folder``."""
    log = folder / "console.log"
    with (
        log.open("wb") as written,
        subprocess.Popen([*COMMAND, *options], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=written, stderr=subprocess.STDOUT) as process,
    ):

        def printed() -> Sequence[str]:
            assert process.poll() is None, log.read_text()
            return re.findall(r"http://\S+", log.read_text())

        try:
            yield str(until(printed, "the console to print its address")[0])
        finally:
            process.terminate()


def base(address: str) -> str:
    """http://127.0.0.1:8480, of an address with a path and a token."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"
