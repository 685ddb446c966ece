"""What a process keeps of memory that was freed."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = """
import sys
from webhook import memory

def resident():
    return next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith("VmRSS:"))

if "return_large_blocks" in sys.argv:
    memory.return_large_blocks()
first = b"x" * (8 << 20)
del first
before = resident()
blocks, kept = [], []
for _ in range(6):
    blocks.append(b"x" * (2 << 20))
    kept.append(b"x" * 4096)
blocks.clear()
if "trim" in sys.argv:
    memory.trim()
print(resident() - before)
"""
"""Prints how many bytes stay resident of 12 MiB in large blocks that were freed, with small ones beside them in use."""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries keep little and have no mallopt")
@pytest.mark.parametrize(("call", "least", "most"), [("nothing", 10, 14), ("return_large_blocks", -1, 2), ("trim", -1, 2)])
def test_large_blocks_go_back_to_the_system(call: str, least: int, most: int) -> None:
    """glibc keeps them after the first large block was freed; either function has the system get them back."""
    done = subprocess.run([sys.executable, "-c", CODE, call], cwd=ROOT, capture_output=True, text=True, check=True)
    assert least << 20 <= int(done.stdout) <= most << 20
