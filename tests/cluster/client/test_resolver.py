"""Names are looked up as the system does it, and nobody waits for a look-up that is no longer wanted."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from cluster.client.resolver import Resolver
from tests.support.cluster.collecting_store import run
from tests.testcluster.calls import PATIENCE

ROOT = Path(__file__).parent.parent.parent.parent
NEVER = """
import asyncio, socket, sys, time, uvloop
from cluster.client.resolver import Resolver
from tests.testcluster.calls import PATIENCE

def slow(*_):
    print("asked", flush=True)
    time.sleep(600)

async def work():
    task = asyncio.create_task(Resolver().resolve("slow.example", 443))
    await asyncio.sleep(0.2)
    task.cancel()

socket.getaddrinfo = slow
with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
    runner.run(work())
"""
"""a program with name servers that do not answer"""


def test_a_name_gives_its_addresses() -> None:
    """localhost, as the system has it; a name that is none raises OSError."""

    async def work() -> None:
        found = await Resolver().resolve("localhost", 443, socket.AF_UNSPEC)
        assert {"127.0.0.1", "::1"} >= {one["host"] for one in found} != set()
        assert {(one["hostname"], one["port"]) for one in found} == {("localhost", 443)}
        for wrong in ("a" * 64, "..", "nothing.invalid"):
            with pytest.raises(OSError):
                await asyncio.wait_for(Resolver().resolve(wrong, 443), PATIENCE)

    run(work())


def test_a_process_ends_while_a_name_is_looked_up() -> None:
    """Name servers that do not answer hold up nobody who has ended."""
    done = subprocess.run([sys.executable, "-c", NEVER], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout, done.stderr) == (0, "asked\n", "")
