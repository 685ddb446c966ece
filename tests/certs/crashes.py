"""Processes that die in the middle of a start, each one step later than the last: ``python -m tests.certs.crashes FOLDER DAYS``.

The n-th works on FOLDER/n and dies before its n-th opening, renaming or removing of a file there; the last comes through. Prints how many.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from tests.certs.starts import start

STEPS = {"open", "os.mkdir", "os.rename", "os.remove", "fcntl.flock"}
DEAD = 9


def die_at(step: int, folder: Path) -> None:
    left = step

    def audit(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        if event in STEPS and (event == "fcntl.flock" or str(arguments[0]).startswith(str(folder))):
            left -= 1
            if not left:
                os._exit(DEAD)

    sys.addaudithook(audit)


def died(step: int, folder: Path, days: int) -> bool:
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == DEAD
    die_at(step, folder)
    os._exit(1 if start(str(folder), ["localhost"], days=days)["error"] else 0)


def main(folder: Path, days: int) -> None:
    step = 1
    while True:
        if (folder / "before").exists():
            shutil.copytree(folder / "before", folder / str(step))
        if not died(step, folder / str(step), days):
            break
        step += 1
    print(step)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
