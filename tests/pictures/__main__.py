"""The pictures of README, from the running product: a cluster, Berth, its console in a browser, and its command in a terminal.

    python -m tests.pictures [NAME...]      writes docs/pictures/NAME, all of them where none is named

Names: one-job.svg, why.svg, try.svg, impact.png, berths.png, job.png ... (PICTURES). Needs what `make cluster` needs, and Chromium.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.pictures.one_job import one_job
from tests.pictures.recording import Command, recording
from tests.pictures.scene import JOB, Scene, scene
from tests.pictures.screens import SCREENS, screenshots
from tests.pictures.terminal import written
from tests.testcluster.__main__ import WITHOUT
from tests.testcluster.addons.berth import ROOT

FOLDER = ROOT / "docs" / "pictures"
COLUMNS = 100
"""Columns of the terminal: at README's width of 830 pixels the type has its full size."""
DENIED = "tests/reviews/pods-create-mismatch.json"
LIBRARY = "policies/library"


def _one_job(scene: Scene) -> str:
    without, with_berth = scene.outcomes()
    return one_job(JOB, without, scene.difference(), scene.edits, with_berth)


def _why(scene: Scene) -> str:
    name = scene.without["metadata"]["name"]
    return recording("berth why for a pending pod", [_typed(scene, f"berth why pod/{name} -n {WITHOUT}")], COLUMNS)


def _try(scene: Scene) -> str:
    commands = [_typed(scene, f"berth try -o diff {JOB}"), _typed(scene, f"berth try {DENIED}")]
    return recording("berth try for a Job that is admitted and a pod that is denied", commands, COLUMNS)


def _typed(scene: Scene, command: str) -> Command:
    words = [str(Path(sys.executable).with_name("berth")), *command.split()[1:]]
    environment = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")}
    return Command(typed=command, lines=written(words, COLUMNS, str(ROOT), {**environment, "KUBECONFIG": str(scene.kubeconfig)}))


DRAWN: dict[str, Callable[[Scene], str]] = {"one-job.svg": _one_job, "why.svg": _why, "try.svg": _try}
PICTURES = (*DRAWN, *SCREENS)


def main(names: Sequence[str]) -> int:
    """0, or 2 for a name that there is not."""
    if unknown := set(names) - {*PICTURES}:
        print(f"pictures: there is no {', '.join(sorted(unknown))}; there are {', '.join(PICTURES)}", file=sys.stderr)
        return 2
    wanted = names or PICTURES
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, scene(Path(folder)) as found:
        for name in wanted:
            if name in DRAWN:
                (FOLDER / name).write_text(DRAWN[name](found))
        for name, picture in screenshots(found, [name for name in wanted if name in SCREENS], Path(folder)):
            (FOLDER / name).write_bytes(picture)
    for name in wanted:
        print(f"{FOLDER.relative_to(ROOT) / name}: {(FOLDER / name).stat().st_size / 1000:.0f} KB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
