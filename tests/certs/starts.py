"""One server's start, again and again: ``python -m tests.certs.starts``.

Each line on standard input is ``{"folder", "names", "at", "days"}``: at that second of the monotonic clock the folder is made or renewed as
by a server that starts that many days after NOW. Each line on standard output tells how it went.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from certs.authority import CertificateError
from certs.following import SelfSigned
from tests.certs.pairs import DAY, NOW


def start(folder: str, names: list[str], at: float = 0, days: int = 0) -> dict[str, Any]:
    source = SelfSigned(Path(folder), tuple(names))
    while time.monotonic() < at:
        pass  # sleep would end by some tens of microseconds earlier or later, and it is these that are tried
    try:
        serving = source.refresh(NOW + days * DAY)
    except CertificateError as error:
        return {"error": str(error), "notes": [], "leaf": ""}
    assert serving is not None
    return {"error": "", "notes": source.notes, "leaf": f"{serving.serial:x}"}


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(start(**json.loads(line))), flush=True)
