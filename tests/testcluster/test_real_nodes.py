"""The log lines of replicas that ``make cluster`` prints, read from the disks of nodes whose kubelets remove them at any moment."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from tests.testcluster import real_nodes

LOG = "pods/berth-system_berth-{}/berth/0.log"
LINE = '2026-11-27T13:39:38Z stdout F {{"event":"decision","pod":{}}}\n'


def rig(folder: Path) -> Any:
    return cast(Any, SimpleNamespace(nodes={"node-1": SimpleNamespace(folder=folder)}))


def write(folder: Path, number: int) -> Path:
    file = folder / LOG.format(number)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(LINE.format(number))
    return file


def test_a_line_is_read_once_and_whole(tmp_path: Path) -> None:
    """Each call returns the lines that were finished since the call before."""
    file = write(tmp_path, 1)
    lines = real_nodes.new_lines(rig(tmp_path))
    assert list(lines()) == ['{"event":"decision","pod":1}']
    with file.open("a") as log:
        log.write(LINE.format(2)[:20])
    assert list(lines()) == []
    with file.open("a") as log:
        log.write(LINE.format(2)[20:])
    assert list(lines()) == ['{"event":"decision","pod":2}']


def test_folders_that_are_removed_while_they_are_read_are_passed_over(tmp_path: Path) -> None:
    """A kubelet that removes the logs of pods does not end `make cluster`."""
    ended = threading.Event()

    def churn() -> None:
        while not ended.is_set():
            for number in range(20):
                write(tmp_path, number)
            shutil.rmtree(tmp_path / "pods")

    kubelet = threading.Thread(target=churn)
    kubelet.start()
    lines = real_nodes.new_lines(rig(tmp_path))
    try:
        for _ in range(500):
            list(lines())
    finally:
        ended.set()
        kubelet.join()
