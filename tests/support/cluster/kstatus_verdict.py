"""What Helm 4 and Flux, which wait by kstatus, take an object for: said by their own code (``kstatus``, a Go module)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.testcluster.calls import PATIENCE
from tests.testcluster.go_build import built

MODULE = Path(__file__).parent / "kstatus"


def verdict(value: dict[str, Any]) -> tuple[str, str]:
    """Current, InProgress or Failed, with what is told to who waits. Built first where it has to be, in a minute."""
    program = built(MODULE, ".", "kstatus")
    done = subprocess.run([program], input=json.dumps(value), capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    return found["status"], found["message"]
