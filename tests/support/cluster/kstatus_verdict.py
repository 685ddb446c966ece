"""What Helm 4 and Flux, which wait by kstatus, take an object for: said by their own code (``tests/testcluster/modules/kstatus``)."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from tests.testcluster import programs
from tests.testcluster.calls import PATIENCE


def verdict(value: dict[str, Any]) -> tuple[str, str]:
    """Current, InProgress or Failed, with what is told to who waits. Built first where it has to be, in a minute."""
    done = subprocess.run(
        [programs.path("kstatus")], input=json.dumps(value), capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    return found["status"], found["message"]
